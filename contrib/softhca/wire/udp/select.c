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

    return there->port == port && memcmp(there->ip, to->ip, sizeof to->ip) == 0;
}

static void look(const struct shca_segment *s, void *arg)
{
    struct search *search = arg;
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);

    for (uint32_t i = 1; i <= last && search->port == 0; i++)
        if (same(&s->inet[i][shca_inet_kind(&search->to)], &search->to))
            search->port = i;
}

/* The fabric port with that address, if the process with that queue pair is on this fabric. */
static uint32_t on_this_host(uint32_t qpn, const struct shca_inet *to)
{
    struct search search = {.to = *to};

    shca_peer_peek((qpn & 0xffffff) >> SHCA_QP_BITS, look, &search);
    return search.port;
}

/* An unreliable datagram may arrive by any of them. */
static void use_sockets(struct shca_qp *qp, const struct shca_inet *to)
{
    struct shca_udp_socket *s = shca_udp_port[qp->sh->port].socket;

    for (int k = 0; k < SHCA_INET_KINDS; k++)
        if (s[k].fd >= 0 && (qp->qp.qp_type == IBV_QPT_UD || k == (int)shca_inet_kind(to)))
            atomic_store_explicit(&s[k].used, true, memory_order_release);
}

/* The peer looks for the GID that the program chose, and answers to it. */
static bool answerable(const struct shca_qp *qp, const struct shca_inet *to)
{
    uint32_t row = qp->attr.ah_attr.grh.sgid_index;
    struct shca_inet own;
    union ibv_gid gid;

    shca_gid_of(qp->sh->port, row, &gid);
    if (gid.global.subnet_prefix == 0 && gid.global.interface_id == 0) {
        shca_log("GID %u of port %u is empty: this host has no such address, or another process "
                 "has its UDP port 4791",
                 row, (unsigned)qp->attr.port_num);
        return false;
    }
    if (shca_inet_of(&gid, &own) && shca_inet_kind(&own) == shca_inet_kind(to))
        return true;
    shca_log(
        "GID %u of port %u and the peer's GID are addresses of different kinds (IPv4, link-local "
        "IPv6, other IPv6): choose a GID of the peer's kind",
        row, (unsigned)qp->attr.port_num);
    return false;
}

static void use_path(struct shca_qp *qp, const struct shca_inet *to)
{
    struct shca_udp *u = qp->udp;

    u->peer = *to;
    shca_udp_source_begin(qp);
    memset(&u->icrc_in, 0, sizeof u->icrc_in);
    memset(&u->icrc_out, 0, sizeof u->icrc_out);
    use_sockets(qp, to);
}

/* Packets for an XRC target come to the process that made it, where its number leads. */
static bool elsewhere(const struct shca_qp *qp)
{
    static _Atomic bool reported;

    if (qp->home && !atomic_exchange(&reported, true))
        shca_log(
            "an XRC target of another process (ibv_open_qp) cannot be connected to a peer that "
            "is reached by packets: the process that created it has to do that");
    return qp->home;
}

static bool use_packets(struct shca_qp *qp, const struct shca_inet *to)
{
    if (elsewhere(qp))
        return false;
    if (qp->qp.qp_type != IBV_QPT_UD && qp->attr.path_mtu > shca_inet_mtu(qp->sh->port))
        return false;
    if (!shca_udp_equip(qp))
        return false;
    use_path(qp, to);
    qp->dest_port = 0; /* matches no initiator in shared memory */
    return true;
}

bool shca_udp_select(struct shca_qp *qp, uint32_t from, uint32_t to, int mask)
{
    bool ud = qp->qp.qp_type == IBV_QPT_UD;
    struct shca_inet inet = {0};

    if (!shca_config.udp || to == IBV_QPS_INIT || (!(mask & IBV_QP_AV) && !ud))
        return true;
    if (ud)
        return from != IBV_QPS_INIT || use_packets(qp, &inet);
    if (!shca_inet_of(&qp->attr.ah_attr.grh.dgid, &inet))
        return false;
    if (!answerable(qp, &inet))
        return false;
    if (qp->far) { /* in SQD: another path to the same peer */
        use_path(qp, &inet);
        qp->dest_port = 0;
        return true;
    }
    qp->dest_port = shca_config.udp_only ? 0 : on_this_host(qp->attr.dest_qp_num, &inet);
    return qp->dest_port != 0 || use_packets(qp, &inet);
}
