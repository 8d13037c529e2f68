/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that come back. When a port is active again after it was down, and some time has
 * passed since the connection was closed, the queue pair goes from RESET to RTS again, with new
 * packet numbers and receive buffers, and a notice asks the other end to do the same. The other end
 * does so and answers; then both send over the connection again. If both ask at once, each takes
 * the other's question as its answer.
 *
 * A connection counts its incarnations. Nothing of a past incarnation can be mistaken for this
 * one's: notices name theirs, packets are told apart by their numbers, errors by the incarnation
 * that they carry (struct tk_log_incarnation). A notice that is one incarnation ahead says that the
 * previous one is closed at the other end, and what came over it. If the new incarnation is already
 * dead there, this end skips it, as one in which nothing came.
 *
 * Messages stay on the present primary. Large transfers use the returned connection again, and it
 * may become primary later. While any connection of the pair is being moved none is opened, so that
 * both ends choose the next primary among the same ones: a connection that is open here is either
 * open at the other end, or gets no answer and fails. So a rank that needs a next primary also
 * considers connections that wait for an answer.
 *
 * Each death keeps the connection away for twice as long as the one before, which limits the cost
 * of a flapping port. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/async_events.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

enum { doublings_max = 6 }; /* of tk_reconnect_wait: at most about a minute */
static const uint64_t longest_wait = 60 * TK_SECOND;
uint64_t tk_reconnect_wait = TK_SECOND;

static struct tk_log_incarnation *incarnation_of(struct tk_conn *conn)
{
    return &conn->tx_log->incarnation;
}

/* ---- when ---- */

static bool is_active(const struct tk_rail *rail)
{
    const struct tk_port_address *a = &rail->address;
    struct ibv_port_attr attr;
    /* peers would not find the port under another LID */
    return ibv_query_port(rail->context, a->port, &attr) == 0 && attr.state == IBV_PORT_ACTIVE &&
           attr.lid == a->lid;
}

bool tk_rail_is_down(const struct tk_rail *rail)
{
    return __atomic_load_n(&rail->look_again, __ATOMIC_RELAXED) && !is_active(rail);
}

static uint64_t wait_of(struct tk_conn *conn)
{
    uint32_t deaths = incarnation_of(conn)->number % tk_incarnations_max;
    uint64_t wait = tk_reconnect_wait << tk_min(deaths, doublings_max);
    return tk_min(wait, longest_wait);
}

/* Asks for the connection if that is due. True: it was asked for, or need not be. */
static bool ask_if_due(struct tk_conn *conn, uint64_t now)
{
    if (tk_counter_read(&conn->state) < TK_CLOSING)
        return true;
    if (tk_counter_read(&conn->state) < TK_CLOSED ||
        now - incarnation_of(conn)->ended < wait_of(conn))
        return false;
    incarnation_of(conn)->is_wanted = true;
    tk_pending_work_add(conn);
    return true;
}

/* Looks again soon if a question is not due: peers may still be closing their ends, so the time
 * can't be predicted. */
uint64_t tk_reconnect_look(uint32_t rail, uint64_t now)
{
    uint64_t soon = now + tk_reconnect_wait;
    if (tk_is_leaving() || !is_active(&tk_verbs.rails[rail]))
        return soon;
    tk_lock(&tk_moves_lock);
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        struct tk_conn *conns = tk_conns_to(r);
        bool has_any = __atomic_load_n(&conns->qp, __ATOMIC_RELAXED) != NULL;
        for (uint32_t k = rail; has_any && k < tk_verbs.conns_pp; k += tk_verbs.rail_count)
            if (!ask_if_due(&conns[k], now))
                soon = now + tk_reconnect_wait / 4;
    }
    tk_unlock(&tk_moves_lock);
    return soon;
}

/* ---- opening ---- */

static int reconnect(struct tk_conn *conn, const char **what)
{
    struct tk_log_incarnation *incarnation = incarnation_of(conn);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    *what = "modify_qp to RESET";
    int error = ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE);
    if (error)
        return error;
    if (conn->loan) /* later events belong to the next incarnation; see reopen() */
        tk_events_go_on();
    *what = "modify_qp to INIT";
    error = tk_conn_init(conn);
    if (error)
        return error;
    if (tk_rail_of(conn)->by_cm) {
        tk_cm_reset(conn, incarnation->number + 1);
        return 0;
    }
    return tk_conn_ready(conn, incarnation->to_qp, incarnation->number + 1, what);
}

/* Of the old incarnation only lent space remains, which is given back or used later. */
static void begin_incarnation(struct tk_conn *conn)
{
    struct tk_tx_log *tx_log = conn->tx_log;
    __atomic_store_n(&tx_log->incarnation.number, tx_log->incarnation.number + 1, __ATOMIC_RELAXED);
    tx_log->incarnation.is_wanted = tx_log->incarnation.is_asked = tx_log->incarnation.is_passed =
        false;
    tx_log->incarnation.before = tx_log->arrived;
    tx_log->sent = tx_log->delivered = 0;
    __atomic_store_n(&tx_log->arrived, 0, __ATOMIC_RELAXED);
    tx_log->is_delivered_known = tx_log->is_left_out = false;
    tk_counter_add(&conn->space, tk_conn_unfinished(conn));
    tx_log->failed = conn->unsignaled = 0;
    tk_log_incarnation_name(conn);
}

/* The queue pair takes buffers of the shared queue again, so "last receive" will come again. Not
 * called for a skipped incarnation: there the queue pair stays in ERR, and the device raises that
 * event only once. */
static void forget_last_receive(struct tk_conn *conn)
{
    conn->tx_log->last_receive = (struct tk_last_receive){.is_noted = false};
    __atomic_store_n(&conn->has_received_last, false, __ATOMIC_RELAXED);
}

/* Posts the buffers of a connection that is not primary, as at start-up. */
static void post_buffers(struct tk_conn *conn)
{
    conn->is_ready = false;
    conn->rx_base = tk_notice_buffers();
    if (conn->loan) {
        conn->rx_extra = tk_verbs.credits_pp;
        return;
    }
    conn->rx_extra = -tk_credit_buffers_needed(conn);
    while (conn->rx_extra < 0 && tk_credit_post_buffer(conn) == TK_OK)
        continue;
}

/* The count at which it continues: it carried nothing while it was away, and with its own count it
 * would get all pieces. */
static uint64_t carried_max(const struct tk_conn *conn)
{
    const struct tk_conn *conns = tk_conns_to(conn->peer->rank);
    uint64_t most = 0;
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        most = tk_max(most, __atomic_load_n(&conns[k].carried, __ATOMIC_RELAXED));
    return most;
}

static void go_live(struct tk_conn *conn)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    tk_lock(&conn->lock);
    bool was_opening = tk_counter_read(&conn->state) == TK_OPENING;
    if (was_opening) {
        __atomic_store_n(&conn->carried, carried_max(conn), __ATOMIC_RELAXED);
        tk_counter_add(&tk_verbs.returns, 1); /* first: see tk_fence() */
        tk_counter_leave(&conn->state, TK_LIVE);
        tk_counter_add(&conn->space, tk_space_closed);
    }
    tk_unlock(&conn->lock);
    if (!was_opening)
        return;
    tk_counter_add(&tk_rail_of(conn)->returns, 1);
    tk_count_rare(tk_counter_connections_back);
    tk_log_warn("%s:%u reaches rank %u (%s) again, and is used again", a->device, a->port,
                conn->peer->rank, conn->peer->host);
}

/* True while librdmacm connects it. Before that the peer's end may not be open, and there is
 * nothing to do. */
static bool is_connecting(const struct tk_conn *conn)
{
    return tk_counter_read(&conn->state) == TK_OPENING && tk_rail_of(conn)->by_cm &&
           tk_cm_is_going(conn);
}

static void follow_connecting(struct tk_conn *conn)
{
    tk_cm_look();
    if (tk_cm_is_up(conn))
        go_live(conn);
}

/* The other end is open, or is treated as open. */
static void begin_to_use(struct tk_conn *conn)
{
    if (!tk_rail_of(conn)->by_cm) {
        go_live(conn);
        return;
    }
    tk_cm_go(conn);
    tk_pending_work_add(conn);
    follow_connecting(conn);
}

static bool reopen_queue_pair(struct tk_conn *conn)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    const char *what;
    tk_lock(&conn->lock);
    int error = reconnect(conn, &what);
    if (error) {
        incarnation_of(conn)->ended = tk_now();
        incarnation_of(conn)->is_wanted = false;
        tk_reconnect_watch(tk_rail_of(conn));
    } else {
        begin_incarnation(conn);
        forget_last_receive(conn);
        post_buffers(conn);
        tk_counter_leave(&conn->state, TK_OPENING);
    }
    tk_unlock(&conn->lock);
    if (error)
        tk_log_warn("%s:%u is active again, but %s for rank %u failed: %s; it is tried again later",
                    a->device, a->port, what, conn->peer->rank, strerror(error));
    return !error;
}

/* The event "last receive" of a queue pair does not name the incarnation. A connection that is left
 * out when the group is opened counts as drained without that event, but the event may still come.
 * If it were recorded after the next incarnation has begun, that incarnation would count as drained
 * while messages can still come. So this records all events up to RESET and then forgets them, and
 * no other thread may read events meanwhile. False: another thread is reading; try again later. */
static bool reopen(struct tk_conn *conn)
{
    bool is_asked = incarnation_of(conn)->is_asked, is_shared = conn->loan;
    if (is_shared && !tk_events_begin())
        return false;
    bool is_open = reopen_queue_pair(conn);
    if (is_shared)
        tk_events_end();
    if (!is_open)
        return true;
    tk_notice_request(conn);
    if (is_asked)
        begin_to_use(conn);
    return true;
}

void tk_reconnect_answered(struct tk_conn *conn)
{
    if (tk_counter_read(&conn->state) == TK_OPENING)
        begin_to_use(conn);
}

void tk_reconnect_trust(uint32_t rank)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_reconnect_answered(tk_conns_to(rank) + k);
}

void tk_reconnect_asked(struct tk_conn *conn, bool is_open)
{
    incarnation_of(conn)->is_wanted = incarnation_of(conn)->is_asked = is_open;
    incarnation_of(conn)->is_passed = !is_open;
    tk_pending_work_add(conn);
}

/* Skips an incarnation, and sends the notice that nothing came, for which the other end waits. */
static void pass_over(struct tk_conn *conn)
{
    tk_lock(&conn->lock);
    begin_incarnation(conn);
    incarnation_of(conn)->ended = tk_now();
    tk_unlock(&conn->lock);
    tk_notice_request(conn);
}

static void step_conn(struct tk_conn *conn)
{
    struct tk_log_incarnation *incarnation = incarnation_of(conn);
    bool is_closed = tk_counter_read(&conn->state) == TK_CLOSED;
    if (is_closed && incarnation->is_wanted && !tk_is_leaving()) {
        if (!is_active(tk_rail_of(conn)))
            tk_reconnect_watch(tk_rail_of(conn));
        else if (!reopen(conn))
            return;
    }
    if (is_connecting(conn))
        follow_connecting(conn);
    if (!conn->tx_log->notice_due && !is_connecting(conn))
        tk_pending_work_remove(conn);
}

/* Runs also while connections are moved: each end may wait for the other to skip an incarnation,
 * and skipping opens no connection. */
void tk_reconnect_pass(uint32_t rank)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_conn *conn = tk_conns_to(rank) + k;
        if (tk_counter_read(&conn->state) == TK_CLOSED && incarnation_of(conn)->is_passed)
            pass_over(conn);
    }
}

void tk_reconnect_step(uint32_t rank)
{
    tk_reconnect_pass(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (incarnation_of(tk_conns_to(rank) + k)->is_pending_work)
            step_conn(tk_conns_to(rank) + k);
}

void tk_verbs_report_end(void)
{
    if (!tk_verbs.failover_enabled || tk_settings.ibv_ports_verbose < 2)
        return;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        const struct tk_rail *rail = &tk_verbs.rails[i];
        int failures = tk_counter_read(&rail->failures);
        if (failures > 0)
            tk_log_info("port %s:%u: connections given up %d, used again %d", rail->address.device,
                        rail->address.port, failures, tk_counter_read(&rail->returns));
    }
}
