/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory: checking a remote key against the target's regions, and moving the bytes of RDMA
 * writes and reads. Owns nothing; the responder lock of the target is held throughout. */
#include "config.h"

#include "request.h"

/* The bytes could not be moved. A kernel that forbids it is no fault of the key: then the responder
 * fails, as with a broken memory controller. */
static int failed(int e, struct shca_peer *p, struct shca_qp_sh *t, enum ibv_wc_status *status)
{
    bool refused = shca_copy_refused(e);

    if (e == ESRCH)
        return SHCA_WAIT_ACK;
    shca_break_target(p, t, refused ? IBV_EVENT_QP_FATAL : IBV_EVENT_QP_ACCESS_ERR);
    *status = refused ? IBV_WC_REM_OP_ERR : IBV_WC_REM_ACCESS_ERR;
    return SHCA_DONE;
}

static bool resolve(struct shca_peer *p, struct shca_qp_sh *t, const struct shca_op *op,
                    uint32_t access, struct shca_piece *piece)
{
    struct shca_mr_sh *m;
    uint64_t va;

    if (!(t->access & access))
        return false;
    m = shca_mr_check(p->seg, op->rkey, op->remote_addr, op->length, access, t->pd, &va);
    if (m)
        shca_piece_of(p, m, op->rkey, va, op->length, piece);
    return m != NULL;
}

int shca_rdma_write(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                    const struct shca_source *src, enum ibv_wc_status *status)
{
    static const struct shca_source nothing;
    struct shca_peer *p = qp->peer;
    struct shca_piece piece;
    bool imm = op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

    if (imm && !shca_receive_posted(qp, t))
        return SHCA_WAIT_RNR;
    if (op->length > 0) {
        int e = EFAULT;

        if (resolve(p, t, op, IBV_ACCESS_REMOTE_WRITE, &piece))
            e = shca_move_out(p, &piece, 1, src->iov, src->n);
        if (e != 0)
            return failed(e, p, t, status);
    }
    SHCA_COUNT(writes);
    return imm ? shca_deliver(p, qp, op, t, &nothing, op->length, status) : SHCA_DONE;
}

int shca_rdma_read(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                   const struct shca_source *dst, enum ibv_wc_status *status)
{
    struct shca_peer *p = qp->peer;
    struct shca_piece piece;

    if (op->length > 0) {
        int e = EFAULT;

        if (resolve(p, t, op, IBV_ACCESS_REMOTE_READ, &piece))
            e = shca_move_in(p, dst->iov, dst->n, &piece);
        if (e != 0)
            return failed(e, p, t, status);
    }
    SHCA_COUNT(reads);
    return SHCA_DONE;
}
