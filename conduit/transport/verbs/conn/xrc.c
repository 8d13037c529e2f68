/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See xrc.h: the queue pairs. This process's senders last until the end. The kernel destroys a
 * target when the last process closes it, so a rank that ends early takes none from its neighbours.
 * Must not wait, not even for a neighbour. */
#include "config.h"

#include <errno.h>

#include "base/first_use.h"
#include "peer/peer.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/psn.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/conn/xrc_table.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

TK_FIRST_USE bool tk_xrc_take(uint32_t rank)
{
    return !tk_conns.xrc || tk_xrc_table_take(&tk_conns.xrc->table, rank, tk_peers.me);
}

TK_FIRST_USE void tk_xrc_give(uint32_t rank)
{
    if (tk_conns.xrc)
        tk_xrc_table_give(&tk_conns.xrc->table, rank);
}

/* ---- the sender ---- */

static uint32_t group_to(const struct tk_conn *conn)
{
    return tk_conns.xrc->group_of[conn->peer->rank];
}

static struct ibv_qp **sender_of(const struct tk_conn *conn)
{
    return &tk_conns.xrc->senders[(size_t)group_to(conn) * tk_verbs.conns_pp + conn->number];
}

static uint32_t group_size(uint32_t group)
{
    uint32_t count = 0;
    for (uint32_t r = group; r < tk_peers.size; r++)
        count += tk_conns.xrc->group_of[r] == group;
    return count;
}

/* Its send queue has space for everything that its connections may have in flight. */
static struct ibv_qp *make_sender(const struct tk_conn *conn)
{
    const struct tk_device *device = tk_rail_of(conn)->device;
    uint32_t ranks = group_size(group_to(conn));
    struct ibv_qp_init_attr attr = {.send_cq = tk_sends_of(device, tk_lane_of(conn))->cq,
                                    .qp_type = IBV_QPT_XRC_SEND,
                                    .cap = {.max_send_wr = (uint32_t)tk_verbs.depth_pp * ranks,
                                            .max_send_sge = (uint32_t)tk_verbs.list_max,
                                            .max_inline_data = (uint32_t)tk_verbs.inline_limit}};
    return ibv_create_qp(device->pd, &attr);
}

static int open_sender(struct tk_conn *conn, const char **what)
{
    struct ibv_qp **sender = sender_of(conn);
    *what = "create_qp (XRC_SEND)";
    if (*sender)
        return 0;
    if (!(*sender = make_sender(conn)))
        return errno;
    tk_conns.xrc->sending++;
    *what = "modify_qp to INIT (XRC_SEND)";
    return tk_qp_init(*sender, tk_rail_of(conn), IBV_QPT_XRC_SEND, 0);
}

static int ready_sender(struct tk_conn *conn, uint32_t target, const char **what)
{
    const struct tk_route route = {.rail = tk_rail_of(conn),
                                   .path = tk_path_of(conn),
                                   .type = IBV_QPT_XRC_SEND,
                                   .to_qp = target,
                                   .psn = tk_psn_of_xrc(tk_peers.me, group_to(conn), conn->number)};
    *what = "modify_qp to RTR (XRC_SEND)";
    if (conn->qp->state == IBV_QPS_RTS)
        return 0;
    int error = tk_qp_rtr(conn->qp, &route);
    if (error)
        return error;
    *what = "modify_qp to RTS (XRC_SEND)";
    return tk_qp_rts(conn->qp, &route);
}

/* ---- the target ---- */

static int make_target(struct tk_conn *conn, const char **what)
{
    const struct tk_device *device = tk_rail_of(conn)->device;
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = device->xrcd};
    *what = "create_qp (XRC_RECV)";
    conn->target = ibv_create_qp_ex(device->context, &attr);
    if (!conn->target)
        return errno;
    tk_conns.xrc->made++;
    *what = "modify_qp to INIT (XRC_RECV)";
    int error =
        tk_qp_init(conn->target, tk_rail_of(conn), IBV_QPT_XRC_RECV, tk_verbs.remote_access);
    if (error == 0)
        tk_xrc_table_made(&tk_conns.xrc->table, conn->peer->rank, conn->number,
                          conn->target->qp_num);
    return error;
}

static int open_target(struct tk_conn *conn, const char **what)
{
    const struct tk_device *device = tk_rail_of(conn)->device;
    uint32_t made = tk_xrc_table_target(&tk_conns.xrc->table, conn->peer->rank, conn->number);
    struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = made,
                                    .xrcd = device->xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};
    if (!made)
        return make_target(conn, what);
    *what = "open_qp (XRC_RECV)";
    conn->target = ibv_open_qp(device->context, &attr);
    if (!conn->target)
        return errno;
    tk_conns.xrc->opened++;
    return 0;
}

static int ready_target(struct tk_conn *conn, uint32_t sender, const char **what)
{
    const struct tk_xrc_table *table = &tk_conns.xrc->table;
    const struct tk_route route = {
        .rail = tk_rail_of(conn),
        .path = tk_path_of(conn),
        .type = IBV_QPT_XRC_RECV,
        .to_qp = sender,
        .to_psn =
            tk_psn_of_xrc(conn->peer->rank, tk_conns.xrc->group_of[tk_peers.me], conn->number)};
    *what = "modify_qp to RTR (XRC_RECV)";
    if (tk_xrc_table_is_connected(table, conn->peer->rank, conn->number))
        return 0;
    int error = tk_qp_rtr(conn->target, &route);
    if (error == 0)
        tk_xrc_table_connected(table, conn->peer->rank, conn->number);
    return error;
}

/* ---- connections ---- */

int tk_xrc_conn_open(struct tk_conn *conn, const char **what)
{
    int error = open_sender(conn, what);
    __atomic_store_n(&conn->qp, *sender_of(conn), __ATOMIC_RELAXED);
    return error ? error : open_target(conn, what);
}

int tk_xrc_conn_ready(struct tk_conn *conn, const uint32_t *numbers, const char **what)
{
    uint32_t conns = tk_verbs.conns_pp;
    conn->unsignaled_wr.qp_type.xrc.remote_srqn = numbers[TK_XRC_QUEUE * conns];
    int error = ready_target(conn, numbers[TK_XRC_SENDER * conns], what);
    return error ? error : ready_sender(conn, numbers[TK_XRC_TARGET * conns], what);
}

void tk_xrc_conn_close(struct tk_conn *conn)
{
    if (conn->target)
        ibv_destroy_qp(conn->target);
    conn->target = NULL;
    __atomic_store_n(&conn->qp, NULL, __ATOMIC_RELAXED);
}

void tk_xrc_numbers_of(const struct tk_conn *conns, uint32_t *numbers)
{
    uint32_t count = tk_verbs.conns_pp;
    for (uint32_t k = 0; k < count; k++) {
        const struct tk_conn *conn = &conns[k];
        uint32_t queue = 0;
        ibv_get_srq_num(tk_rail_of(conn)->device->srq->queue, &queue);
        numbers[TK_XRC_SENDER * count + k] = conn->qp ? conn->qp->qp_num : 0;
        numbers[TK_XRC_TARGET * count + k] = conn->target ? conn->target->qp_num : 0;
        numbers[TK_XRC_QUEUE * count + k] = queue;
    }
}
