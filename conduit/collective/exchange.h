/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gathers a small record of each member of a team at all members, by active messages, before or
 * after collectives can use the team. Collective and blocking; exchanges of one team follow each
 * other, those of several teams may overlap. Thread-safe in PAR. */
#ifndef TK_EXCHANGE_H
#define TK_EXCHANGE_H

#include "team/team.h"

/* Before any communication. */
void tk_exchange_open(void);

/* Fills `all` with the records by rank; `size` is equal on all members. No member returns before
 * all have called; with `size` 0 that is all there is to it. Not in handlers. */
void tk_exchange(struct trunkline_tm *tm, const void *mine, void *all, size_t size);

static inline void tk_exchange_barrier(struct trunkline_tm *tm)
{
    tk_exchange(tm, NULL, NULL, 0);
}

#endif
