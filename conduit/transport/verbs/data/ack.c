/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Returns credits to a peer to which we send no message: up to `slack` of them are held back, then
 * an ACK returns them. After several messages that came together one ACK returns all. The rules of
 * flow control are in credit.c. */
#include "config.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/ack.h"
#include "transport/verbs/data/credit_rules.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/verbs_state.h"

static inline enum tk_status __attribute__((always_inline)) send_ack(struct tk_conn *conn)
{
    struct tk_message_head head = {.kind = TK_ACK};
    struct tk_outgoing message = {.head = &head, .head_size = sizeof(head)};
    /* The ACK itself returns one credit; tk_message_post() puts the others into its head. */
    conn->credits_to_return--;
    enum tk_status status = tk_message_post(conn, &message);
    if (status == TK_OK)
        tk_count_rare(tk_counter_acks_sent);
    else
        conn->credits_to_return++;
    return status;
}

/* With the connection's lock held. */
static void settle(struct tk_conn *conn)
{
    if (!tk_ack_is_due(conn->credits_to_return, tk_verbs.slack) || conn->ack_due)
        return;
    if (send_ack(conn) == TK_OK)
        return;
    conn->ack_due = true;
    tk_counter_add(&tk_verbs.pending_work, 1);
}

static TK_PER_THREAD struct tk_ack_batch *batch_now;

/* Leaves the credits to the end of the batch. False: there is no batch, or it may not hold so
 * many. */
static bool leave_to_batch(const struct tk_conn *conn)
{
    struct tk_ack_batch *batch = batch_now;
    if (!batch || !tk_ack_may_be_left(conn->credits_to_return, tk_verbs.batch_slack))
        return false;
    if (batch->count > 0 && batch->peers[batch->count - 1] == conn->peer)
        return true;
    if (batch->count == tk_poll_batch)
        return false;
    batch->peers[batch->count++] = conn->peer;
    return true;
}

void tk_credit_owe_to(const struct tk_peer *peer)
{
    struct tk_conn *conn = tk_primary_lock(peer);
    conn->credits_to_return++;
    if (!leave_to_batch(conn))
        settle(conn);
    tk_unlock(&conn->lock);
}

void tk_ack_batch_begin(struct tk_ack_batch *batch)
{
    batch->count = 0;
    batch->outer = batch_now;
    batch_now = batch;
}

void tk_ack_batch_end(struct tk_ack_batch *batch)
{
    batch_now = batch->outer;
    for (unsigned i = 0; i < batch->count; i++) {
        struct tk_conn *conn = tk_primary_lock(batch->peers[i]);
        settle(conn);
        tk_unlock(&conn->lock);
    }
}

void tk_ack_forget(struct tk_conn *conn)
{
    tk_counter_add(&tk_verbs.pending_work, -conn->ack_due);
    conn->ack_due = false;
}

void tk_ack_retry(struct tk_conn *conn)
{
    tk_lock(&conn->lock);
    if (conn->ack_due &&
        (!tk_ack_is_due(conn->credits_to_return, tk_verbs.slack) || send_ack(conn) == TK_OK))
        tk_ack_forget(conn);
    tk_unlock(&conn->lock);
}
