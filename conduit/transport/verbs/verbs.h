/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verbs transport as the rooms above see it: start-up, segment registration, and what to log
 * people about it. */
#ifndef TK_VERBS_H
#define TK_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/footprint.h"
#include "base/status.h"
#include "memory/memory.h"
#include "peer/peer.h"

extern const struct tk_transport tk_transport_verbs;

/* Chooses ports, makes completion queues, buffers and queue pairs for each peer that has no other
 * transport yet, at least one. Widens the peer info by the rails and fills them in. `turn` is our
 * number among the ranks of this host, by which equally near ports are dealt out. */
enum tk_status tk_verbs_open(struct tk_peer_info **info, uint32_t turn);

/* Have all ranks as many rails, by their peer infos? All come to the same answer; if it is no, rank
 * 0 logs what each found. */
bool tk_verbs_agree(void);

/* Connects queue pairs by the peer infos, and closes those to peers that have another transport by
 * now; ready to send and to receive afterwards (others may not be: fence first). `host_of` has for
 * each rank a number below the size of the job that those of its host share. */
enum tk_status tk_verbs_connect(const uint32_t *host_of);

/* As which peers are reached and polls are made, once tk_verbs_open() is through. */
const struct tk_transport *tk_verbs_transport(void);

/* Neither a job of one nor one whose ranks all share memory opens a device. */
bool tk_verbs_is_open(void);

/* Registers region->base and ->size and fills in the rest; the remote keys are what peers must
 * present. */
enum tk_status tk_verbs_register(struct tk_region *region);
void tk_verbs_unregister(struct tk_region *region);

/* Does registration make memory present, as it does where a device pins it? Found out with the
 * message buffers: memory that a device reaches through the page tables stays untouched. */
bool tk_verbs_pins(void);

/* Makes a registered region the segment of endpoint 0, tk_segment_area being the same memory; NULL:
 * there is none any more. */
void tk_verbs_use_segment(const struct tk_region *region);

/* From now on transfers from and to memory outside of segments may register it. After the
 * neighbours are known: ranks of a host share what may be registered, and the first one warns. */
enum tk_status tk_verbs_open_firehose(unsigned ranks_on_host, bool is_first);

/* What peers must present for a region that is registered on the fly, on each rail; where memory of
 * other ranks is registered on demand. */
struct tk_pinned;
const uint32_t *tk_verbs_remote_keys(const struct tk_pinned *pinned);

/* At the end, if it was asked for: of each port in use that was given up, for how many ranks. */
void tk_verbs_report_end(void);

void tk_verbs_close(void);

/* What it takes in a job of that shape, the cache of registered memory apart. */
void tk_verbs_footprint(struct tk_footprint *total, const struct tk_job_shape *shape);

/* The rails in use, for people: device, port, how it is addressed, and why it was chosen; and the
 * one by which small transfers to a peer go. */
uint32_t tk_verbs_rails(void);
uint32_t tk_verbs_rail_to(uint32_t rank);
void tk_verbs_describe(uint32_t rail, char *text, size_t size);

/* When connections are made, and whether they share queue pairs. */
void tk_verbs_describe_connections(char *text, size_t size);

/* Logs the peer with the largest wait for credits on the connections that starve now. Reads events
 * of ports as well. Called rarely, by a waiter without progress. */
void tk_verbs_report_stall(void);

/* Adds what is under way with peers to the record of waits. */
struct tk_wait_rows;
void tk_verbs_describe_waits(struct tk_wait_rows *rows);

/* Ports of one filter: does GASNET_IBV_PORTS `filter`, of which the form was judged at the start,
 * admit this port? */
int tk_port_filter_admits(const char *filter, const char *device, int port);

/* Does it name this very port by its number? */
int tk_port_filter_names(const char *filter, const char *device, int port);

/* Before any device is opened: calls come from one thread, so mlx4's and mlx5's drivers need no
 * locks. What the user has set stays. */
void tk_devices_single_thread(void);

/* GASNET_IBV_LIST_PORTS, before any port is opened: logs all of them on the ranks that were asked.
 * TK_FAIL: there is no libibverbs, which has been logged. */
enum tk_status tk_ports_list(void);

#endif
