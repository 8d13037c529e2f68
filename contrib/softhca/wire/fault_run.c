/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes a work request under the rules in force. The request at the head of a send queue goes
 * through stages: delayed, on the wire (lost and retransmitted, perhaps), executed but not yet
 * completed. Between stages it waits like any stalled request, so that the order inside a queue
 * pair is kept and the engine continues it when the program does not poll. Owns nothing; the state
 * is the QP's, under its sq_lock. */
#include "config.h"

#include "wire/request.h"

/* A late completion that counts empty polls must not block a program that sleeps. */
static const uint64_t polls_max_ns = UINT64_C(10000000);
static const uint64_t never = UINT64_MAX / 2;

/* ACK_LOST: executed, but the response is lost. */
enum stage { FRESH, SENDING, SENT, ACK_LOST, EXECUTED };

static enum shca_fault_op kind_of(uint32_t opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return SHCA_OP_WRITE;
    case IBV_WR_RDMA_READ:
        return SHCA_OP_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return SHCA_OP_ATOMIC;
    default:
        return SHCA_OP_SEND;
    }
}

static struct shca_fault_subject subject(const struct shca_qp *qp, uint32_t opcode)
{
    return (struct shca_fault_subject){.dev = shca_ctx(qp->qp.context)->hca,
                                       .port = qp->attr.port_num,
                                       .qpn = qp->qp.qp_num,
                                       .op = kind_of(opcode),
                                       .call = SHCA_CALL_ANY};
}

bool shca_fault_sq_full(const struct shca_qp *qp, uint32_t opcode)
{
    struct shca_fault_subject subj = subject(qp, opcode);

    return shca_fault_hits(SHCA_FAULT_SQFULL, &subj);
}

static bool reliable(const struct shca_qp *qp)
{
    return qp->qp.qp_type != IBV_QPT_UD && qp->qp.qp_type != IBV_QPT_UC;
}

static bool needs_receive(uint32_t opcode)
{
    return opcode == IBV_WR_RDMA_WRITE_WITH_IMM || kind_of(opcode) == SHCA_OP_SEND;
}

static int put_off(struct shca_qp *qp, uint64_t until)
{
    qp->fault.until = until;
    qp->next_try = until;
    qp->waiting = SHCA_WAIT_FAULT;
    return SHCA_WAIT_FAULT;
}

/* A lost packet: a reliable sender notices when its ack timer expires, others never. */
static int lose(struct shca_qp *qp, enum ibv_wc_status *status)
{
    if (!reliable(qp))
        return SHCA_DONE;
    if (qp->fault.lost++ >= qp->attr.retry_cnt) {
        *status = IBV_WC_RETRY_EXC_ERR;
        return SHCA_DONE;
    }
    SHCA_COUNT(retries);
    /* Timeout 0 means that nothing is ever retransmitted (InfiniBand specification 1.3,
     * 9.7.6.1.3). */
    return put_off(qp, qp->attr.timeout ? tk_now() + (UINT64_C(4096) << qp->attr.timeout) : never);
}

/* Errors that the responder reports break its queue pair as well. */
static void fault_run_fail(struct shca_qp *qp, enum ibv_wc_status status)
{
    if (!reliable(qp))
        return;
    if (status == IBV_WC_REM_ACCESS_ERR)
        shca_break_peer(qp, IBV_EVENT_QP_ACCESS_ERR);
    else if (status == IBV_WC_REM_INV_REQ_ERR)
        shca_break_peer(qp, IBV_EVENT_QP_REQ_ERR);
    else if (status == IBV_WC_REM_OP_ERR)
        shca_break_peer(qp, IBV_EVENT_QP_FATAL);
}

static bool comes_early(const struct shca_qp *qp, const struct shca_op *op)
{
    return qp->fault.verdict.early && op->opcode == IBV_WR_RDMA_WRITE;
}

static int execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    bool kill = qp->fault.verdict.kill;
    int wait;

    if (kill)
        atomic_store(&shca_fault_flags.dying, true);
    if (!comes_early(qp, op))
        shca_early_settle(qp, op);
    wait = shca_rate_execute(qp, op, status);
    shca_early_enter(qp);
    if (kill && wait == SHCA_DONE)
        shca_fault_die(); /* nothing to move: die between the request and its completion */
    if (kill)
        atomic_store(&shca_fault_flags.dying, false);
    return wait;
}

/* Once per request, however often it is transmitted. */
static void unplug(struct shca_qp *qp)
{
    qp->fault.verdict.unplug = SHCA_LOST_NOTHING;
    shca_link_plug(shca_ctx(qp->qp.context)->hca, qp->attr.port_num, false,
                   qp->fault.verdict.unplug_ns);
}

/* One transmission of the packet; true when it is lost. */
static bool transmission_lost(struct shca_qp *qp, const struct shca_fault_subject *subj)
{
    struct shca_fault_state *f = &qp->fault;
    enum shca_lost lost = shca_fault_lost(subj);

    if (f->verdict.unplug == SHCA_LOST_REQUEST)
        unplug(qp); /* which cuts the path */
    f->ack_lost = lost == SHCA_LOST_ACK && reliable(qp);
    if (f->verdict.rnr && lost != SHCA_LOST_REQUEST)
        f->rnr_until = tk_now() + f->verdict.rnr;
    return lost == SHCA_LOST_REQUEST;
}

/* It was executed, but the sender gets no response. */
static int keep_ack_lost(struct shca_qp *qp, enum ibv_wc_status *status)
{
    qp->fault.stage = ACK_LOST;
    if (qp->fault.verdict.unplug == SHCA_LOST_ACK)
        unplug(qp);
    if (qp->fault.ack_lost)
        return lose(qp, status);
    return reliable(qp) ? SHCA_WAIT_ACK : SHCA_DONE;
}

/* The responder recognises the request by its number: it repeats the response without executing the
 * request again (specification 9.7.4.1.1). */
static int send_again(struct shca_qp *qp, const struct shca_fault_subject *subj,
                      enum ibv_wc_status *status)
{
    if (qp->fault.ack_lost && shca_fault_lost(subj) != SHCA_LOST_NOTHING)
        return lose(qp, status);
    qp->fault.ack_lost = false;
    if (atomic_load(&qp->peer->dead)) {
        *status = IBV_WC_RETRY_EXC_ERR;
        return SHCA_DONE;
    }
    return shca_answers(qp) ? SHCA_DONE : SHCA_WAIT_ACK;
}

/* A message or the data of a read is cut into packets of the path MTU. */
static uint32_t packet_of(const struct shca_qp *qp, const struct shca_op *op)
{
    uint32_t mtu = 128u << qp->attr.path_mtu;

    return reliable(qp) && op->length > mtu ? mtu : op->length;
}

static int transmit(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    struct shca_fault_state *f = &qp->fault;
    struct shca_fault_subject subj = subject(qp, op->opcode);
    int wait;

    subj.packet = packet_of(qp, op);
    if (f->verdict.status != IBV_WC_SUCCESS) {
        fault_run_fail(qp, f->verdict.status);
        *status = f->verdict.status;
        return SHCA_DONE;
    }
    if (f->stage == ACK_LOST)
        return send_again(qp, &subj, status);
    if (f->stage == SENDING && transmission_lost(qp, &subj))
        return lose(qp, status);
    f->stage = SENT;
    if (f->rnr_until && needs_receive(op->opcode) && tk_now() < f->rnr_until)
        return reliable(qp) ? SHCA_WAIT_RNR : SHCA_DONE;
    wait = execute(qp, op, status);
    if (wait == SHCA_DONE && *status == IBV_WC_SUCCESS &&
        (f->ack_lost || f->verdict.unplug == SHCA_LOST_ACK))
        return keep_ack_lost(qp, status);
    return wait;
}

/* Everything is done except the completion: true when that has to wait. */
static bool keep_late(struct shca_qp *qp, enum ibv_wc_status status)
{
    struct shca_fault_state *f = &qp->fault;
    const struct shca_verdict *v = &f->verdict;

    f->stage = EXECUTED;
    f->status = status;
    f->polls = v->late_polls > 0;
    f->polls_until = atomic_load(&shca_fault_polls) + (uint32_t)v->late_polls;
    if (f->polls)
        put_off(qp, tk_now() + (v->late > polls_max_ns ? v->late : polls_max_ns));
    else if (v->late)
        put_off(qp, tk_now() + v->late);
    return f->polls || v->late;
}

static bool still_waiting(struct shca_qp *qp)
{
    struct shca_fault_state *f = &qp->fault;

    if (f->until == 0 || shca_fault_due(f) || tk_now() >= f->until)
        return false;
    put_off(qp, f->until);
    return true;
}

static void fault_run_begin(struct shca_qp *qp, const struct shca_op *op)
{
    struct shca_fault_state *f = &qp->fault;
    struct shca_fault_subject subj = subject(qp, op->opcode);

    memset(f, 0, sizeof *f);
    f->stage = SENDING;
    shca_fault_judge(&subj, SHCA_FAULTS_IN_MEMORY, &f->verdict);
    if (f->verdict.delay)
        f->until = tk_now() + f->verdict.delay;
}

static void fault_run_finish(struct shca_qp *qp, const struct shca_op *op)
{
    struct shca_fault_state *f = &qp->fault;

    f->stage = FRESH;
    f->polls = false;
    if (f->verdict.overrun && (op->flags & IBV_SEND_SIGNALED))
        shca_cq_overrun(NULL, qp->scq->sh);
}

int shca_fault_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    struct shca_fault_state *f = &qp->fault;
    int wait;

    *status = IBV_WC_SUCCESS;
    if (!shca_faults())
        return shca_rate_execute(qp, op, status);
    if (f->stage == FRESH)
        fault_run_begin(qp, op);
    if (still_waiting(qp))
        return SHCA_WAIT_FAULT;
    if (f->until)
        qp->rate.end = tk_now(); /* the wire was not used meanwhile */
    f->until = 0;
    if (f->stage != EXECUTED) {
        wait = transmit(qp, op, status);
        if (wait != SHCA_DONE)
            return wait;
        if (keep_late(qp, *status))
            return SHCA_WAIT_FAULT;
    }
    *status = f->status;
    fault_run_finish(qp, op);
    return SHCA_DONE;
}
