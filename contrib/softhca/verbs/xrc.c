/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC: requests that name the shared receive queue they are for, and the targets they come through.
 *
 * The initiator holds the responder lock of the target and then the lock of the named queue, until
 * the request is done; both may be in different processes. The queue says whose memory the request
 * may reach: the keys of its process in its protection domain (specification, annex A14: a target
 * has none of its own).
 *
 * A target may be held by several processes (ibv_open_qp). Each notes in a page of the creator's
 * segment how many handles it has, next to its pid, so that those of the dead do not count; whoever
 * closes the last live one ends the target. It also ends with the process that made it, where it
 * lives. Owns the handles of targets; shca.lock protects the counts of this process. */
#include "config.h"

#include <stdlib.h>

#include "fault/fault.h"
#include "wire/request.h"

/* ---- initiator ---- */

static struct shca_srq_sh *find_queue(struct shca_qp *qp, uint32_t srqn)
{
    uint32_t slot = srqn >> SHCA_QP_BITS, index = srqn & ((1u << SHCA_QP_BITS) - 1);

    if (qp->xrc_holder && (qp->xrc_holder->slot != slot || atomic_load(&qp->xrc_holder->dead)))
        shca_xrc_forget(qp);
    if (!qp->xrc_holder && slot < SHCA_MEMBERS)
        qp->xrc_holder = shca_peer_get(slot);
    if (!qp->xrc_holder || index >= SHCA_SRQS)
        return NULL;
    return &shca_srq_table(qp->xrc_holder->seg)[index];
}

bool shca_xrc_enter(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                    enum ibv_wc_status *status)
{
    struct shca_srq_sh *q = find_queue(qp, op->srqn);

    if (q) {
        shca_pid_lock(&q->lock, shca.pid);
        if (q->srqn == op->srqn && q->type == IBV_SRQT_XRC && q->domain == t->domain) {
            qp->xrc_srq = q;
            return true;
        }
        shca_pid_unlock(&q->lock);
    }
    /* Neither existence nor domain is told apart: an invalid request. */
    shca_break_target(qp->peer, t, IBV_EVENT_QP_REQ_ERR);
    *status = IBV_WC_REM_INV_REQ_ERR;
    return false;
}

void shca_xrc_leave(struct shca_qp *qp)
{
    shca_pid_unlock(&qp->xrc_srq->lock);
    qp->xrc_srq = NULL;
}

void shca_xrc_forget(struct shca_qp *qp)
{
    if (qp->xrc_holder)
        shca_peer_put(qp->xrc_holder);
    qp->xrc_holder = NULL;
}

/* ---- targets ---- */

/* The page of a target. */
struct target {
    struct ibv_qp_attr attr;      /* as last modified by any holder */
    uint64_t users[SHCA_MEMBERS]; /* of each member slot: pid << 32 | handles */
};

static struct target *target_of(const struct shca_qp *qp)
{
    struct shca_segment *seg = qp->home ? qp->home->seg : shca.seg;

    return (struct target *)(void *)((char *)seg + qp->sh->target);
}

static void count_handle(struct shca_qp *qp, int by)
{
    uint64_t *mine = &target_of(qp)->users[shca.slot];
    uint32_t n = *mine >> 32 == shca.pid ? (uint32_t)*mine : 0;

    n += (uint32_t)by;
    *mine = n ? (uint64_t)shca.pid << 32 | n : 0;
}

static bool anyone_left(struct shca_qp *qp)
{
    const struct target *g = target_of(qp);

    for (uint32_t i = 0; i < SHCA_MEMBERS; i++)
        if (g->users[i] != 0 &&
            (g->users[i] >> 32 == shca.pid || !shca_holder_gone((uint32_t)(g->users[i] >> 32))))
            return true;
    return false;
}

int shca_target_create(struct shca_qp *qp)
{
    qp->sh->target = shca_heap_alloc(sizeof(struct target));
    if (qp->sh->target == 0)
        return ENOMEM;
    qp->sh->domain = qp->xrcd->domain;
    count_handle(qp, 1);
    return 0;
}

void shca_target_reap(struct shca_qp_sh *sh)
{
    if (sh->target)
        shca_heap_free(sh->target, sizeof(struct target));
    sh->target = 0;
}

bool shca_target_close(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    bool last;

    shca_rx_lock(shca.seg, sh, shca.pid);
    count_handle(qp, -1);
    last = !anyone_left(qp);
    if (!qp->home)
        sh->async.fd = -1; /* nobody listens there any more */
    if (last) {
        atomic_store(&sh->state, IBV_QPS_RESET);
        sh->qpn = 0;
    }
    shca_rx_unlock(sh);
    return last;
}

void shca_target_load(struct shca_qp *qp)
{
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    qp->attr = target_of(qp)->attr;
    qp->dest_port = qp->sh->dest_port;
    shca_rx_unlock(qp->sh);
}

void shca_target_store(struct shca_qp *qp)
{
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    target_of(qp)->attr = qp->attr;
    shca_rx_unlock(qp->sh);
}

/* ---- handles on a target that exists ---- */

static int check_open(struct ibv_context *ctx, const struct ibv_qp_open_attr *a)
{
    const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;

    if (a->comp_mask & ~(need | IBV_QP_OPEN_ATTR_CONTEXT))
        return EOPNOTSUPP;
    if ((a->comp_mask & need) != need || !a->xrcd || a->xrcd->context != ctx ||
        a->qp_type != IBV_QPT_XRC_RECV || a->qp_num >> SHCA_QP_BITS >= SHCA_MEMBERS)
        return EINVAL;
    return shca_unusable(ctx);
}

static int attach(struct shca_qp *qp, uint32_t qpn)
{
    struct shca_qp_sh *t;
    int e = EINVAL;

    qp->home = shca_peer_get(qpn >> SHCA_QP_BITS);
    if (!qp->home)
        return EINVAL;
    t = qp->sh = &shca_qp_table(qp->home->seg)[qpn & (SHCA_QPS - 1)];
    pthread_mutex_lock(&shca.lock);
    shca_rx_lock(qp->home->seg, t, shca.pid);
    if (t->qpn == qpn && t->type == IBV_QPT_XRC_RECV && t->domain == qp->xrcd->domain) {
        count_handle(qp, 1);
        e = 0;
    }
    shca_rx_unlock(t);
    pthread_mutex_unlock(&shca.lock);
    if (e != 0)
        shca_peer_put(qp->home);
    return e;
}

struct ibv_qp *shca_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *a)
{
    struct shca_qp *qp = NULL;
    int e = check_open(ctx, a);

    if (e == 0 && !(qp = shca_handle_alloc(ctx, SHCA_CALL_CREATE_QP, sizeof *qp)))
        e = ENOMEM;
    if (e == 0) {
        qp->xrcd = shca_container(a->xrcd, struct shca_xrcd, xrcd);
        e = attach(qp, a->qp_num);
    }
    if (e != 0) {
        free(qp);
        errno = e;
        return NULL;
    }
    qp->init.qp_type = qp->qp.qp_type = IBV_QPT_XRC_RECV;
    qp->init.qp_context = qp->qp.qp_context =
        a->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? a->qp_context : NULL;
    qp->qp.context = ctx;
    qp->qp.qp_num = a->qp_num;
    qp->qp.state = shca_qp_state(qp);
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
    qp->xrcd->users++;
    return &qp->qp;
}
