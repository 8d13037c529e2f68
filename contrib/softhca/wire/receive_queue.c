/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receive queue of a queue pair, on its owner's side: creation, reset, flush. Owns the queue
 * and what it uses of a shared one; shca.lock protects both, the lock of the CQ what was
 * received. */
#include "config.h"

#include <stdlib.h>

#include "wire/entry.h"

/* ---- receives of its own ---- */

static int create_own(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    const struct ibv_qp_cap *c = &qp->init.cap;
    int e = shca_rq_place(&sh->rq, c->max_recv_wr, c->max_recv_sge, SHCA_EAGER_SLOTS);

    if (e != 0)
        return e;
    qp->feed.kind = SHCA_FEED_QP;
    qp->rq_wr_id = shca_lines_alloc((sh->rq.mask + 1) * sizeof *qp->rq_wr_id);
    e = qp->rq_wr_id ? shca_cq_attach(qp->rcq, &qp->feed, &sh->cq_bit) : ENOMEM;
    if (e != 0) {
        shca_rq_free(&sh->rq);
        shca_lines_free(qp->rq_wr_id);
        return e;
    }
    shca_cq_demand(qp->rcq, c->max_recv_wr);
    return 0;
}

/* Receives that were counted and never polled must be taken off the count. */
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
    shca_lines_free(qp->rq_wr_id);
}

static uint32_t clear_own(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    uint32_t counted = counted_own(qp);

    for (uint32_t i = 0; i <= sh->rq.mask; i++)
        atomic_store(&shca_slot_at(shca.seg, &sh->rq, i)->seq, 0);
    return counted;
}

int shca_srq_join(struct shca_srq *srq, struct shca_cq *cq)
{
    struct shca_srq_use *u = srq->uses;

    while (u && u->cq != cq)
        u = u->next;
    if (!u) {
        u = calloc(1, sizeof *u);
        if (!u)
            return ENOMEM;
        *u = (struct shca_srq_use){cq, 0, srq->uses};
        srq->uses = u;
        shca_cq_demand(cq, srq->sh->rq.depth);
    }
    u->users++;
    srq->users++;
    return 0;
}

void shca_srq_leave(struct shca_srq *srq, struct shca_cq *cq)
{
    struct shca_srq_use **at = &srq->uses, *u;

    while ((*at)->cq != cq)
        at = &(*at)->next;
    u = *at;
    srq->users--;
    if (--u->users > 0)
        return;
    shca_cq_demand(cq, -(int64_t)srq->sh->rq.depth);
    *at = u->next;
    free(u);
}

/* ---- receives of a shared queue: only a ring of those taken from it ---- */

static uint64_t receive_queue_ring_bytes(const struct shca_qp_sh *sh)
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
    sh->ring = shca_heap_alloc(receive_queue_ring_bytes(sh));
    if (sh->ring == 0)
        return ENOMEM;
    e = shca_srq_join(qp->srq, qp->rcq);
    if (e == 0) {
        /* Last: from here on a poller may read the feed. */
        e = shca_cq_attach(qp->rcq, &qp->feed, &sh->cq_bit);
        if (e != 0)
            shca_srq_leave(qp->srq, qp->rcq);
    }
    if (e != 0)
        shca_heap_free(sh->ring, receive_queue_ring_bytes(sh));
    return e;
}

static void destroy_shared(struct shca_qp *qp)
{
    shca_rq_reset(qp);
    shca_cq_detach(qp->rcq, qp->sh->cq_bit);
    shca_srq_leave(qp->srq, qp->rcq);
    shca_heap_free(qp->sh->ring, receive_queue_ring_bytes(qp->sh));
}

/* ---- both kinds ---- */

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
    /* No initiator completes a receive any more; the lock keeps the consumer out. */
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
    /* The receives are flushed by the thread that polls the receive CQ. */
    shca_cq_ready(qp->rcq->sh, sh->cq_bit);
    if (flush)
        shca_cq_notify(NULL, qp->rcq->sh, true);
}
