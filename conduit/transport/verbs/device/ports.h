/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How device/ finds and judges ports, and describes their addresses. raw/ and trunkline_info, which
 * look at ports that the job does not use, call this too. No state, no lock. */
#ifndef TK_VERBS_PORTS_H
#define TK_VERBS_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/status.h"
#include "peer/peer.h"
#include "transport/verbs/library.h"

struct tk_choice;
struct tk_rail;

/* device/port_list.c: the variable that names a rank's ports, and its value */
struct tk_port_family {
    char name[64];
    const char *filter;
    bool is_auto;   /* the ranks of the host share ports */
    uint32_t rails; /* number of ports that each of them gets then */
};
enum tk_status tk_port_family_find(struct tk_port_family *family, uint32_t host_rank);

/* device/device.c: why ibv_open_device() failed, by the errno that it left. */
void tk_device_explain_closed(int error, char *text, size_t size);

/* Keys of partitions: IBA 10.9.1 */
enum { tk_pkey_bits = 0x7fff, tk_pkey_full = 0x8000, tk_pkey_default = 0xffff };

/* device/ports.c; takes the port; returns NULL, or why it can't be used (which
 * may lie in rail->why). */
const char *tk_port_take(struct tk_rail *rail, struct ibv_context *context, int port);

/* Mb/s */
uint32_t tk_port_rate(const struct ibv_port_attr *attr);

/* device/gid_index.c: the index in GASNET_IBV_GID_INDEX for this port; -1: none */
int tk_gid_index_of(const char *device, int port);

/* device/gid_choose.c, which uses no device; a row of a port's table: what the rules need */
struct tk_gid_row {
    struct tk_gid gid;
    bool is_down; /* its interface */
};
enum { tk_gid_text_size = 48 };
/* Selects the entries of a table that are offered to peers, best first: one of each type and
 * network. Returns their number. */
unsigned tk_gids_offer(const struct tk_gid_row *rows, unsigned count, struct tk_gid *offered);
/* The kind of a GID: its type and family, below 8; and whether no router forwards it. */
unsigned tk_gid_kind(const struct tk_gid *gid);
bool tk_gid_stays_in_network(const struct tk_gid *gid);
/* The kinds of GIDs that a port offers, as a set; two ports reach each other by GID only if they
 * share a kind. */
uint32_t tk_gid_kinds(const struct tk_port_address *address);
/* Are all of them of a kind that no router forwards? Then a common kind is not enough. */
bool tk_gids_stay_in_network(const struct tk_port_address *address);
/* Finds the best pair of GIDs, one of each address; both ends must pass the addresses in the same
 * order. False: they share no kind, or no network where no router forwards that kind. */
bool tk_gid_pair_find(const struct tk_port_address *one, const struct tk_port_address *other,
                      struct tk_gid *from, struct tk_gid *to);
bool tk_gid_is_same_network(const struct tk_gid *a, const struct tk_gid *b);
const char *tk_gid_type_text(const struct tk_gid *gid);
void tk_gid_text(const struct tk_gid *gid, char text[tk_gid_text_size]);
enum { tk_gids_text_size = 256 };
const char *tk_gids_text(const struct tk_port_address *address, char text[tk_gids_text_size]);

/* device/gid_table.c: reads the table of a port; only row `wanted`, unless that is -1 */
unsigned tk_gid_table_offer(struct ibv_context *context, int port, int length, int wanted,
                            struct tk_gid *offered);
/* The row that has this GID now; -1: none, its address was removed. */
int tk_gid_row_now(struct ibv_context *context, int port, const struct tk_gid *gid);

/* device/network.c */
enum { tk_gid_size = 16 };
struct tk_network {
    bool is_ethernet, is_iwarp;
    uint8_t prefix[tk_gid_size];
};
void tk_network_of(struct tk_network *network, const struct tk_rail *rail);
bool tk_network_is_same(const struct tk_network *a, const struct tk_network *b);

/* device/rail_select.c: tk_rails_choose() for a process without a job. Calls report() for each
 * port; port 0 means the whole device. */
typedef void (*tk_port_verdict)(const char *device, int port, bool is_used, const char *text);
enum tk_status tk_rails_explain(struct tk_choice *choice, tk_port_verdict report);
extern TK_HIDDEN const char tk_no_device[]; /* in `unused`, if there is no device */

#endif
