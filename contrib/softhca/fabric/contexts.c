/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The open contexts of this process: which of them get the events of an HCA, and which are unusable
 * after fork(). Owns the list of them; contexts_lock protects it. */
#include "config.h"

#include <unistd.h>

#include "fabric/fabric.h"

enum { max_contexts = 256 };

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_context *contexts[max_contexts];

int shca_contexts_add(struct shca_context *c)
{
    int at = 0;

    pthread_mutex_lock(&contexts_lock);
    while (at < max_contexts && contexts[at])
        at++;
    if (at < max_contexts)
        contexts[at] = c;
    pthread_mutex_unlock(&contexts_lock);
    return at < max_contexts ? 0 : ENFILE;
}

void shca_contexts_remove(struct shca_context *c)
{
    pthread_mutex_lock(&contexts_lock);
    for (int i = 0; i < max_contexts; i++)
        if (contexts[i] == c)
            contexts[i] = NULL;
    pthread_mutex_unlock(&contexts_lock);
}

void shca_contexts_notify(int hca, enum ibv_event_type type, uint32_t port)
{
    uint64_t record = (uint64_t)type << 32 | port;

    pthread_mutex_lock(&contexts_lock);
    for (int i = 0; i < max_contexts; i++)
        if (contexts[i] && contexts[i]->hca == hca)
            (void)!write(contexts[i]->async_wfd, &record, sizeof record);
    pthread_mutex_unlock(&contexts_lock);
}

static int no_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)qp;
    *bad = wr;
    return EINVAL;
}

static int no_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp;
    *bad = wr;
    return EINVAL;
}

static int no_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)srq;
    *bad = wr;
    return EINVAL;
}

static int no_poll(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq;
    (void)n;
    (void)wc;
    return -1;
}

static int no_notify(struct ibv_cq *cq, int solicited)
{
    (void)cq;
    (void)solicited;
    return EINVAL;
}

void shca_contexts_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    /* As with hardware, the queues stay the parent's; a child that posts gets an error. */
    contexts_lock = fresh;
    for (int i = 0; i < max_contexts; i++) {
        struct shca_context *c = contexts[i];

        contexts[i] = NULL;
        if (!c)
            continue;
        c->inherited = true;
        c->v.context.ops.post_send = no_post_send;
        c->v.context.ops.post_recv = no_post_recv;
        c->v.context.ops.post_srq_recv = no_post_srq_recv;
        c->v.context.ops.poll_cq = no_poll;
        c->v.context.ops.req_notify_cq = no_notify;
    }
}

bool shca_fault_fails(const struct ibv_context *ctx, enum shca_fault_call call)
{
    struct shca_fault_subject who = {.dev = shca_ctx((struct ibv_context *)(uintptr_t)ctx)->hca,
                                     .call = call};

    return shca_fault_hits(SHCA_FAULT_ENOMEM, &who);
}
