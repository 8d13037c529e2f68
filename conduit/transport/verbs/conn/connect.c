/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections: creation of their queue pairs, and connecting them with those of the peer. No lock:
 * no other thread sees a connection before it is ready. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/report.h"
#include "peer/peer.h"
#include "stats/stats.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/psn.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover_group.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static const char out_of_queues[] =
    " (the device is out of queue pairs or of queue memory: lower GASNET_NETWORKDEPTH_PP or "
    "GASNET_AM_CREDITS_PP, or start fewer ranks)";

static enum tk_status conn_failed(const struct tk_conn *conn, const char *what, int error)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    tk_log_error("%s:%u: %s for rank %u failed: %s%s", a->device, a->port, what, conn->peer->rank,
                 strerror(error), error == ENOMEM ? out_of_queues : "");
    return TK_FAIL;
}

/* The kernel resolves the route to the other end when a queue pair becomes ready to receive. */
static enum tk_status not_reached(const struct tk_conn *conn, const char *what, int error)
{
    char path[tk_path_text_size];
    if (error == ENOMEM)
        return conn_failed(conn, what, error);
    if (error == tk_gid_lost) {
        tk_log_error("rank %u (%s, pid %d) can't be connected from %s: the port's table has no "
                     "such GID any more: give its interface the address again",
                     conn->peer->rank, conn->peer->host, conn->peer->pid,
                     tk_path_text(&tk_rail_of(conn)->address, tk_path_of(conn), path));
        return TK_FAIL;
    }
    tk_log_error("rank %u (%s, pid %d) is not reached from %s, queue pair %u: %s: %s",
                 conn->peer->rank, conn->peer->host, conn->peer->pid,
                 tk_path_text(&tk_rail_of(conn)->address, tk_path_of(conn), path), conn->qp->qp_num,
                 what, strerror(error));
    return TK_FAIL;
}

static enum tk_status no_path(const struct tk_conn *conn, const struct tk_port_address *to)
{
    char mine[64], theirs[64];
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    snprintf(mine, sizeof(mine), "%s:%u", a->device, a->port);
    snprintf(theirs, sizeof(theirs), "%s:%u of rank %u", to->device, to->port, conn->peer->rank);
    tk_gids_log_apart(mine, a, theirs, to);
    return TK_FAIL;
}

void tk_conn_hold_credits(struct tk_conn *conn)
{
    conn->held_credits += conn->credits;
    conn->rx_extra -= conn->credits;
    conn->credits = 0;
}

void tk_conn_hold(struct tk_conn *conn)
{
    conn->is_held = true;
    conn->held_credits = 0;
    tk_conn_hold_credits(conn);
    tk_counter_add(&conn->space, -tk_verbs.depth_pp);
}

TK_FIRST_USE void tk_conn_release(struct tk_conn *conn)
{
    conn->is_held = false;
    conn->credits += conn->held_credits;
    conn->rx_extra += conn->held_credits;
    conn->held_credits = 0;
    conn->starved_since = 0;
    tk_counter_add(&conn->space, tk_verbs.depth_pp);
}

/* With the connection's lock: another thread may still hold a pointer from before it was closed. */
static void conn_prepare(struct tk_conn *conn, bool is_primary)
{
    conn->unsignaled_tx.conn = conn;
    conn->unsignaled_tx.opcode = IBV_WR_SEND;
    conn->unsignaled_sge.addr = (uintptr_t)&conn->unsignaled_data;
    conn->unsignaled_wr.wr_id = (uintptr_t)&conn->unsignaled_tx;
    conn->unsignaled_wr.opcode = IBV_WR_SEND;
    conn->unsignaled_wr.send_flags = IBV_SEND_INLINE;
    conn->unsignaled_wr.sg_list = &conn->unsignaled_sge;
    conn->unsignaled_wr.num_sge = 1;
    tk_counter_set(&conn->space, tk_verbs.depth_pp);
    tk_counter_set(&conn->returned, 0);
    conn->rx_base = tk_notice_buffers();
    conn->credits = conn->credits_to_return = conn->unsignaled = conn->control_expected = 0;
    conn->starved_since = conn->carried = conn->unsignaled_tx.more_bounces = 0;
    tk_credit_queue_clear(conn);
    conn->is_closing = conn->has_sent_control = conn->is_ready = false;
    tk_counter_set(&conn->state, TK_LIVE);
    __atomic_store_n(&conn->has_received_last, false, __ATOMIC_RELAXED);
    if (is_primary) {
        conn->credits = tk_verbs.credits_pp;
        conn->rx_base += 2 * tk_verbs.credits_pp;
        conn->control_expected = 1;
    }
    conn->rx_extra = -tk_credit_buffers_needed(conn);
    /* The shared queue has the buffers, also those for replies: a request never has to post one. */
    if (conn->loan) {
        conn->rx_extra = tk_verbs.credits_pp;
        tk_borrower_open(&conn->loan->borrower, tk_verbs.credits_pp, tk_verbs.credits_pp);
    }
    conn->is_held = false;
    if (tk_conns.demand || conn->is_for_atomics)
        tk_conn_hold(conn);
}

/* Devices take a multiple of 16 bytes inline, most often. */
static size_t less_inline(size_t limit)
{
    enum { fine_from = 128, step = 16 };
    return limit > fine_from ? limit / 2 : (limit - 1) / step * step;
}

/* Rights and broken devices have nothing to do with sizes. */
static bool is_about_sizes(int error)
{
    return error != EPERM && error != EACCES && error != EIO;
}

/* A message needs two ranges of memory, for its head and its payload. An immediate Long needs two
 * requests. */
enum { list_least = 2, depth_least = 2 };

/* Devices do not report how much inline data they allow, nor how long a list of how many requests
 * may have: a send queue that is too large as a whole is EINVAL, or ENOMEM on mlx5. Asks for less
 * inline data, then for short lists, then for half as many requests, with as much inline data as at
 * first. False: there is no less to ask for. */
static bool ask_for_less(struct ibv_qp_cap *cap, size_t inline_first)
{
    if (tk_verbs.inline_limit > 0)
        tk_verbs.inline_limit = less_inline(tk_verbs.inline_limit);
    else if (tk_verbs.list_max > list_least) {
        tk_verbs.list_max = list_least;
        tk_verbs.inline_limit = inline_first;
    } else if (tk_verbs.depth_pp > depth_least) {
        tk_verbs.depth_pp = (int)tk_max(depth_least, (size_t)tk_verbs.depth_pp / 2);
        tk_verbs.inline_limit = inline_first;
    } else
        return false;
    cap->max_send_wr = (uint32_t)tk_verbs.depth_pp;
    cap->max_send_sge = (uint32_t)tk_verbs.list_max;
    cap->max_inline_data = (uint32_t)tk_verbs.inline_limit;
    return true;
}

static struct ibv_qp *create_within_limits(const struct tk_device *device,
                                           struct ibv_qp_init_attr *attr)
{
    size_t inline_first = tk_verbs.inline_limit;
    struct ibv_qp *qp;
    while (!(qp = ibv_create_qp(device->pd, attr)) && is_about_sizes(errno) &&
           ask_for_less(&attr->cap, inline_first))
        continue;
    if (qp && attr->cap.max_inline_data < tk_verbs.inline_limit)
        tk_verbs.inline_limit = attr->cap.max_inline_data;
    return qp;
}

/* Other threads may check whether a connection has a queue pair. */
static void set_qp(struct tk_conn *conn, struct ibv_qp *qp)
{
    __atomic_store_n(&conn->qp, qp, __ATOMIC_RELAXED);
}

/* Within the limits that tk_conn_probe() found. */
static enum tk_status conn_create(struct tk_conn *conn, struct ibv_qp_init_attr *attr)
{
    set_qp(conn, ibv_create_qp(tk_rail_of(conn)->device->pd, attr));
    return conn->qp ? TK_OK : conn_failed(conn, "create_qp", errno);
}

static int receives_of(bool is_primary)
{
    return tk_verbs.failover_enabled || is_primary ? tk_receives_max() : 1;
}

static struct ibv_qp_init_attr conn_attr(struct tk_conn *conn, const struct tk_device *device,
                                         bool is_primary)
{
    bool is_shared = device->srq && (conn ? conn->loan != NULL : is_primary);
    struct ibv_srq *shared = is_shared ? device->srq->queue : NULL;
    return (struct ibv_qp_init_attr){
        .qp_context = conn,
        .send_cq = tk_sends_of(device, conn ? tk_lane_of(conn) : tk_verbs.lanes)->cq,
        .recv_cq = device->recv_cq,
        .srq = shared,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = (uint32_t)tk_verbs.depth_pp,
                .max_recv_wr = shared ? 0 : (uint32_t)receives_of(is_primary),
                .max_send_sge = (uint32_t)tk_verbs.list_max,
                .max_recv_sge = 1,
                .max_inline_data = (uint32_t)tk_verbs.inline_limit},
    };
}

static enum tk_status probe(const struct tk_device *device, struct ibv_qp_init_attr attr)
{
    struct ibv_qp *qp = create_within_limits(device, &attr);
    if (qp) {
        ibv_destroy_qp(qp);
        return TK_OK;
    }
    tk_log_error("%s: create_qp failed: %s%s", ibv_get_device_name(device->context->device),
                 strerror(errno), errno == ENOMEM ? out_of_queues : "");
    return TK_FAIL;
}

/* We do not know yet whether neighbours share queue pairs. */
static enum tk_status probe_sender(const struct tk_device *device)
{
    struct ibv_qp_init_attr attr = conn_attr(NULL, device, false);
    attr.qp_type = IBV_QPT_XRC_SEND;
    attr.recv_cq = NULL;
    attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    return probe(device, attr);
}

enum tk_status tk_conn_probe(void)
{
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (probe(device, conn_attr(NULL, device, !tk_xrc_is_offered())) != TK_OK ||
            (tk_xrc_is_offered() && probe_sender(device) != TK_OK))
            return TK_FAIL;
    return TK_OK;
}

static enum tk_status conn_share(struct tk_conn *conn)
{
    const char *what;
    int error = tk_xrc_conn_open(conn, &what);
    if (error)
        return conn_failed(conn, what, error);
    if (conn->loan)
        tk_srq_join(conn);
    return TK_OK;
}

static enum tk_status conn_make(struct tk_conn *conn, bool is_primary)
{
    struct ibv_qp_init_attr attr = conn_attr(conn, tk_rail_of(conn)->device, is_primary);
    if (conn_create(conn, &attr) != TK_OK)
        return TK_FAIL;
    if (conn->loan)
        tk_srq_join(conn);
    int error = tk_conn_init(conn);
    return error ? conn_failed(conn, "modify_qp to INIT", error) : TK_OK;
}

TK_FIRST_USE static struct tk_lane *lane_of_number(uint32_t number)
{
    return &tk_verbs.lanes[number % tk_lane_count()];
}

/* Ranks that share a queue pair share the completion queue of its sends. */
TK_FIRST_USE static struct tk_lane *lane_to(uint32_t rank, uint32_t number)
{
    if (tk_xrc_in_use())
        return lane_of_number(tk_conns.xrc->group_of[rank]);
    return lane_of_number(tk_lanes_spread() ? rank * tk_verbs.conns_pp + number : rank);
}

enum tk_status tk_conn_open(struct tk_conn *conn, struct tk_peer *peer, uint32_t number,
                            bool is_primary)
{
    if (!conn->peer) { /* a used entry keeps them: another thread may be reading them */
        conn->peer = peer;
        conn->number = (uint8_t)number;
        conn->rail = number % tk_verbs.rail_count;
        conn->lane = lane_to(peer->rank, number);
    }
    tk_lock(&conn->lock);
    conn_prepare(conn, is_primary);
    tk_unlock(&conn->lock);
    if (tk_verbs.failover_enabled && tk_tx_log_open(conn) != TK_OK)
        return TK_FAIL;
    if (tk_verbs.failover_enabled)
        tk_log_incarnation_name(conn);
    tk_count_rare(tk_counter_connections_made);
    return tk_xrc_is_shared(conn) ? conn_share(conn) : conn_make(conn, is_primary);
}

bool tk_conn_open_ahead(struct tk_conn *conn)
{
    const struct tk_device *device = tk_rail_of(conn)->device;
    struct ibv_qp_init_attr attr = conn_attr(NULL, device, true);
    conn->lane = lane_to(tk_conns.expected, 0); /* as if ranks connected in order */
    attr.qp_context = conn;
    attr.send_cq = tk_sends_of(device, tk_lane_of(conn))->cq;
    conn->peer = tk_peer(tk_peers.me); /* no peer is known yet */
    conn_prepare(conn, true);
    conn->qp = ibv_create_qp(device->pd, &attr);
    return conn->qp && tk_conn_init(conn) == 0;
}

TK_FIRST_USE bool tk_conn_suits(const struct tk_conn *ahead, uint32_t rank)
{
    return tk_lane_of(ahead) == lane_to(rank, 0);
}

TK_FIRST_USE void tk_conn_give(struct tk_conn *conn, struct tk_peer *peer)
{
    conn->peer = peer;
    if (conn->loan) {
        conn_prepare(conn, true);
        tk_srq_join(conn);
    }
    tk_count_rare(tk_counter_connections_made);
}

int tk_conn_init(struct tk_conn *conn)
{
    return tk_qp_init(conn->qp, tk_rail_of(conn), IBV_QPT_RC, tk_verbs.remote_access);
}

TK_FIRST_USE int tk_conn_ready(struct tk_conn *conn, uint32_t qp, uint32_t incarnation,
                               const char **what)
{
    const struct tk_psn_pair psn =
        tk_psn_of_conn(conn->is_for_atomics ? TK_PSN_ATOMICS : TK_PSN_MESSAGES, conn->peer->rank,
                       conn->number, incarnation);
    const struct tk_route route = {.rail = tk_rail_of(conn),
                                   .path = tk_path_of(conn),
                                   .type = IBV_QPT_RC,
                                   .to_qp = qp,
                                   .to_psn = psn.theirs,
                                   .psn = psn.mine};
    *what = "modify_qp to RTR";
    int error = tk_qp_rtr(conn->qp, &route);
    if (error)
        return error;
    *what = "modify_qp to RTS";
    return tk_qp_rts(conn->qp, &route);
}

TK_FIRST_USE enum tk_status tk_conn_connect(struct tk_conn *conn, const struct tk_port_address *to,
                                            const uint32_t *qp)
{
    const char *what;
    const struct tk_port_address *mine = &tk_rail_of(conn)->address;
    bool by_cm = tk_rail_of(conn)->by_cm && !conn->is_for_atomics;
    /* librdmacm uses IP addresses, and only the common limits of both ends from the path */
    if (!tk_path_find(&conn->path, mine, to, tk_peers.me < conn->peer->rank) && !by_cm)
        return no_path(conn, to);
    if (conn->tx_log) {
        conn->tx_log->incarnation.to_qp = qp ? *qp % tk_qp_left_out : 0;
        tk_log_incarnation_begin(conn);
    }
    if (by_cm) /* cm/ connects all of them at once */
        return TK_OK;
    if (conn->tx_log && conn->tx_log->is_left_out)
        return TK_OK;
    uint32_t first = conn->tx_log ? conn->tx_log->incarnation.number : conn->epoch;
    int error = tk_xrc_is_shared(conn) ? tk_xrc_conn_ready(conn, qp, &what)
                                       : tk_conn_ready(conn, *qp, first, &what);
    return error ? not_reached(conn, what, error) : TK_OK;
}

void tk_conn_close(struct tk_conn *conn)
{
    const struct ibv_qp *receiver = conn->target ? conn->target : conn->qp;
    uint32_t number = receiver ? receiver->qp_num : 0;
    if (tk_xrc_is_shared(conn))
        tk_xrc_conn_close(conn);
    else if (conn->qp)
        ibv_destroy_qp(conn->qp);
    set_qp(conn, NULL);
    tk_srq_leave(conn, number);
}
