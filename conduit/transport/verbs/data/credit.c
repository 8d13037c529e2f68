/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flow control of active messages. The promise: no message ever finds the receiver without a buffer
 * (RNR), and replies can always be sent.
 *
 * Of a link's receive buffers, credits_pp are for requests: as many as the peer has credits. For
 * each request that we have in flight (credits_pp - credits) there is one more, for its reply or
 * ACK, posted before the request goes out. One is for the peer's exit notice. A request's buffer is
 * replaced before its handler runs, because the handler's reply gives the credit back. One buffer
 * more than needed stays posted when a small message leaves it: then the next request need not
 * post. A responder may hold back up to `slack` credits to send with its next message; the buffers
 * that were posted for those replies then serve later ones.
 *
 * Everything here is called with the link's lock held. */
#include "config.h"

#include "base/clock.h"
#include "base/report.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/verbs_private.h"

void tk_recv_refused(struct tk_link *link, struct tk_buffer *buffer, int error)
{
    link->surplus--;
    if (!tk_counter_read(&link->broken))
        tk_panic("ibv_post_recv for rank %u failed with error %d, %d buffers posted",
                 link->peer->rank, error, tk_credit_buffers_posted(link));
    tk_pool_give(&tk_rail_of(link)->recv_pool, buffer);
}

enum tk_status tk_credit_none(struct tk_link *link)
{
    if (!link->starved_since)
        link->starved_since = tk_now();
    return TK_BUSY;
}

enum tk_status tk_credit_post_buffer(struct tk_link *link)
{
    struct tk_buffer *buffer = tk_recv_buffer_take(tk_rail_of(link));
    if (buffer)
        tk_recv_post(link, buffer);
    else
        tk_buffers_exhausted(link);
    return buffer ? TK_OK : TK_FAIL;
}

enum tk_status tk_credit_post_reply_buffer(struct tk_link *link)
{
    if (tk_credit_post_buffer(link) == TK_OK)
        return TK_OK;
    tk_credit_return(link, 1);
    return TK_BUSY;
}
