/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See failover_group.h. With the lock of demands; owns nothing. */
#include "config.h"

#include "base/atomic.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/failover/async_events.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover_group.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs_state.h"

static void set_frozen(uint32_t rank, bool is_frozen)
{
    __atomic_store_n(&tk_verbs.pairs[rank].is_frozen, is_frozen, __ATOMIC_RELEASE);
}

/* ---- opening ---- */

/* Leaves out the marked connections. At least one must remain: if all are marked none is left out,
 * and the devices find out which ones work. */
static void leave_out(const struct tk_conn *conns, const bool *is_marked)
{
    bool all = true;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        all &= is_marked[k];
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        conns[k].tx_log->is_left_out = is_marked[k] && !all;
}

void tk_failover_group_open(const struct tk_conn *conns)
{
    bool is_marked[tk_conns_max];
    tk_events_read();
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        is_marked[k] = !tk_verbs.cm && tk_rail_is_down(tk_rail_of(&conns[k]));
    leave_out(conns, is_marked);
    set_frozen(conns->peer->rank, true);
}

void tk_failover_group_agree(const struct tk_conn *conns, const uint32_t *numbers, bool asks)
{
    bool is_marked[tk_conns_max];
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        is_marked[k] = (numbers[k] & tk_qp_left_out) || (asks && conns[k].tx_log->is_left_out);
    leave_out(conns, is_marked);
}

TK_FIRST_USE bool tk_failover_group_reaches(const struct tk_conn *conns, uint32_t rail)
{
    const struct tk_conn *conn = conns ? &conns[rail] : NULL; /* the first one of each rail */
    bool is_dead = conn && conn->tx_log && (conn->tx_log->is_left_out || !tk_conn_is_open(conn));
    return !is_dead && !tk_rail_is_down(&tk_verbs.rails[rail]);
}

/* A connection that was left out is treated as dead at once. Both ends know that nothing came over
 * it, but must still notify each other when they have receive buffers on the next primary. */
void tk_failover_group_connected(struct tk_conn *conn)
{
    struct tk_tx_log *tx_log = conn->tx_log;
    tx_log->is_connected = true;
    if (!tx_log->is_left_out)
        return;
    __atomic_store_n(&conn->has_received_last, true, __ATOMIC_RELEASE);
    tk_conn_close_end(conn);
}

/* ---- closing ---- */

bool tk_failover_group_freeze(uint32_t rank)
{
    const struct tk_rank_pair *pair = &tk_verbs.pairs[rank];
    if (!tk_trylock(&tk_moves_lock))
        return false;
    bool may = tk_counter_read(&pair->moving) == 0;
    if (may)
        set_frozen(rank, true);
    tk_unlock(&tk_moves_lock);
    return may;
}

void tk_failover_group_thaw(uint32_t rank)
{
    set_frozen(rank, false);
}

/* Skips connections that were never connected: they have received nothing, and no event comes for
 * them. */
static bool all_came(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (conns[k].loan && conns[k].tx_log->is_connected && !tk_srq_is_drained(&conns[k]))
            return false;
    return true;
}

static void forget(struct tk_conn *conn)
{
    struct tk_rank_pair *pair = tk_pair_of(conn);
    if (tk_conn_is_moving(conn)) {
        tk_counter_add(&pair->moving, -1);
        tk_counter_add(&tk_verbs.pending_work, -1);
    }
    if (conn->tx_log->incarnation.is_pending_work)
        tk_pending_work_remove(conn);
    tk_counter_leave(&conn->state, TK_CLOSED);
    conn->is_ready = false;
    pair->next_primary = -1;
    tk_tx_log_reset(conn);
    tk_log_incarnation_begin(conn); /* so that late notices are not mistaken for new ones */
}

bool tk_failover_group_end(struct tk_conn *conns)
{
    if (!tk_trylock(&tk_moves_lock))
        return false;
    if (tk_srq_in_use())
        tk_events_read();
    bool may = all_came(conns);
    for (uint32_t k = 0; may && k < tk_verbs.conns_pp; k++)
        forget(&conns[k]);
    if (may)
        tk_counter_add(&tk_verbs.returns, 1); /* see tk_fence() */
    if (!may)
        tk_unlock(&tk_moves_lock);
    return may;
}

void tk_failover_group_ended(void)
{
    tk_unlock(&tk_moves_lock);
}
