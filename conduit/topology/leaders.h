/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Who tells whom among the first ranks of neighbourhoods, for what all ranks must hear of. */
#ifndef TK_LEADERS_H
#define TK_LEADERS_H

#include <stdint.h>

enum { tk_leaders_rounds_max = 32 };

/* Dissemination (Hensgen, Finkel, Manber 1988): in round k each leader tells that of the
 * neighbourhood 2^k above its own, and goes on when that of the one 2^k below has told it;
 * ceil(log2 of how many there are) rounds. */
struct tk_leaders {
    unsigned rounds;                         /* 0: there are no others, or we do not lead */
    uint32_t targets[tk_leaders_rounds_max]; /* rank, by round */
};

/* After the topology is known. */
void tk_leaders_open(struct tk_leaders *leaders);

#endif
