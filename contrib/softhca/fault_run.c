/* SPDX-License-Identifier: BSD-3-Clause */
/* A work request under the rules in force. The request at the head of a send queue goes through
 * stages: put off, on the wire (and lost, and sent again), executed but not yet told; between them
 * it waits like any stalled request, so that the order inside a queue pair holds and the engine
 * goes on when the program does not poll. Owns nothing; the state is the QP's, under its sq_lock.
 */
#include "config.h"

#include <signal.h>
#include <unistd.h>

#include "request.h"

/* A late completion that counts empty polls must not keep a program waiting that sleeps. */
#define POLLS_AT_MOST_NS UINT64_C(10000000)
#define NEVER            (UINT64_MAX / 2)

enum stage { FRESH, SENDING, SENT, EXECUTED };

_Atomic uint32_t shca_fault_polls;

void shca_fault_die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

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
    struct shca_fault_subject who = subject(qp, opcode);

    return shca_fault_hits(SHCA_FAULT_SQFULL, &who);
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

/* A lost packet: a reliable sender notices when its ack timer runs out, others never. */
static int lose(struct shca_qp *qp, enum ibv_wc_status *status)
{
    if (!reliable(qp))
        return SHCA_DONE;
    if (qp->fault.lost++ >= qp->attr.retry_cnt) {
        *status = IBV_WC_RETRY_EXC_ERR;
        return SHCA_DONE;
    }
    SHCA_COUNT(retries);
    /* Timeout 0 means that nothing is ever sent again (InfiniBand specification 1.3, 9.7.6.1.3). */
    return put_off(qp,
                   qp->attr.timeout ? shca_now() + (UINT64_C(4096) << qp->attr.timeout) : NEVER);
}

/* Errors that the responder reports have broken its queue pair as well. */
static void fail(struct shca_qp *qp, enum ibv_wc_status status)
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

static int execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    bool kill = qp->fault.verdict.kill;
    int wait;

    if (kill)
        atomic_store(&shca_fault_flags.dying, true);
    wait = shca_execute(qp, op, status);
    if (kill && wait == SHCA_DONE)
        shca_fault_die(); /* nothing to move: between the request and its completion */
    if (kill)
        atomic_store(&shca_fault_flags.dying, false);
    return wait;
}

static int transmit(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    struct shca_fault_state *f = &qp->fault;
    struct shca_fault_subject who = subject(qp, op->opcode);

    if (f->verdict.status != IBV_WC_SUCCESS) {
        fail(qp, f->verdict.status);
        *status = f->verdict.status;
        return SHCA_DONE;
    }
    if (f->stage == SENDING && shca_fault_hits(SHCA_FAULT_DROP, &who))
        return lose(qp, status);
    if (f->stage == SENDING && f->verdict.rnr)
        f->rnr_until = shca_now() + f->verdict.rnr;
    f->stage = SENT;
    if (f->rnr_until && needs_receive(op->opcode) && shca_now() < f->rnr_until)
        return reliable(qp) ? SHCA_WAIT_RNR : SHCA_DONE;
    return execute(qp, op, status);
}

/* Everything has happened except that the program is told: true when that has to wait. */
static bool keep_late(struct shca_qp *qp, enum ibv_wc_status status)
{
    struct shca_fault_state *f = &qp->fault;
    const struct shca_verdict *v = &f->verdict;

    f->stage = EXECUTED;
    f->status = status;
    f->polls = v->late_polls > 0;
    f->polls_until = atomic_load(&shca_fault_polls) + (uint32_t)v->late_polls;
    if (f->polls)
        put_off(qp, shca_now() + (v->late > POLLS_AT_MOST_NS ? v->late : POLLS_AT_MOST_NS));
    else if (v->late)
        put_off(qp, shca_now() + v->late);
    return f->polls || v->late;
}

static bool still_waiting(struct shca_qp *qp)
{
    struct shca_fault_state *f = &qp->fault;

    if (f->until == 0 || shca_fault_due(f) || shca_now() >= f->until)
        return false;
    put_off(qp, f->until);
    return true;
}

static void begin(struct shca_qp *qp, const struct shca_op *op)
{
    struct shca_fault_state *f = &qp->fault;
    struct shca_fault_subject who = subject(qp, op->opcode);

    memset(f, 0, sizeof *f);
    f->stage = SENDING;
    shca_fault_judge(&who, &f->verdict);
    if (f->verdict.delay)
        f->until = shca_now() + f->verdict.delay;
}

static void finish(struct shca_qp *qp, const struct shca_op *op)
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
    if (f->stage == FRESH)
        begin(qp, op);
    if (still_waiting(qp))
        return SHCA_WAIT_FAULT;
    f->until = 0;
    if (f->stage != EXECUTED) {
        wait = transmit(qp, op, status);
        if (wait != SHCA_DONE)
            return wait;
        if (keep_late(qp, *status))
            return SHCA_WAIT_FAULT;
    }
    *status = f->status;
    finish(qp, op);
    return SHCA_DONE;
}
