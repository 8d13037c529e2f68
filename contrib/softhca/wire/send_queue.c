/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The send queue. A request is executed inside ibv_post_send if no other request is ahead of it,
 * and kept in the queue when it has to wait (receiver not ready, peer not there yet, SQD). Its
 * completion goes into the fifo of the CQ and is seen by a later poll, never by the post. Owns the
 * queue; sq_lock is held throughout. */
#include "config.h"

#include "wire/wire.h"

static const uint64_t msec = UINT64_C(1000000);
/* How long a request waits for a process that is not (or no longer) there, whatever the ack timeout
 * is: the fabric is this host, so a missing process is a fact and not a lost packet. */
static const uint64_t absent_ns = UINT64_C(1000000000);

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
    shca_cq_push(qp->scq, qp, index, op->wr_id, status, wc_opcode(op->opcode), op->length);
}

void shca_sq_flush(struct shca_qp *qp)
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
    if (qp->far)
        qp->far->fail(qp);
    shca_sq_flush(qp);
    shca_rq_error(qp);
}

/* A request failed. Without acknowledgements only the send queue breaks (SQE): receives go on, and
 * the program may restart it (10.3.1). */
void shca_sq_break(struct shca_qp *qp)
{
    enum ibv_qp_type type = qp->qp.qp_type;
    uint32_t rts = IBV_QPS_RTS;

    if ((type == IBV_QPT_UC || type == IBV_QPT_UD) &&
        atomic_compare_exchange_strong(&qp->sh->state, &rts, IBV_QPS_SQE)) {
        qp->attr.qp_state = qp->qp.state = IBV_QPS_SQE;
        shca_sq_flush(qp);
    } else {
        shca_qp_error(qp);
    }
}

void shca_sq_finish(struct shca_qp *qp, const struct shca_op *op, uint32_t index,
                    enum ibv_wc_status status)
{
    qp->sq_exec = index + 1;
    if (status == IBV_WC_SUCCESS)
        shca_sq_count(qp, op->length);
    if (status != IBV_WC_SUCCESS || (op->flags & IBV_SEND_SIGNALED))
        push(qp, op, index, status);
}

static void complete(struct shca_qp *qp, const struct shca_op *op, uint32_t index,
                     enum ibv_wc_status status)
{
    qp->waiting = SHCA_DONE;
    qp->sq_exec = index + 1;
    if (status != IBV_WC_SUCCESS) {
        push(qp, op, index, status);
        shca_sq_break(qp);
        return;
    }
    shca_sq_count(qp, op->length);
    if (op->flags & IBV_SEND_SIGNALED)
        push(qp, op, index, status);
}

/* ---- retry ---- */

static uint64_t ack_budget(const struct shca_qp *qp, bool absent)
{
    uint64_t total;

    if (qp->attr.timeout == 0) /* for ever, unless the peer does not exist */
        return absent ? absent_ns : UINT64_MAX / 2;
    total = (UINT64_C(4096) << qp->attr.timeout) * (qp->attr.retry_cnt + 1u);
    return absent && total > absent_ns ? absent_ns : total;
}

static bool stall_ack(struct shca_qp *qp, enum ibv_wc_status *status)
{
    uint64_t now = tk_now();
    bool absent = qp->peer == NULL && !shca_path_cut(qp->sh->port, qp->dest_port);
    uint64_t limit = now + ack_budget(qp, absent);

    SHCA_COUNT(retries);
    /* The timer is shortened only when the peer turns out to be absent after a port has come
     * back. */
    if (qp->waiting != SHCA_WAIT_ACK || limit < qp->give_up)
        qp->give_up = limit;
    qp->waiting = SHCA_WAIT_ACK;
    qp->next_try = now + msec;
    /* A sender that gives up for lack of its own resources must not report that the peer is
     * silent. */
    *status = absent && shca_peer_refused() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_RETRY_EXC_ERR;
    return now >= qp->give_up;
}

/* A peer whose RNR is only simulated (a fault) may never have been attached. */
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
    qp->next_try = tk_now() + rnr_delay[asked_delay(qp) & 31] * UINT64_C(10000);
    return false;
}

/* Arms the timer of what a request waits for; true when it has expired. */
static bool stall(struct shca_qp *qp, int wait, enum ibv_wc_status *status)
{
    if (wait != SHCA_WAIT_ACK && wait != SHCA_WAIT_RNR)
        return false;
    qp->rate.end = tk_now();
    return wait == SHCA_WAIT_ACK ? stall_ack(qp, status) : stall_rnr(qp, status);
}

/* Runs one request: true when it is finished, successfully or not. */
bool shca_sq_execute(struct shca_qp *qp, const struct shca_op *op, uint32_t index)
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
            shca_sq_flush(qp);
            return;
        }
        if (state != IBV_QPS_RTS) {
            qp->waiting = SHCA_WAIT_NEVER;
            return;
        }
        if (qp->far) {
            qp->far->run(qp);
            return;
        }
        if (!shca_sq_execute(qp, &shca_wqe_at(qp, qp->sq_exec)->op, qp->sq_exec))
            return;
    }
}
