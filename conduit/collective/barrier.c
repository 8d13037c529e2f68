/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Dissemination barrier (Hensgen, Finkel, Manber 1988): in round k each rank tells the one 2^k
 * above it, and goes on when the one 2^k below has told it; ceil(log2 n) rounds. Told by active
 * messages with credits of their own kind.
 *
 * Barriers of one process advance strictly in order, round by round, so a count of messages per
 * round is all there is to remember: the s-th barrier has passed round k when more than s messages
 * of round k have come. Counts do not care in which order messages arrive. One lock guards the
 * queue; handlers only count. */
#include "config.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "collective/barrier.h"
#include "message/message.h"
#include "progress/progress.h"

enum { rounds_max = 32 };

struct barrier {
    struct tk_op *op;
    uint32_t number; /* 0 for the first of the job, and so on; wraps */
    unsigned round;
    bool told; /* our message of this round is out */
    struct barrier *next;
};

static struct {
    tk_lock_t lock;
    unsigned rounds;
    uint32_t started;
    struct barrier *first, **end;
    struct barrier *free;
    tk_counter_t heard[rounds_max];
} state = {.lock = TK_LOCK_INIT, .end = &state.first};

static void heard(struct tk_peer *from, const int32_t *args)
{
    (void)from;
    if (args[0] < 0 || (unsigned)args[0] >= state.rounds)
        tk_panic("rank %u is in barrier round %d of %u", from->rank, args[0], state.rounds);
    tk_counter_add(&state.heard[args[0]], 1);
}

static bool tell(unsigned round)
{
    int32_t arg = (int32_t)round;
    uint32_t to = (uint32_t)(((uint64_t)tk_peers.me + (1u << round)) % tk_peers.size);
    return tk_internal_send(tk_peer(to), TK_REQUEST, TK_HANDLER_BARRIER, 1, &arg) == TK_OK;
}

/* As far as this barrier can go now without overtaking `before`, the last round that the one ahead
 * of it has told. */
static unsigned advance(struct barrier *b, unsigned before)
{
    while (b->round < state.rounds) {
        if (!b->told && b->round < before)
            b->told = tell(b->round);
        if (!b->told ||
            (int32_t)((uint32_t)tk_counter_read(&state.heard[b->round]) - b->number) <= 0)
            break;
        b->round++;
        b->told = false;
    }
    return b->round + b->told;
}

static void finish_first(void)
{
    struct barrier *b = state.first;
    state.first = b->next;
    if (!state.first)
        state.end = &state.first;
    b->next = state.free;
    state.free = b;
    tk_counter_add(&tk_work_wanted, -1);
    tk_counter_add(&b->op->pending, -1);
}

static void progress(void)
{
    unsigned told = rounds_max;
    if (!tk_trylock(&state.lock))
        return;
    for (struct barrier *b = state.first; b && told > 0; b = b->next)
        told = advance(b, told);
    while (state.first && state.first->round == state.rounds)
        finish_first();
    tk_unlock(&state.lock);
}

void tk_barrier_open(void)
{
    while ((UINT64_C(1) << state.rounds) < tk_peers.size)
        state.rounds++;
    tk_internal_register(TK_HANDLER_BARRIER, heard);
    tk_progress_add(progress);
}

static struct barrier *take(void)
{
    struct barrier *b = state.free;
    if (b)
        state.free = b->next;
    else if (!(b = malloc(sizeof(*b))))
        tk_panic("out of memory for a barrier");
    return b;
}

void tk_barrier_start(struct tk_op *op)
{
    tk_counter_add(&op->pending, 1);
    tk_lock(&state.lock);
    struct barrier *b = take();
    *b = (struct barrier){.op = op, .number = state.started++};
    *state.end = b;
    state.end = &b->next;
    tk_counter_add(&tk_work_wanted, 1);
    tk_unlock(&state.lock);
    progress();
}
