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

/* Events of ports that come late (event_delay of a profile), with the same lock. */
enum { max_late = 64 };
struct late {
    uint64_t due, record;
    int hca;
};
static struct late late[max_late];
static int n_late;
static _Atomic bool any_late;

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

static void tell(int hca, uint64_t record)
{
    for (int i = 0; i < max_contexts; i++)
        if (contexts[i] && contexts[i]->hca == hca)
            (void)!write(contexts[i]->async_wfd, &record, sizeof record);
}

static bool is_late(int hca, enum ibv_event_type type)
{
    return shca_config.device[hca].event_delay > 0 &&
           (type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR);
}

/* More than these come at once. */
static void put_off(int hca, uint64_t record)
{
    uint64_t delay = shca_config.device[hca].event_delay * UINT64_C(1000000);

    if (n_late == max_late)
        tell(hca, record);
    else
        late[n_late++] = (struct late){tk_now() + delay, record, hca};
    atomic_store(&any_late, true);
    shca_helper_kick();
}

void shca_contexts_notify(int hca, enum ibv_event_type type, uint32_t port)
{
    uint64_t record = (uint64_t)type << 32 | port;

    pthread_mutex_lock(&contexts_lock);
    if (is_late(hca, type))
        put_off(hca, record);
    else
        tell(hca, record);
    pthread_mutex_unlock(&contexts_lock);
}

uint64_t shca_contexts_run(void)
{
    uint64_t next = UINT64_MAX, now;
    int kept = 0;

    if (!atomic_load(&any_late))
        return UINT64_MAX;
    pthread_mutex_lock(&contexts_lock);
    now = tk_now();
    for (int i = 0; i < n_late; i++)
        if (late[i].due <= now) {
            tell(late[i].hca, late[i].record);
        } else {
            next = late[i].due - now < next ? late[i].due - now : next;
            late[kept++] = late[i];
        }
    n_late = kept;
    atomic_store(&any_late, kept > 0);
    pthread_mutex_unlock(&contexts_lock);
    return next;
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
    n_late = 0;
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
