/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cables: each direction is a link with one latency, which keeps the order of frames except
 * those that it delays. Frames are lost and doubled at random. Owns what links remember;
 * single-threaded. */
#ifndef SIM_NET_H
#define SIM_NET_H

#include "sim/options.h"
#include "sim/queue.h"

/* The time unit of a simulation: one link. */
static const roce_time SIM_LINK = 10000;

struct sim_link {
    roce_time last; /* arrival of the newest frame in order */
};

struct sim_net {
    const struct sim_options *o;
    struct sim_queue *q;
    uint64_t sent, lost, doubled, late;
    bool calm; /* no faults: for the end of a run */
};

/* Sends the bytes to `to` (kind, node, port). */
void sim_net_send(struct sim_net *n, struct sim_link *l, struct sim_event to, const uint8_t *bytes,
                  size_t length);

#endif
