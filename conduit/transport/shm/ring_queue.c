/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue of threads that wait for space in one ring; threads that wait for credits have a similar
 * one (transport/verbs/data/credit.c). Each thread has a ticket. A sixteenth of the ring is kept
 * for it, or the lines of the largest message that a queued thread wants to send. All tickets
 * together keep at most half of the slots and a quarter of the lines, so that waiters in long
 * handlers, or without a CPU, can't block other threads: together with the largest message (half of
 * the lines) that is less than the seven eighths which are free at rest. A queued thread sends if
 * there is space besides what is kept for those in front of it; for a thread that does not wait,
 * all are in front. An immediate message can't queue, and might never be sent: so one such message
 * in every ticket's worth of messages may take space kept for others. A thread never waits for
 * itself: of two nested waits, the inner one uses the position of the outer one.
 *
 * A ticket covers the space kept for a thread, which may be more than one message: a thread that
 * shares its CPU with the receiver finds space only when it begins to run. Space that it does not
 * use is no longer kept.
 *
 * Space, unlike a credit, is not guaranteed: other processes take it too. So the queue orders only
 * threads that find some space, and the first one sends whenever its message fits.
 *
 * The head in the handle is reduced by what is kept. Threads that find space by that head take it
 * without looking at the queue; the others come here. Joining and leaving take the lock; looking
 * does not: if a position changes meanwhile, or a thread stores a head without having seen the
 * change, the next look at the true head corrects it. */
#include "config.h"

#include "base/bits.h"
#include "base/thread_own.h"
#include "transport/shm/ring.h"
#include "transport/transport.h"

enum { tickets_of_ring = 16 };

/* This thread's ticket was served, and is valid until the ring's tail reaches this position. A
 * count of its messages would miss those that did not need the queue. */
struct granted {
    const struct tk_ring_out *out;
    uint64_t end;
};

static uint64_t ticket_slots(const struct tk_ring_out *out)
{
    return tk_max(tk_ring_out_slots(out) / tickets_of_ring, 1);
}

/* The part of a ticket that a message uses: lines count by their share of the ring. */
static uint64_t cost(const struct tk_ring_out *out, uint64_t lines)
{
    return 1 + lines * tk_ring_out_slots(out) / out->lines;
}

/* The space kept for so many threads, as a position. */
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

/* Reserves if there is space besides what is kept for `ahead` threads. */
static bool reserve_behind(struct tk_ring_out *out, uint32_t ahead, uint64_t lines,
                           uint64_t *ticket)
{
    const uint64_t kept = kept_for(out, ahead);
    uint64_t tail, next;
    do {
        /* A tail read before that head would be meaningless. */
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

/* The ticket of this thread in the queue of this ring; NULL: none. */
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
    /* Do not wait for the lock: the next look is soon, and a signal may have interrupted its owner
     * for good. */
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
    const struct granted *granted = tk_thread_owned(TK_OWN_GRANTED);
    return granted && granted->out == out && (int64_t)(granted->end - end) >= 0 &&
           reserve_behind(out, 0, lines, ticket);
}

static bool reserve_queued(struct tk_ring_out *out, const struct tk_wait_ticket *own,
                           uint64_t lines, uint64_t *ticket)
{
    /* Threads behind it in the queue may have sent first. */
    int32_t ahead = (int32_t)(own->number - tk_peek(&out->queue.served));
    if (!reserve_behind(out, ahead > 0 ? (uint32_t)ahead : 0, lines, ticket))
        return false;
    if (ticket) {
        struct granted *granted = tk_thread_own(TK_OWN_GRANTED, sizeof(*granted));
        granted->out = out;
        granted->end = (*ticket | TK_RING_LINES) + ticket_slots(out) * TK_RING_SLOT;
    }
    return true;
}

/* Only the kept space is left. */
static bool reserve_unqueued(struct tk_ring_out *out, uint64_t lines, uint64_t *ticket)
{
    if (reserve_granted(out, lines, ticket))
        return true;
    const uint64_t tail = atomic_load_explicit(&out->shared->tail, memory_order_relaxed);
    if ((int64_t)(tail - tk_peek(&out->queue.spared)) < 0 || !reserve_behind(out, 0, lines, ticket))
        return false;
    if (ticket) /* a caller that only looks has no ticket */
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
    /* The last thread that leaves the queue may lose its CPU before it has cleared `kept`. */
    const bool is_kept = tk_peek(&out->queue.waiting) > 0 || tk_peek(&out->queue.kept) > 0;
    if (is_kept && reserve_unqueued(out, lines, ticket))
        return true;
    if (waits && tk_wait_ticket->queue == 0)
        join_queue(out, lines);
    return false;
}
