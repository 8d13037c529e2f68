/* SPDX-License-Identifier: BSD-3-Clause */
/* The send queue. A request is executed inside ibv_post_send when nothing is ahead of it, and kept
 * in the queue when it has to wait (receiver not ready, peer not there yet, SQD). Its completion
 * goes into the fifo of the CQ and is seen by a later poll, never by the post. Owns the queue;
 * sq_lock is held throughout. */
#include "config.h"

#include "shca.h"

#define MSEC UINT64_C(1000000)
/* How long a process that is not (or no longer) there is waited for, whatever the ack timeout says:
 * the fabric is this host, a missing process is a fact and not a lost packet. */
#define ABSENT_NS (1000 * MSEC)

/* Timer values of an RNR NAK, 1/100 ms (InfiniBand specification 1.3, table 45). */
static const uint32_t rnr_delay[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
                                       16,    24,   32,   48,    64,    96,    128,   192,
                                       256,   384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

static enum ibv_wc_opcode wc_opcode(uint32_t op)
{
    switch (op) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

static void push(struct shca_qp *qp, const struct shca_op *op, uint32_t index,
                 enum ibv_wc_status status)
{
    struct ibv_wc wc;

    memset(&wc, 0, sizeof wc);
    wc.wr_id = op->wr_id;
    wc.status = status;
    wc.opcode = wc_opcode(op->opcode);
    wc.byte_len = op->length;
    wc.qp_num = qp->qp.qp_num;
    shca_cq_push(qp->scq, qp, index, &wc);
}

static void flush_sends(struct shca_qp *qp)
{
    qp->waiting = SHCA_DONE;
    for (; qp->sq_exec != qp->sq_tail; qp->sq_exec++)
        push(qp, &shca_wqe_at(qp, qp->sq_exec)->op, qp->sq_exec, IBV_WC_WR_FLUSH_ERR);
}

void shca_qp_error(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;

    shca_rx_lock(shca.seg, sh, shca.pid);
    atomic_store(&sh->state, IBV_QPS_ERR);
    shca_rx_unlock(sh);
    qp->attr.qp_state = qp->qp.state = IBV_QPS_ERR;
    flush_sends(qp);
    shca_rq_error(qp);
}

/* Written here only, under sq_lock: no atomic operation is needed, only whole words. */
static void count(struct shca_qp *qp, uint32_t bytes)
{
    uint64_t m = atomic_load_explicit(&qp->messages, memory_order_relaxed) + 1;
    uint64_t b = atomic_load_explicit(&qp->bytes, memory_order_relaxed) + bytes;

    atomic_store_explicit(&qp->messages, m, memory_order_relaxed);
    atomic_store_explicit(&qp->bytes, b, memory_order_relaxed);
}

/* A request failed. Where nobody acknowledges, only the send queue breaks (SQE): receives go on,
 * and the program may set it going again (10.3.1). */
static void break_sends(struct shca_qp *qp)
{
    enum ibv_qp_type type = qp->qp.qp_type;
    uint32_t rts = IBV_QPS_RTS;

    if ((type == IBV_QPT_UC || type == IBV_QPT_UD) &&
        atomic_compare_exchange_strong(&qp->sh->state, &rts, IBV_QPS_SQE)) {
        qp->attr.qp_state = qp->qp.state = IBV_QPS_SQE;
        flush_sends(qp);
    } else {
        shca_qp_error(qp);
    }
}

static void complete(struct shca_qp *qp, const struct shca_op *op, uint32_t index,
                     enum ibv_wc_status status)
{
    qp->waiting = SHCA_DONE;
    qp->sq_exec = index + 1;
    if (status != IBV_WC_SUCCESS) {
        push(qp, op, index, status);
        break_sends(qp);
        return;
    }
    count(qp, op->length);
    if (op->flags & IBV_SEND_SIGNALED)
        push(qp, op, index, status);
}

/* ---- retry ---- */

static uint64_t ack_budget(const struct shca_qp *qp, bool absent)
{
    uint64_t total;

    if (qp->attr.timeout == 0) /* for ever, unless nobody is there */
        return absent ? ABSENT_NS : UINT64_MAX / 2;
    total = (UINT64_C(4096) << qp->attr.timeout) * (qp->attr.retry_cnt + 1u);
    return absent && total > ABSENT_NS ? ABSENT_NS : total;
}

static bool stall_ack(struct shca_qp *qp, enum ibv_wc_status *status)
{
    uint64_t now = shca_now();
    bool absent = qp->peer == NULL && !shca_path_cut(qp->sh->port, qp->dest_port);
    uint64_t limit = now + ack_budget(qp, absent);

    SHCA_COUNT(retries);
    /* Only absence, found out when a port came back, makes the time shorter. */
    if (qp->waiting != SHCA_WAIT_ACK || limit < qp->give_up)
        qp->give_up = limit;
    qp->waiting = SHCA_WAIT_ACK;
    qp->next_try = now + MSEC;
    *status = IBV_WC_RETRY_EXC_ERR;
    return now >= qp->give_up;
}

/* A receiver that only pretends (a fault) may never have been looked for. */
static uint32_t asked_delay(const struct shca_qp *qp)
{
    return qp->target ? qp->target->min_rnr : qp->attr.min_rnr_timer;
}

static bool stall_rnr(struct shca_qp *qp, enum ibv_wc_status *status)
{
    SHCA_COUNT(rnr);
    if (qp->waiting != SHCA_WAIT_RNR)
        qp->rnr_left = qp->attr.rnr_retry;
    qp->waiting = SHCA_WAIT_RNR;
    *status = IBV_WC_RNR_RETRY_EXC_ERR;
    if (qp->rnr_left == 0)
        return true;
    if (qp->rnr_left != 7) /* 7: for ever */
        qp->rnr_left--;
    qp->next_try = shca_now() + rnr_delay[asked_delay(qp) & 31] * UINT64_C(10000);
    return false;
}

/* Arms the timer of what a request waits for; true when it has waited long enough. */
static bool stall(struct shca_qp *qp, int wait, enum ibv_wc_status *status)
{
    if (wait != SHCA_WAIT_ACK && wait != SHCA_WAIT_RNR)
        return false;
    qp->rate.end = shca_now();
    return wait == SHCA_WAIT_ACK ? stall_ack(qp, status) : stall_rnr(qp, status);
}

/* Runs one request: true when it is finished (well or badly). */
static bool run(struct shca_qp *qp, const struct shca_op *op, uint32_t index)
{
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    int wait = shca_detours() ? shca_fault_execute(qp, op, &status) : shca_execute(qp, op, &status);

    if (wait != SHCA_DONE && !stall(qp, wait, &status))
        return false;
    complete(qp, op, index, status);
    return true;
}

void shca_sq_run(struct shca_qp *qp)
{
    while (qp->sq_exec != qp->sq_tail) {
        uint32_t state = shca_qp_state(qp);

        if (state == IBV_QPS_ERR) {
            shca_qp_error(qp);
            return;
        }
        if (state == IBV_QPS_SQE) {
            flush_sends(qp);
            return;
        }
        if (state != IBV_QPS_RTS) {
            qp->waiting = SHCA_WAIT_NEVER;
            return;
        }
        if (!run(qp, &shca_wqe_at(qp, qp->sq_exec)->op, qp->sq_exec))
            return;
    }
}

/* ---- posting ---- */

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

/* Copies a request into the queue; the caller's lists (and inline data) are free afterwards. */
static void keep(struct shca_qp *qp, const struct shca_op *op, uint32_t index)
{
    struct shca_wqe *w = shca_wqe_at(qp, index);

    w->op = *op;
    w->posted = shca_detours() ? shca_now() : 0;
    if (op->flags & IBV_SEND_INLINE) {
        keep_inline(w);
        return;
    }
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
#define RESPONDING (OP(RDMA_READ) | ATOMICS) /* the answer has data: nothing to send inline */

uint32_t shca_offered(enum ibv_qp_type type)
{
    return type == IBV_QPT_UD         ? SENDS
           : type == IBV_QPT_UC       ? SENDS | WRITES
           : type == IBV_QPT_XRC_RECV ? 0
                                      : SENDS | WRITES | RESPONDING;
}

static int check_opcode(const struct shca_qp *qp, const struct ibv_send_wr *wr)
{
    uint32_t op = (uint32_t)wr->opcode < 32 ? 1u << wr->opcode : 0;

    if (op & shca_offered(qp->qp.qp_type))
        return (op & RESPONDING) && (wr->send_flags & IBV_SEND_INLINE) ? EINVAL : 0;
    return op & (SENDS | WRITES | RESPONDING) ? EINVAL : EOPNOTSUPP;
}

static int check_lengths(struct shca_qp *qp, const struct ibv_send_wr *wr, struct shca_op *op)
{
    uint64_t total = 0;

    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge)
        return EINVAL;
    for (int i = 0; i < wr->num_sge; i++)
        total += wr->sg_list[i].length;
    if ((wr->send_flags & IBV_SEND_INLINE) && total > qp->init.cap.max_inline_data)
        return EINVAL;
    op->length = total > UINT32_MAX ? UINT32_MAX : (uint32_t)total;
    return 0;
}

static int address_atomic(const struct ibv_send_wr *wr, struct shca_op *op)
{
    op->remote_addr = wr->wr.atomic.remote_addr;
    op->rkey = wr->wr.atomic.rkey;
    op->compare_add = wr->wr.atomic.compare_add;
    op->swap = wr->wr.atomic.swap;
    return 0;
}

static int translate(struct shca_qp *qp, const struct ibv_send_wr *wr, struct shca_op *op)
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
    /* Of datagrams only, but the receiver's completion is filled from them for both kinds. */
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

static int post_one(struct shca_qp *qp, const struct ibv_send_wr *wr)
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
    if (state == IBV_QPS_RTS && qp->sq_exec == index) {
        if (run(qp, &op, index))
            return 0;
        shca_pending_add(qp);
    }
    keep(qp, &op, index);
    if (state == IBV_QPS_ERR)
        shca_qp_error(qp);
    else if (state == IBV_QPS_SQE)
        flush_sends(qp);
    else if (state == IBV_QPS_SQD)
        shca_pending_add(qp); /* it is flushed if the peer breaks the queue pair meanwhile */
    return 0;
}

int shca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);
    int e = 0;

    if (qp->batch)
        shca_lock(&qp->batch->lock);
    shca_lock(&qp->sq_lock);
    for (; wr && e == 0; wr = wr->next) {
        e = post_one(qp, wr);
        if (e != 0)
            *bad = wr;
    }
    shca_unlock(&qp->sq_lock);
    if (qp->batch)
        shca_unlock(&qp->batch->lock);
    return e;
}
