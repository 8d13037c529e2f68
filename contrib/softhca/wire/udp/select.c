/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which wire a queue pair uses, decided when it learns its address: shared memory for a process of
 * the same fabric on this host, packets for all others. Owns nothing; sq_lock is held. */
#include "config.h"

#include "wire/udp/udp.h"

struct search {
    struct shca_inet to;
    uint32_t port;
};

static bool same(const struct shca_inet *there, const struct shca_inet *to)
{
    uint16_t port = to->port ? to->port : SHCA_INET_PLAIN;

    return there->port == port && there->ipv4 == to->ipv4;
}

static void look(const struct shca_segment *s, void *arg)
{
    struct search *search = arg;
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);

    for (uint32_t i = 1; i <= last && search->port == 0; i++)
        if (same(&s->inet[i], &search->to))
            search->port = i;
}

/* The fabric port with that address, if the process with that queue pair is on this fabric. */
static uint32_t on_this_host(uint32_t qpn, const struct shca_inet *to)
{
    struct search search = {.to = *to};

    shca_peer_peek((qpn & 0xffffff) >> SHCA_QP_BITS, look, &search);
    return search.port;
}

static bool use_packets(struct shca_qp *qp, const struct shca_inet *to)
{
    if (qp->qp.qp_type != IBV_QPT_UD && qp->attr.path_mtu > shca_inet_mtu(qp->sh->port))
        return false;
    if (!shca_udp_equip(qp))
        return false;
    qp->udp->peer = *to;
    qp->dest_port = 0; /* matches no initiator in shared memory */
    return true;
}

bool shca_udp_select(struct shca_qp *qp, uint32_t from, uint32_t to, int mask)
{
    bool ud = qp->qp.qp_type == IBV_QPT_UD;
    bool xrc = qp->qp.qp_type == IBV_QPT_XRC_SEND || qp->qp.qp_type == IBV_QPT_XRC_RECV;
    struct shca_inet inet = {0};

    if (!shca_config.udp || to == IBV_QPS_INIT || (!(mask & IBV_QP_AV) && !ud))
        return true;
    if (ud)
        return from != IBV_QPS_INIT || use_packets(qp, &inet);
    if (!shca_inet_of(&qp->attr.ah_attr.grh.dgid, &inet))
        return false;
    if (qp->far) { /* in SQD: another path to the same peer */
        qp->udp->peer = inet;
        qp->dest_port = 0;
        return true;
    }
    if (xrc || !shca_config.udp_only)
        qp->dest_port = on_this_host(qp->attr.dest_qp_num, &inet);
    return qp->dest_port != 0 ? true : !xrc && use_packets(qp, &inet);
}
