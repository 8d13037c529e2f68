/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gathers a small record of each member of a team at all members, by active messages, before or
 * after collectives can use the team. Collective and blocking; exchanges of one team follow each
 * other, those of several teams may overlap. Thread-safe in PAR. */
#ifndef TK_EXCHANGE_H
#define TK_EXCHANGE_H

#include "base/wait_record.h"
#include "team/team.h"

/* Before any communication. */
void tk_exchange_open(void);

/* Fills `all` with the records by rank; `size` is equal on all members. No member returns before
 * all have called; with `size` 0 it is only a barrier. Not in handlers. `call`: the client's call
 * that the record of waits shows. */
void tk_exchange(struct trunkline_tm *tm, enum tk_wait_call call, const void *mine, void *all,
                 size_t size);

static inline void tk_exchange_barrier(struct trunkline_tm *tm, enum tk_wait_call call)
{
    tk_exchange(tm, call, NULL, NULL, 0);
}

#endif
