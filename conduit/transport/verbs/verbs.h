/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verbs transport as the rooms above see it: start-up, segment registration, and its
 * descriptions for logs. */
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

/* Chooses ports, and makes completion queues, buffers and queue pairs for each peer without a
 * transport; there is at least one. Adds the rails to the peer info and fills them in. `turn` is
 * our number among the ranks of this host, by which equally near ports are distributed. */
enum tk_status tk_verbs_open(struct tk_peer_info **info, uint32_t turn);

/* Do all ranks have the same number of rails? All derive the same answer from the peer infos; if it
 * is no, rank 0 logs what each rank found. */
bool tk_verbs_agree(void);

/* Connects queue pairs by the peer infos, and closes those to peers that have got another transport
 * meanwhile. Afterwards this rank is ready to send and to receive, but other ranks may not be:
 * fence before sending. `host_of` has a number below the size of the job for each rank; ranks of
 * one host have the same number. */
enum tk_status tk_verbs_connect(const uint32_t *host_of);

/* The table for peers and polls of this rank; tk_verbs_connect() makes it. */
const struct tk_transport *tk_verbs_transport(void);

/* False if the job has one rank, or if all ranks share memory: such a job opens no device. */
bool tk_verbs_is_open(void);

/* Registers the memory at region->base of region->size bytes, and fills in the rest. Peers must
 * present the remote keys. */
enum tk_status tk_verbs_register(struct tk_region *region);
void tk_verbs_unregister(struct tk_region *region);

/* Does registration make memory present, because a device pins it? Registering the message buffers
 * shows that: a device that uses the page tables leaves their pages absent. */
bool tk_verbs_pins(void);

/* Makes a registered region the segment of endpoint 0; tk_segment_area is the same memory. NULL:
 * removes the segment. */
void tk_verbs_use_segment(const struct tk_region *region);

/* From now on transfers from and to memory outside of segments may register it. Call it when the
 * neighbours are known: the ranks of a host share the limit of registered memory, and the first one
 * warns. */
enum tk_status tk_verbs_open_firehose(unsigned ranks_on_host, bool is_first);

/* The keys, for each rail, that peers must present for a region registered on the fly; for jobs
 * that register memory of other ranks on demand. */
struct tk_pinned;
const uint32_t *tk_verbs_remote_keys(const struct tk_pinned *pinned);

/* At the end, if a setting asks for it: logs each port in use that was given up, with the number of
 * ranks for which it was. */
void tk_verbs_report_end(void);

void tk_verbs_close(void);

/* Its memory in a job of that shape, without the cache of registered memory. */
void tk_verbs_footprint(struct tk_footprint *total, const struct tk_job_shape *shape);

/* Finds the limits of a process of that job, which has peers over the network. True: receive queues
 * are shared, on devices that allow `most` buffers in one, and `plan` divides them. */
struct tk_verbs_limits;
struct tk_loan_plan;
bool tk_verbs_shares(const struct tk_job_shape *shape, int most, struct tk_verbs_limits *limits,
                     struct tk_loan_plan *plan);

/* Whether the peer infos of that job offer XRC, provided that the devices support it. */
bool tk_verbs_offers_xrc(const struct tk_job_shape *shape);

/* The rails in use, for logs: device, port, address, and why it was chosen; and the rail that small
 * transfers to a peer use. */
uint32_t tk_verbs_rails(void);
uint32_t tk_verbs_rail_to(uint32_t rank);
void tk_verbs_describe(uint32_t rail, char *text, size_t size);

/* When connections are made, and whether they share queue pairs. */
void tk_verbs_describe_connections(char *text, size_t size);

/* Logs the peer with the longest wait for credits. Also reads events of ports. Called rarely, by a
 * waiter without progress. */
void tk_verbs_report_stall(void);

/* Adds operations in flight with peers to the record of waits. */
struct tk_wait_rows;
void tk_verbs_describe_waits(struct tk_wait_rows *rows);

/* Does this value of GASNET_IBV_PORTS, whose form was checked at start-up, admit this port? */
int tk_port_filter_admits(const char *filter, const char *device, int port);

/* Does it name this port by its number? */
int tk_port_filter_names(const char *filter, const char *device, int port);

/* Call it before any device is opened. Only one thread calls the devices, so it tells the drivers
 * of mlx4 and mlx5 to use no locks, unless the user has set their variables. */
void tk_devices_single_thread(void);

/* GASNET_IBV_LIST_PORTS, before any port is opened: logs all ports on the ranks that the setting
 * names. TK_FAIL: there is no libibverbs, which was logged. */
enum tk_status tk_ports_list(void);

#endif
