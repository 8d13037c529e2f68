/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cables: each direction of each is a link with one latency, which keeps the order of frames
 * unless one of them is chosen to be late. Frames are lost and doubled by chance. Owns what links
 * remember; single-threaded. */
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
    bool calm; /* nothing goes wrong: for the end of a run */
};

/* Sends the bytes to where `to` (kind, node, port) says. */
void sim_net_send(struct sim_net *n, struct sim_link *l, struct sim_event to, const uint8_t *bytes,
                  size_t length);

#endif
