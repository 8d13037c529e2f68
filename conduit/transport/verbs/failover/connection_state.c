/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See connection_state.h. Owns the lock of moves. */
#include "config.h"

#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs_private.h"

tk_lock_t tk_moves_lock = TK_LOCK_INIT;

bool tk_is_leaving(void)
{
    return !__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
}

int tk_link_unfinished(const struct tk_link *link)
{
    return link->notes->failed + link->quiet;
}

/* ---- incarnations ---- */

void tk_life_name(struct tk_link *link)
{
    struct tk_work *quiet = &link->notes->life.quiet[link->notes->life.number % 2];
    quiet->link = link;
    quiet->opcode = IBV_WR_SEND;
    link->quiet_wr.wr_id = (uintptr_t)quiet;
}

bool tk_life_names(const struct tk_work *work)
{
    const struct tk_life *life = &work->link->notes->life;
    return work == &life->quiet[0] || work == &life->quiet[1];
}

bool tk_life_is_over(const struct tk_work *work)
{
    const struct tk_life *life = &work->link->notes->life;
    uint32_t number = __atomic_load_n(&life->number, __ATOMIC_RELAXED);
    return work == &life->quiet[(number + 1) % 2];
}

/* ---- what is to be done, until it is ---- */

void tk_chore_make(struct tk_link *link)
{
    if (link->notes->life.is_chore)
        return;
    link->notes->life.is_chore = true;
    tk_pair_of(link)->chores++;
    tk_counter_add(&tk_verbs.chores, 1);
}

void tk_chore_end(struct tk_link *link)
{
    link->notes->life.is_chore = false;
    tk_pair_of(link)->chores--;
    tk_counter_add(&tk_verbs.chores, -1);
}

void tk_return_tell(struct tk_link *link)
{
    link->notes->must_tell = true;
    tk_chore_make(link);
}
