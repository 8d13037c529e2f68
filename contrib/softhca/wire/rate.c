/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The wires of ports with a limit. Each port of this process has a clock for what it sends and one
 * for what it receives (reads, atomics): the time from which its wire is free. A request reserves
 * its time there and waits in its queue like any stalled one, so nothing blocks inside a post, and
 * the queue pairs of a port share its bandwidth. Owns the clocks, which are atomic.
 *
 * The clocks model the wire and do not depend on when they are read: a queued request starts when
 * the wire is free, even if no thread polls at that moment, so that slow polling costs no
 * bandwidth. */
#include "config.h"

#include "wire/wire.h"

/* The queue does not wait for a transfer that ends this soon; its time is charged to the wire
 * nevertheless. A single small message costs no more than on a port without a limit, and many of
 * them are limited. */
enum { slack_ns = 1000 };
/* The copy begins before the last byte has passed, since it takes time as well: assumed at this
 * rate. */
enum { copy_bytes_per_ns = 8 };

enum stage { FRESH, SENDING, LANDED };
enum direction { OUT, IN };

static _Atomic uint64_t free_at[SHCA_MAX_HCA][SHCA_MAX_PRT + 1][2];

static bool answered(const struct shca_op *op)
{
    return op->opcode >= IBV_WR_RDMA_READ;
}

/* Operations that the other end's program is not notified of. */
static bool one_sided(const struct shca_op *op)
{
    return op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_READ;
}

/* From when the queue could have used the wire for the request at its head. */
static uint64_t ready_at(struct shca_qp *qp, const struct shca_op *op)
{
    const struct shca_wqe *w = shca_wqe_at(qp, qp->sq_exec);

    if (op != &w->op) /* just being posted */
        return tk_now();
    return w->posted > qp->rate.end ? w->posted : qp->rate.end;
}

static uint64_t reserve(_Atomic uint64_t *clock, uint64_t ready, uint64_t ns)
{
    uint64_t from = atomic_load(clock), end;

    do
        end = (from > ready ? from : ready) + ns;
    while (!atomic_compare_exchange_weak(clock, &from, end));
    return end;
}

static bool wait_for(struct shca_qp *qp, uint64_t moment)
{
    if (tk_now() + slack_ns >= moment)
        return false;
    qp->next_try = moment;
    qp->waiting = SHCA_WAIT_WIRE;
    return true;
}

static uint64_t execute_at(const struct shca_qp *qp, const struct shca_op *op)
{
    return qp->rate.due - (one_sided(op) ? op->length / copy_bytes_per_ns : 0);
}

int shca_rate_execute(struct shca_qp *qp, const struct shca_op *op, enum ibv_wc_status *status)
{
    struct shca_rate_state *r = &qp->rate;
    int hca = shca_ctx(qp->qp.context)->hca, port = qp->attr.port_num;
    uint32_t rate = shca_config.port[hca][port].rate;
    int wait;

    if (rate == 0)
        return shca_execute(qp, op, status);
    if (r->stage == FRESH) {
        r->due = reserve(&free_at[hca][port][answered(op) ? IN : OUT], ready_at(qp, op),
                         (uint64_t)op->length * 1000 / rate);
        r->stage = SENDING;
    }
    if (r->stage == SENDING) {
        if (wait_for(qp, execute_at(qp, op)))
            return SHCA_WAIT_WIRE;
        wait = shca_execute(qp, op, status);
        if (wait != SHCA_DONE)
            return wait;
        r->stage = LANDED;
        r->status = *status;
    }
    if (r->status == IBV_WC_SUCCESS && wait_for(qp, r->due))
        return SHCA_WAIT_WIRE;
    *status = r->status;
    r->stage = FRESH;
    if (r->due > r->end)
        r->end = r->due;
    return SHCA_DONE;
}
