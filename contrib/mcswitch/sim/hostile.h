/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends forged packets of outsiders and members beside the traffic of a run; the switch must ignore
 * them. Owns its counters; single-threaded. */
#ifndef SIM_HOSTILE_H
#define SIM_HOSTILE_H

#include "sim/member.h"
#include "sim/switches.h"

struct sim_hostile {
    const struct sim_options *o;
    struct sim_queue *q;
    struct sim_switches *switches;
    struct sim_member *member;
    uint32_t seen; /* broadcasts */
    uint64_t sent;
};

void sim_hostile_start(struct sim_hostile *h, const struct sim_options *o, struct sim_queue *q,
                       struct sim_switches *s, struct sim_member *members);
/* Call it after a post; `posted`: number of broadcasts so far. */
void sim_hostile_act(struct sim_hostile *h, uint32_t posted);

#endif
