/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams: the global routing header in front of the payload, and who accepts one. Owns nothing;
 * the responder lock of the target is held while a datagram is delivered. */
#include "config.h"

#include <endian.h>

#include "request.h"

#define GRH_BYTES   40
#define IB_GRH_NEXT 0x1b

static void make_grh(const struct shca_qp *qp, const struct shca_op *op, struct ibv_grh *g)
{
    memset(g, 0, sizeof *g);
    if (!op->grh)
        return;
    g->version_tclass_flow = htobe32(6u << 28);
    g->paylen = htobe16((uint16_t)(op->length + 24)); /* BTH, DETH and ICRC count as payload */
    g->next_hdr = IB_GRH_NEXT;
    g->hop_limit = 64;
    shca_gid_of(qp->sh->port, op->sgid_index, &g->sgid);
    g->dgid = op->dgid;
}

static bool accepts_ud(const struct shca_op *op, struct shca_qp_sh *t)
{
    return t->qpn == op->dest_qpn && t->type == IBV_QPT_UD && t->port == op->dest_port &&
           t->qkey == op->qkey && shca_receiving(t);
}

void shca_execute_ud(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *s)
{
    struct shca_peer *p = op->dest_port ? shca_peer_get(op->dest_qpn >> SHCA_QP_BITS) : NULL;
    enum ibv_wc_status ignored;
    struct shca_source with_grh;
    struct shca_qp_sh *t;
    struct ibv_grh grh;

    if (!p)
        return;
    make_grh(qp, op, &grh);
    with_grh.iov[0] = (struct iovec){&grh, sizeof grh};
    memcpy(&with_grh.iov[1], s->iov, s->n * sizeof s->iov[0]);
    with_grh.n = s->n + 1;
    t = &shca_qp_table(p->seg)[op->dest_qpn & (SHCA_QPS - 1)];
    if (!atomic_load(&p->dead)) {
        shca_rx_lock(p->seg, t, shca.pid);
        if (accepts_ud(op, t))
            shca_deliver(p, qp, op, t, &with_grh, op->length + GRH_BYTES, &ignored);
        shca_rx_unlock(t);
    }
    shca_peer_put(p);
    SHCA_COUNT(sends);
}
