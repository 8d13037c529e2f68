/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state machine of a queue pair: the attributes that each transition requires and allows
 * (InfiniBand specification 1.3, 11.2.5.2), their legal values, and their effects. Owns nothing;
 * sq_lock and the responder lock are held during a transition. */
#include "config.h"

#include "verbs/verbs.h"
#include "wire/udp/udp.h"

/* Transports are numbered below 16, so a set of them is a word of bits. */
#define RC   (1u << IBV_QPT_RC)
#define UC   (1u << IBV_QPT_UC)
#define UD   (1u << IBV_QPT_UD)
#define XS   (1u << IBV_QPT_XRC_SEND)
#define XR   (1u << IBV_QPT_XRC_RECV)
#define CONN (RC | UC | XS | XR) /* all that have a connection */

/* Attributes that are required together. */
#define ADDRESS (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define ANSWER  (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RETRY   (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
#define MOVE    (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define LATER   (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | MOVE)
#define KEEP    (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)

struct rule {
    uint32_t from, to;
    uint32_t types;
    int need, may;
};

static const struct rule modify_rules[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, CONN, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, UD, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, CONN, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    {IBV_QPS_INIT, IBV_QPS_INIT, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    /* A responder to reads and requests must know how many and when. */
    {IBV_QPS_INIT, IBV_QPS_RTR, RC | XR, ADDRESS | ANSWER, KEEP},
    {IBV_QPS_INIT, IBV_QPS_RTR, UC | XS, ADDRESS, KEEP},
    {IBV_QPS_INIT, IBV_QPS_RTR, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    /* Only a requester retransmits; an XRC target sends no requests, but its timer is set. */
    {IBV_QPS_RTR, IBV_QPS_RTS, RC, RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
     LATER | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, XS, RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC, LATER},
    {IBV_QPS_RTR, IBV_QPS_RTS, XR, IBV_QP_TIMEOUT | IBV_QP_SQ_PSN, LATER | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTR, IBV_QPS_RTS, UC, IBV_QP_SQ_PSN, LATER},
    {IBV_QPS_RTR, IBV_QPS_RTS, UD, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, RC | XR, 0, LATER | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_RTS, IBV_QPS_RTS, UC | XS, 0, LATER},
    {IBV_QPS_RTS, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, CONN | UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, RC | XR, 0, LATER | IBV_QP_MIN_RNR_TIMER},
    {IBV_QPS_SQD, IBV_QPS_RTS, UC | XS, 0, LATER},
    {IBV_QPS_SQD, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, RC, 0,
     IBV_QP_PORT | IBV_QP_AV | RETRY | IBV_QP_MAX_QP_RD_ATOMIC | ANSWER | KEEP |
         IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_SQD, IBV_QPS_SQD, XS, 0,
     IBV_QP_PORT | IBV_QP_AV | RETRY | IBV_QP_MAX_QP_RD_ATOMIC | KEEP | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_SQD, IBV_QPS_SQD, XR, 0,
     IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | ANSWER | KEEP | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_SQD, IBV_QPS_SQD, UC, 0, IBV_QP_AV | KEEP | IBV_QP_PATH_MIG_STATE},
    {IBV_QPS_SQD, IBV_QPS_SQD, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    /* Only the send queue of an unacknowledged transport can break alone. */
    {IBV_QPS_SQE, IBV_QPS_RTS, UD, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, UC, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
};

static bool allowed(uint32_t from, uint32_t to, uint32_t type, int mask)
{
    mask &= ~IBV_QP_STATE;
    /* Linux allows a transition to ERR from every state but RESET. */
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask == 0 && (to == IBV_QPS_RESET || from != IBV_QPS_RESET);
    for (size_t i = 0; i < sizeof modify_rules / sizeof modify_rules[0]; i++) {
        const struct rule *r = &modify_rules[i];

        if (r->from == from && r->to == to && (r->types >> type & 1))
            return (mask & r->need) == r->need && (mask & ~(r->need | r->may)) == 0;
    }
    return false;
}

static bool valid_path(int hca, const struct ibv_ah_attr *a, uint32_t port, uint32_t pkey_index)
{
    return shca_valid_path(hca, a) && shca_valid_port(hca, port) && shca_pkey_at(hca, pkey_index);
}

/* The primary path starts at the port of the queue pair. */
static bool valid_paths(const struct shca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    uint8_t port = mask & IBV_QP_PORT ? a->port_num : qp->attr.port_num;
    uint16_t pkey_index = mask & IBV_QP_PKEY_INDEX ? a->pkey_index : qp->attr.pkey_index;
    int hca = shca_hca_of(qp->qp.context);

    if ((mask & IBV_QP_AV) &&
        (!valid_path(hca, &a->ah_attr, port, pkey_index) || a->ah_attr.port_num != port))
        return false;
    return !(mask & IBV_QP_ALT_PATH) ||
           (a->alt_timeout <= 31 &&
            valid_path(hca, &a->alt_ah_attr, a->alt_port_num, a->alt_pkey_index));
}

static bool valid_numbers(const struct ibv_context *ctx, const struct ibv_qp_attr *a, int mask)
{
    const struct shca_profile *p = shca_profile_of(ctx);
    int hca = shca_hca_of(ctx);

    if ((mask & IBV_QP_PKEY_INDEX) && !shca_pkey_at(hca, a->pkey_index))
        return false;
    if ((mask & IBV_QP_PORT) && !shca_valid_port(hca, a->port_num))
        return false;
    if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
        return false;
    if ((mask & IBV_QP_PATH_MIG_STATE) && a->path_mig_state > IBV_MIG_ARMED)
        return false;
    if ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
        return false;
    if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
        return false;
    if (((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7) ||
        ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7))
        return false;
    return !((mask & IBV_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > p->max_init_rd_atom) &&
           !((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > p->max_rd_atom);
}

/* Which field of ibv_qp_attr each bit covers. */
#define TAKE(bit, field)                                                                           \
    do {                                                                                           \
        if (mask & (bit))                                                                          \
            to->field = from->field;                                                               \
    } while (0)

static void take_attrs(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, int mask)
{
    TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    TAKE(IBV_QP_PKEY_INDEX, pkey_index);
    TAKE(IBV_QP_PORT, port_num);
    TAKE(IBV_QP_QKEY, qkey);
    TAKE(IBV_QP_AV, ah_attr);
    TAKE(IBV_QP_PATH_MTU, path_mtu);
    TAKE(IBV_QP_TIMEOUT, timeout);
    TAKE(IBV_QP_RETRY_CNT, retry_cnt);
    TAKE(IBV_QP_RNR_RETRY, rnr_retry);
    TAKE(IBV_QP_RQ_PSN, rq_psn);
    TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    TAKE(IBV_QP_SQ_PSN, sq_psn);
    TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    TAKE(IBV_QP_DEST_QPN, dest_qp_num);
    TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state);
    TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
    /* Stored and reported; a path never fails alone here, so nothing ever migrates. */
    TAKE(IBV_QP_ALT_PATH, alt_ah_attr);
    TAKE(IBV_QP_ALT_PATH, alt_port_num);
    TAKE(IBV_QP_ALT_PATH, alt_pkey_index);
    TAKE(IBV_QP_ALT_PATH, alt_timeout);
}

static uint32_t port_of(const struct shca_qp *qp)
{
    return shca_fabric_port(shca_ctx(qp->qp.context)->hca,
                            qp->attr.port_num ? qp->attr.port_num : 1);
}

/* Publishes the fields that initiators need; the responder lock excludes them meanwhile. False: a
 * peer broke the queue pair since its state was read. */
static bool modify_publish(struct shca_qp *qp, uint32_t from, uint32_t to)
{
    struct shca_qp_sh *sh = qp->sh;
    bool same;

    shca_rx_lock(shca.seg, sh, shca.pid);
    same = atomic_load(&sh->state) == from;
    if (same) {
        sh->port = port_of(qp);
        sh->access = qp->attr.qp_access_flags;
        sh->qkey = qp->attr.qkey;
        sh->rq_psn = qp->attr.rq_psn & 0xffffff;
        sh->min_rnr = qp->attr.min_rnr_timer;
        sh->max_dest_rd_atomic = qp->attr.max_dest_rd_atomic;
        atomic_store_explicit(&sh->network,
                              shca_network_of(sh->port, qp->attr.pkey_index, &qp->attr.ah_attr) |
                                  shca_link_mark(sh->port),
                              memory_order_relaxed);
        sh->pkey_index = (uint8_t)qp->attr.pkey_index;
        sh->mtu = (uint8_t)qp->attr.path_mtu;
        sh->dest_qpn = qp->attr.dest_qp_num;
        sh->dest_port = qp->dest_port;
        sh->epoch = ++shca.epoch;
        atomic_store(&sh->state, to);
    }
    shca_rx_unlock(sh);
    return same;
}

static void drop_connection(struct shca_qp *qp)
{
    if (qp->peer)
        shca_peer_put(qp->peer);
    shca_xrc_release(qp);
    qp->peer = NULL;
    qp->target = NULL;
    qp->waiting = SHCA_DONE;
    qp->fault.stage = 0;
    qp->rate = (struct shca_rate_state){0};
}

void shca_qp_reset(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;

    shca_rx_lock(shca.seg, sh, shca.pid);
    atomic_store(&sh->state, IBV_QPS_RESET);
    sh->dest_qpn = 0;
    sh->established = 0;
    sh->epoch = ++shca.epoch;
    shca_rx_unlock(sh);
    shca_udp_reset(qp);
    shca_rq_reset(qp);
    if (qp->scq)
        shca_cq_purge(qp->scq, qp);
    drop_connection(qp);
    qp->sq_tail = qp->sq_exec = 0;
    atomic_store(&qp->sq_head, 0);
    memset(&qp->attr, 0, sizeof qp->attr);
    qp->attr.qp_state = IBV_QPS_RESET;
}

static void resume(struct shca_qp *qp)
{
    qp->waiting = SHCA_DONE;
    qp->next_try = 0;
    shca_sq_run(qp);
    if (qp->sq_exec != qp->sq_tail && !qp->far)
        shca_pending_add(qp);
}

/* Programs give both ends of XRC the attributes of an RC queue pair, and Linux accepts them:
 * attributes that one half of a connection does not use are ignored. */
static int useful(uint32_t type, int mask)
{
    return type == IBV_QPT_XRC_SEND ? mask & ~ANSWER
           : type == IBV_QPT_XRC_RECV
               ? mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY)
               : mask;
}

static int transition(struct shca_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    uint32_t from = shca_qp_state(qp), to = mask & IBV_QP_STATE ? attr->qp_state : from;
    struct ibv_qp_attr before = qp->attr;

    qp->plain.epoch = 0;
    if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
        return EINVAL;
    if (!allowed(from, to, qp->qp.qp_type, mask) || !valid_numbers(qp->qp.context, attr, mask) ||
        !valid_paths(qp, attr, mask))
        return EINVAL;
    if (to == IBV_QPS_RESET) {
        shca_qp_reset(qp);
    } else if (to == IBV_QPS_ERR) {
        shca_qp_error(qp);
    } else {
        take_attrs(&qp->attr, attr, mask);
        if (mask & IBV_QP_AV)
            qp->dest_port = shca_route(port_of(qp), &attr->ah_attr);
        if (!shca_udp_select(qp, from, to, mask) || !modify_publish(qp, from, to)) {
            qp->attr = before;
            return EINVAL;
        }
        qp->attr.qp_state = to;
        if (qp->far)
            shca_udp_modified(qp, from, to);
        if (from == IBV_QPS_SQD && to == IBV_QPS_RTS)
            resume(qp);
        /* A request is executed at once or has not begun: the queue is already drained. */
        if (to == IBV_QPS_SQD && !qp->far && (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
            attr->en_sqd_async_notify)
            shca_async_send(NULL, &qp->sh->async, IBV_EVENT_SQ_DRAINED, qp->index);
    }
    qp->qp.state = to;
    return 0;
}

int shca_modify_qp(struct shca_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int e = shca_unusable(qp->qp.context);

    if (e != 0)
        return e;
    shca_lock(&qp->sq_lock);
    if (qp->xrcd)
        shca_target_load(qp);
    e = transition(qp, attr, useful(qp->qp.qp_type, mask));
    if (qp->xrcd)
        shca_target_store(qp);
    shca_unlock(&qp->sq_lock);
    return e;
}

/* A queue pair of iWARP is a TCP connection: only the kernel's connection manager makes it. */
static bool needs_manager(const struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    return shca_profile_of(qp->context)->link == SHCA_LINK_IWARP && (mask & IBV_QP_STATE) &&
           (attr->qp_state == IBV_QPS_RTR || attr->qp_state == IBV_QPS_RTS);
}

SHCA_PUBLIC int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
    typedef int fn(struct ibv_qp *, struct ibv_qp_attr *, int);

    if (!shca_owns(ibqp->context))
        SHCA_PASS(fn, "ibv_modify_qp", ENOSYS, ibqp, attr, mask);
    if (needs_manager(ibqp, attr, mask))
        return EINVAL;
    return shca_modify_qp(shca_container(ibqp, struct shca_qp, qp), attr, mask);
}
