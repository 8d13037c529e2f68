/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared receive queues: creating, posting, arming the limit, destroying. Owns the handles and
 * their part of the segment; the table of them is protected by shca.lock, the free slots of each
 * queue by its own lock, which is taken last. How initiators take slots is in shared.c. */
#include "config.h"

#include <stdlib.h>

#include "fault/fault.h"
#include "verbs/verbs.h"
#include "wire/entry.h"

static struct shca_srq *of(struct ibv_srq *ibsrq)
{
    return shca_container(ibsrq, struct shca_srq, srq);
}

/* ---- creating ---- */

static bool is_xrc(const struct ibv_srq_init_attr_ex *a)
{
    return (a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && a->srq_type == IBV_SRQT_XRC;
}

static int srq_valid(struct ibv_context *ctx, const struct ibv_srq_init_attr_ex *a)
{
    const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                           IBV_SRQ_INIT_ATTR_CQ;
    const uint32_t of_xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const struct shca_profile *p = shca_profile_of(ctx);

    if (p->max_srq == 0 || (a->comp_mask & ~known) ||
        ((a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && a->srq_type > IBV_SRQT_XRC))
        return EOPNOTSUPP;
    if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !a->pd || a->pd->context != ctx ||
        a->attr.max_wr > p->max_srq_wr || a->attr.max_sge > p->max_srq_sge)
        return EINVAL;
    if (!is_xrc(a))
        return a->comp_mask & of_xrc ? EINVAL : 0;
    return (a->comp_mask & of_xrc) == of_xrc && a->xrcd && a->cq && a->xrcd->context == ctx &&
                   a->cq->context == ctx
               ? 0
               : EINVAL;
}

static int srq_take_index(struct shca_srq *srq)
{
    if (shca.n_srq >= shca_profile_of(srq->srq.context)->max_srq)
        return ENOMEM;
    for (uint32_t i = 0; i < SHCA_SRQS; i++) {
        /* A request that names no queue has number 0. */
        uint32_t at = (shca.next_srq + i) % SHCA_SRQS;

        if (at == 0 || shca.srqs[at])
            continue;
        shca.next_srq = at + 1;
        srq->index = at;
        srq->sh = &shca_srq_table(shca.seg)[at];
        return 0;
    }
    return ENOMEM;
}

static uint64_t srq_ring_bytes(const struct shca_srq_sh *sh)
{
    return (uint64_t)(sh->rq.mask + 1) * sizeof(uint32_t);
}

static int place(struct shca_srq *srq, const struct ibv_srq_attr *a)
{
    struct shca_srq_sh *sh = srq->sh;
    int e = shca_rq_place(&sh->rq, a->max_wr, a->max_sge, SHCA_EAGER_SHARED);

    if (e != 0)
        return e;
    sh->ring = shca_heap_alloc(srq_ring_bytes(sh));
    if (sh->ring)
        return 0;
    shca_rq_free(&sh->rq);
    return ENOMEM;
}

static void free_place(struct shca_srq_sh *sh)
{
    shca_heap_free(sh->ring, srq_ring_bytes(sh));
    shca_rq_free(&sh->rq);
}

static int srq_alloc_private(struct shca_srq *srq, uint32_t depth)
{
    srq->wr_id = shca_lines_alloc(depth * sizeof *srq->wr_id);
    srq->free = shca_lines_alloc(depth * sizeof *srq->free);
    if (!srq->wr_id || !srq->free)
        return ENOMEM;
    srq->n_free = depth;
    for (uint32_t i = 0; i < depth; i++)
        srq->free[i] = depth - 1 - i;
    return 0;
}

/* An XRC queue completes into a CQ of its own, whatever target a message comes through. */
static int enter_domain(struct shca_srq *srq, const struct ibv_srq_init_attr_ex *init)
{
    struct shca_cq *cq = shca_container(init->cq, struct shca_cq, cq);
    struct shca_srq_sh *sh = srq->sh;
    int e;

    srq->feed.kind = SHCA_FEED_XRC;
    srq->cq = cq;
    e = shca_cq_attach(cq, &srq->feed, &sh->cq_bit);
    if (e != 0)
        return e;
    srq->xrcd = shca_container(init->xrcd, struct shca_xrcd, xrcd);
    srq->xrcd->users++;
    sh->type = IBV_SRQT_XRC;
    sh->cq = cq->index;
    sh->domain = srq->xrcd->domain;
    shca_cq_demand(cq, sh->rq.depth);
    return 0;
}

static void leave_domain(struct shca_srq *srq)
{
    shca_lock(&srq->cq->lock);
    atomic_fetch_add(&srq->cq->sh->taken, shca_xrc_drop(srq));
    shca_unlock(&srq->cq->lock);
    shca_cq_detach(srq->cq, srq->sh->cq_bit);
    shca_cq_demand(srq->cq, -(int64_t)srq->sh->rq.depth);
    srq->xrcd->users--;
}

static int srq_enter_table(struct shca_srq *srq, const struct ibv_srq_init_attr_ex *init)
{
    struct shca_srq_sh *sh;
    int e = srq_take_index(srq);

    if (e != 0)
        return e;
    sh = srq->sh;
    /* An initiator that refers to an earlier queue of this number may hold the lock: leave it to
     * its holder. */
    shca_pid_lock(&sh->lock, shca.pid);
    memset((char *)sh + sizeof sh->lock, 0, sizeof *sh - sizeof sh->lock);
    shca_pid_unlock(&sh->lock);
    e = place(srq, &init->attr);
    if (e == 0 && is_xrc(init) && (e = enter_domain(srq, init)) != 0)
        free_place(sh);
    if (e != 0)
        return e;
    sh->pd = srq->srq.pd->handle;
    sh->async = shca_ctx(srq->srq.context)->async;
    atomic_store(&sh->srqn, shca.slot << SHCA_QP_BITS | srq->index);
    srq->srq.handle = srq->index;
    shca.srqs[srq->index] = srq;
    shca.n_srq++;
    return 0;
}

static void srq_release(struct shca_srq *srq)
{
    shca_lines_free(srq->wr_id);
    shca_lines_free(srq->free);
    shca_lines_free(srq);
}

static struct shca_srq *new_srq(struct ibv_context *ctx, const struct ibv_srq_init_attr_ex *init)
{
    struct shca_srq *srq = shca_queue_handle_alloc(ctx, SHCA_CALL_CREATE_SRQ, sizeof *srq);

    if (!srq || srq_alloc_private(srq, init->attr.max_wr) != 0) {
        if (srq)
            srq_release(srq);
        return NULL;
    }
    srq->srq.context = ctx;
    srq->srq.srq_context = init->srq_context;
    srq->srq.pd = init->pd;
    pthread_mutex_init(&srq->srq.mutex, NULL);
    pthread_cond_init(&srq->srq.cond, NULL);
    return srq;
}

struct ibv_srq *shca_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *init)
{
    struct shca_srq *srq = NULL;
    int e = shca_unusable(ctx);

    if (e == 0)
        e = srq_valid(ctx, init);
    if (e == 0) {
        /* The program gets at least what it asked for. */
        init->attr.max_wr = init->attr.max_wr ? init->attr.max_wr : 1;
        init->attr.max_sge = init->attr.max_sge ? init->attr.max_sge : 1;
        srq = new_srq(ctx, init);
        e = srq ? 0 : ENOMEM;
    }
    if (e == 0) {
        pthread_mutex_lock(&shca.lock);
        e = srq_enter_table(srq, init);
        pthread_mutex_unlock(&shca.lock);
    }
    if (e != 0) {
        if (srq)
            srq_release(srq);
        errno = e;
        return NULL;
    }
    shca_container(init->pd, struct shca_pd, pd)->users++;
    return &srq->srq;
}

SHCA_PUBLIC struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
    typedef struct ibv_srq *fn(struct ibv_pd *, struct ibv_srq_init_attr *);
    struct ibv_srq_init_attr_ex ex;
    struct ibv_srq *srq;

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_create_srq", NULL, pd, init);
    memset(&ex, 0, sizeof ex);
    ex.srq_context = init->srq_context;
    ex.attr = init->attr;
    ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    ex.srq_type = IBV_SRQT_BASIC;
    ex.pd = pd;
    srq = shca_create_srq_ex(pd->context, &ex);
    if (srq)
        init->attr = ex.attr;
    return srq;
}

/* ---- destroying ---- */

static int srq_leave_table(struct shca_srq *srq)
{
    struct shca_srq_sh *sh = srq->sh;

    if (srq->users > 0)
        return EBUSY;
    shca_pid_lock(&sh->lock, shca.pid);
    atomic_store(&sh->srqn, 0);
    shca_pid_unlock(&sh->lock);
    if (srq->cq)
        leave_domain(srq);
    free_place(sh);
    shca.srqs[srq->index] = NULL;
    shca.n_srq--;
    return 0;
}

static void srq_wait_for_acks(struct shca_srq *srq)
{
    pthread_mutex_lock(&srq->srq.mutex);
    while (srq->srq.events_completed != srq->async_sent)
        pthread_cond_wait(&srq->srq.cond, &srq->srq.mutex);
    pthread_mutex_unlock(&srq->srq.mutex);
}

SHCA_PUBLIC int ibv_destroy_srq(struct ibv_srq *ibsrq)
{
    typedef int fn(struct ibv_srq *);
    struct shca_srq *srq = of(ibsrq);
    int e;

    if (!shca_owns(ibsrq->context))
        SHCA_PASS(fn, "ibv_destroy_srq", ENOSYS, ibsrq);
    if (shca_ctx(ibsrq->context)->inherited)
        return 0;
    pthread_mutex_lock(&shca.lock);
    e = srq_leave_table(srq);
    pthread_mutex_unlock(&shca.lock);
    if (e != 0)
        return e;
    shca_events_end_srq(srq);
    srq_wait_for_acks(srq);
    shca_container(ibsrq->pd, struct shca_pd, pd)->users--;
    pthread_mutex_destroy(&ibsrq->mutex);
    pthread_cond_destroy(&ibsrq->cond);
    srq_release(srq);
    return 0;
}

/* ---- use by queue pairs ---- */

bool shca_srq_fits(const struct ibv_srq *ibsrq, const struct ibv_context *ctx)
{
    return ibsrq->context == ctx &&
           shca_container(ibsrq, struct shca_srq, srq)->sh->type == IBV_SRQT_BASIC;
}

/* ---- attributes ---- */

SHCA_PUBLIC int ibv_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
    typedef int fn(struct ibv_srq *, struct ibv_srq_attr *, int);
    struct shca_srq *srq = of(ibsrq);

    if (!shca_owns(ibsrq->context))
        SHCA_PASS(fn, "ibv_modify_srq", ENOSYS, ibsrq, attr, mask);
    if (shca_ctx(ibsrq->context)->inherited || (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)))
        return EINVAL;
    /* No IBV_DEVICE_SRQ_RESIZE: the depth is fixed, as with most adapters. */
    if (mask & IBV_SRQ_MAX_WR)
        return EOPNOTSUPP;
    if ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > srq->sh->rq.depth)
        return EINVAL;
    if (mask & IBV_SRQ_LIMIT)
        shca_srq_arm(srq, attr->srq_limit);
    return 0;
}

SHCA_PUBLIC int ibv_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
    typedef int fn(struct ibv_srq *, struct ibv_srq_attr *);
    struct shca_srq *srq = of(ibsrq);

    if (!shca_owns(ibsrq->context))
        SHCA_PASS(fn, "ibv_query_srq", ENOSYS, ibsrq, attr);
    if (shca_ctx(ibsrq->context)->inherited)
        return EINVAL;
    attr->max_wr = srq->sh->rq.depth;
    attr->max_sge = srq->sh->rq.max_sge;
    attr->srq_limit = atomic_load(&srq->sh->limit);
    return 0;
}

int shca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *number)
{
    if (shca_ctx(ibsrq->context)->inherited)
        return EINVAL;
    *number = of(ibsrq)->sh->srqn;
    return 0;
}

/* ---- posting ---- */

static int srq_post_one(struct shca_srq *srq, const struct ibv_recv_wr *wr)
{
    struct shca_srq_sh *sh = srq->sh;
    uint32_t tail = atomic_load_explicit(&sh->tail, memory_order_relaxed);
    uint32_t *ring = (uint32_t *)(void *)((char *)shca.seg + sh->ring);
    uint32_t number;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > sh->rq.max_sge)
        return EINVAL;
    if (srq->n_free == 0)
        return ENOMEM;
    number = srq->free[--srq->n_free];
    srq->wr_id[number] = wr->wr_id;
    shca_slot_fill(&sh->rq, number, wr);
    atomic_store_explicit(&shca_slot_at(shca.seg, &sh->rq, number)->taker, 0, memory_order_relaxed);
    __atomic_store_n(&ring[tail & sh->rq.mask], number, __ATOMIC_RELAXED);
    atomic_store_explicit(&sh->tail, tail + 1, memory_order_release);
    return 0;
}

int shca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct shca_srq *srq = of(ibsrq);
    int e = 0;

    if (shca_is_fatal(ibsrq->context)) {
        *bad = wr;
        return EIO;
    }
    shca_lock(&srq->lock);
    for (; wr && e == 0; wr = wr->next) {
        e = srq_post_one(srq, wr);
        if (e != 0)
            *bad = wr;
    }
    shca_unlock(&srq->lock);
    return e;
}
