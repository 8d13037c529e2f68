/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive queue of a queue pair, as its owner sees it: room in the segment, posting, flushing.
 * A poster writes the slot, then the tail. rq_lock serialises the posters of this process;
 * initiators read the tail with acquire order. */
#include "config.h"

#include <stdlib.h>

#include "shca.h"

static uint64_t eager_bytes(uint32_t n)
{
    return (uint64_t)n * SHCA_EAGER_BYTES;
}

static uint64_t queue_bytes(const struct shca_rq_sh *q)
{
    uint64_t slots = (uint64_t)(q->mask + 1) * sizeof(struct shca_slot);
    uint64_t extra = (uint64_t)(q->mask + 1) * (q->max_sge - 1) * sizeof(struct shca_sge);

    /* Eager slots begin on a page: an unused one costs no memory. */
    return ((slots + extra + 4095) & ~UINT64_C(4095)) + eager_bytes(q->n_eager);
}

int shca_rq_place(struct shca_rq_sh *q, uint32_t depth, uint32_t max_sge, uint32_t max_eager)
{
    uint64_t heap = shca.seg->size - shca.seg->heap_off;
    uint64_t at;

    q->depth = depth;
    q->mask = 0;
    while (q->mask + 1 < depth)
        q->mask = q->mask << 1 | 1;
    q->max_sge = max_sge;
    q->n_eager = q->mask + 1 < max_eager ? q->mask + 1 : max_eager;
    /* Thousands of queue pairs: their receive queues come first, short cuts for short messages
     * second. */
    if (shca_heap_used() > heap / 2)
        q->n_eager = 0;
    at = shca_heap_alloc(queue_bytes(q));
    if (at == 0)
        return ENOMEM;
    q->slots = at;
    q->extra = at + (uint64_t)(q->mask + 1) * sizeof(struct shca_slot);
    q->eager = at + queue_bytes(q) - eager_bytes(q->n_eager);
    return 0;
}

void shca_rq_free(struct shca_rq_sh *q)
{
    shca_heap_free(q->slots, queue_bytes(q));
    q->slots = 0;
}

/* ---- receives of its own ---- */

static int create_own(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    const struct ibv_qp_cap *c = &qp->init.cap;
    int e = shca_rq_place(&sh->rq, c->max_recv_wr, c->max_recv_sge, SHCA_EAGER_SLOTS);

    if (e != 0)
        return e;
    qp->feed.kind = SHCA_FEED_QP;
    qp->rq_wr_id = calloc(sh->rq.mask + 1, sizeof *qp->rq_wr_id);
    e = qp->rq_wr_id ? shca_cq_attach(qp->rcq, &qp->feed, &sh->cq_bit) : ENOMEM;
    if (e != 0) {
        shca_rq_free(&sh->rq);
        free(qp->rq_wr_id);
        return e;
    }
    shca_cq_demand(qp->rcq, c->max_recv_wr);
    return 0;
}

/* Receives that were counted and never polled must leave the count. */
static uint32_t counted_own(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t tail = atomic_load(&sh->rq_tail), counted = 0;

    for (uint32_t at = atomic_load(&sh->rq_done); at != tail; at++) {
        struct shca_slot *s = shca_slot_at(shca.seg, &sh->rq, at);

        counted += atomic_load(&s->seq) == at + 1 ? s->counted : 0;
    }
    return counted;
}

static void destroy_own(struct shca_qp *qp)
{
    shca_lock(&qp->rcq->lock);
    atomic_fetch_add(&qp->rcq->sh->taken, counted_own(qp));
    shca_unlock(&qp->rcq->lock);
    shca_cq_detach(qp->rcq, qp->sh->cq_bit);
    shca_cq_demand(qp->rcq, -(int64_t)qp->init.cap.max_recv_wr);
    shca_rq_free(&qp->sh->rq);
    free(qp->rq_wr_id);
}

static uint32_t clear_own(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t counted = counted_own(qp);

    for (uint32_t i = 0; i <= sh->rq.mask; i++)
        atomic_store(&shca_slot_at(shca.seg, &sh->rq, i)->seq, 0);
    return counted;
}

/* ---- receives of a shared queue: only a ring of what was taken from it ---- */

static uint64_t ring_bytes(const struct shca_qp_sh *sh)
{
    return (uint64_t)(sh->ring_mask + 1) * sizeof(uint32_t);
}

static int create_shared(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    int e;

    qp->feed.kind = SHCA_FEED_SHARED;
    sh->rq_kind = SHCA_RQ_SHARED;
    sh->srq = qp->srq->index;
    sh->ring_mask = qp->srq->sh->rq.mask;
    sh->ring = shca_heap_alloc(ring_bytes(sh));
    if (sh->ring == 0)
        return ENOMEM;
    e = shca_srq_join(qp->srq, qp->rcq);
    if (e == 0) {
        /* Last: from here on a poller may look at it. */
        e = shca_cq_attach(qp->rcq, &qp->feed, &sh->cq_bit);
        if (e != 0)
            shca_srq_leave(qp->srq, qp->rcq);
    }
    if (e != 0)
        shca_heap_free(sh->ring, ring_bytes(sh));
    return e;
}

static void destroy_shared(struct shca_qp *qp)
{
    shca_rq_reset(qp);
    shca_cq_detach(qp->rcq, qp->sh->cq_bit);
    shca_srq_leave(qp->srq, qp->rcq);
    shca_heap_free(qp->sh->ring, ring_bytes(qp->sh));
}

/* ---- either ---- */

int shca_rq_create(struct shca_qp *qp)
{
    if (!qp->rcq) { /* XRC: a sender has no receives, those of a target are named by requests */
        qp->sh->rq_kind = SHCA_RQ_XRC;
        return 0;
    }
    qp->sh->recv_cq = qp->rcq->index;
    return qp->srq ? create_shared(qp) : create_own(qp);
}

void shca_rq_destroy(struct shca_qp *qp)
{
    if (qp->srq)
        destroy_shared(qp);
    else if (qp->rcq)
        destroy_own(qp);
}

void shca_rq_reset(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t counted;

    sh->last_wqe = 0;
    if (!qp->rcq)
        return;
    /* Nobody completes a receive any more; now the consumer has to be kept out. */
    shca_lock(&qp->rcq->lock);
    counted = qp->srq ? shca_shared_drop(qp) : clear_own(qp);
    atomic_fetch_add(&qp->rcq->sh->taken, counted);
    atomic_store(&sh->rq_head, 0);
    atomic_store(&sh->rq_tail, 0);
    atomic_store(&sh->rq_done, 0);
    atomic_store(&sh->taken, 0);
    shca_unlock(&qp->rcq->lock);
}

static void settle_own(struct shca_qp *qp, uint32_t key)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t tail = atomic_load(&sh->rq_tail);

    for (uint32_t at = atomic_load(&sh->rq_done); at != tail; at++) {
        struct shca_slot *s = shca_slot_at(shca.seg, &sh->rq, at);

        if (atomic_load(&s->seq) != at + 1)
            break;
        shca_eager_settle(&sh->rq, at, s, key);
    }
}

void shca_rq_settle(struct shca_qp *qp, uint32_t key)
{
    if (!qp->rcq)
        return;
    shca_lock(&qp->rcq->lock);
    if (qp->srq)
        shca_shared_settle(qp, key);
    else
        settle_own(qp, key);
    shca_unlock(&qp->rcq->lock);
}

void shca_rq_error(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    bool flush =
        qp->srq ? shca_shared_holds(qp) : atomic_load(&sh->rq_done) != atomic_load(&sh->rq_tail);

    shca_last_wqe(qp->home && !qp->home->self ? qp->home : NULL, sh);
    if (!qp->rcq)
        return;
    /* The receives are flushed by whoever polls the receive CQ. */
    shca_cq_ready(qp->rcq->sh, sh->cq_bit);
    if (flush)
        shca_cq_notify(NULL, qp->rcq->sh, true);
}

void shca_slot_fill(struct shca_rq_sh *q, uint32_t index, const struct ibv_recv_wr *wr)
{
    struct shca_slot *s = shca_slot_at(shca.seg, q, index);

    s->nsge = (uint32_t)wr->num_sge;
    for (uint32_t i = 0; i < s->nsge; i++) {
        struct shca_sge *g = i == 0 ? &s->sge0 : shca_extra_at(shca.seg, q, index, i);

        *g = (struct shca_sge){wr->sg_list[i].addr, wr->sg_list[i].length, wr->sg_list[i].lkey};
    }
}

static int post_one(struct shca_qp *qp, const struct ibv_recv_wr *wr)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t tail = atomic_load_explicit(&sh->rq_tail, memory_order_relaxed);

    if (atomic_load_explicit(&sh->state, memory_order_relaxed) == IBV_QPS_RESET)
        return EINVAL;
    if (atomic_load_explicit(&sh->state, memory_order_relaxed) == IBV_QPS_ERR &&
        shca_is_fatal(qp->qp.context))
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
        e = post_one(qp, wr);
        if (e != 0)
            *bad = wr;
    }
    /* Read under rq_lock: either this sees ERR, or the flushing poller (which takes the lock after
     * it saw ERR) sees the new tail. */
    broken = atomic_load(&qp->sh->state) == IBV_QPS_ERR;
    shca_unlock(&qp->rq_lock);
    if (broken) { /* every receive comes back at once */
        shca_cq_ready(qp->rcq->sh, qp->sh->cq_bit);
        shca_cq_notify(NULL, qp->rcq->sh, true);
    }
    return e;
}
