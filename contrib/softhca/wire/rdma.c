/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Remote memory: checks a request against the target's queue pair and regions, and moves the bytes
 * of RDMA writes and reads. Owns nothing; the responder lock of the target is held throughout. */
#include "config.h"

#include "wire/request.h"

int shca_refuse(struct shca_peer *p, struct shca_qp_sh *t, enum ibv_wc_status nak,
                enum ibv_wc_status *status)
{
    enum ibv_event_type why = nak == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR
                              : nak == IBV_WC_REM_OP_ERR   ? IBV_EVENT_QP_FATAL
                                                           : IBV_EVENT_QP_REQ_ERR;

    *status = nak;
    /* The sender on an unreliable connection does not wait for a response: the responder drops the
     * packet and goes on. */
    if (t->type != IBV_QPT_UC)
        shca_break_target(p, t, why);
    return SHCA_DONE;
}

int shca_failed_copy(struct shca_peer *p, struct shca_qp_sh *t, int e, enum ibv_wc_status *status)
{
    if (e == ESRCH)
        return SHCA_WAIT_ACK;
    return shca_refuse(p, t, shca_copy_refused(e) ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR,
                       status);
}

enum ibv_wc_status shca_resolve(const struct shca_qp *qp, struct shca_qp_sh *t,
                                const struct shca_op *op, uint32_t access, struct shca_mr_sh **m,
                                struct shca_piece *piece)
{
    uint32_t pd = qp->xrc_srq ? qp->xrc_srq->pd : t->pd;
    struct shca_peer *p = shca_memory_of(qp);
    uint64_t va;

    /* A queue pair that does not allow the operation reports an invalid request; only a region that
     * does not allow it is a protection error (specification 9.9.3, table 58). */
    if (!(t->access & access))
        return IBV_WC_REM_INV_REQ_ERR;
    piece->length = 0;
    if (op->length == 0) /* the key is not checked (9.7.4.1.2) */
        return IBV_WC_SUCCESS;
    *m = shca_mr_check(p->seg, op->rkey, op->remote_addr, op->length, access, pd, &va);
    if (!*m)
        return IBV_WC_REM_ACCESS_ERR;
    shca_piece_of(p, *m, op->rkey, va, op->length, piece);
    return IBV_WC_SUCCESS;
}

static int move_write(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                      const struct shca_piece *piece, const struct shca_source *src)
{
    if (shca_faults() && qp->fault.verdict.early && op->opcode == IBV_WR_RDMA_WRITE &&
        shca_early_hold(qp, op, t, src))
        return 0;
    return shca_move_out(shca_memory_of(qp), piece, 1, src->iov, src->n);
}

int shca_rdma_write(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                    const struct shca_source *src, enum ibv_wc_status *status)
{
    static const struct shca_source nothing;
    struct shca_peer *p = qp->peer;
    bool imm = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    enum ibv_wc_status wrong;
    struct shca_piece piece;
    struct shca_mr_sh *m;
    int e;

    if (imm && !shca_receive_posted(p, qp, t))
        return SHCA_WAIT_RNR;
    wrong = shca_resolve(qp, t, op, IBV_ACCESS_REMOTE_WRITE, &m, &piece);
    if (wrong != IBV_WC_SUCCESS)
        return shca_refuse(p, t, wrong, status);
    e = op->length ? move_write(qp, op, t, &piece, src) : 0;
    if (e != 0)
        return shca_failed_copy(p, t, e, status);
    SHCA_COUNT(writes);
    return imm ? shca_deliver(p, qp, op, t, &nothing, op->length, status) : SHCA_DONE;
}

int shca_rdma_read(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                   const struct shca_source *dst, enum ibv_wc_status *status)
{
    struct shca_peer *p = qp->peer;
    enum ibv_wc_status wrong;
    struct shca_piece piece;
    struct shca_mr_sh *m;
    int e;

    if (t->max_dest_rd_atomic == 0) /* never any space for a request */
        return shca_refuse(p, t, IBV_WC_REM_INV_REQ_ERR, status);
    wrong = shca_resolve(qp, t, op, IBV_ACCESS_REMOTE_READ, &m, &piece);
    if (wrong != IBV_WC_SUCCESS)
        return shca_refuse(p, t, wrong, status);
    e = op->length ? shca_move_in(shca_memory_of(qp), dst->iov, dst->n, &piece) : 0;
    if (e != 0)
        return shca_failed_copy(p, t, e, status);
    if (op->length)
        shca_mr_was_read(shca_memory_of(qp)->seg, m);
    SHCA_COUNT(reads);
    return SHCA_DONE;
}
