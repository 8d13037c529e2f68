/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The builders of ibv_wr_*. A batch is built in place, in the free part of the send queue, and
 * becomes part of it as a whole in ibv_wr_complete, or not at all. Owns the batch of a queue pair;
 * batch->lock is held from ibv_wr_start to ibv_wr_complete or ibv_wr_abort. sq_lock is taken only
 * at the end: a program may poll its CQs while it builds, and polling can need the send queue. */
#include "config.h"

#include "verbs/verbs.h"

/* The response has data: nothing to send inline. */
#define RESPONDING                                                                                 \
    (1u << IBV_WR_RDMA_READ | 1u << IBV_WR_ATOMIC_CMP_AND_SWP | 1u << IBV_WR_ATOMIC_FETCH_AND_ADD)

static inline struct shca_qp *qp_of(struct ibv_qp_ex *ex)
{
    return shca_container(ex, struct shca_qp, ex);
}

static void wr_fail(struct shca_batch *b, int e)
{
    if (b->error == 0)
        b->error = e;
    b->now = NULL;
}

/* Fails the batch if a datagram was left without an address. */
static void close_request(struct shca_batch *b)
{
    if (b->no_address)
        wr_fail(b, EINVAL);
    b->no_address = false;
    b->now = NULL;
}

/* Begins a request; NULL: the batch has failed, and ibv_wr_complete will return the error. */
static struct shca_op *wr_begin(struct ibv_qp_ex *ex, uint32_t opcode)
{
    struct shca_qp *qp = qp_of(ex);
    struct shca_batch *b = qp->batch;
    struct shca_wqe *w;

    close_request(b);
    if (!(b->ops >> opcode & 1))
        wr_fail(b, EOPNOTSUPP);
    else if (b->first + b->n - atomic_load_explicit(&qp->sq_head, memory_order_acquire) >=
                 qp->init.cap.max_send_wr ||
             (shca_faults() && shca_fault_sq_full(qp, opcode)))
        wr_fail(b, ENOMEM);
    if (b->error != 0)
        return NULL;
    w = shca_wqe_at(qp, b->first + b->n++);
    memset(&w->op, 0, sizeof w->op);
    w->op.wr_id = ex->wr_id;
    w->op.opcode = opcode;
    /* Whether data is inline depends on the setter that is called. */
    w->op.flags = (ex->wr_flags & ~(unsigned)IBV_SEND_INLINE) |
                  (qp->init.sq_sig_all ? IBV_SEND_SIGNALED : 0u);
    w->op.sge = w->sge;
    b->no_address = qp->qp.qp_type == IBV_QPT_UD;
    b->now = w;
    return &w->op;
}

static void begin_rdma(struct ibv_qp_ex *ex, uint32_t opcode, uint32_t rkey, uint64_t remote_addr,
                       __be32 imm)
{
    struct shca_op *op = wr_begin(ex, opcode);

    if (!op)
        return;
    op->rkey = rkey;
    op->remote_addr = remote_addr;
    op->imm = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    begin_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
    begin_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
    begin_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void begin_atomic(struct ibv_qp_ex *ex, uint32_t opcode, uint32_t rkey, uint64_t remote_addr,
                         uint64_t compare_add, uint64_t swap)
{
    struct shca_op *op = wr_begin(ex, opcode);

    if (!op)
        return;
    op->rkey = rkey;
    op->remote_addr = remote_addr;
    op->compare_add = compare_add;
    op->swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
                              uint64_t compare, uint64_t swap)
{
    begin_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
                                uint64_t add)
{
    begin_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_send(struct ibv_qp_ex *ex)
{
    wr_begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
    struct shca_op *op = wr_begin(ex, IBV_WR_SEND_WITH_IMM);

    if (op)
        op->imm = imm;
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
                            const void *value)
{
    (void)rkey, (void)remote_addr, (void)value;
    wr_begin(ex, IBV_WR_ATOMIC_WRITE);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
                       const struct ibv_mw_bind_info *info)
{
    (void)mw, (void)rkey, (void)info;
    wr_begin(ex, IBV_WR_BIND_MW);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    (void)rkey;
    wr_begin(ex, IBV_WR_LOCAL_INV);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
    (void)rkey;
    wr_begin(ex, IBV_WR_SEND_WITH_INV);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *header, uint16_t bytes, uint16_t mss)
{
    (void)header, (void)bytes, (void)mss;
    wr_begin(ex, IBV_WR_TSO);
}

/* ---- setters ---- */

static struct shca_op *current(struct ibv_qp_ex *ex)
{
    struct shca_batch *b = qp_of(ex)->batch;

    if (!b->now)
        wr_fail(b, EINVAL);
    return b->now ? &b->now->op : NULL;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey)
{
    struct shca_qp *qp = qp_of(ex);
    struct shca_op *op = current(ex);

    if (!op)
        return;
    if (!qp->batch->no_address || shca_address_ud(qp, ah, qpn, qkey, op) != 0)
        wr_fail(qp->batch, EINVAL);
    qp->batch->no_address = false;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t srqn)
{
    struct shca_op *op = current(ex);

    if (op && qp_of(ex)->qp.qp_type == IBV_QPT_XRC_SEND)
        op->srqn = srqn;
    else
        wr_fail(qp_of(ex)->batch, EINVAL);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *list)
{
    struct shca_qp *qp = qp_of(ex);
    struct shca_op *op = current(ex);
    uint64_t total = 0;

    if (op &&
        (n > qp->init.cap.max_send_sge || (op->opcode == IBV_WR_RDMA_READ && n > qp->read_sge)))
        wr_fail(qp->batch, EINVAL);
    if (!qp->batch->now)
        return;
    for (size_t i = 0; i < n; i++) {
        qp->batch->now->sge[i] = list[i];
        total += list[i].length;
    }
    op->flags &= ~(uint32_t)IBV_SEND_INLINE;
    op->nsge = (uint32_t)n;
    op->length = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
    struct ibv_sge one = {addr, length, lkey};

    wr_set_sge_list(ex, 1, &one);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *list)
{
    struct shca_qp *qp = qp_of(ex);
    struct shca_batch *b = qp->batch;
    struct shca_op *op = current(ex);
    struct ibv_sge *sge;
    size_t at = 0;

    if (op && op->opcode >= IBV_WR_RDMA_READ) /* the response has the data */
        wr_fail(b, EINVAL);
    if (!b->now)
        return;
    sge = b->now->sge;
    for (size_t i = 0; i < n; i++) {
        if (list[i].length > qp->init.cap.max_inline_data - at) {
            wr_fail(b, EINVAL);
            return;
        }
        /* Inline data is behind the one SGE that points to it, as ibv_post_send keeps it. */
        memcpy((char *)&sge[1] + at, list[i].addr, list[i].length);
        at += list[i].length;
    }
    sge[0] = (struct ibv_sge){(uintptr_t)&sge[1], (uint32_t)at, 0};
    op->flags |= IBV_SEND_INLINE;
    op->nsge = 1;
    op->length = (uint32_t)at;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
    struct ibv_data_buf one = {addr, length};

    wr_set_inline_data_list(ex, 1, &one);
}

/* ---- the batch ---- */

static void wr_start(struct ibv_qp_ex *ex)
{
    struct shca_qp *qp = qp_of(ex);
    struct shca_batch *b = qp->batch;

    shca_lock(&b->lock);
    b->first = qp->sq_tail;
    b->n = 0;
    b->error = 0;
    b->no_address = false;
    b->now = NULL;
}

/* Makes the requests part of the queue and runs them, as ibv_post_send would. Holds sq_lock. */
static int submit(struct shca_qp *qp)
{
    struct shca_batch *b = qp->batch;
    uint32_t state = shca_qp_state(qp);

    /* Another tail: the queue pair was reset while the batch was being built. */
    if (state < IBV_QPS_RTS || qp->sq_tail != b->first)
        return EINVAL;
    if (state == IBV_QPS_ERR && shca_is_fatal(qp->qp.context))
        return EIO;
    for (uint32_t i = 0; i < b->n && shca_detours(); i++)
        shca_wqe_at(qp, b->first + i)->posted = tk_now();
    qp->sq_tail += b->n;
    if (state == IBV_QPS_ERR) {
        shca_qp_error(qp);
    } else if (state == IBV_QPS_SQE) {
        shca_sq_run(qp);
    } else if (qp->far) {
        if (state == IBV_QPS_RTS)
            qp->far->run(qp);
    } else if (state == IBV_QPS_RTS && qp->sq_exec == b->first) {
        shca_sq_run(qp);
        if (qp->sq_exec != qp->sq_tail)
            shca_pending_add(qp);
    } else if (state == IBV_QPS_SQD) {
        shca_pending_add(qp);
    }
    return 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
    struct shca_qp *qp = qp_of(ex);
    struct shca_batch *b = qp->batch;
    int e;

    close_request(b);
    e = shca_ctx(qp->qp.context)->inherited ? EINVAL : b->error;
    if (e == 0 && b->n > 0) {
        shca_lock(&qp->sq_lock);
        e = submit(qp);
        shca_unlock(&qp->sq_lock);
    }
    shca_unlock(&b->lock);
    return e;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
    shca_unlock(&qp_of(ex)->batch->lock);
}

void shca_wr_fill(struct ibv_qp_ex *ex)
{
    ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
    ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
    ex->wr_atomic_write = wr_atomic_write;
    ex->wr_bind_mw = wr_bind_mw;
    ex->wr_local_inv = wr_local_inv;
    ex->wr_rdma_read = wr_rdma_read;
    ex->wr_rdma_write = wr_rdma_write;
    ex->wr_rdma_write_imm = wr_rdma_write_imm;
    ex->wr_send = wr_send;
    ex->wr_send_imm = wr_send_imm;
    ex->wr_send_inv = wr_send_inv;
    ex->wr_send_tso = wr_send_tso;
    ex->wr_set_ud_addr = wr_set_ud_addr;
    ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex->wr_set_inline_data = wr_set_inline_data;
    ex->wr_set_inline_data_list = wr_set_inline_data_list;
    ex->wr_set_sge = wr_set_sge;
    ex->wr_set_sge_list = wr_set_sge_list;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
}
