/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verbs transport as the rooms above see it: start-up, segment registration, and what to tell
 * people about it. */
#ifndef TK_VERBS_H
#define TK_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "memory/memory.h"
#include "peer/peer.h"

/* Chooses a port, makes completion queues, buffers and one queue pair for each peer. Fills in
 * card->address and card->qp. */
enum tk_status tk_verbs_open(struct tk_card *card);

/* Connects queue pairs by the cards, and closes those to peers that have another transport by now;
 * ready to send and to receive afterwards (others may not be: fence first). */
enum tk_status tk_verbs_connect(void);

/* Neither a job of one nor one whose ranks all share memory opens a device. */
bool tk_verbs_is_open(void);

/* Registers region->base and ->size and fills in the rest; the remote key is what peers must
 * present. */
enum tk_status tk_verbs_register(struct tk_region *region);
void tk_verbs_unregister(struct tk_region *region);

/* Makes a registered region the segment of endpoint 0, tk_segment_area being the same memory; NULL:
 * there is none any more. */
void tk_verbs_use_segment(const struct tk_region *region);

void tk_verbs_close(void);

/* What an operation to a peer used: device, port, and how the peer is addressed. For people. */
void tk_verbs_describe(char *text, size_t size);

/* Largest wait for credits so far on the links that starve now: tells people who keeps us waiting.
 * Called rarely. */
void tk_verbs_tell_stall(void);

/* Ports of one filter: does GASNET_IBV_PORTS `filter` admit this port? Malformed filters fail with
 * a message. */
enum tk_status tk_port_filter_check(const char *filter);
int tk_port_filter_admits(const char *filter, const char *device, int port);

/* GASNET_IBV_LIST_PORTS, before any port is opened: tells of all of them on the ranks that were
 * asked. */
void tk_ports_list(void);

#endif
