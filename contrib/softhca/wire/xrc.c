/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Requests that name the shared receive queue they are for. The initiator holds the responder lock
 * of the target and then the lock of the named queue, until the request is done; the two may be in
 * different processes. The queue determines which memory the request may access: the keys of its
 * process in its protection domain (specification, annex A14: a target has no protection domain of
 * its own). Owns nothing. */
#include "config.h"

#include "wire/request.h"

static struct shca_srq_sh *find_queue(struct shca_qp *qp, uint32_t srqn)
{
    uint32_t slot = srqn >> SHCA_QP_BITS, index = srqn & ((1u << SHCA_QP_BITS) - 1);

    if (qp->xrc_holder && (qp->xrc_holder->slot != slot || atomic_load(&qp->xrc_holder->dead)))
        shca_xrc_release(qp);
    if (!qp->xrc_holder && slot < SHCA_MEMBERS)
        qp->xrc_holder = shca_peer_get(slot);
    if (!qp->xrc_holder || index >= SHCA_SRQS)
        return NULL;
    return &shca_srq_table(qp->xrc_holder->seg)[index];
}

bool shca_xrc_lock(struct shca_qp *qp, uint32_t srqn, const struct shca_qp_sh *t)
{
    struct shca_srq_sh *q = find_queue(qp, srqn);

    if (!q)
        return false;
    shca_pid_lock(&q->lock, shca.pid);
    if (q->srqn == srqn && q->type == IBV_SRQT_XRC && q->domain == t->domain) {
        qp->xrc_srq = q;
        return true;
    }
    shca_pid_unlock(&q->lock);
    return false;
}

bool shca_xrc_enter(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                    enum ibv_wc_status *status)
{
    if (shca_xrc_lock(qp, op->srqn, t))
        return true;
    /* A missing queue and a wrong domain look the same to the sender: an invalid request. */
    shca_break_target(qp->peer, t, IBV_EVENT_QP_REQ_ERR);
    *status = IBV_WC_REM_INV_REQ_ERR;
    return false;
}

void shca_xrc_leave(struct shca_qp *qp)
{
    shca_pid_unlock(&qp->xrc_srq->lock);
    qp->xrc_srq = NULL;
}

void shca_xrc_release(struct shca_qp *qp)
{
    if (qp->xrc_holder)
        shca_peer_put(qp->xrc_holder);
    qp->xrc_holder = NULL;
}
