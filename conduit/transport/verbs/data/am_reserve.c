/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reservations: a credit, a slot of the send queue and a bounce buffer that the client itself
 * fills, taken before the message exists. Takes the connection's lock. A thread that holds one of
 * these must not wait for another, because other threads wait for the first: reserve() takes all or
 * none, and only completions of our own device free what send_reserved() may still lack. */
#include "config.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/credit_loan_messages.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/verbs_state.h"

/* Slots of a broken connection never become free. Only a job that is exiting continues after that;
 * it gets memory that no code reads or frees. */
static void reserve_nowhere(struct tk_am_reservation *reservation, bool buffer)
{
    reservation->buffer = buffer ? aligned_alloc(TK_CACHE_LINE, tk_buffer_stride) : NULL;
    if (buffer && !reservation->buffer)
        tk_panic("out of memory for a message of %d bytes", tk_message_max);
}

static enum tk_status borrow(struct tk_conn *conn, struct tk_am_reservation *reservation,
                             bool buffer)
{
    reservation->tx = tk_tx_take(conn, buffer);
    if (!reservation->tx)
        return TK_BUSY;
    tk_counter_add(&conn->reserved, 1);
    return TK_OK;
}

static enum tk_status take(struct tk_conn *conn, struct tk_am_reservation *reservation, bool place,
                           bool buffer)
{
    if (place && borrow(conn, reservation, buffer) != TK_OK)
        return TK_BUSY;
    struct tk_tx *tx = reservation->tx;
    reservation->buffer = buffer ? tx->bounce->data : NULL;
    return TK_OK;
}

enum tk_status tk_verbs_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    struct tk_conn *conn = tk_primary_lock(reservation->peer);
    bool is_request = reservation->kind == TK_REQUEST;
    enum tk_status status = TK_OK;
    reservation->tx = NULL;
    /* Credits still come back while a connection is held for closing. Without this check a message
     * that needs no slot could take one, after the two ends have compared their credits. */
    if (is_request)
        status = conn->is_held ? TK_BUSY : tk_credit_take(conn);
    if (status == TK_OK) {
        status = take(conn, reservation, place, buffer);
        if (status != TK_OK && is_request)
            tk_credit_return(conn, 1);
    }
    if (status == TK_BUSY && tk_counter_read(&conn->broken)) {
        reserve_nowhere(reservation, buffer);
        status = TK_OK;
    }
    tk_unlock(&conn->lock);
    return status;
}

/* Reserves as for a reply, which takes no credit: the reservation already has one. */
enum tk_status tk_verbs_reserve_place(struct tk_am_reservation *reservation)
{
    const uint8_t kind = reservation->kind;
    reservation->kind = TK_REPLY;
    enum tk_status status = tk_verbs_reserve(reservation, true, false);
    reservation->kind = kind;
    return status;
}

/* If the connection of a reservation has failed since, takes a slot of the current primary instead.
 */
static bool move_slot(struct tk_conn *conn, struct tk_tx *tx)
{
    if (tx->conn == conn)
        return true;
    if (!tk_slot_take(conn))
        return false;
    tk_counter_add(&conn->reserved, 1);
    /* In this order, so that a failed connection never seems to have too few work requests in
     * flight. */
    tk_counter_add(&tx->conn->reserved, -1);
    tk_slots_give(tx->conn, 1);
    tx->conn = conn;
    return true;
}

static enum tk_status complete(struct tk_conn *conn, struct tk_am_reservation *reservation,
                               bool is_small)
{
    struct tk_tx *tx = reservation->tx;
    if (!tx)
        return borrow(conn, reservation, !is_small);
    if (!tk_conn_is_live(conn) || !move_slot(conn, tx))
        return TK_BUSY;
    if (!is_small && !tx->bounce)
        tx->bounce = tk_pool_take(&tk_verbs.bounce_pool);
    return is_small || tx->bounce ? TK_OK : TK_BUSY;
}

enum tk_status tk_verbs_send_reserved(struct tk_am_reservation *reservation, struct tk_outgoing *m)
{
    struct tk_conn *conn = tk_primary_lock(reservation->peer);
    bool is_small = m->head_size + m->nbytes <= tk_verbs.inline_limit;
    enum tk_status status =
        tk_counter_read(&conn->broken) ? TK_FAIL : complete(conn, reservation, is_small);
    if (status == TK_OK) {
        tk_counter_add(&conn->reserved, -1);
        tk_message_post_tx(conn, reservation->tx, m);
    }
    tk_unlock(&conn->lock);
    return status == TK_BUSY ? TK_BUSY : TK_OK;
}

/* While the reservation held a lent credit, the peer may have asked for it. This credit does not
 * come back with a message, so the code that handles messages would not return it to the lender. */
static void return_credit(struct tk_conn *conn)
{
    tk_credit_return(conn, 1);
    tk_if_unlikely(conn->loan && tk_borrower_owes(&conn->loan->borrower)) tk_loan_step(conn);
}

void tk_verbs_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    struct tk_tx *tx = reservation->tx;
    struct tk_conn *conn = tk_primary_lock(reservation->peer);
    if (tx) {
        tx->covers = 0; /* it was never posted */
        tk_counter_add(&tx->conn->reserved, -1);
        tk_tx_give(tx);
    }
    if (reservation->kind == TK_REQUEST && !keep_credit && !tk_counter_read(&conn->broken))
        return_credit(conn);
    tk_unlock(&conn->lock);
    reservation->tx = NULL;
}
