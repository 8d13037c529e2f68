/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flow control of active messages. The promise: no message ever finds the receiver without a buffer
 * (RNR), and replies can always be sent.
 *
 * Of a connection's receive buffers, credits_pp are for requests: as many as the peer has credits.
 * For each request that we have in flight (credits_pp - credits) there is one more, for its reply
 * or ACK, posted before the request goes out. One is for the peer's exit notice. A request's buffer
 * is replaced before its handler runs, because the handler's reply gives the credit back. One
 * buffer more than needed stays posted when a small message leaves it: then the next request need
 * not post. A responder may hold back up to `slack` credits to send with its next message; the
 * buffers that were posted for those replies then serve later ones.
 *
 * Where receive queues are shared (data/srq.h) the same holds of the queue of a device: it has the
 * buffers for all credits that peers have, and for the replies to as many requests as this process
 * may have in flight.
 *
 * Everything here is called with the connection's lock held. */
#include "config.h"

#include "base/clock.h"
#include "base/report.h"
#include "stats/stats.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/verbs_private.h"

void tk_recv_refused(struct tk_conn *conn, struct tk_buffer *buffer, int error)
{
    conn->rx_extra--;
    if (!tk_counter_read(&conn->broken))
        tk_panic("ibv_post_recv for rank %u failed with error %d, %d buffers posted",
                 conn->peer->rank, error, tk_credit_buffers_posted(conn));
    tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
}

enum tk_status tk_credit_none(struct tk_conn *conn)
{
    tk_lacks_credit = true;
    if (!conn->starved_since)
        conn->starved_since = tk_now();
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
