/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Turns of threads that wait for room in one ring, as those that wait for credits have them
 * (transport/verbs/data/credit.c). Each has a ticket, and a sixteenth of the ring is kept for it,
 * or the lines of the largest message that one of them waits with; but for all together no more
 * than half of the slots and a quarter of the lines, so that those in long handlers, or without a
 * CPU, keep no other thread from going on: with the largest message, half of the lines, that is
 * less than the seven eighths which are free at rest. A thread goes if there is room beside what is
 * kept for those in front of it; one that does not wait has all of them in front. What must be
 * immediate can't stand in line: of as many messages as a turn has one may take what is kept for
 * others, or it might never go. A thread never waits for itself: of two waits, one inside the
 * other, the inner one goes in the place of the outer one.
 *
 * A turn is as much as is kept for a thread, not one message: a thread that shares its CPU with the
 * receiver finds room only when it begins to run. What it leaves is not kept any longer.
 *
 * Room is not a promise, as credits are: other processes take it too. So the order is kept only
 * among those for whom there is some, and the first one in line goes whenever it fits.
 *
 * The head that the handle knows is less by what is kept, so threads which find room beside that
 * take it as if nobody waited; the others come here. The lock is for joining and leaving, and looks
 * need none: where a position has changed meanwhile, or a thread that had not seen that stored a
 * head, the next look at the true head is right again. */
#include "config.h"

#include "base/bits.h"
#include "transport/shm/ring.h"
#include "transport/transport.h"

enum { tickets_of_ring = 16 };

/* This thread's turn, which has come, lasts until the ring's tail is here. A position rather than a
 * count of its own messages: those that find room as if nobody waited are not counted. */
static TK_PER_THREAD struct {
    const struct tk_ring_out *out;
    uint64_t end;
} granted;

static uint64_t ticket_slots(const struct tk_ring_out *out)
{
    return tk_max(tk_ring_out_slots(out) / tickets_of_ring, 1);
}

/* Of a turn: lines count by what part of the ring they are. */
static uint64_t cost(const struct tk_ring_out *out, uint64_t lines)
{
    return 1 + lines * tk_ring_out_slots(out) / out->lines;
}

/* For so many threads, as a position. */
static uint64_t kept_for(const struct tk_ring_out *out, uint32_t threads)
{
    const uint64_t lines_each =
        tk_max(tk_peek(&out->queue.largest_lines), out->lines / tickets_of_ring);
    return tk_min(threads * ticket_slots(out), tk_ring_out_slots(out) / 2) * TK_RING_SLOT +
           tk_min(threads * lines_each, out->lines / 4);
}

/* With the lock. */
static void keep_for(struct tk_ring_out *out, uint32_t waiting)
{
    tk_poke(&out->queue.waiting, waiting);
    tk_poke(&out->queue.kept, kept_for(out, waiting));
    tk_ring_learn_head(out);
}

/* Reserves if there is room beside what is kept for `ahead` threads. */
static bool reserve_behind(struct tk_ring_out *out, uint32_t ahead, uint64_t lines,
                           uint64_t *ticket)
{
    const uint64_t kept = kept_for(out, ahead);
    uint64_t tail, next;
    do {
        /* A tail from before that head would say nothing. */
        uint64_t head = tk_ring_head_less(tk_ring_true_head(out), kept);
        tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
        if (!tk_ring_fits(out, head, tail, lines))
            return false;
        if (!ticket)
            return true;
        next = tk_ring_advance(tail, lines);
    } while (!atomic_compare_exchange_weak_explicit(&out->shared->tail, &tail, next,
                                                    memory_order_relaxed, memory_order_relaxed));
    *ticket = tail;
    return true;
}

/* Where a wait of this thread stands in line; NULL: nowhere. */
static const struct tk_wait_ticket *find_ticket(const struct tk_ring_out *out)
{
    for (const struct tk_wait_ticket *ticket = tk_wait_ticket; ticket; ticket = ticket->outer)
        if (ticket->at == out && ticket->queue)
            return ticket;
    return NULL;
}

static void join_queue(struct tk_ring_out *out, uint64_t lines)
{
    struct tk_ring_queue *queue = &out->queue;
    /* The next look is soon, and its owner may have been interrupted for good, by a signal. */
    if (!tk_trylock(&queue->lock))
        return;
    const uint32_t waiting = tk_peek(&queue->waiting);
    tk_wait_ticket->at = out;
    tk_wait_ticket->queue = 1;
    tk_wait_ticket->number = tk_peek(&queue->served) + waiting;
    if (waiting == 0 || lines > tk_peek(&queue->largest_lines))
        tk_poke(&queue->largest_lines, (uint32_t)lines);
    if (waiting == 0)
        tk_poke(&queue->spared, atomic_load_explicit(&out->shared->tail, memory_order_relaxed) +
                                    ticket_slots(out) * TK_RING_SLOT);
    keep_for(out, waiting + 1);
    tk_unlock(&queue->lock);
}

void tk_ring_queue_leave(struct tk_wait_ticket *ticket)
{
    struct tk_ring_out *out = (struct tk_ring_out *)ticket->at;
    struct tk_ring_queue *queue = &out->queue;
    tk_lock(&queue->lock);
    tk_poke(&queue->served, tk_peek(&queue->served) + 1);
    keep_for(out, tk_peek(&queue->waiting) - 1);
    tk_unlock(&queue->lock);
}

static bool reserve_granted(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    uint64_t end = atomic_load_explicit(&out->shared->tail, memory_order_relaxed) +
                   cost(out, lines) * TK_RING_SLOT;
    return granted.out == out && (int64_t)(granted.end - end) >= 0 &&
           reserve_behind(out, 0, lines, ticket);
}

static bool reserve_queued(struct tk_ring_out *out, const struct tk_wait_ticket *own,
                           uint64_t lines, uint64_t *ticket)
{
    /* Those behind it may have gone before it. */
    int32_t ahead = (int32_t)(own->number - tk_peek(&out->queue.served));
    if (!reserve_behind(out, ahead > 0 ? (uint32_t)ahead : 0, lines, ticket))
        return false;
    if (ticket) {
        granted.out = out;
        granted.end = (*ticket | TK_RING_LINES) + ticket_slots(out) * TK_RING_SLOT;
    }
    return true;
}

/* No more is left than what is kept. */
static bool reserve_unqueued(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    if (reserve_granted(out, lines, ticket))
        return true;
    const uint64_t tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    if ((int64_t)(tail - tk_peek(&out->queue.spared)) < 0 || !reserve_behind(out, 0, lines, ticket))
        return false;
    if (ticket) /* a look takes nothing */
        tk_poke(&out->queue.spared, tail + ticket_slots(out) * TK_RING_SLOT);
    return true;
}

bool tk_ring_queue_reserve(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    if (!TK_THREADED)
        return false;
    const bool waits = tk_wait_ticket && tk_wait_ticket->is_up;
    const struct tk_wait_ticket *own = waits ? find_ticket(out) : NULL;
    if (own)
        return reserve_queued(out, own, lines, ticket);
    /* The last one in line that leaves may lose its CPU before nothing is kept any longer. */
    const bool is_kept = tk_peek(&out->queue.waiting) > 0 || tk_peek(&out->queue.kept) > 0;
    if (is_kept && reserve_unqueued(out, lines, ticket))
        return true;
    if (waits && tk_wait_ticket->queue == 0)
        join_queue(out, lines);
    return false;
}
