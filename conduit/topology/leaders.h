/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dissemination among the leaders (first ranks) of neighbourhoods: to which leaders each sends. */
#ifndef TK_LEADERS_H
#define TK_LEADERS_H

#include <stdint.h>

enum { tk_leaders_rounds_max = 32 };

/* Dissemination (Hensgen, Finkel, Manber 1988): in round k each leader sends to the leader of the
 * neighbourhood 2^k above its own, and proceeds when it has received from the one 2^k below;
 * ceil(log2 of the number of leaders) rounds. */
struct tk_leaders {
    unsigned rounds; /* 0: there are no others, or this rank does not lead */
    uint32_t targets[tk_leaders_rounds_max]; /* rank, by round */
};

/* To be called after tk_topology_build(). */
void tk_leaders_open(struct tk_leaders *leaders);

#endif
