/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The behaviour of members: each broadcasts to random subsets as soon as it can (one control packet
 * followed by its messages), releases the lock or keeps it for the next broadcast, dies, sleeps,
 * and starts again when its queue pair has failed. Owns the state of each actor;
 * single-threaded. */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include "sim/member.h"
#include "sim/switches.h"

struct sim_actor {
    struct sim_traffic *t;
    struct sim_member *m;
    struct sim_broadcast *now, *last; /* posted, not complete; the previous one */
    bool holds;                       /* the lock is kept, as far as this member knows */
    bool releasing;
    bool broken; /* the SQP failed: it needs a new registration */
};

struct sim_traffic_counts {
    uint64_t controls, packets; /* that roots posted, without releases */
    uint64_t copies;            /* without a repetition */
    uint64_t deaths, sleeps, anew;
};

struct sim_traffic {
    const struct sim_options *o;
    struct sim_queue *q;
    struct sim_ledger *ledger;
    struct sim_switches *switches;
    struct sim_member *member;
    struct sim_actor actor[SIM_MEMBERS_MAX];
    uint32_t posted, idle;
    roce_time progress; /* of the last broadcast that ended */
    struct sim_traffic_counts count;
};

void sim_traffic_start(struct sim_traffic *t, const struct sim_options *o, struct sim_queue *q,
                       struct sim_ledger *l, struct sim_switches *s, struct sim_member *members);
void sim_traffic_act(struct sim_traffic *t, const struct sim_event *e);
/* True if all broadcasts are over and no member holds the lock. */
bool sim_traffic_over(const struct sim_traffic *t);

#endif
