/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion queues. A CQ has two sources: a private fifo for what this process completes itself
 * (sends, flushes), and a set of "ready" bits in shared memory by which initiators mark the queue
 * pairs that have finished receives; the receives themselves are in the slots of those queue pairs.
 * So a producer that is killed anywhere leaves nothing half-done in a structure that others share.
 * Owns the handles; cq->lock protects the fifo and the ready set. */
#include "config.h"

#include <stdlib.h>

#include "verbs/verbs.h"

static uint32_t cq_power_of_two(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p <<= 1;
    return p;
}

static int cq_take_number(struct shca_cq *cq)
{
    if (shca.n_cq >= shca_profile_of(cq->cq.context)->max_cq)
        return ENOMEM;
    for (uint32_t i = 0; i < SHCA_CQS; i++) {
        uint32_t at = (shca.next_cq + i) % SHCA_CQS;

        if (shca.cqs[at])
            continue;
        shca.next_cq = at + 1;
        shca.cqs[at] = cq;
        shca.n_cq++;
        cq->index = at;
        cq->sh = &shca_cq_table(shca.seg)[at];
        return 0;
    }
    return ENOMEM;
}

static int alloc_fifo(struct shca_cq *cq, uint32_t cqe, bool stamps)
{
    uint32_t size = cq_power_of_two(cqe);

    cq->fifo = shca_lines_alloc(size * sizeof *cq->fifo);
    if (stamps)
        cq->stamps = shca_lines_alloc(size * sizeof *cq->stamps);
    cq->fifo_mask = size - 1;
    return cq->fifo && (cq->stamps || !stamps) ? 0 : ENOMEM;
}

void shca_cursor_free(struct shca_cursor *c)
{
    if (c && c->domain)
        c->domain->users--;
    free(c);
}

static void cq_release(struct shca_cq *cq)
{
    shca_lines_free(cq->fifo);
    shca_lines_free(cq->stamps);
    shca_cursor_free(cq->cursor);
    shca_lines_free(cq);
}

static void cq_fill_shared(struct shca_cq *cq, struct ibv_context *ctx, struct ibv_comp_channel *ch)
{
    struct shca_cq_sh *sh = cq->sh;

    memset(sh, 0, sizeof *sh);
    sh->index = cq->index;
    atomic_store(&sh->limit, (uint32_t)cq->cq.cqe);
    sh->event.fd = -1;
    if (ch)
        sh->event = shca_container(ch, struct shca_channel, ch)->pipe;
    sh->async = shca_ctx(ctx)->async;
    sh->stamps = cq->stamps != NULL;
    cq->slow = cq->stamps != NULL;
}

void shca_cq_hold(struct shca_cq *cq)
{
    shca_lock(&cq->lock);
    cq->holds = cq->slow = true;
    shca_unlock(&cq->lock);
}

/* The entries that the device makes of a wanted number. */
static uint32_t cqe_of(const struct shca_profile *p, uint32_t wanted)
{
    if (p->rounds_cq == 0 || wanted == 0 || wanted > p->max_cqe)
        return wanted;
    return p->rounds_cq == 2 ? cq_power_of_two(wanted) : cq_power_of_two(wanted + 1) - 1;
}

static void start_random(struct shca_cq *cq)
{
    cq->seeded = shca_config.seed != 0;
    /* A program that got an event for a completion must find it at the first poll. */
    cq->may_hide = cq->seeded && !cq->cq.channel;
    shca_random_start(&cq->random, shca_config.seed, cq->index);
}

static int cq_set_up(struct shca_cq *cq, struct ibv_context *ctx, int cqe,
                     struct ibv_comp_channel *ch)
{
    int e;

    cq->cq.context = ctx;
    cq->cq.channel = ch;
    cq->cq.cqe = cqe;
    pthread_mutex_init(&cq->cq.mutex, NULL);
    pthread_cond_init(&cq->cq.cond, NULL);
    pthread_mutex_lock(&shca.lock);
    e = cq_take_number(cq);
    if (e == 0) {
        cq_fill_shared(cq, ctx, ch);
        start_random(cq);
    }
    pthread_mutex_unlock(&shca.lock);
    return e;
}

struct ibv_cq *shca_cq_make(struct ibv_context *ctx, uint32_t cqe, void *cq_context,
                            struct ibv_comp_channel *ch, uint32_t vector, bool stamps)
{
    struct shca_cq *cq = NULL;
    int e = 0;

    cqe = cqe_of(shca_profile_of(ctx), cqe);
    if (cqe < 1 || cqe > shca_profile_of(ctx)->max_cqe || vector >= (uint32_t)ctx->num_comp_vectors)
        e = EINVAL;
    if (e == 0)
        e = shca_unusable(ctx);
    if (e == 0 && !(cq = shca_queue_handle_alloc(ctx, SHCA_CALL_CREATE_CQ, sizeof *cq)))
        e = ENOMEM;
    if (e == 0)
        e = alloc_fifo(cq, cqe, stamps);
    if (e == 0)
        e = cq_set_up(cq, ctx, (int)cqe, ch);
    if (e != 0) {
        if (cq)
            cq_release(cq);
        errno = e;
        return NULL;
    }
    cq->cq.cq_context = cq_context;
    cq->cq.handle = cq->index;
    if (ch)
        __atomic_fetch_add(&ch->refcnt, 1, __ATOMIC_RELAXED);
    return &cq->cq;
}

SHCA_PUBLIC struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
                                         struct ibv_comp_channel *ch, int comp_vector)
{
    typedef struct ibv_cq *fn(struct ibv_context *, int, void *, struct ibv_comp_channel *, int);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_create_cq", NULL, ctx, cqe, cq_context, ch, comp_vector);
    /* As an unsigned number a negative value is too large. */
    return shca_cq_make(ctx, (uint32_t)cqe, cq_context, ch, (uint32_t)comp_vector, false);
}

static bool in_use(struct shca_cq *cq)
{
    for (uint32_t i = 0; i < shca.qp_high; i++)
        if (shca.qps[i] && (shca.qps[i]->scq == cq || shca.qps[i]->rcq == cq))
            return true;
    for (uint32_t i = 0; i < SHCA_SRQS && shca.n_srq > 0; i++)
        if (shca.srqs[i] && shca.srqs[i]->cq == cq)
            return true;
    return false;
}

/* The contract of both event queues: destroying waits for the acknowledgements. */
static void cq_wait_for_acks(struct shca_cq *cq)
{
    pthread_mutex_lock(&cq->cq.mutex);
    while (cq->cq.comp_events_completed != cq->events_sent ||
           cq->cq.async_events_completed != cq->async_sent)
        pthread_cond_wait(&cq->cq.cond, &cq->cq.mutex);
    pthread_mutex_unlock(&cq->cq.mutex);
}

SHCA_PUBLIC int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    typedef int fn(struct ibv_cq *);
    struct shca_cq *cq = shca_container(ibcq, struct shca_cq, cq);
    bool busy;

    if (!shca_owns(ibcq->context))
        SHCA_PASS(fn, "ibv_destroy_cq", ENOSYS, ibcq);
    if (shca_ctx(ibcq->context)->inherited)
        return 0;
    pthread_mutex_lock(&shca.lock);
    busy = in_use(cq);
    if (!busy) {
        shca.cqs[cq->index] = NULL;
        shca.n_cq--;
    }
    pthread_mutex_unlock(&shca.lock);
    if (busy)
        return EBUSY;
    shca_events_end_cq(cq);
    cq_wait_for_acks(cq);
    if (ibcq->channel)
        __atomic_fetch_sub(&ibcq->channel->refcnt, 1, __ATOMIC_RELAXED);
    pthread_mutex_destroy(&ibcq->mutex);
    pthread_cond_destroy(&ibcq->cond);
    cq_release(cq);
    return 0;
}

static int move_fifo(struct shca_cq *cq, uint32_t cqe)
{
    struct shca_cqe *fifo = cq->fifo;
    uint64_t *stamps = cq->stamps;
    uint32_t mask = cq->fifo_mask, n = cq->fifo_tail - cq->fifo_head;

    if (shca_faults() && shca_fault_fails(cq->cq.context, SHCA_CALL_RESIZE_CQ))
        return ENOMEM;
    if (alloc_fifo(cq, cqe, stamps != NULL) != 0) {
        shca_lines_free(cq->fifo);
        shca_lines_free(stamps ? cq->stamps : NULL);
        cq->fifo = fifo;
        cq->stamps = stamps;
        cq->fifo_mask = mask;
        return ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        cq->fifo[i] = fifo[(cq->fifo_head + i) & mask];
        if (stamps)
            cq->stamps[i] = stamps[(cq->fifo_head + i) & mask];
    }
    shca_lines_free(fifo);
    shca_lines_free(stamps);
    cq->failed -= cq->fifo_head;
    cq->fifo_head = 0;
    cq->fifo_tail = n;
    return 0;
}

/* Signed: a receive may be polled a moment before its sender has counted it. */
static uint32_t not_polled(uint32_t arrived, uint32_t polled)
{
    int32_t n = (int32_t)(arrived - polled);

    return n > 0 ? (uint32_t)n : 0;
}

static uint32_t arrived_from(const struct shca_feed *f)
{
    const struct shca_srq *srq;
    struct shca_qp_sh *sh;

    if (f->kind == SHCA_FEED_XRC) {
        srq = shca_container(f, const struct shca_srq, feed);
        return not_polled(atomic_load(&srq->sh->head), srq->done);
    }
    sh = shca_container(f, const struct shca_qp, feed)->sh;
    return not_polled(atomic_load(&sh->rq_head), atomic_load(&sh->rq_done));
}

/* Completions that the program has not polled. A CQ that is large enough for all its queues does
 * not count arrivals, so they are counted here. Holds cq->lock. */
static uint32_t cq_held(const struct shca_cq *cq)
{
    uint32_t n = cq->fifo_tail - cq->fifo_head;

    for (uint32_t i = 0; i < SHCA_CQ_QPS; i++)
        if (cq->feeds[i])
            n += arrived_from(cq->feeds[i]);
    return n;
}

SHCA_PUBLIC int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
    typedef int fn(struct ibv_cq *, int);
    struct shca_cq *cq = shca_container(ibcq, struct shca_cq, cq);
    struct shca_cq_sh *sh = cq->sh;
    int e = EINVAL;

    if (!shca_owns(ibcq->context))
        SHCA_PASS(fn, "ibv_resize_cq", ENOSYS, ibcq, cqe);
    if (shca_profile_of(ibcq->context)->no_resize_cq)
        return EOPNOTSUPP;
    cqe = (int)cqe_of(shca_profile_of(ibcq->context), (uint32_t)cqe);
    if (cqe < 1 || (uint32_t)cqe > shca_profile_of(ibcq->context)->max_cqe ||
        shca_ctx(ibcq->context)->inherited)
        return EINVAL;
    shca_lock(&cq->lock);
    if (cq_held(cq) <= (uint32_t)cqe)
        e = move_fifo(cq, (uint32_t)cqe);
    if (e == 0) {
        ibcq->cqe = cqe;
        atomic_store(&sh->limit, (uint32_t)cqe);
    }
    shca_unlock(&cq->lock);
    pthread_mutex_lock(&shca.lock);
    shca_cq_recount(cq);
    pthread_mutex_unlock(&shca.lock);
    return e;
}
