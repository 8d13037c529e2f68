/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posts receives to a queue pair: first the slot is written, then the tail. Owns nothing. rq_lock
 * serialises the posters of this process; initiators read the tail with acquire order. */
#include "config.h"

#include "verbs/verbs.h"
#include "wire/entry.h"

static int recv_post_one(struct shca_qp *qp, const struct ibv_recv_wr *wr)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t tail = atomic_load_explicit(&sh->rq_tail, memory_order_relaxed);
    uint32_t state = atomic_load_explicit(&sh->state, memory_order_relaxed);

    if (state == IBV_QPS_RESET)
        return EINVAL;
    if (state == IBV_QPS_ERR && shca_is_fatal(qp->qp.context))
        return EIO;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sh->rq.max_sge)
        return EINVAL;
    if (tail - atomic_load_explicit(&sh->rq_done, memory_order_acquire) >= sh->rq.depth)
        return ENOMEM;
    qp->rq_wr_id[tail & sh->rq.mask] = wr->wr_id;
    shca_slot_fill(&sh->rq, tail, wr);
    atomic_store_explicit(&sh->rq_tail, tail + 1, memory_order_release);
    return 0;
}

int shca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);
    bool broken;
    int e = 0;

    if (!qp->rq_wr_id) { /* its receives are posted to the shared queue */
        *bad = wr;
        return EINVAL;
    }

    shca_lock(&qp->rq_lock);
    for (; wr && e == 0; wr = wr->next) {
        e = recv_post_one(qp, wr);
        if (e != 0)
            *bad = wr;
    }
    /* Read under rq_lock: either this sees ERR, or the flushing poller (which takes the lock after
     * it saw ERR) sees the new tail. */
    broken = atomic_load(&qp->sh->state) == IBV_QPS_ERR;
    shca_unlock(&qp->rq_lock);
    if (broken) { /* every receive is flushed at once */
        shca_cq_ready(qp->rcq->sh, qp->sh->cq_bit);
        shca_cq_notify(NULL, qp->rcq->sh, true);
    }
    return e;
}
