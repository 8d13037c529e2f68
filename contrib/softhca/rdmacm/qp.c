/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs of identifiers: their creation, with queues for those that the program did not pass,
 * and the attributes by which they are connected. Owns nothing. */
#include "config.h"

#include "rdmacm/rdmacm.h"

/* ---- attributes ---- */

static void attr_init(const struct shca_cm *id, struct ibv_qp_attr *a, int *mask)
{
    a->pkey_index = 0;
    a->port_num = id->pub.port_num;
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (id->pub.qp_type == IBV_QPT_UD) {
        a->qkey = id->qkey;
        *mask |= IBV_QP_QKEY;
        return;
    }
    /* Until the connection has another end, that end has no access rights. */
    a->qp_access_flags = 0;
    if (id->peer.kind)
        a->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (id->peer.kind && id->responder_resources)
        a->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    *mask |= IBV_QP_ACCESS_FLAGS;
}

static bool asks_reads(const struct shca_cm *id)
{
    return id->pub.qp_type == IBV_QPT_RC || id->pub.qp_type == IBV_QPT_XRC_RECV;
}

static void attr_receive(const struct shca_cm *id, struct ibv_qp_attr *a, int *mask)
{
    shca_cm_address_path(id->port, id->far, &id->peer.gid, &a->ah_attr);
    a->path_mtu = id->peer.mtu;
    a->dest_qp_num = id->peer.qpn;
    a->rq_psn = id->peer.psn;
    *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (!asks_reads(id))
        return;
    a->max_dest_rd_atomic = id->active ? id->peer.initiator_depth : id->responder_resources;
    a->min_rnr_timer = 0;
    *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void attr_send(const struct shca_cm *id, struct ibv_qp_attr *a, int *mask)
{
    a->sq_psn = id->psn;
    *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (id->pub.qp_type == IBV_QPT_UD || id->pub.qp_type == IBV_QPT_UC)
        return;
    a->timeout = id->timeout;
    *mask |= IBV_QP_TIMEOUT;
    if (id->pub.qp_type == IBV_QPT_XRC_RECV)
        return;
    a->retry_cnt = id->retry_count;
    a->rnr_retry = id->peer.rnr_retry_count;
    a->max_rd_atomic = id->active ? id->peer.responder_resources : id->initiator_depth;
    *mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

SHCA_PUBLIC int rdma_init_qp_attr(struct rdma_cm_id *pub, struct ibv_qp_attr *a, int *mask)
{
    SHCA_CM_INSIDE(rdma_init_qp_attr, pub, a, mask);
    struct shca_cm *id = shca_cm_of(pub);
    bool datagram = pub->qp_type == IBV_QPT_UD;

    SHCA_CM_PASS(id, rdma_init_qp_attr, a, mask);

    /* A connection that was not established has no attributes. */
    if (!pub->verbs || (id->state == SHCA_CM_CLOSED && !datagram))
        return shca_cm_fail(EINVAL);
    /* Before there is another end the kernel returns the attributes of the first state, whichever
     * state is requested. */
    if (a->qp_state == IBV_QPS_INIT || (!id->peer.kind && !datagram)) {
        attr_init(id, a, mask);
        return 0;
    }
    if (a->qp_state != IBV_QPS_RTR && a->qp_state != IBV_QPS_RTS)
        return shca_cm_fail(EINVAL);
    if (a->qp_state == IBV_QPS_RTS)
        attr_send(id, a, mask);
    else if (datagram)
        *mask = IBV_QP_STATE;
    else
        attr_receive(id, a, mask);
    return 0;
}

/* ---- transitions ---- */

static int move_to(struct shca_cm *id, struct ibv_qp *qp, enum ibv_qp_state state,
                   uint8_t responder_resources, uint8_t initiator_depth)
{
    struct ibv_qp_attr a = {.qp_state = state};
    int mask = 0;

    if (rdma_init_qp_attr(&id->pub, &a, &mask) != 0)
        return errno;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        a.max_dest_rd_atomic = responder_resources;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        a.max_rd_atomic = initiator_depth;
    return shca_modify_qp(shca_container(qp, struct shca_qp, qp), &a, mask);
}

struct ibv_qp *shca_cm_qp_of(const struct shca_cm *id)
{
    uint32_t n = id->given_qpn;
    struct shca_qp *qp = NULL;

    if (id->pub.qp)
        return id->pub.qp;
    if (n == 0 || shca_config.device[shca_hca_at(id->port)].link != SHCA_LINK_IWARP)
        return NULL;
    pthread_mutex_lock(&shca.lock);
    if (n >> SHCA_QP_BITS == shca.slot)
        qp = shca.qps[n & (SHCA_QPS - 1)];
    pthread_mutex_unlock(&shca.lock);
    return qp ? &qp->qp : NULL;
}

int shca_cm_qp_connect(struct shca_cm *id, uint8_t responder_resources, uint8_t initiator_depth)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    struct ibv_qp *qp = shca_cm_qp_of(id);
    int e = 0;

    if (qp && !id->active && shca_profile_of(qp->context)->link == SHCA_LINK_IWARP)
        shca_qp_hear_first(shca_container(qp, struct shca_qp, qp));
    for (size_t i = 0; qp && i < sizeof states / sizeof states[0] && e == 0; i++)
        e = move_to(id, qp, states[i], responder_resources, initiator_depth);
    return e;
}

void shca_cm_qp_break(struct shca_cm *id)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

    struct ibv_qp *qp = shca_cm_qp_of(id);

    if (qp)
        ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

/* Datagrams need no other end: the queue pair is ready at once. */
static int begin(struct shca_cm *id, struct ibv_qp *qp)
{
    int e = move_to(id, qp, IBV_QPS_INIT, 0, 0);

    if (e == 0 && id->pub.qp_type == IBV_QPT_UD)
        e = move_to(id, qp, IBV_QPS_RTR, 0, 0);
    if (e == 0 && id->pub.qp_type == IBV_QPT_UD)
        e = move_to(id, qp, IBV_QPS_RTS, 0, 0);
    return e;
}

/* ---- creation ---- */

static void destroy_queues(struct rdma_cm_id *id)
{
    if (id->recv_cq)
        ibv_destroy_cq(id->recv_cq);
    if (id->recv_cq_channel)
        ibv_destroy_comp_channel(id->recv_cq_channel);
    if (id->send_cq)
        ibv_destroy_cq(id->send_cq);
    if (id->send_cq_channel)
        ibv_destroy_comp_channel(id->send_cq_channel);
    id->recv_cq = id->send_cq = NULL;
    id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int make_queue(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **ch,
                      struct ibv_cq **cq)
{
    if (entries == 0 || *cq)
        return 0;
    *ch = ibv_create_comp_channel(id->verbs);
    *cq = *ch ? ibv_create_cq(id->verbs, (int)entries, id, *ch, 0) : NULL;
    return *cq ? 0 : errno;
}

static int make_queues(struct rdma_cm_id *id, const struct ibv_qp_init_attr_ex *attr)
{
    int e = make_queue(id, attr->recv_cq ? 0 : attr->cap.max_recv_wr, &id->recv_cq_channel,
                       &id->recv_cq);

    if (e == 0)
        e = make_queue(id, attr->send_cq ? 0 : attr->cap.max_send_wr, &id->send_cq_channel,
                       &id->send_cq);
    if (e != 0)
        destroy_queues(id);
    return e;
}

static int create_check(const struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    if (id->qp || !id->verbs)
        return EINVAL;
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr->pd = id->pd;
    } else if (attr->pd->context != id->verbs) {
        return EINVAL;
    }
    if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
        (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
        return EINVAL;
    return 0;
}

SHCA_PUBLIC int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    SHCA_CM_INSIDE(rdma_create_qp_ex, id, attr);
    struct ibv_qp *qp;
    int e;

    SHCA_CM_PASS(shca_cm_of(id), rdma_create_qp_ex, attr);
    e = create_check(id, attr);

    if (e == 0)
        e = make_queues(id, attr);
    if (e != 0)
        return shca_cm_fail(e);
    if (!attr->send_cq)
        attr->send_cq = id->send_cq;
    if (!attr->recv_cq)
        attr->recv_cq = id->recv_cq;
    if (id->srq && !attr->srq)
        attr->srq = id->srq;
    qp = ibv_create_qp_ex(id->verbs, attr);
    e = qp ? begin(shca_cm_of(id), qp) : errno;
    if (e == 0) {
        id->pd = qp->pd;
        id->qp = qp;
        return 0;
    }
    if (qp)
        ibv_destroy_qp(qp);
    destroy_queues(id);
    return shca_cm_fail(e);
}

SHCA_PUBLIC int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
                               struct ibv_qp_init_attr *init)
{
    SHCA_CM_INSIDE(rdma_create_qp, id, pd, init);
    struct ibv_qp_init_attr_ex attr = {0};
    int status;

    memcpy(&attr, init, sizeof *init); /* begins like it, by contract of the header */
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.pd = pd ? pd : id->pd;
    status = rdma_create_qp_ex(id, &attr);
    memcpy(init, &attr, sizeof *init);
    return status;
}

SHCA_PUBLIC void rdma_destroy_qp(struct rdma_cm_id *id)
{
    SHCA_CM_INSIDE_VOID(rdma_destroy_qp, id);
    struct shca_cm *own = shca_cm_of(id);

    if (own->state == SHCA_CM_HOST) {
        shca_cm_inside++;
        SHCA_CM_REAL(rdma_destroy_qp)(shca_cm_host_of(own));
        shca_cm_inside--;
        shca_cm_host_done(own, 0);
        return;
    }
    ibv_destroy_qp(id->qp);
    id->qp = NULL;
    destroy_queues(id);
}
