/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See connection_state.h. Owns the lock of moves. */
#include "config.h"

#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs_private.h"

tk_lock_t tk_moves_lock = TK_LOCK_INIT;

bool tk_is_leaving(void)
{
    return !__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
}

int tk_conn_unfinished(const struct tk_conn *conn)
{
    return conn->tx_log->failed + conn->unsignaled;
}

/* ---- incarnations ---- */

void tk_incarnation_name(struct tk_conn *conn)
{
    struct tk_tx *unsignaled =
        &conn->tx_log->incarnation.unsignaled[conn->tx_log->incarnation.number % 2];
    unsignaled->conn = conn;
    unsignaled->opcode = IBV_WR_SEND;
    conn->unsignaled_wr.wr_id = (uintptr_t)unsignaled;
}

bool tk_incarnation_names(const struct tk_tx *tx)
{
    const struct tk_incarnation *incarnation = &tx->conn->tx_log->incarnation;
    return tx == &incarnation->unsignaled[0] || tx == &incarnation->unsignaled[1];
}

bool tk_incarnation_is_over(const struct tk_tx *tx)
{
    const struct tk_incarnation *incarnation = &tx->conn->tx_log->incarnation;
    uint32_t number = __atomic_load_n(&incarnation->number, __ATOMIC_RELAXED);
    return tx == &incarnation->unsignaled[(number + 1) % 2];
}

/* ---- what is to be done, until it is ---- */

void tk_pending_work_add(struct tk_conn *conn)
{
    if (conn->tx_log->incarnation.is_pending_work)
        return;
    conn->tx_log->incarnation.is_pending_work = true;
    tk_pair_of(conn)->pending_work++;
    tk_counter_add(&tk_verbs.pending_work, 1);
}

void tk_pending_work_remove(struct tk_conn *conn)
{
    conn->tx_log->incarnation.is_pending_work = false;
    tk_pair_of(conn)->pending_work--;
    tk_counter_add(&tk_verbs.pending_work, -1);
}

void tk_notice_request(struct tk_conn *conn)
{
    conn->tx_log->notice_due = true;
    tk_pending_work_add(conn);
}
