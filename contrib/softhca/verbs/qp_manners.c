/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the device's profile makes of a queue pair: the operations that it offers, and how they
 * differ from softhca's own. Owns the data that completions of reads carry until they are polled.
 */
#include "config.h"

#include <stdlib.h>

#include "verbs/verbs.h"

/* The operations of each transport (specification table 32). */
#define OP(name)  (1u << IBV_WR_##name)
#define SENDS     (OP(SEND) | OP(SEND_WITH_IMM))
#define WRITES    (OP(RDMA_WRITE) | OP(RDMA_WRITE_WITH_IMM))
#define ATOMICS   (OP(ATOMIC_CMP_AND_SWP) | OP(ATOMIC_FETCH_AND_ADD))
#define IMMEDIATE (OP(SEND_WITH_IMM) | OP(RDMA_WRITE_WITH_IMM))

/* iWARP has no immediate data (RFC 5040 has no operation for it). */
static uint32_t missing(const struct shca_profile *p)
{
    return (p->atomic_cap == IBV_ATOMIC_NONE ? ATOMICS : 0) |
           (p->link == SHCA_LINK_IWARP ? IMMEDIATE : 0);
}

uint32_t shca_offered(const struct shca_profile *p, enum ibv_qp_type type)
{
    uint32_t all = type == IBV_QPT_UD         ? SENDS
                   : type == IBV_QPT_UC       ? SENDS | WRITES
                   : type == IBV_QPT_XRC_RECV ? 0
                                              : SENDS | WRITES | OP(RDMA_READ) | ATOMICS;

    return all & ~missing(p);
}

uint32_t shca_qp_manners(const struct shca_profile *p)
{
    return (p->weak_atomics ? SHCA_WEAK_ATOMICS : 0) | (p->no_last_wqe ? SHCA_NO_LAST_WQE : 0);
}

void shca_qp_behave(struct shca_qp *qp, const struct shca_profile *p)
{
    bool iwarp = p->link == SHCA_LINK_IWARP;

    qp->offered = shca_offered(p, qp->qp.qp_type);
    qp->read_sge = p->max_sge_rd;
    /* iWARP treats the response of a read as a write by the peer (RFC 5040, 5.2). */
    qp->sink_access = IBV_ACCESS_LOCAL_WRITE | (iwarp ? IBV_ACCESS_REMOTE_WRITE : 0);
    qp->special = iwarp;
}

/* One for each request, because requests of different queue pairs complete in any order. */
int shca_qp_hold_open(struct shca_qp *qp)
{
    if (shca_profile_of(qp->qp.context)->scatter == 0 || !qp->scq || !(qp->offered & OP(RDMA_READ)))
        return 0;
    qp->holds = calloc(qp->wqe_mask + 1, sizeof *qp->holds);
    if (!qp->holds)
        return ENOMEM;
    shca_cq_hold(qp->scq);
    return 0;
}

void shca_qp_hear_first(struct shca_qp *qp)
{
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    qp->sh->manners |= SHCA_HEARS_FIRST;
    shca_rx_unlock(qp->sh);
}

bool shca_qp_speaks_early(struct shca_qp *qp)
{
    bool early;

    if (qp->sink_access == IBV_ACCESS_LOCAL_WRITE)
        return false;
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    early = qp->sh->manners & SHCA_HEARS_FIRST;
    shca_rx_unlock(qp->sh);
    return early;
}
