/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shape of the simulated machine, and the environment variables that define it
 * (softhca_settings.def). The parser is a function of an environment, and of the bundles that it
 * names: it owns nothing, takes no lock, prints nothing.
 */
#ifndef SHCA_SETTINGS_H
#define SHCA_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bundle.h"
#include "profiles.h"
#include "segment_layout.h"

enum {
    SHCA_MAX_SGE = 30,       /* as large as any current HCA offers */
    SHCA_WR_MAX = 16384,     /* work requests in one queue */
    SHCA_RATE_MAX = 1000000, /* MB/s; more than any memory of today can do */
    SHCA_PKEYS = 8,          /* entries of a port's P_Key table that can have keys */
    SHCA_PORT_NO_LID = 0xff, /* a state of SOFTHCA_STATE: active, with LID 0 */
};
#define SHCA_MSG_MAX (1u << 30) /* bytes in one message, as ConnectX */

/* An entry of a port's GID table (fabric/gid.c). */
enum shca_gid_kind { SHCA_GID_NONE, SHCA_GID_LINK, SHCA_GID_IPV4, SHCA_GID_IPV6 };
enum { SHCA_GIDS = 16, SHCA_VLAN_MAX = 99 };
struct shca_gid_row {
    uint8_t kind; /* enum shca_gid_kind */
    uint8_t vlan; /* 0: none */
    bool v2;
};

struct shca_port_config {
    uint32_t rate;        /* MB/s, 0: unlimited */
    uint8_t width, speed; /* as ibv_query_port returns them */
    uint8_t mtu;          /* enum ibv_mtu; 0: that of the device */
    uint8_t state;        /* enum ibv_port_state until it is plugged in; 0: not set */
    uint8_t subnet;       /* of an InfiniBand port */
    uint8_t gids;
    struct shca_gid_row gid[SHCA_GIDS];
};

struct shca_config {
    int hcas, ports; /* ports: the most that a device has */
    bool roce, only, pin, no_dmabuf, no_router;
    bool udp;      /* there are ports on the UDP wire: their GIDs are those of wire/udp */
    bool udp_only; /* no connection uses shared memory */
    bool crc_tables;
    uint32_t max_qp, max_qp_wr, max_sge, max_inline, max_cq, max_cqe, max_mr, max_pd, max_msg;
    uint32_t max_srq, max_srq_wr, roce_types, repeat_ms, odp, scatter, lmc;
    uint64_t seed;
    const char *wire, *udp_list;
    const char *profile_list, *fabric_name, *down_list, *unplugged_list, *rate_list, *speed_list,
        *gid_list, *subnet_list, *state_list, *mtu_list, *pkey_list, *fault, *stats, *real;
    /* derived from the above */
    uint32_t down[SHCA_MAX_HCA]; /* a bit for each port that is down */
    uint32_t unplugged[SHCA_MAX_HCA];
    uint16_t pkeys[SHCA_PKEYS]; /* of each port, in the order of its table; 0: an empty entry */
    struct shca_port_config port[SHCA_MAX_HCA][SHCA_MAX_PRT + 1]; /* by port number, from 1 */
    struct shca_profile device[SHCA_MAX_HCA]; /* each device's profile, changed by the settings */
    struct shca_bundle bundle;                /* the devices of files in profile_list */
    char fabric[SHCA_NAME]; /* unique per user and name, usable in a socket name */
};

enum shca_setting_kind { SHCA_IS_NUMBER, SHCA_IS_CHOICE, SHCA_IS_TEXT };

struct shca_setting {
    const char *name;
    enum shca_setting_kind kind;
    size_t offset, size; /* of the field of struct shca_config */
    uint64_t standard, low, high;
    const char *text; /* default of a text; words of a choice */
    const char *doc;
};
extern const struct shca_setting shca_settings[];
extern const size_t shca_setting_count;

/* Fills *out from the SOFTHCA_* of an environment; strings are not copied. Returns 0, or EINVAL
 * with one line in `why` about the first variable that is wrong. */
int shca_settings_parse(char *const *environment, struct shca_config *out, char *why, size_t n);
/* gid_list.c. The entries that SOFTHCA_GIDS, or NULL for the usual ones, gives to a port; false: it
 * is no such text. The second keeps those that a device has: GIDs of one type, or InfiniBand's. */
bool shca_gid_list_parse(const char *text, struct shca_port_config *out);
void shca_gid_list_fit(const struct shca_profile *device, struct shca_port_config *port);
/* speed.c. The word of SOFTHCA_SPEED for codes of a port; false: codes without a word. */
bool shca_speed_word(uint32_t width, uint32_t speed, char *out, size_t n);
/* The codes of such a word; false: another word. */
bool shca_speed_codes(const char *text, uint8_t *width, uint8_t *speed);
/* Legal range and default of a setting as text: "1..16 (1)". */
void shca_setting_range(const struct shca_setting *s, char *out, size_t n);

#endif
