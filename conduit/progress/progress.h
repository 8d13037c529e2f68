/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress: serving the network, and the only place that waits. Polling runs handlers; it is
 * thread-safe in PAR. */
#ifndef TK_PROGRESS_H
#define TK_PROGRESS_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/mode.h"
#include "peer/peer.h"
#include "progress/steps.h"
#include "stats/stats.h"
#include "transport/transport.h"

/* The nesting depth of handlers in this thread. Inside of handlers nothing may poll: a wait only
 * reaps, and at most serves replies, whose handlers do not wait. */
extern TK_HIDDEN TK_PER_THREAD_NEAR unsigned tk_in_handler;

/* The number of reasons to do the work of tk_progress_add(), so that polls without such work stay
 * cheap. */
extern TK_HIDDEN tk_counter_t tk_deferred_work_wanted;

/* How many of these are blocked because a transport has no space: no doorbell rings when space
 * becomes free, so waiters sleep for short times only. */
extern TK_HIDDEN tk_counter_t tk_deferred_work_lacks_space;

/* Only for tk_poll() and tk_reap(): the functions that poll, that complete our own operations, and
 * that do the work of tk_progress_add() and return whether there was any. */
extern TK_HIDDEN bool (*tk_poll_transports)(void);
extern TK_HIDDEN bool (*tk_reap_transports)(void);
bool tk_deferred_work_after(bool any);

/* PAR: another thread may sleep until something that this thread has just done. Waking it takes two
 * locked instructions, so in a job whose threads never sleep (it has a CPU for each rank, and the
 * client did not request it) polls only read a word that no thread writes any more. */
extern TK_HIDDEN tk_counter_t tk_sleeps_expected; /* reasons why threads of the client may sleep */
void tk_wake_sleepers(void);

static inline void tk_wake_own_threads(void)
{
    tk_if_unlikely(tk_counter_read(&tk_sleeps_expected) != 0) tk_wake_sleepers();
}

/* Serves what has arrived and completes our own operations; runs handlers. True if there was
 * anything. */
static inline bool tk_poll(void)
{
    /* Bytes that handlers transfer in a poll do not belong to the call that polls. */
    const unsigned path = tk_is_traced ? tk_path_taken : 0;
    struct tk_rails_taken *const rails = tk_is_traced ? *tk_rails_taken() : NULL;
    if (tk_is_traced)
        *tk_rails_taken() = NULL;
    bool any = tk_poll_transports();
    tk_if_unlikely(tk_counter_read(&tk_deferred_work_wanted) != 0) any =
        tk_deferred_work_after(any);
    else if (TK_THREADED && any) tk_wake_own_threads();
    if (tk_is_traced) {
        tk_path_taken = path;
        *tk_rails_taken() = rails;
    }
    return any;
}

/* Completes our own operations only. */
static inline bool tk_reap(void)
{
    return tk_reap_transports();
}

/* The same in a handler that waits for space; may run handlers of replies. */
bool tk_reap_in_handler(void);

/* At the end of any loop of steps that may have called tk_wait_step_for(). */
extern TK_HIDDEN TK_PER_THREAD bool tk_wait_is_noted;
void tk_wait_forget(void);

static inline void tk_wait_over(void)
{
    tk_if_unlikely(tk_wait_is_noted) tk_wait_forget();
}

void tk_wait_done(const struct tk_op *op);

/* A put or get needs only its own completion; polling for messages each time would double its cost
 * on a fast device. Polling now and then keeps the promise that waiting serves others. */
enum { tk_serve_others = 16 /* blocking operations between polls for messages */ };
extern TK_HIDDEN TK_PER_THREAD_NEAR unsigned tk_wait_turn;

static inline bool tk_turn_to_serve(void)
{
    return ++tk_wait_turn % tk_serve_others == 0;
}

/* Requests that find space do not wait, and those to this rank or to a neighbour may always find
 * it. So one in so many requests of a thread polls before it is sent, so that a client that only
 * sends still serves others. Immediate requests do not poll; the next request that is not immediate
 * does. */
enum { tk_request_turn = 128 };
void tk_request_poll(bool immediate);

/* For a request other than a Short (short.h). Not between Prepare and Commit. */
static inline void tk_request_take_turn(bool immediate)
{
    tk_if_unlikely(!tk_stats_take_turn_uncounted())
    {
        tk_request_poll(immediate);
        tk_stats_take_turn_uncounted();
    }
}

/* The same for blocking puts and gets that are copies. Those inlined into clients decrement this
 * word too, and call the library when it is below zero (trunkline_rma.h). */
extern TK_PER_THREAD_NEAR int32_t trunkline_turn;
void trunkline_copy_poll(void);

static inline void tk_copy_take_turn(void)
{
    tk_if_unlikely(--trunkline_turn < 0) trunkline_copy_poll();
}

/* Waits for an operation, or its sources, when its count is not zero yet. */
void tk_wait_long(const tk_counter_t *left);

/* For a caller with nothing to wait for: its events were complete from the beginning. */
static inline void tk_serve_now_and_then(void)
{
    tk_if_unlikely(tk_turn_to_serve()) tk_poll();
}

/* The first poll of a waiter whose event is not complete yet. Not in handlers. */
static inline void tk_serve_undone(void)
{
    tk_if_unlikely(tk_turn_to_serve()) tk_poll();
    else tk_reap();
}

/* The same for a caller that has not checked: polls now and then even if there is nothing to wait
 * for, because a client that only waits for operations that are already complete must serve others
 * too. */
static inline void tk_serve(const tk_counter_t *left)
{
    tk_if_unlikely(tk_turn_to_serve()) tk_poll();
    else tk_if_likely(tk_counter_read(left) > 0) tk_reap();
}

static inline void tk_wait_undone(const tk_counter_t *left)
{
    tk_serve_undone();
    tk_if_unlikely(tk_counter_read(left) > 0) tk_wait_long(left);
}

static inline void tk_wait_served(const tk_counter_t *left)
{
    tk_serve(left);
    tk_if_unlikely(tk_counter_read(left) > 0) tk_wait_long(left);
}

/* The same for a transfer that was just posted over any transport: it is complete if it was a copy,
 * and otherwise never. The counter is checked once for both. */
static inline void tk_wait_posted(const tk_counter_t *left)
{
    tk_if_unlikely(tk_turn_to_serve()) tk_poll();
    else tk_if_likely(tk_counter_read(left) > 0) tk_reap();
    tk_if_unlikely(tk_counter_read(left) > 0) tk_wait_long(left);
}

void tk_wait_source_free(const struct tk_op *op);

/* For GEX_EVENT_NOW (lend.h): the first returns whether to lend the next source instead of copying
 * it; the second, once it is posted, polls a few times until `left` is zero. The caller waits if it
 * is not. */
bool tk_source_lend(void);
bool tk_source_lends(void); /* the answer for as long as devices are fast; decides nothing */
void tk_source_look(const tk_counter_t *left);

/* As tk_wait_served(), for conditions other than a single operation. */
void tk_wait_until(bool (*ready)(const void *what), const void *what);

/* Sends, or posts all pieces, waiting for space; TK_BUSY if it must be immediate and there is none.
 * Once a piece is posted the call must complete: it then waits, but only if the transfer is larger
 * than a whole queue. */
enum tk_status tk_wait_send_again(struct tk_peer *peer, struct tk_outgoing *message);
static inline enum tk_status tk_wait_send(struct tk_peer *peer, struct tk_outgoing *message,
                                          bool immediate)
{
    enum tk_status status = tk_peer_transport(peer)->am.send(peer, message);
    tk_if_likely(status != TK_BUSY || immediate) return status;
    return tk_wait_send_again(peer, message);
}

enum tk_status tk_wait_rma(struct tk_peer *peer, const struct tk_rma *rma);

/* Retry a send that found no space just now, for messages that may wait. */
tk_short_busy tk_wait_send_short TK_HIDDEN;
tk_small_busy tk_wait_send_small TK_HIDDEN;
tk_medium_busy tk_wait_send_medium TK_HIDDEN;

/* Waits for space for a message, like sending one. */
enum tk_status tk_wait_reserve(struct tk_am_reservation *reservation, bool place, bool buffer,
                               bool immediate);

/* For callers that hold a reservation: where those are scarce these functions wait only for our own
 * device and run no handler, because a handler's reply might need the resource that the caller
 * holds. */
void tk_wait_send_reserved(struct tk_am_reservation *reservation, struct tk_outgoing *message);
void tk_wait_rma_reserved(struct tk_peer *peer, const struct tk_rma *rma,
                          struct tk_rma_state *state);
void tk_wait_done_reserved(struct tk_peer *peer, const struct tk_op *op);

#endif
