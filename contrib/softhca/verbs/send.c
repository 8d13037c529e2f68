/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Posts to a send queue: requests are checked and translated, and executed or kept in the queue.
 * Owns nothing; sq_lock is held throughout. */
#include "config.h"

#include "verbs/verbs.h"

static void keep_inline(struct shca_wqe *w)
{
    char *data = (char *)&w->sge[1];
    size_t at = 0;

    for (uint32_t i = 0; i < w->op.nsge; i++) {
        memcpy(data + at, (void *)(uintptr_t)w->op.sge[i].addr, w->op.sge[i].length);
        at += w->op.sge[i].length;
    }
    w->sge[0] = (struct ibv_sge){(uintptr_t)data, (uint32_t)at, 0};
    w->op.nsge = 1;
    w->op.sge = w->sge;
}

/* Copies a request into the queue; the caller may then reuse its lists (and inline data). */
static void send_keep(struct shca_qp *qp, const struct shca_op *op, uint32_t index)
{
    struct shca_wqe *w = shca_wqe_at(qp, index);

    w->op = *op;
    w->posted = shca_detours() ? tk_now() : 0;
    if (op->flags & IBV_SEND_INLINE) {
        keep_inline(w);
        return;
    }
    if (op->nsge > 0) /* a request without data may have no list at all */
        memcpy(w->sge, op->sge, op->nsge * sizeof *op->sge);
    w->op.sge = w->sge;
}

int shca_address_ud(const struct shca_qp *qp, const struct ibv_ah *ibah, uint32_t qpn,
                    uint32_t qkey, struct shca_op *op)
{
    const struct shca_ah *ah;

    /* Handles, not pointers: a parent domain is the same protection domain as its PD. */
    if (!ibah || ibah->pd->handle != qp->qp.pd->handle)
        return EINVAL;
    ah = shca_container(ibah, struct shca_ah, ah);
    op->dest_port = ah->dest_port;
    op->slid = ah->slid;
    op->grh = ah->attr.is_global;
    op->sgid_index = ah->attr.grh.sgid_index;
    op->dgid = ah->attr.grh.dgid;
    op->dlid = ah->attr.dlid;
    op->dest_qpn = qpn;
    /* A Q_Key with the top bit set stands for the queue pair's own (10.2.5). */
    op->qkey = qkey >> 31 ? qp->attr.qkey : qkey;
    return 0;
}

/* The operations of each transport (specification table 32). */
#define OP(name)   (1u << IBV_WR_##name)
#define SENDS      (OP(SEND) | OP(SEND_WITH_IMM))
#define WRITES     (OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM))
#define ATOMICS    (OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD))
#define RESPONDING (OP(RDMA_READ) | ATOMICS) /* the response has data: nothing to send inline */

/* There are two ways to post; the code that most queue pairs need must be one function. */
#define POST_INLINE __attribute__((always_inline)) static inline

POST_INLINE int check_opcode(const struct shca_qp *qp, const struct ibv_send_wr *wr)
{
    uint32_t op = (uint32_t)wr->opcode < 32 ? 1u << wr->opcode : 0;

    if (op & qp->offered)
        return (op & RESPONDING) && (wr->send_flags & IBV_SEND_INLINE) ? EINVAL : 0;
    return op & (SENDS | WRITES | RESPONDING) ? EINVAL : EOPNOTSUPP;
}

POST_INLINE int check_lengths(struct shca_qp *qp, const struct ibv_send_wr *wr, struct shca_op *op)
{
    uint64_t total = 0;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge)
        return EINVAL;
    if (wr->num_sge > 1 && wr->opcode == IBV_WR_RDMA_READ && (uint32_t)wr->num_sge > qp->read_sge)
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    if ((wr->send_flags & IBV_SEND_INLINE) && total > qp->init.cap.max_inline_data)
        return EINVAL;
    op->length = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
    return 0;
}

POST_INLINE int address_atomic(const struct ibv_send_wr *wr, struct shca_op *op)
{
    op->remote_addr = wr->wr.atomic.remote_addr;
    op->rkey = wr->wr.atomic.rkey;
    op->compare_add = wr->wr.atomic.compare_add;
    op->swap = wr->wr.atomic.swap;
    return 0;
}

POST_INLINE int translate(struct shca_qp *qp, const struct ibv_send_wr *wr, struct shca_op *op)
{
    int e = check_opcode(qp, wr);

    if (e == 0)
        e = check_lengths(qp, wr, op);
    if (e != 0)
        return e;
    op->wr_id = wr->wr_id;
    op->sge = wr->sg_list;
    op->nsge = (uint32_t)wr->num_sge;
    op->opcode = wr->opcode;
    op->flags = wr->send_flags | (qp->init.sq_sig_all ? IBV_SEND_SIGNALED : 0u);
    op->imm = wr->imm_data;
    /* For datagrams only, but the receiver's completion is filled from them for both kinds. */
    op->slid = 0;
    op->grh = false;
    op->srqn = wr->qp_type.xrc.remote_srqn;
    if (qp->qp.qp_type == IBV_QPT_UD)
        return shca_address_ud(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey, op);
    if (ATOMICS >> op->opcode & 1)
        return address_atomic(wr, op);
    op->remote_addr = wr->wr.rdma.remote_addr;
    op->rkey = wr->wr.rdma.rkey;
    return 0;
}

/* Another wire takes requests from the queue. */
static int send_post_far(struct shca_qp *qp, const struct shca_op *op, uint32_t index,
                         uint32_t state)
{
    send_keep(qp, op, index);
    if (state == IBV_QPS_RTS)
        qp->far->run(qp);
    else if (state == IBV_QPS_ERR)
        shca_qp_error(qp);
    else if (state == IBV_QPS_SQE)
        shca_sq_flush(qp);
    return 0;
}

POST_INLINE int send_post_one(struct shca_qp *qp, const struct ibv_send_wr *wr, bool special)
{
    uint32_t state = shca_qp_state(qp), index;
    struct shca_op op;
    int e;

    if (state < IBV_QPS_RTS)
        return EINVAL;
    if (state == IBV_QPS_ERR && shca_is_fatal(qp->qp.context))
        return EIO;
    if (qp->sq_tail - atomic_load_explicit(&qp->sq_head, memory_order_acquire) >=
        qp->init.cap.max_send_wr)
        return ENOMEM;
    if (shca_faults() && shca_fault_sq_full(qp, wr->opcode))
        return ENOMEM;
    e = translate(qp, wr, &op);
    if (e != 0)
        return e;
    index = qp->sq_tail++;
    if (special && qp->far)
        return send_post_far(qp, &op, index, state);
    if (state == IBV_QPS_RTS && qp->sq_exec == index) {
        if (shca_sq_execute(qp, &op, index))
            return 0;
        shca_pending_add(qp);
    }
    send_keep(qp, &op, index);
    if (state == IBV_QPS_ERR)
        shca_qp_error(qp);
    else if (state == IBV_QPS_SQE)
        shca_sq_flush(qp);
    else if (state == IBV_QPS_SQD)
        shca_pending_add(qp); /* it is flushed if the peer breaks the queue pair meanwhile */
    return 0;
}

/* For queue pairs that programs also post to in other ways, or that use another wire. */
__attribute__((noinline)) static int post_special(struct shca_qp *qp, struct ibv_send_wr *wr,
                                                  struct ibv_send_wr **bad)
{
    int e = 0;

    if (qp->batch)
        shca_lock(&qp->batch->lock);
    shca_lock(&qp->sq_lock);
    /* MPA (RFC 5044, 7.1.2): the initiator's first message says that its end is ready. */
    if (shca_qp_speaks_early(qp))
        shca_qp_error(qp);
    for (; wr && e == 0; wr = wr->next) {
        e = send_post_one(qp, wr, true);
        if (e != 0)
            *bad = wr;
    }
    shca_unlock(&qp->sq_lock);
    if (qp->batch)
        shca_unlock(&qp->batch->lock);
    return e;
}

/* Posts the first request that is not plain, and all that follow it. Releases sq_lock. */
static int post_rest(struct shca_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    int e = 0;

    for (; wr && e == 0; wr = wr->next) {
        e = send_post_one(qp, wr, false);
        if (e != 0)
            *bad = wr;
    }
    shca_unlock(&qp->sq_lock);
    return e;
}

int shca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);

    if (__builtin_expect(qp->special, 0))
        return post_special(qp, wr, bad);
    return shca_plain_post(qp, wr, bad, post_rest);
}
