/* SPDX-License-Identifier: BSD-3-Clause */
/* One member of the job as the library's functions see it, so that they decide for it: the team of
 * all processes, and lists in place of an engine. world.c also has what else those functions name
 * of a process, which they don't reach here. One thread. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_WORLD_H
#define TRUNKLINE_SPAWNER_SIMULATE_WORLD_H

#include "collective/coll_private.h"

/* A send or a receive of a round. */
struct sim_transfer {
    uint32_t other; /* team rank */
    uint32_t tag;
    size_t nbytes;
    bool is_send;
};

/* What the last call of tk_coll_start() and of an algorithm left. */
extern struct sim_captured {
    struct tk_coll coll;
    struct sim_transfer *transfers;
    uint32_t count, space;
    bool has_failed; /* no memory */
} sim_captured;

/* Members of one neighbourhood follow each other; `first` has the first rank of each, and then the
 * number of ranks. False without memory. */
bool sim_world_open(const uint32_t *first, uint32_t nbrhds);
void sim_world_close(void);

/* Makes the team that of the first rank of a neighbourhood. */
gex_TM_t sim_world_be(uint32_t nbrhd);

/* Whether an algorithm runs in shared memory, not by messages. */
bool sim_world_is_node_local(tk_coll_algorithm *algorithm);

#endif
