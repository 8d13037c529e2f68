/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections on demand: connects peers that this rank uses (unconnected.h), and peers that ask for
 * it. */
#ifndef TK_VERBS_DEMAND_H
#define TK_VERBS_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct tk_buffer;
struct tk_peer;

enum tk_status tk_demand_open(void);
void tk_demand_close(void);

/* Begins or continues to connect the peer. Does nothing if it is connected, or if all are connected
 * at start-up. */
void tk_demand_want(struct tk_peer *peer);

/* Repeats requests that were not answered. Runs no handler. */
void tk_demand_step(void);

/* A datagram came in this buffer, which is posted again. */
void tk_demand_came(struct tk_buffer *buffer, uint32_t size);

/* The number of peers that are being connected, plus one while buffers must be made; each counts as
 * pending work. */
int tk_demand_pending(void);

/* Logs the counts at the end, if a setting asks for it. */
void tk_demand_report_end(void);

/* Adds the peers that are being connected, or wait for that, to the record of waits. */
struct tk_wait_rows;
void tk_demand_describe_waits(struct tk_wait_rows *rows);

/* Logs a peer that has not answered for `limit`. */
void tk_demand_report_stall(uint64_t now, uint64_t limit);

/* See struct tk_transport. */
enum tk_status tk_demand_connect_ranks(const uint32_t *ranks, uint32_t count);
bool tk_demand_is_connected(uint32_t rank);

#endif
