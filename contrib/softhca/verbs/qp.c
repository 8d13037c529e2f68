/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creating, querying and destroying queue pairs. Owns the handles and their part of the segment;
 * the table of them is protected by shca.lock. */
#include "config.h"

#include <stdlib.h>
#include <sys/random.h>

#include "verbs/verbs.h"
#include "wire/udp/udp.h"

/* QP numbers 0 and 1 are special on a real fabric; a margin keeps them out of member slot 0. */
enum { first_index = 16 };

static uint32_t qp_power_of_two(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p <<= 1;
    return p;
}

static bool valid_cq(const struct ibv_cq *cq, const struct ibv_context *ctx)
{
    return cq && cq->context == ctx;
}

static bool valid_queues(const struct ibv_context *ctx, const struct ibv_qp_init_attr *a)
{
    switch (a->qp_type) {
    case IBV_QPT_XRC_SEND:
        return valid_cq(a->send_cq, ctx) && !a->srq;
    case IBV_QPT_XRC_RECV:
        return !a->srq;
    default:
        return valid_cq(a->send_cq, ctx) && valid_cq(a->recv_cq, ctx) &&
               (!a->srq || shca_srq_fits(a->srq, ctx));
    }
}

static int qp_valid(struct ibv_context *ctx, const struct ibv_pd *pd, const struct ibv_xrcd *xrcd,
                    const struct ibv_qp_init_attr *a)
{
    const struct shca_profile *p = shca_profile_of(ctx);

    if ((uint32_t)a->qp_type >= 32 || !(p->types >> a->qp_type & 1))
        return EOPNOTSUPP;
    if (a->qp_type == IBV_QPT_XRC_RECV ? !xrcd : !pd)
        return EINVAL;
    return valid_queues(ctx, a) ? shca_qp_caps_check(p, a) : EINVAL;
}

/* With packets, foreign senders must have to guess the number. Shared memory has no foreign
 * senders, and consecutive numbers share pages. */
static uint32_t first_try(uint32_t room)
{
    uint32_t r;

    if (shca_config.udp && getrandom(&r, sizeof r, GRND_NONBLOCK) == (ssize_t)sizeof r)
        return r % room;
    return shca.next_qp;
}

static int qp_take_index(struct shca_qp *qp)
{
    uint32_t room = SHCA_QPS - first_index, first = first_try(room);

    if (shca.n_qp >= shca_profile_of(qp->qp.context)->max_qp)
        return ENOMEM;
    for (uint32_t i = 0; i < room; i++) {
        uint32_t at = first_index + (first + i) % room;

        /* A target that other processes hold keeps its number when its creator closes it. */
        if (shca.qps[at] || shca_qp_table(shca.seg)[at].qpn != 0)
            continue;
        shca.next_qp = at - first_index + 1;
        if (shca.qp_high <= at)
            shca.qp_high = at + 1;
        qp->index = at;
        qp->sh = &shca_qp_table(shca.seg)[at];
        return 0;
    }
    return ENOMEM;
}

static void qp_fill_shared(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;

    shca_target_reap(sh);
    /* An initiator that refers to an earlier queue pair of this number may be reading it:
     * everything behind the lock is cleared; the lock itself belongs to its holder. */
    shca_rx_lock(shca.seg, sh, shca.pid);
    memset((char *)sh + sizeof sh->lock, 0, sizeof *sh - sizeof sh->lock);
    sh->type = qp->qp.qp_type;
    sh->pd = qp->qp.pd ? qp->qp.pd->handle : 0;
    sh->epoch = ++shca.epoch;
    sh->async = shca_ctx(qp->qp.context)->async;
    sh->manners = shca_qp_manners(shca_profile_of(qp->qp.context));
    shca_rx_unlock(sh);
}

static int qp_alloc_private(struct shca_qp *qp)
{
    const struct ibv_qp_cap *c = &qp->init.cap;
    size_t sges = c->max_send_sge * sizeof(struct ibv_sge);
    /* Inline data is kept behind one SGE that points to it. */
    size_t data = sizeof(struct ibv_sge) + c->max_inline_data;

    qp->wqe_mask = qp_power_of_two(c->max_send_wr) - 1;
    qp->wqe_bytes = (sizeof(struct shca_wqe) + (sges > data ? sges : data) + 15) & ~(size_t)15;
    qp->wqes = shca_queue_alloc(qp->qp.pd, (qp->wqe_mask + 1) * qp->wqe_bytes, &qp->wqes_programs);
    return qp->wqes ? shca_qp_hold_open(qp) : ENOMEM;
}

static struct shca_cq *qp_cq_of(struct ibv_cq *cq)
{
    return cq ? shca_container(cq, struct shca_cq, cq) : NULL;
}

static void init_handle(struct shca_qp *qp, struct ibv_context *ctx, struct ibv_pd *pd,
                        struct ibv_qp_init_attr *init)
{
    bool xrc = init->qp_type == IBV_QPT_XRC_SEND || init->qp_type == IBV_QPT_XRC_RECV;

    /* Attributes that XRC does not use may have any value. */
    if (xrc)
        init->recv_cq = NULL;
    if (init->qp_type == IBV_QPT_XRC_RECV)
        init->send_cq = NULL;
    shca_qp_caps_round(shca_profile_of(ctx), init, xrc || init->srq);
    qp->init = *init;
    qp->srq = init->srq ? shca_container(init->srq, struct shca_srq, srq) : NULL;
    qp->scq = qp_cq_of(init->send_cq);
    qp->rcq = qp_cq_of(init->recv_cq);
    qp->qp.context = ctx;
    qp->qp.qp_context = init->qp_context;
    qp->qp.pd = pd;
    qp->qp.srq = init->srq;
    qp->qp.send_cq = init->send_cq;
    qp->qp.recv_cq = init->recv_cq;
    qp->qp.qp_type = init->qp_type;
    qp->qp.state = IBV_QPS_RESET;
    shca_qp_behave(qp, shca_profile_of(ctx));
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
}

static int qp_enter_table(struct shca_qp *qp)
{
    int e = qp_take_index(qp);

    if (e != 0)
        return e;
    qp_fill_shared(qp);
    e = qp->xrcd ? shca_target_create(qp) : 0;
    if (e == 0)
        e = shca_rq_create(qp);
    if (e != 0)
        return e;
    qp->qp.qp_num = shca.slot << SHCA_QP_BITS | qp->index;
    qp->qp.handle = qp->index;
    qp->sh->qpn = qp->qp.qp_num;
    if (qp->scq)
        shca_cq_demand(qp->scq, qp->init.cap.max_send_wr);
    shca.qps[qp->index] = qp;
    shca.n_qp++;
    return 0;
}

/* The user count of the PD or XRC domain, which must outlive the queue pair. */
static _Atomic int *parent_of(struct shca_qp *qp)
{
    return qp->xrcd ? &qp->xrcd->users : &shca_container(qp->qp.pd, struct shca_pd, pd)->users;
}

static void qp_release(struct shca_qp *qp)
{
    shca_queue_free(qp->qp.pd, qp->wqes, qp->wqes_programs);
    free(qp->batch);
    free(qp->holds);
    shca_lines_free(qp);
}

struct ibv_qp *shca_create_qp(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
                              struct ibv_qp_init_attr *init)
{
    struct shca_qp *qp = NULL;
    int e = shca_unusable(ctx);

    if (e == 0)
        e = qp_valid(ctx, pd, xrcd, init);
    if (e == 0 && !(qp = shca_queue_handle_alloc(ctx, SHCA_CALL_CREATE_QP, sizeof *qp)))
        e = ENOMEM;
    if (e == 0) {
        init_handle(qp, ctx, pd, init);
        qp->xrcd = xrcd ? shca_container(xrcd, struct shca_xrcd, xrcd) : NULL;
        e = qp_alloc_private(qp);
    }
    if (e == 0) {
        pthread_mutex_lock(&shca.lock);
        e = qp_enter_table(qp);
        pthread_mutex_unlock(&shca.lock);
    }
    if (e != 0) {
        if (qp)
            qp_release(qp);
        errno = e;
        return NULL;
    }
    ++*parent_of(qp);
    return &qp->qp;
}

SHCA_PUBLIC struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
    typedef struct ibv_qp *fn(struct ibv_pd *, struct ibv_qp_init_attr *);

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_create_qp", NULL, pd, init);
    return shca_create_qp(pd->context, pd, NULL, init);
}

static void qp_leave_table(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;

    pthread_mutex_lock(&shca.lock);
    shca.qps[qp->index] = NULL;
    shca.gone_messages += qp->messages;
    shca.gone_bytes += qp->bytes;
    shca.n_qp--;
    shca_rx_lock(shca.seg, sh, shca.pid);
    atomic_store(&sh->state, IBV_QPS_RESET);
    shca_rx_unlock(sh);
    if (qp->scq)
        shca_cq_demand(qp->scq, -(int64_t)qp->init.cap.max_send_wr);
    shca_rq_destroy(qp);
    sh->qpn = 0; /* freed only now: shared receives are marked with it */
    pthread_mutex_unlock(&shca.lock);
}

static void leave_target(struct shca_qp *qp)
{
    bool last;

    pthread_mutex_lock(&shca.lock);
    if (!qp->home) {
        shca.qps[qp->index] = NULL;
        shca.n_qp--;
    }
    last = shca_target_close(qp);
    if (last && !qp->home)
        shca_target_reap(qp->sh);
    pthread_mutex_unlock(&shca.lock);
    if (qp->home)
        shca_peer_put(qp->home);
}

static void qp_wait_for_acks(struct shca_qp *qp)
{
    pthread_mutex_lock(&qp->qp.mutex);
    while (qp->qp.events_completed != qp->async_sent)
        pthread_cond_wait(&qp->qp.cond, &qp->qp.mutex);
    pthread_mutex_unlock(&qp->qp.mutex);
}

SHCA_PUBLIC int ibv_destroy_qp(struct ibv_qp *ibqp)
{
    typedef int fn(struct ibv_qp *);
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);

    if (!shca_owns(ibqp->context))
        SHCA_PASS(fn, "ibv_destroy_qp", ENOSYS, ibqp);
    if (shca_ctx(ibqp->context)->inherited)
        return 0;
    if (atomic_load(&qp->mcasts) > 0)
        return EBUSY;
    shca_pending_remove(qp);
    shca_udp_close(qp);
    if (qp->xrcd)
        leave_target(qp);
    else
        qp_leave_table(qp);
    if (qp->scq)
        shca_cq_purge(qp->scq, qp);
    shca_xrc_release(qp);
    if (qp->peer)
        shca_peer_put(qp->peer);
    if (!qp->home) /* further handles of a target get no events */
        shca_events_end_qp(qp);
    qp_wait_for_acks(qp);
    --*parent_of(qp);
    pthread_mutex_destroy(&ibqp->mutex);
    pthread_cond_destroy(&ibqp->cond);
    qp_release(qp);
    return 0;
}

SHCA_PUBLIC int ibv_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
                             struct ibv_qp_init_attr *init)
{
    typedef int fn(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *);
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);

    if (!shca_owns(ibqp->context))
        SHCA_PASS(fn, "ibv_query_qp", ENOSYS, ibqp, attr, mask, init);
    if (shca_ctx(ibqp->context)->inherited)
        return EINVAL;
    shca_lock(&qp->sq_lock);
    if (qp->xrcd)
        shca_target_load(qp);
    *attr = qp->attr;
    attr->cap = qp->init.cap;
    attr->qp_state = attr->cur_qp_state = ibqp->state = shca_qp_state(qp);
    *init = qp->init;
    shca_unlock(&qp->sq_lock);
    return 0;
}
