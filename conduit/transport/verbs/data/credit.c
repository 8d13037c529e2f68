/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flow control of active messages. The promise: no message ever finds the receiver without a buffer
 * (RNR), and replies can always be sent.
 *
 * Of a connection's receive buffers, credits_pp are for requests: as many as the peer has credits.
 * For each request that we have in flight (credits_pp - credits) there is one more, for its reply
 * or ACK, posted before the request is sent. One is for the peer's exit notice. A request's buffer
 * is replaced before its handler runs, because the handler's reply returns the credit. When a small
 * message frees a buffer, it is posted again even if that is one more than needed: then the next
 * request need not post one. A responder may hold back up to `slack` credits and send them with its
 * next message; the buffers that were posted for those replies then serve later ones.
 *
 * Where receive queues are shared (data/srq.h) the same holds for the queue of a device: it has the
 * buffers for all credits of peers, and for the replies to as many requests as this process may
 * have in flight. And for messages that take no credit because their protocol bounds how many are
 * on their way (TK_BOUNDED): a barrier needs no acknowledgements, and no credit of the program.
 *
 * In PAR, threads that wait for credits of one connection form a wait queue. Each has a ticket.
 * Credits are kept for the tickets below served + credits, whose threads may take them in any
 * order. Other threads take only what exceeds one credit per waiter, so the sum never falls below a
 * ticket that it has passed. An immediate request can't wait in the queue, and might never be sent:
 * so when a thread finds only credits kept for others, every fourth attempt takes one. A thread
 * never waits for itself: of two nested waits, the inner one uses the position of the outer one.
 *
 * Call all functions with the connection's lock held, except tk_verbs_leave_queue(). */
#include "config.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "stats/stats.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/wait_ticket.h"

void tk_recv_refused(struct tk_conn *conn, struct tk_buffer *buffer, int error)
{
    conn->rx_extra--;
    if (!tk_counter_read(&conn->broken))
        tk_panic("ibv_post_recv for rank %u failed with error %d, %d buffers posted",
                 conn->peer->rank, error, tk_credit_buffers_posted(conn));
    tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
}

void tk_credit_queue_clear(struct tk_conn *conn)
{
    static tk_counter_t queues;
    conn->waiting = 0;
    conn->queue =
        TK_THREADED ? (uint16_t)((uint32_t)tk_counter_add(&queues, 1) % UINT16_MAX + 1) : 0;
}

static bool is_queued(const struct tk_wait_ticket *ticket, const struct tk_conn *conn)
{
    return ticket->at == conn && ticket->queue == conn->queue;
}

/* This thread's ticket in the queue; if it has none there, its innermost ticket, which may join. */
static struct tk_wait_ticket *find_ticket(const struct tk_conn *conn)
{
    for (struct tk_wait_ticket *ticket = tk_wait_ticket; ticket; ticket = ticket->outer)
        if (is_queued(ticket, conn))
            return ticket;
    return tk_wait_ticket;
}

static bool is_next(struct tk_conn *conn)
{
    struct tk_wait_ticket *ticket = find_ticket(conn);
    if (!is_queued(ticket, conn)) {
        ticket->at = conn;
        ticket->queue = conn->queue;
        ticket->number = conn->served + conn->waiting++;
    }
    return conn->credits > (int32_t)(ticket->number - conn->served);
}

static bool take_queued(struct tk_conn *conn)
{
    enum { one_of = 4 };
    static TK_PER_THREAD unsigned refused;
    if (!TK_THREADED || conn->queue == 0)
        return false;
    bool waits = tk_wait_ticket && tk_wait_ticket->is_up;
    bool may = waits ? is_next(conn) : conn->credits > 0 && ++refused % one_of == 0;
    return may && tk_credit_take_alone(conn, 0);
}

/* Called with or without a credit. If the thread took one, served + credits has the same value as
 * before that. */
void tk_verbs_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket)
{
    struct tk_conn *conn = tk_primary_lock(peer);
    if (is_queued(ticket, conn)) {
        conn->waiting--;
        conn->served++;
    }
    tk_unlock(&conn->lock);
}

enum tk_status tk_credit_none(struct tk_conn *conn)
{
    if (take_queued(conn))
        return conn->rx_extra < 0 ? tk_credit_post_reply_buffer(conn) : TK_OK;
    tk_lacks_credit = true;
    if (!conn->starved_since)
        conn->starved_since = tk_starved_unseen;
    if (conn->loan && conn->credits == 0)
        tk_borrower_starves(&conn->loan->borrower);
    return TK_BUSY;
}

enum tk_status tk_credit_post_buffer(struct tk_conn *conn)
{
    struct tk_buffer *buffer = tk_recv_buffer_take(tk_rail_of(conn));
    if (buffer)
        tk_recv_post(conn, buffer);
    else
        tk_buffers_exhausted(conn);
    return buffer ? TK_OK : TK_FAIL;
}

enum tk_status tk_credit_post_reply_buffer(struct tk_conn *conn)
{
    if (tk_credit_post_buffer(conn) == TK_OK)
        return TK_OK;
    tk_credit_return(conn, 1);
    return TK_BUSY;
}
