/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events: completion channels and the asynchronous queue of a context. Both are pipes, because any
 * process of the user can open the write end of a pipe through /proc and because programs want a
 * descriptor they can poll(). A record is 8 bytes: the number of the object and what happened. Owns
 * the channels; counters of the handles are protected by the mutex of each handle. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "verbs/verbs.h"
#include "wire/udp/udp.h"

SHCA_PUBLIC struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
    typedef struct ibv_comp_channel *fn(struct ibv_context *);
    struct shca_channel *c;
    int e;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_create_comp_channel", NULL, ctx);
    c = shca_handle_alloc(ctx, SHCA_CALL_CREATE_COMP_CHANNEL, sizeof *c);
    e = c ? shca_pipe_make(&c->ch.fd, &c->wfd, &c->pipe) : ENOMEM;
    if (e != 0) {
        free(c);
        errno = e;
        return NULL;
    }
    c->ch.context = ctx;
    return &c->ch;
}

SHCA_PUBLIC int ibv_destroy_comp_channel(struct ibv_comp_channel *ch)
{
    typedef int fn(struct ibv_comp_channel *);
    struct shca_channel *c = shca_container(ch, struct shca_channel, ch);

    if (!shca_owns(ch->context))
        SHCA_PASS(fn, "ibv_destroy_comp_channel", ENOSYS, ch);
    if (__atomic_load_n(&ch->refcnt, __ATOMIC_RELAXED) > 0)
        return EBUSY;
    close(ch->fd);
    close(c->wfd);
    free(c);
    return 0;
}

int shca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct shca_cq *cq = shca_container(ibcq, struct shca_cq, cq);
    uint32_t old = atomic_load(&cq->sh->arm), fresh;

    if (!ibcq->channel)
        return EINVAL;
    do {
        /* Always a new generation: the event of the old one may have been read before its producer
         * came to disarm. Arming for solicited only must not replace an earlier request for any. */
        fresh = ((old >> 2) + 1) << 2 | (solicited_only && (old & 3) != 1 ? 2 : 1);
    } while (!atomic_compare_exchange_weak(&cq->sh->arm, &old, fresh));
    /* The program polls next, with loads that weaker machines might move before the store above. */
    atomic_thread_fence(memory_order_seq_cst);
    shca_udp_attend();
    return 0;
}

static struct shca_cq *channel_cq_of(uint32_t index)
{
    return index < SHCA_CQS ? shca.cqs[index] : NULL;
}

/* True when the record is to be delivered: its CQ exists, uses this channel and has not delivered
 * this event yet. */
static bool accept_record(struct ibv_comp_channel *ch, uint64_t record, struct ibv_cq **out)
{
    struct shca_cq *cq;
    bool is_new = false;

    pthread_mutex_lock(&shca.lock);
    cq = channel_cq_of((uint32_t)(record >> 32));
    if (cq && cq->cq.channel == ch) {
        pthread_mutex_lock(&cq->cq.mutex);
        is_new = cq->event_arm != (uint32_t)record;
        cq->event_arm = (uint32_t)record;
        cq->events_sent += is_new;
        pthread_mutex_unlock(&cq->cq.mutex);
        *out = &cq->cq;
    }
    pthread_mutex_unlock(&shca.lock);
    return is_new;
}

SHCA_PUBLIC int ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **cq_context)
{
    typedef int fn(struct ibv_comp_channel *, struct ibv_cq **, void **);
    uint64_t record;

    if (!shca_owns(ch->context))
        SHCA_PASS(fn, "ibv_get_cq_event", -1, ch, cq, cq_context);
    do {
        ssize_t n = read(ch->fd, &record, sizeof record);

        if (n != (ssize_t)sizeof record)
            return -1;
    } while (!accept_record(ch, record, cq));
    *cq_context = (*cq)->cq_context;
    return 0;
}

SHCA_PUBLIC void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
    typedef void fn(struct ibv_cq *, unsigned);

    if (!shca_owns(cq->context)) {
        fn *real = (fn *)shca_real("ibv_ack_cq_events");
        if (real)
            real(cq, nevents);
        return;
    }
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

/* ---- asynchronous events ---- */

static bool about_cq(enum ibv_event_type type)
{
    return type == IBV_EVENT_CQ_ERR;
}

/* The record carries a port number (0: the whole HCA) instead of an object. */
static bool about_hca(enum ibv_event_type type)
{
    return type == IBV_EVENT_PORT_ERR || type == IBV_EVENT_PORT_ACTIVE ||
           type == IBV_EVENT_GID_CHANGE || type == IBV_EVENT_DEVICE_FATAL;
}

static bool about_srq(enum ibv_event_type type)
{
    return type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED;
}

static void channel_count(pthread_mutex_t *mutex, uint32_t *sent)
{
    pthread_mutex_lock(mutex);
    ++*sent;
    pthread_mutex_unlock(mutex);
}

static bool find_cq(struct ibv_context *ctx, uint32_t index, struct ibv_async_event *event)
{
    struct shca_cq *cq = channel_cq_of(index);

    if (!cq || cq->cq.context != ctx)
        return false;
    event->element.cq = &cq->cq;
    channel_count(&cq->cq.mutex, &cq->async_sent);
    return true;
}

static bool find_srq(struct ibv_context *ctx, uint32_t index, struct ibv_async_event *event)
{
    struct shca_srq *srq = index < SHCA_SRQS ? shca.srqs[index] : NULL;

    if (!srq || srq->srq.context != ctx)
        return false;
    event->element.srq = &srq->srq;
    channel_count(&srq->srq.mutex, &srq->async_sent);
    return true;
}

static bool find_qp(struct ibv_context *ctx, uint32_t index, struct ibv_async_event *event)
{
    struct shca_qp *qp = index < SHCA_QPS ? shca.qps[index] : NULL;

    if (!qp || qp->qp.context != ctx)
        return false;
    event->element.qp = &qp->qp;
    channel_count(&qp->qp.mutex, &qp->async_sent);
    return true;
}

/* Finds the object of an event; false when it is gone. */
static bool decode(struct ibv_context *ctx, uint64_t record, struct ibv_async_event *event)
{
    uint32_t index = (uint32_t)record;
    bool found;

    event->event_type = (enum ibv_event_type)(record >> 32);
    if (about_hca(event->event_type)) {
        event->element.port_num = (int)index;
        return true;
    }
    pthread_mutex_lock(&shca.lock);
    found = about_cq(event->event_type)    ? find_cq(ctx, index, event)
            : about_srq(event->event_type) ? find_srq(ctx, index, event)
                                           : find_qp(ctx, index, event);
    pthread_mutex_unlock(&shca.lock);
    return found;
}

SHCA_PUBLIC int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    typedef int fn(struct ibv_context *, struct ibv_async_event *);
    uint64_t record;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_get_async_event", -1, ctx, event);
    do {
        if (read(ctx->async_fd, &record, sizeof record) != (ssize_t)sizeof record)
            return -1;
    } while (!decode(ctx, record, event));
    return 0;
}

/* ---- events of destroyed objects ---- */

/* Drops the records about one object; the others stay, in order. The kernel does the same with real
 * devices: a program for which poll() reported an event must not find that there is none. */
static void purge(int fd, int wfd, uint32_t number, bool (*about)(uint64_t record, uint32_t number))
{
    char path[32];
    uint64_t record;
    int n = 0, own;

    if (ioctl(fd, FIONREAD, &n) != 0 || n == 0)
        return;
    /* The program's descriptor may block, and another thread may be reading. */
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    own = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (; n >= (int)sizeof record && own >= 0; n -= (int)sizeof record) {
        if (read(own, &record, sizeof record) != (ssize_t)sizeof record)
            break;
        if (!about(record, number))
            (void)!write(wfd, &record, sizeof record);
    }
    if (own >= 0)
        close(own);
}

static bool of_channel(uint64_t record, uint32_t number)
{
    return record >> 32 == number;
}

static bool of_cq(uint64_t record, uint32_t number)
{
    return (uint32_t)record == number && about_cq((enum ibv_event_type)(record >> 32));
}

static bool of_srq(uint64_t record, uint32_t number)
{
    return (uint32_t)record == number && about_srq((enum ibv_event_type)(record >> 32));
}

static bool of_qp(uint64_t record, uint32_t number)
{
    enum ibv_event_type type = (enum ibv_event_type)(record >> 32);

    return (uint32_t)record == number && !about_cq(type) && !about_srq(type) && !about_hca(type);
}

static void purge_async(struct ibv_context *ctx, uint32_t number, bool (*about)(uint64_t, uint32_t))
{
    purge(ctx->async_fd, shca_ctx(ctx)->async_wfd, number, about);
}

void shca_events_end_cq(struct shca_cq *cq)
{
    struct ibv_comp_channel *ch = cq->cq.channel;

    if (ch)
        purge(ch->fd, shca_container(ch, struct shca_channel, ch)->wfd, cq->index, of_channel);
    purge_async(cq->cq.context, cq->index, of_cq);
}

void shca_events_end_srq(struct shca_srq *srq)
{
    purge_async(srq->srq.context, srq->index, of_srq);
}

void shca_events_end_qp(struct shca_qp *qp)
{
    purge_async(qp->qp.context, qp->index, of_qp);
}

/* ---- acknowledging ---- */

static bool channel_is_ours(const struct ibv_async_event *e)
{
    /* Port events carry no object; acknowledging one is a no-op everywhere. */
    switch (e->event_type) {
    case IBV_EVENT_CQ_ERR:
        return shca_owns(e->element.cq->context);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return shca_owns(e->element.srq->context);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return shca_owns(e->element.qp->context);
    default:
        return false;
    }
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
    pthread_mutex_lock(mutex);
    ++*completed;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
}

SHCA_PUBLIC void ibv_ack_async_event(struct ibv_async_event *e)
{
    typedef void fn(struct ibv_async_event *);
    fn *real;

    if (!channel_is_ours(e)) {
        real = (fn *)shca_real("ibv_ack_async_event");
        if (real)
            real(e);
    } else if (about_cq(e->event_type)) {
        struct ibv_cq *cq = e->element.cq;
        ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
    } else if (about_srq(e->event_type)) {
        struct ibv_srq *srq = e->element.srq;
        ack(&srq->mutex, &srq->cond, &srq->events_completed);
    } else {
        struct ibv_qp *qp = e->element.qp;
        ack(&qp->mutex, &qp->cond, &qp->events_completed);
    }
}
