/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Verbs that softhca does not offer. They must be defined all the same: the real library would
 * treat our handles as its own. Each returns EOPNOTSUPP for ours and passes others on; verbs that
 * the public header calls through a table need nothing here, their entry is empty. Owns nothing. */
#include "config.h"

#include "verbs/verbs.h"

SHCA_PUBLIC int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    typedef int fn(struct ibv_qp *, struct ibv_ece *);

    if (!shca_owns(qp->context))
        SHCA_PASS(fn, "ibv_set_ece", EOPNOTSUPP, qp, ece);
    return EOPNOTSUPP;
}

SHCA_PUBLIC int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    typedef int fn(struct ibv_qp *, struct ibv_ece *);

    if (!shca_owns(qp->context))
        SHCA_PASS(fn, "ibv_query_ece", EOPNOTSUPP, qp, ece);
    return EOPNOTSUPP;
}

/* 0 is correct: only the end of a transfer is ordered after the rest. */
SHCA_PUBLIC int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    typedef int fn(struct ibv_qp *, enum ibv_wr_opcode, uint32_t);

    if (!shca_owns(qp->context))
        SHCA_PASS(fn, "ibv_query_qp_data_in_order", 0, qp, op, flags);
    return 0;
}

SHCA_PUBLIC int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr,
                                            uint8_t mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    typedef int fn(struct ibv_context *, struct ibv_ah_attr *, uint8_t *, uint16_t *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_resolve_eth_l2_from_gid", -1, ctx, attr, mac, vid);
    errno = EOPNOTSUPP;
    return -1;
}

SHCA_PUBLIC struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
    typedef struct ibv_pd *fn(struct ibv_context *, uint32_t);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_import_pd", NULL, ctx, handle);
    errno = EOPNOTSUPP;
    return NULL;
}

SHCA_PUBLIC struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
    typedef struct ibv_mr *fn(struct ibv_pd *, uint32_t);

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_import_mr", NULL, pd, handle);
    errno = EOPNOTSUPP;
    return NULL;
}

SHCA_PUBLIC struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
    typedef struct ibv_dm *fn(struct ibv_context *, uint32_t);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_import_dm", NULL, ctx, handle);
    errno = EOPNOTSUPP;
    return NULL;
}

SHCA_PUBLIC void ibv_unimport_pd(struct ibv_pd *pd)
{
    typedef void fn(struct ibv_pd *);
    fn *real;

    if (shca_owns(pd->context)) /* none of ours was imported */
        return;
    real = (fn *)shca_real("ibv_unimport_pd");
    if (real)
        real(pd);
}

SHCA_PUBLIC void ibv_unimport_mr(struct ibv_mr *mr)
{
    typedef void fn(struct ibv_mr *);
    fn *real;

    if (shca_owns(mr->context)) /* none of ours was imported */
        return;
    real = (fn *)shca_real("ibv_unimport_mr");
    if (real)
        real(mr);
}

SHCA_PUBLIC void ibv_unimport_dm(struct ibv_dm *dm)
{
    typedef void fn(struct ibv_dm *);
    fn *real;

    if (shca_owns(dm->context)) /* none of ours was imported */
        return;
    real = (fn *)shca_real("ibv_unimport_dm");
    if (real)
        real(dm);
}
