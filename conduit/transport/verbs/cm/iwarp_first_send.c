/* SPDX-License-Identifier: BSD-3-Clause
 *
 * First messages of connections on demand over iWARP, where the rank that accepted must not send
 * before a message of the rank that connected (RFC 5044 7.1.3):
 *
 *     lower    ASKED - GREETS (a greeting over each queue pair) --------------------- UP
 *     higher   ANSWERED - GREETS (until they are all there, then one back) - UP
 *
 * The answer goes over the primary connection, before any other message of its sender. So a rank
 * that has received a message of the peer may send over all connections. Until the answer comes no
 * other message is in flight, so a greeting uses one of the receive buffers for requests. The
 * answer has a buffer of its own.
 *
 * While the siw driver answers a connect it does not notice a message that arrives, until another
 * one arrives. So writes of 0 bytes, which take no buffer, follow a greeting until the answer
 * comes.
 *
 * No state of its own. Called with the lock of demands, except where a comment says otherwise;
 * takes a connection's lock, and that of the ends. */
#include "config.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "common/clock.h"
#include "transport/transport.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum {
    looks_before_push = 50, /* about 50 ms, doubled each time */
    doublings_max = 8
};

int tk_cm_first_buffers(const struct tk_conn *conn)
{
    bool is_primary = conn->number == tk_primary_number(conn->peer->rank);
    return tk_cm_greets() && !conn->loan && is_primary == tk_cm_is_asker(conn);
}

/* ---- sending ---- */

/* Only greetings are sent over a held connection, so its whole send queue is free. NULL: no work
 * request or buffer is free now. */
static struct tk_tx *take_held(struct tk_conn *conn, bool with_bounce)
{
    tk_counter_add(&conn->space, tk_verbs.depth_pp);
    struct tk_tx *tx = tk_tx_take(conn, with_bounce);
    tk_counter_add(&conn->space, -tk_verbs.depth_pp);
    return tx;
}

static void post_greeting(struct tk_tx *tx)
{
    const struct tk_message_head head = {.kind = TK_GREETING};
    struct ibv_sge sge = {.addr = (uintptr_t)tx->bounce->data,
                          .length = sizeof(head),
                          .lkey = tx->bounce->keys[tx->conn->rail]};
    struct ibv_send_wr wr;
    memcpy(tx->bounce->data, &head, sizeof(head));
    wr.sg_list = &sge;
    wr.num_sge = 1;
    tx->nbytes = sge.length;
    tk_tx_post_more(tx, &wr, IBV_WR_SEND, 0, false, NULL);
}

static bool send_over(struct tk_cm_end *end, bool is_greeting)
{
    struct tk_conn *conn = tk_cm_conn_of(end);
    tk_lock(&conn->lock);
    struct tk_tx *tx = take_held(conn, is_greeting);
    if (tx)
        (is_greeting ? post_greeting : tk_tx_post_nothing)(tx);
    tk_unlock(&conn->lock);
    return tx != NULL;
}

bool tk_cm_is_greeting(const struct tk_tx *tx)
{
    return tk_cm_greets() && tx->conn->is_held;
}

/* ---- what comes ---- */

void tk_cm_greeting_came(const struct tk_conn *conn)
{
    tk_lock(&tk_verbs.cm->lock);
    tk_cm_end_of(conn)->is_greeted = true;
    tk_unlock(&tk_verbs.cm->lock);
}

/* ---- both ends ---- */

/* For the lower rank. */
static void greet_over(struct tk_cm_end *end, uint64_t now)
{
    if (end->state != TK_CM_GREETS || now < end->again)
        return;
    if (!send_over(end, !end->has_greeted))
        return;
    unsigned doublings = (unsigned)tk_min(end->pushes++, doublings_max);
    end->has_greeted = true;
    end->again = now + (looks_before_push * tk_cm_look_pause << doublings);
}

static bool all_are_greeted(const struct tk_cm_end *ends)
{
    bool all = true;
    tk_lock(&tk_verbs.cm->lock);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        all &= ends[k].state == TK_CM_GREETS && ends[k].is_greeted;
    tk_unlock(&tk_verbs.cm->lock);
    return all;
}

static bool is_greeted(const struct tk_cm_end *end)
{
    tk_lock(&tk_verbs.cm->lock);
    bool is_so = end->state == TK_CM_GREETS && end->is_greeted;
    tk_unlock(&tk_verbs.cm->lock);
    return is_so;
}

static void all_up(struct tk_cm_end *ends)
{
    tk_lock(&tk_verbs.cm->lock);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_cm_end_greeted(&ends[k]);
    tk_unlock(&tk_verbs.cm->lock);
}

void tk_cm_pair_greet(const struct tk_conn *conns)
{
    uint32_t rank = conns->peer->rank;
    struct tk_cm_end *ends = tk_cm_ends_of(rank), *primary = &ends[tk_primary_number(rank)];
    if (!tk_cm_greets())
        return;
    if (!tk_cm_is_asker(conns)) {
        if (all_are_greeted(ends) && send_over(primary, true))
            all_up(ends);
        return;
    }
    if (is_greeted(primary)) {
        all_up(ends);
        return;
    }
    uint64_t now = tk_now();
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        greet_over(&ends[k], now);
}
