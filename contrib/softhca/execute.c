/* SPDX-License-Identifier: BSD-3-Clause */
/* What the initiator does with one request: find the target, check everything an HCA would check on
 * either side, and move the bytes. The target's program does nothing. Owns nothing; the caller
 * holds sq_lock, and the responder lock of the target is held from the first check to the
 * completion. */
#include "config.h"

#include "request.h"

#define UD_MTU 4096

static bool gather(struct shca_qp *qp, const struct shca_op *op, uint32_t access,
                   struct shca_source *s)
{
    for (uint32_t i = 0; i < op->nsge; i++) {
        const struct ibv_sge *g = &op->sge[i];
        uint64_t va = g->addr;

        if (g->length == 0)
            continue;
        if (!(op->flags & IBV_SEND_INLINE) &&
            !shca_mr_check(shca.seg, g->lkey, g->addr, g->length, access, qp->sh->pd, &va))
            return false;
        s->iov[s->n++] = (struct iovec){(void *)(uintptr_t)va, g->length};
    }
    return true;
}

/* ---- the target ---- */

static bool find_target(struct shca_qp *qp)
{
    uint32_t qpn = qp->attr.dest_qp_num;

    if (qp->peer)
        return true;
    qp->peer = shca_peer_get(qpn >> SHCA_QP_BITS);
    if (!qp->peer)
        return false;
    qp->target = &shca_qp_table(qp->peer->seg)[qpn & (SHCA_QPS - 1)];
    qp->target_tail = 0;
    return true;
}

/* Would the responder accept a packet of this connection? If not it stays silent. */
static bool connected(const struct shca_qp *qp, struct shca_qp_sh *t)
{
    return t->qpn == qp->attr.dest_qp_num && t->dest_qpn == qp->qp.qp_num && shca_receiving(t) &&
           t->type == (uint32_t)qp->qp.qp_type && t->port == qp->dest_port &&
           t->dest_port == qp->sh->port && t->rq_psn == (qp->attr.sq_psn & 0xffffff);
}

void shca_break_peer(struct shca_qp *qp, enum ibv_event_type why)
{
    if (!find_target(qp) || atomic_load(&qp->peer->dead))
        return;
    shca_rx_lock(qp->peer->seg, qp->target, shca.pid);
    if (connected(qp, qp->target))
        shca_break_target(qp->peer, qp->target, why);
    shca_rx_unlock(qp->target);
}

/* The first message to a responder that is not yet in RTS tells its program so, once (11.6.3.1:
 * communication established). */
static void establish(struct shca_peer *p, struct shca_qp_sh *t)
{
    if (t->established)
        return;
    /* Killed in between we leave a second event, which is harmless, and not none. */
    shca_async_send(p->self ? NULL : p, &t->async, IBV_EVENT_COMM_EST, t->qpn & (SHCA_QPS - 1));
    t->established = 1;
}

/* ---- transports ---- */

static int on_target(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                     const struct shca_source *s, enum ibv_wc_status *status)
{
    int wait;

    switch (op->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return shca_rdma_write(qp, op, t, s, status);
    case IBV_WR_RDMA_READ:
        return shca_rdma_read(qp, op, t, s, status);
    default:
        wait = shca_deliver(qp->peer, qp, op, t, s, op->length, status);
        if (wait == SHCA_DONE)
            SHCA_COUNT(sends);
        return wait;
    }
}

static int execute_rc(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *s,
                      enum ibv_wc_status *status)
{
    struct shca_qp_sh *t;
    int wait = SHCA_WAIT_ACK;

    if (!find_target(qp))
        return SHCA_WAIT_ACK;
    if (atomic_load_explicit(&qp->peer->dead, memory_order_acquire)) {
        *status = IBV_WC_RETRY_EXC_ERR;
        return SHCA_DONE;
    }
    t = qp->target;
    shca_rx_lock(qp->peer->seg, t, shca.pid);
    if (connected(qp, t)) {
        if (atomic_load_explicit(&t->state, memory_order_relaxed) == IBV_QPS_RTR)
            establish(qp->peer, t);
        wait = on_target(qp, op, t, s, status);
    }
    shca_rx_unlock(t);
    return wait;
}

int shca_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    bool ud = qp->qp.qp_type == IBV_QPT_UD;
    struct shca_source s;

    s.n = 0;
    *status = IBV_WC_SUCCESS;
    if (op->length > (ud ? UD_MTU : shca_config.max_msg)) {
        *status = IBV_WC_LOC_LEN_ERR;
        return SHCA_DONE;
    }
    if (!gather(qp, op, op->opcode == IBV_WR_RDMA_READ ? IBV_ACCESS_LOCAL_WRITE : 0, &s)) {
        *status = IBV_WC_LOC_PROT_ERR;
        return SHCA_DONE;
    }
    if (shca_path_cut(qp->sh->port, ud ? op->dest_port : qp->dest_port))
        return qp->qp.qp_type == IBV_QPT_UD || qp->qp.qp_type == IBV_QPT_UC ? SHCA_DONE
                                                                            : SHCA_WAIT_ACK;
    if (!ud)
        return execute_rc(qp, op, &s, status);
    shca_execute_ud(qp, op, &s);
    return SHCA_DONE;
}
