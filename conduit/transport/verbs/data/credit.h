/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of flow control that every message passes; the rules are in data/credit.c. Call all
 * functions with the connection's lock held. */
#ifndef TK_VERBS_CREDIT_H
#define TK_VERBS_CREDIT_H

#include <stdbool.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/status.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit_rules.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* Means "starved, time not read yet": a client that sends as fast as credits come back is refused
 * at almost each message, and reading the clock takes 20 to 40 ns. */
enum { tk_starved_unseen = 1 };

void tk_recv_refused(struct tk_conn *conn, struct tk_buffer *buffer, int error);
enum tk_status tk_credit_post_buffer(struct tk_conn *conn);

/* Empties the wait queue; threads that were in it have to join again. */
void tk_credit_queue_clear(struct tk_conn *conn);

/* Slow paths. The first takes a credit if this thread's ticket is served, and posts the reply's
 * buffer; the second only posts the buffer. */
enum tk_status tk_credit_none(struct tk_conn *conn);
enum tk_status tk_credit_post_reply_buffer(struct tk_conn *conn);

static inline int tk_credit_buffers_needed(const struct tk_conn *conn)
{
    return conn->rx_base - conn->credits + conn->control_expected;
}

static inline int tk_credit_buffers_posted(const struct tk_conn *conn)
{
    return tk_credit_buffers_needed(conn) + conn->rx_extra;
}

static inline void tk_credit_total_give(int credits)
{
    tk_if_unlikely(tk_verbs.is_total_bound) tk_counter_add(&tk_verbs.credits_total, credits);
}

/* Threads in the wait queue for credits. Each gets one before any other thread does. */
static inline int tk_credit_waiting(const struct tk_conn *conn)
{
    return TK_THREADED ? conn->waiting : 0;
}

/* Takes one credit for a request about to be sent, if at least `kept` remain for others. The caller
 * posts a buffer for the reply if rx_extra is negative then. */
static inline bool tk_credit_take_alone(struct tk_conn *conn, int kept)
{
    tk_if_unlikely(
        !tk_credit_suffices(conn->credits, kept) ||
        (tk_verbs.is_total_bound && !tk_counter_take(&tk_verbs.credits_total))) return false;
    conn->credits--;
    conn->rx_extra--;
    /* otherwise it was reset when the credit came */
    if (TK_THREADED || tk_verbs.is_total_bound)
        conn->starved_since = 0;
    return true;
}

/* Takes a credit and posts the buffer. */
static inline enum tk_status tk_credit_take(struct tk_conn *conn)
{
    tk_if_unlikely(!tk_credit_take_alone(conn, tk_credit_waiting(conn))) return tk_credit_none(
        conn);
    tk_if_unlikely(conn->rx_extra < 0) return tk_credit_post_reply_buffer(conn);
    return TK_OK;
}

/* Adds credits that came back; the caller counts the buffers of their replies. */
static inline void tk_credit_give(struct tk_conn *conn, int credits)
{
    conn->credits += credits;
    conn->starved_since = 0;
    tk_credit_total_give(credits);
    tk_if_unlikely(conn->credits > tk_verbs.credits_pp)
        tk_wire_error(conn, "more credits came back than were given");
}

static inline void tk_credit_return(struct tk_conn *conn, int credits)
{
    conn->rx_extra += credits;
    tk_credit_give(conn, credits);
}

/* Every message to the peer carries the credits to return. */
static inline void tk_credits_hand_over(struct tk_conn *conn, struct tk_message_head *head)
{
    int credits = tk_credit_carried(head->kind, conn->credits_to_return);
    if (credits == 0)
        return;
    head->credits = (uint8_t)credits;
    conn->credits_to_return -= credits;
}

/* Posts a buffer that came over this connection; `extra`: rx_extra without it. The device returns a
 * request that it refuses, so the caller need not save `buffer` in a register for that case. */
static inline void tk_recv_post_again(struct tk_conn *conn, struct tk_buffer *buffer, int extra)
{
    struct ibv_recv_wr *bad;
    conn->rx_extra = extra + 1;
    int error = ibv_post_recv(conn->qp, &buffer->wr, &bad);
    tk_if_unlikely(error) tk_recv_refused(conn, TK_CONTAINER_OF(bad, struct tk_buffer, wr), error);
}

static inline void tk_recv_post(struct tk_conn *conn, struct tk_buffer *buffer)
{
    buffer->conn = conn;
    tk_recv_post_again(conn, buffer, conn->rx_extra);
}

#endif
