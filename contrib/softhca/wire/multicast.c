/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams to multicast groups. A queue pair that is in a group receives its own messages too, as
 * on hardware that was not configured to block them. Owns nothing. */
#include "config.h"

#include "wire/request.h"

static void send_to(struct shca_peer *p, struct shca_qp *qp, const struct shca_op *op,
                    const struct shca_source *packet, uint32_t length)
{
    struct shca_mcast_sh *e = shca_mcast_table(p->seg);
    uint32_t high = atomic_load(&p->seg->mcast_high);
    uint32_t mlid = shca_is_ethernet(shca_hca_of(qp->qp.context)) ? 0 : op->dlid;
    enum ibv_wc_status ignored;

    for (uint32_t i = 0; i < high && i < SHCA_MCASTS; i++, e++) {
        uint32_t qpn = atomic_load(&e->qpn);
        struct shca_qp_sh *t = &shca_qp_table(p->seg)[qpn & (SHCA_QPS - 1)];

        if (qpn == 0 || !shca_multicast_same(e, &op->dgid, mlid))
            continue;
        shca_rx_lock(p->seg, t, shca.pid);
        if (atomic_load(&e->qpn) == qpn && shca_multicast_same(e, &op->dgid, mlid) &&
            t->qpn == qpn && shca_accepts_ud(qp, op, t) && !shca_path_cut(t->port, t->port))
            shca_deliver(p, qp, op, t, packet, length, &ignored);
        shca_rx_unlock(t);
    }
}

void shca_multicast(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *packet,
                    uint32_t length)
{
    uint16_t slots[SHCA_MEMBERS];
    uint32_t n;

    if (!op->grh || !shca_gid_multicast(&op->dgid))
        return;
    n = shca_multicast_listeners(slots);
    for (uint32_t i = 0; i < n; i++) {
        struct shca_peer *p = shca_peer_get(slots[i]);

        if (!p) {
            shca_multicast_drop(slots[i]);
            continue;
        }
        if (!atomic_load(&p->dead))
            send_to(p, qp, op, packet, length);
        shca_peer_put(p);
    }
}
