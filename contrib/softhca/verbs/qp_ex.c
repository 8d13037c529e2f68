/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ibv_create_qp_ex: checks the extended attributes, makes an ordinary queue pair, and gives it the
 * builders of ibv_wr_* (wr.c) when they were asked for. Owns the batch of such a queue pair, which
 * lives as long as the handle. */
#include "config.h"

#include <stdlib.h>

#include "verbs/verbs.h"

#define BIT(opcode) (UINT32_C(1) << (opcode))

static const struct {
    uint32_t wanted; /* enum ibv_qp_create_send_ops_flags */
    uint32_t opcode;
} ops[] = {
    {IBV_QP_EX_WITH_RDMA_WRITE, IBV_WR_RDMA_WRITE},
    {IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM},
    {IBV_QP_EX_WITH_SEND, IBV_WR_SEND},
    {IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM},
    {IBV_QP_EX_WITH_RDMA_READ, IBV_WR_RDMA_READ},
    {IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP},
    {IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD},
};

/* The requested opcodes; false: one of them is not supported. */
static bool translate_ops(const struct shca_profile *p, const struct ibv_qp_init_attr_ex *a,
                          uint32_t *opcodes)
{
    uint64_t left = a->send_ops_flags;

    *opcodes = 0;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (left & ops[i].wanted) {
            left &= ~(uint64_t)ops[i].wanted;
            *opcodes |= BIT(ops[i].opcode);
        }
    return left == 0 && (*opcodes & ~shca_offered(p, a->qp_type)) == 0;
}

static int qp_ex_check(struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *a,
                       uint32_t *opcodes)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                           IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    bool target = a->qp_type == IBV_QPT_XRC_RECV;

    *opcodes = 0;
    if (a->comp_mask & ~known)
        return EOPNOTSUPP;
    /* An XRC target belongs to a domain, all others to a PD. */
    if (!(a->comp_mask & IBV_QP_INIT_ATTR_XRCD) != !target ||
        (target && (!a->xrcd || a->xrcd->context != ctx)))
        return EINVAL;
    if (!target && (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd || a->pd->context != ctx))
        return EINVAL;
    if ((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && a->create_flags != 0)
        return EOPNOTSUPP;
    if ((a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
        !translate_ops(shca_profile_of(ctx), a, opcodes))
        return EOPNOTSUPP;
    return 0;
}

struct ibv_qp *shca_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *init)
{
    struct shca_batch *batch = NULL;
    struct ibv_qp *ibqp = NULL;
    uint32_t opcodes;
    int e = qp_ex_check(ctx, init, &opcodes);

    if (e == 0 && (init->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) {
        batch = calloc(1, sizeof *batch);
        e = batch ? 0 : ENOMEM;
    }
    if (e != 0) {
        errno = e;
        return NULL;
    }
    /* The structure begins with the members of the plain one, by contract of the header. */
    ibqp = init->qp_type == IBV_QPT_XRC_RECV
               ? shca_create_qp(ctx, NULL, init->xrcd, (struct ibv_qp_init_attr *)(void *)init)
               : ibv_create_qp(init->pd, (struct ibv_qp_init_attr *)(void *)init);
    if (!ibqp) {
        free(batch);
    } else if (batch) {
        struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);

        batch->ops = opcodes;
        qp->batch = batch;
        qp->special = true;
        shca_wr_fill(&qp->ex);
    }
    return ibqp;
}

SHCA_PUBLIC struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *ibqp)
{
    typedef struct ibv_qp_ex *fn(struct ibv_qp *);
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);

    if (!shca_owns(ibqp->context))
        SHCA_PASS(fn, "ibv_qp_to_qp_ex", NULL, ibqp);
    return qp->batch ? &qp->ex : NULL;
}
