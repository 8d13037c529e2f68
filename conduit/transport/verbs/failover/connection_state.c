/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See connection_state.h. Owns the lock of moves. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

tk_lock_t tk_moves_lock = TK_LOCK_INIT;

bool tk_is_leaving(void)
{
    return !__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
}

int tk_conn_unfinished(const struct tk_conn *conn)
{
    return conn->tx_log->failed + conn->unsignaled;
}

bool tk_conn_close_end(struct tk_conn *conn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    bool was_live = tk_conn_is_live(conn);
    tk_counter_add(&tk_verbs.pending_work, 1);
    tk_counter_add(&tk_pair_of(conn)->moving, 1);
    if (was_live)
        tk_counter_add(&conn->space, -tk_space_closed);
    conn->rx_extra += tk_space_closed;
    conn->tx_log->incarnation.ended = tk_now();
    tk_counter_leave(&conn->state, TK_CLOSING);
    int error = ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
    if (error)
        tk_panic("%s:%u: modify_qp to ERR for rank %u failed: %s", tk_rail_of(conn)->address.device,
                 tk_rail_of(conn)->address.port, conn->peer->rank, strerror(error));
    return was_live;
}

void tk_primary_set(struct tk_conn *conn)
{
    struct tk_peer *peer = conn->peer;
    tk_peers.rail_to[peer->rank] = conn->rail;
    if (tk_peers.keys[peer->rank])
        peer->segment_key = tk_peers.keys[peer->rank][conn->rail];
    __atomic_store_n(&peer->connection, conn, __ATOMIC_RELEASE);
}

/* ---- incarnations ---- */

void tk_log_incarnation_name(struct tk_conn *conn)
{
    struct tk_log_incarnation *incarnation = &conn->tx_log->incarnation;
    uint32_t name = 1 - __atomic_load_n(&incarnation->name, __ATOMIC_RELAXED);
    __atomic_store_n(&incarnation->name, name, __ATOMIC_RELAXED);
    struct tk_tx *unsignaled = &incarnation->unsignaled[name];
    unsignaled->conn = conn;
    unsignaled->opcode = IBV_WR_SEND;
    conn->unsignaled_wr.wr_id = (uintptr_t)unsignaled;
}

/* With librdmacm numbers start at 0: it has its own epochs for connections that were closed for
 * others. */
void tk_log_incarnation_begin(struct tk_conn *conn)
{
    uint32_t first = tk_rail_of(conn)->by_cm ? 0 : conn->epoch * tk_incarnations_max;
    __atomic_store_n(&conn->tx_log->incarnation.number, first, __ATOMIC_RELAXED);
}

bool tk_log_incarnation_names(const struct tk_tx *tx)
{
    const struct tk_log_incarnation *incarnation = &tx->conn->tx_log->incarnation;
    return tx == &incarnation->unsignaled[0] || tx == &incarnation->unsignaled[1];
}

bool tk_log_incarnation_is_over(const struct tk_tx *tx)
{
    const struct tk_log_incarnation *incarnation = &tx->conn->tx_log->incarnation;
    uint32_t name = __atomic_load_n(&incarnation->name, __ATOMIC_RELAXED);
    return tx == &incarnation->unsignaled[1 - name];
}

/* ---- pending work ---- */

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
