/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Barriers in three parts: neighbours signal each other by flags in shared memory (nbrhd.h), the
 * leaders of neighbourhoods by active messages whose number in flight is bounded, so that they take
 * no credits and need no answer (leaders.h), and then neighbours again.
 *
 * Barriers of one process advance strictly in order, so counters suffice: of barriers entered, of
 * messages sent and received in each round, and of completed barriers; one call advances all
 * barriers in progress. Counters do not depend on the order in which messages arrive. One lock
 * protects the counters and the queue of incomplete barriers; handlers only count. */
#include "config.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "collective/barrier.h"
#include "collective/nbrhd.h"
#include "message/message.h"
#include "progress/progress.h"
#include "topology/leaders.h"
#include "transport/neighbour.h"
#include "transport/transport.h"

struct barrier {
    struct tk_op *op;
    struct barrier *next;
};

static struct {
    tk_lock_t lock;
    struct tk_nbrhd nbrhd;
    struct tk_leaders leaders;
    bool by_tree;                        /* the first barriers, among leaders */
    uint32_t led;                        /* barriers that have passed all steps of leaders */
    uint32_t entered;                    /* barriers of the job so far; wraps, as all counts do */
    uint32_t sent[tk_leaders_steps_max]; /* messages sent in each step of leaders */
    tk_counter_t received[tk_leaders_steps_max];
    struct barrier *first, **end; /* not over */
    struct barrier *free;
} state = {.lock = TK_LOCK_INIT, .end = &state.first};

static void barrier_received(struct tk_peer *from, const int32_t *args)
{
    if (!tk_leaders_await(&state.leaders, (uint32_t)args[0]))
        tk_panic("rank %u (%s, pid %d) is in barrier step %d of %u", from->rank, from->host,
                 from->pid, args[0], state.leaders.all);
    tk_counter_add(&state.received[args[0]], 1);
}

static bool barrier_send(const struct tk_leaders_step *step)
{
    int32_t arg = (int32_t)step->to_step;
    return tk_internal_send(tk_peer(step->to), TK_BOUNDED, TK_HANDLER_BARRIER, 1, &arg) == TK_OK;
}

static uint32_t pass_step(unsigned number, uint32_t count)
{
    const struct tk_leaders_step *step = &state.leaders.steps[number];
    uint32_t *sent = &state.sent[number];
    if (!step->sends)
        *sent = count;
    while ((int32_t)(*sent - count) < 0 && barrier_send(step))
        ++*sent;
    if (!step->awaits)
        return *sent;
    count = (uint32_t)tk_counter_read(&state.received[number]);
    return (int32_t)(*sent - count) < 0 ? *sent : count;
}

/* How many of these barriers have passed all steps: the messages of each step were both sent and
 * received. */
static uint32_t pass_steps(unsigned first, unsigned end, uint32_t count)
{
    for (unsigned number = first; number < end; number++)
        count = pass_step(number, count);
    return count;
}

static uint32_t lead_few(uint32_t count)
{
    const struct tk_leaders *leaders = &state.leaders;
    uint32_t few = leaders->tree ? tk_leaders_few : 0;
    if (state.by_tree) {
        uint32_t over = pass_steps(0, leaders->tree, (uint32_t)tk_min(count, few));
        if (over < few)
            return over;
        state.by_tree = false;
    }
    return few + pass_steps(leaders->tree, leaders->all, count - few);
}

/* Our neighbourhood has entered `count` barriers. The bound on messages in flight, and so the
 * number of receive buffers, is derived from how far a leader goes ahead: leaders.h. */
static uint32_t barrier_lead(uint32_t count)
{
    uint32_t before;
    if (state.leaders.all == 0)
        return count;
    do {
        uint32_t ahead = count - state.led;
        before = state.led;
        state.led = lead_few(before + (uint32_t)tk_min(ahead, tk_leaders_ahead));
    } while (state.led != before && state.led != count);
    return state.led;
}

static void barrier_finish_first(void)
{
    struct barrier *b = state.first;
    state.first = b->next;
    if (!state.first)
        state.end = &state.first;
    b->next = state.free;
    state.free = b;
    tk_counter_add(&tk_deferred_work_wanted, -1);
    tk_wait_page.progress.barriers_over++;
    tk_counter_add(&b->op->pending, -1);
}

static bool barrier_advance(void)
{
    uint32_t before = state.nbrhd.over;
    uint32_t over = tk_nbrhd_step(&state.nbrhd, state.entered, barrier_lead);
    for (uint32_t n = before; n != over; n++)
        barrier_finish_first();
    return over != before;
}

static bool barrier_progress(void)
{
    if (!tk_trylock(&state.lock))
        return false;
    bool any = state.first && barrier_advance();
    tk_unlock(&state.lock);
    return any;
}

/* A thread that holds the lock may have read the flags before they changed. */
static bool barrier_is_due(void)
{
    if (!tk_trylock(&state.lock))
        return true;
    bool due = state.first && tk_nbrhd_is_due(&state.nbrhd, state.entered);
    tk_unlock(&state.lock);
    return due;
}

static void barrier_add(void *context, uint32_t rank)
{
    tk_wait_row_add(context, TK_REASON_BARRIER, rank, state.nbrhd.over + 1, 0);
}

/* A leader of a complete neighbourhood waits for the message of the first step that has none. */
static void barrier_describe(struct tk_wait_rows *rows)
{
    const struct tk_leaders *leaders = &state.leaders;
    if (!tk_trylock(&state.lock))
        return;
    uint32_t next = state.nbrhd.over + 1, had = rows->count;
    uint32_t wanted = state.by_tree || !leaders->tree ? next : next - tk_leaders_few;
    unsigned end = state.by_tree ? leaders->tree : leaders->all;
    if (state.first)
        tk_nbrhd_missing(&state.nbrhd, next, barrier_add, rows);
    for (unsigned i = state.by_tree ? 0 : leaders->tree;
         state.first && rows->count == had && i < end; i++) {
        uint32_t came = (uint32_t)tk_counter_read(&state.received[i]);
        if (leaders->steps[i].awaits && (int32_t)(came - wanted) < 0)
            tk_wait_row_add(rows, TK_REASON_BARRIER, leaders->steps[i].from, next, i + 1);
    }
    tk_unlock(&state.lock);
}

void tk_barrier_open(void)
{
    tk_wait_describe_add(barrier_describe);
    tk_progress_look(barrier_is_due);
    tk_internal_register(TK_HANDLER_BARRIER, barrier_received);
    tk_progress_add(barrier_progress);
}

static struct tk_nbrhd_lines *barrier_lines_of(uint32_t neighbour)
{
    struct tk_nbrhd_page *page = tk_neighbour_flags(neighbour);
    return page ? &page->barrier : NULL;
}

enum tk_status tk_barrier_connect(void)
{
    tk_leaders_open(&state.leaders, tk_transports_connect_later());
    state.by_tree = state.leaders.tree > 0;
    return tk_nbrhd_open(&state.nbrhd, barrier_lines_of);
}

static struct barrier *barrier_take(void)
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
    struct barrier *b = barrier_take();
    *b = (struct barrier){.op = op};
    *state.end = b;
    state.end = &b->next;
    state.entered++;
    tk_wait_page.progress.barriers++;
    tk_counter_add(&tk_deferred_work_wanted, 1);
    tk_unlock(&state.lock);
    barrier_progress();
}
