/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Progress: serving the network, and the only place that waits. Polling runs handlers; it is
 * thread-safe in PAR. */
#ifndef TK_PROGRESS_H
#define TK_PROGRESS_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/mode.h"
#include "transport/transport.h"

/* How deep this thread is in handlers. Inside, nothing may poll: waiting reaps, and at most serves
 * replies, whose handlers wait for nothing. */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_in_handler;

/* The transport that is polled, or two of them; set once at start-up. A job of one has none. */
void tk_progress_use(const struct tk_transport *transport);
void tk_progress_use_both(const struct tk_transport *first, const struct tk_transport *second);

/* Work to be done after polls, outside of handlers (barriers, exit). Start-up only; few. */
void tk_progress_add(void (*work)(void));

/* Reasons to do that work: whoever has one counts it in, and out when it is gone. Polls with
 * nothing else to do stay cheap. */
extern TK_HIDDEN tk_counter_t tk_work_wanted;

/* Serves what has arrived and completes our own operations; runs handlers. True if there was
 * anything. */
bool tk_poll(void);

/* Completes our own operations only. */
bool tk_reap(void);

/* The same in a handler that waits for room; may run handlers of replies. */
bool tk_reap_in_handler(void);

/* GASNET_WAIT_SPIN: give the CPU away only when ranks outnumber CPUs; else at once. */
void tk_wait_mode(bool spin);

/* One turn of waiting: a poll (in a handler: tk_reap_in_handler()), then the back-off that *empty,
 * zero at first, asks for. */
void tk_wait_step(unsigned *empty);

void tk_wait_done(const struct tk_op *op);

/* A put or get is over with its own completion; looking for messages each time would double its
 * cost on a fast device. Looking now and then keeps the promise that waiting serves others. */
enum { tk_serve_others = 16 /* blocking operations between looks for messages */ };
extern TK_HIDDEN TK_PER_THREAD unsigned tk_wait_turn;

static inline bool tk_turn_to_serve(void)
{
    return ++tk_wait_turn % tk_serve_others == 0;
}

/* For what is left of an operation, or of its sources, when that is more than nothing. */
void tk_wait_long(const tk_counter_t *left);

/* For who waits for nothing: its events were complete before it had them. */
static inline void tk_serve_now_and_then(void)
{
    tk_if_unlikely(tk_turn_to_serve()) tk_poll();
}

/* The first look of who waits: polls now and then even when there is nothing to wait for, because a
 * client that only ever waits for operations that are done by then must serve others too. Not in
 * handlers. */
static inline void tk_serve(const tk_counter_t *left)
{
    bool is_done = tk_counter_read(left) <= 0;
    tk_if_unlikely(tk_turn_to_serve()) tk_poll();
    else if (!is_done) tk_reap();
}

static inline void tk_wait_served(const tk_counter_t *left)
{
    tk_serve(left);
    tk_if_unlikely(tk_counter_read(left) > 0) tk_wait_long(left);
}

void tk_wait_source_free(const struct tk_op *op);

/* As tk_wait_served(), for what is no single operation. */
void tk_wait_until(bool (*ready)(const void *what), const void *what);

/* Sends, or posts all pieces, waiting for room; TK_BUSY when it must be immediate and there is
 * none. Once a piece is posted there is no "not done" any more: only what is larger than an idle
 * queue can hold is waited for then. */
enum tk_status tk_wait_send(struct tk_peer *peer, struct tk_outgoing *message, bool immediate);
enum tk_status tk_wait_rma(struct tk_peer *peer, struct tk_rma *rma, bool immediate);

/* Sends what there was no room for just now. */
enum tk_status tk_wait_send_short(struct tk_peer *peer, struct tk_message_head head,
                                  const int32_t *args);

/* Room for a message, waited for as for sending one. */
enum tk_status tk_wait_reserve(struct tk_room *room, bool place, bool buffer, bool immediate);

/* For those who hold room: where that is scarce these wait for our own device alone and run no
 * handler, because a handler's reply might need what we hold. */
void tk_wait_send_reserved(struct tk_room *room, struct tk_outgoing *message);
void tk_wait_rma_reserved(struct tk_peer *peer, struct tk_rma *rma);

#endif
