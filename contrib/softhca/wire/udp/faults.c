/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rules about whole requests (late, error, kill, cqoverrun, unplug) and about arriving messages
 * (rnr); fate.c applies the rules about packets. Owns the verdicts on the requests in the send
 * queue of a queue pair; sq_lock protects them. */
#include "config.h"

#include <stdlib.h>

#include "wire/udp/udp.h"

/* A late completion that counts empty polls must not block a program that sleeps. */
static const uint64_t polls_max_ns = UINT64_C(10000000);

/* The verdict on one work request, by its place in the send queue. */
struct shca_udp_trouble {
    enum ibv_wc_status fails; /* by an answer of the other end */
    bool kills, overruns;
    enum shca_lost unplugs;
    uint64_t unplugged_ns;
    uint64_t late, late_polls;
    /* executed, and late */
    enum ibv_wc_status status;
    bool polls;
    uint32_t polls_until;
    uint64_t until;
};

static struct shca_udp_trouble *trouble_at(struct shca_qp *qp, uint32_t index)
{
    return qp->udp->trouble ? &qp->udp->trouble[index & qp->wqe_mask] : NULL;
}

/* ---- a request is begun ---- */

/* The other end causes these errors: it gets a request that it must refuse, so that it breaks too.
 * The status of an operation that failed there can't be produced this way. */
static void provoke(struct roce_request *r, enum ibv_wc_status status)
{
    r->flags = 0;
    r->rkey = 0;
    r->kind = status == IBV_WC_REM_ACCESS_ERR ? ROCE_DO_WRITE : ROCE_DO_FETCH_ADD;
    r->length = status == IBV_WC_REM_ACCESS_ERR ? 1 : 8;
    r->va = status == IBV_WC_REM_ACCESS_ERR ? 0 : 1; /* not aligned */
}

static bool refused_there(const struct shca_qp *qp, enum ibv_wc_status status)
{
    return qp->qp.qp_type != IBV_QPT_UC && qp->qp.qp_type != IBV_QPT_UD &&
           (status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR);
}

void shca_udp_fault_request(struct shca_qp *qp, struct shca_wqe *w, struct roce_request *r)
{
    struct shca_fault_subject subject = shca_udp_subject(qp, shca_udp_op(r));
    struct shca_udp_trouble *t;
    struct shca_verdict v;

    if (!qp->udp->trouble)
        qp->udp->trouble = calloc(qp->wqe_mask + 1, sizeof *qp->udp->trouble);
    t = trouble_at(qp, (uint32_t)r->id);
    if (!t)
        return;
    shca_fault_judge(&subject, SHCA_FAULTS_OF_REQUESTS, &v);
    *t = (struct shca_udp_trouble){.kills = v.kill,
                                   .overruns = v.overrun,
                                   .unplugs = v.unplug,
                                   .unplugged_ns = v.unplug_ns,
                                   .late = v.late,
                                   .late_polls = v.late_polls};
    if (v.status == IBV_WC_SUCCESS || w->refused)
        return;
    if (refused_there(qp, v.status)) {
        t->fails = v.status;
        provoke(r, v.status);
    } else {
        w->refused = (uint8_t)v.status;
    }
}

bool shca_udp_provokes(struct shca_qp *qp, const struct roce_request *r)
{
    const struct shca_udp_trouble *t = trouble_at(qp, (uint32_t)r->id);

    return t && t->fails != IBV_WC_SUCCESS;
}

/* ---- its packets ---- */

static void pull(struct shca_qp *qp, struct shca_udp_trouble *t)
{
    t->unplugs = SHCA_LOST_NOTHING; /* once for a request, however often it is sent */
    shca_link_plug(shca_ctx(qp->qp.context)->hca, qp->attr.port_num, false, t->unplugged_ns);
}

void shca_udp_before(struct shca_qp *qp, const struct roce_request *r)
{
    struct shca_udp_trouble *t = trouble_at(qp, (uint32_t)r->id);

    if (t && t->unplugs == SHCA_LOST_REQUEST)
        pull(qp, t);
}

/* Half of the bytes moved, counted in packets: the one in the middle still goes. */
static bool half_done(const struct shca_udp *u, const struct roce_request *r)
{
    return (uint64_t)u->moved * 2 >= r->length;
}

bool shca_udp_after(struct shca_qp *qp, const struct roce_request *r)
{
    struct shca_udp_trouble *t = trouble_at(qp, (uint32_t)r->id);
    bool answered = r->kind >= ROCE_DO_READ;

    if (!t)
        return false;
    if (t->unplugs == SHCA_LOST_ACK && (answered || qp->udp->moved == r->length))
        pull(qp, t);
    return t->kills && (!answered || r->length == 0) && half_done(qp->udp, r);
}

void shca_udp_stored(struct shca_qp *qp, const struct roce_request *r)
{
    const struct shca_udp_trouble *t = trouble_at(qp, (uint32_t)r->id);

    if (t && t->kills && half_done(qp->udp, r))
        shca_fault_die();
}

/* ---- its completion ---- */

static void finish(struct shca_qp *qp, uint32_t index, enum ibv_wc_status status)
{
    const struct shca_op *op = &shca_wqe_at(qp, index)->op;
    const struct shca_udp_trouble *t = trouble_at(qp, index);
    bool overruns = t && t->overruns && (op->flags & IBV_SEND_SIGNALED);

    atomic_store_explicit(&shca_udp.delivered, true, memory_order_relaxed);
    shca_sq_finish(qp, op, index, status);
    if (overruns)
        shca_cq_overrun(NULL, qp->scq->sh);
}

static bool is_late(const struct shca_udp_trouble *t, uint64_t now)
{
    uint32_t polls = atomic_load_explicit(&shca_fault_polls, memory_order_relaxed);

    return now < t->until && !(t->polls && (int32_t)(polls - t->polls_until) >= 0);
}

void shca_udp_late_run(struct shca_qp *qp, uint64_t now)
{
    struct shca_udp *u = qp->udp;

    while (u->late > 0) {
        const struct shca_udp_trouble *t = trouble_at(qp, qp->sq_exec);

        if (is_late(t, now))
            break;
        u->late--;
        finish(qp, qp->sq_exec, t->status);
    }
}

uint64_t shca_udp_late_next(struct shca_qp *qp, uint64_t now)
{
    const struct shca_udp_trouble *t = qp->udp->late ? trouble_at(qp, qp->sq_exec) : NULL;

    /* Each check of the time also checks the number of polls. */
    return !t ? ROCE_NEVER : t->polls ? now + 1 : t->until;
}

void shca_udp_complete(struct shca_qp *qp, uint32_t index, enum ibv_wc_status status)
{
    struct shca_udp_trouble *t = trouble_at(qp, index);
    bool good = status == IBV_WC_SUCCESS, waits = t && (t->late || t->late_polls);

    if (t && t->fails != IBV_WC_SUCCESS && !good && status != IBV_WC_WR_FLUSH_ERR)
        status = t->fails;
    if (!good) /* the queue pair breaks, and what is behind it is flushed */
        shca_udp_late_run(qp, ROCE_NEVER);
    if (!good || (!waits && qp->udp->late == 0)) {
        finish(qp, index, status);
        return;
    }
    t->status = status;
    t->polls = t->late_polls > 0;
    t->polls_until = atomic_load(&shca_fault_polls) + (uint32_t)t->late_polls;
    t->until = tk_now() + (t->polls && t->late < polls_max_ns ? polls_max_ns : t->late);
    qp->udp->late++;
}

/* ---- receives ---- */

void shca_udp_arrives(struct shca_qp *qp, const struct roce_packet *p)
{
    struct roce_opcode o = roce_opcode(p->opcode);

    qp->udp->arrived_psn = p->psn;
    /* A write without immediate data does not notify the receiver, and an acknowledgement carries
     * no data. */
    qp->udp->arrived_silently = (o.kind == ROCE_KIND_WRITE && !(p->headers & ROCE_HAS_IMM)) ||
                                o.kind == ROCE_KIND_ACK || o.kind == ROCE_KIND_CNP;
    if (!qp->udp->arrived_silently)
        shca_udp_early_settle(shca_ctx(qp->qp.context)->hca);
    qp->udp->arrived = o.kind == ROCE_KIND_WRITE ? SHCA_OP_WRITE : SHCA_OP_SEND;
}

bool shca_udp_not_ready(struct shca_qp *qp)
{
    struct shca_udp *u = qp->udp;
    struct shca_fault_subject subject = shca_udp_subject(qp, u->arrived);
    struct shca_verdict v;
    uint64_t now = tk_now();

    if (now < u->rnr_until)
        return true;
    if (u->rnr_until && u->rnr_psn == u->arrived_psn)
        return false; /* sent again: it was refused long enough */
    shca_fault_judge(&subject, SHCA_FAULT_BIT(SHCA_FAULT_RNR), &v);
    if (v.rnr == 0)
        return false;
    u->rnr_until = now + v.rnr;
    u->rnr_psn = u->arrived_psn;
    return true;
}

void shca_udp_fault_reset(struct shca_qp *qp)
{
    free(qp->udp->trouble);
    qp->udp->trouble = NULL;
    qp->udp->late = 0;
    qp->udp->rnr_until = qp->udp->wire_until = qp->udp->behind = 0;
}
