/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of a simulation in the order of their times; events of one time in the order in which
 * they were added, so that a run is the same each time. A heap in memory of its own; one thread. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_EVENTS_H
#define TRUNKLINE_SPAWNER_SIMULATE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct sim_event {
    uint64_t time; /* ns */
    uint32_t order;
    uint32_t what; /* the owner's */
    uint32_t a, b;
    uint64_t c;
};

struct sim_events {
    struct sim_event *at;
    uint32_t count, space, added;
};

/* False without memory. */
bool sim_events_add(struct sim_events *e, uint64_t time, uint32_t what, uint32_t a, uint32_t b,
                    uint64_t c);

/* Removes the earliest one. False: there is none. */
bool sim_events_next(struct sim_events *e, struct sim_event *event);

void sim_events_free(struct sim_events *e);

#endif
