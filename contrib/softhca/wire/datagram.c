/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams: the global routing header in front of the payload, and which queue pairs accept one.
 * Owns nothing; the responder lock of the target is held while a datagram is delivered. */
#include "config.h"

#include <endian.h>
#include <netinet/in.h>
#include <netinet/ip.h>

#include "wire/request.h"

enum {
    grh_bytes = 40,
    ib_next = 0x1b, /* a BTH follows */
    hop_limit = 64,
    ib_bytes = 24, /* BTH, DETH and ICRC count as payload */
    udp_bytes = 8,
};
static const uint32_t multicast_qpn = 0xffffffu;

static bool is_ipv4(const union ibv_gid *gid)
{
    return gid->global.subnet_prefix == 0 &&
           be64toh(gid->global.interface_id) >> 32 == UINT64_C(0xffff);
}

static uint16_t checksum(const struct iphdr *ip)
{
    const uint16_t *word = (const uint16_t *)(const void *)ip;
    uint32_t sum = 0;

    for (unsigned i = 0; i < sizeof *ip / 2; i++)
        sum += word[i];
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* RoCE v2 over IPv4: the header is in the second half of the 40 bytes (annex A17.4.5.2). */
static void make_ipv4(const struct shca_op *op, const union ibv_gid *from, struct ibv_grh *g)
{
    struct iphdr ip = {.version = 4,
                       .ihl = 5,
                       .tot_len =
                           htobe16((uint16_t)(op->length + sizeof ip + udp_bytes + ib_bytes)),
                       .frag_off = htobe16(IP_DF),
                       .ttl = hop_limit,
                       .protocol = IPPROTO_UDP};

    memcpy(&ip.saddr, from->raw + 12, sizeof ip.saddr);
    memcpy(&ip.daddr, op->dgid.raw + 12, sizeof ip.daddr);
    ip.check = checksum(&ip);
    memcpy((char *)g + sizeof *g - sizeof ip, &ip, sizeof ip);
}

static void make_grh(const struct shca_qp *qp, const struct shca_op *op, struct ibv_grh *g)
{
    bool v2 = shca_gid_v2(qp->sh->port, op->sgid_index);
    union ibv_gid from;

    memset(g, 0, sizeof *g);
    if (!op->grh)
        return;
    shca_gid_of(qp->sh->port, op->sgid_index, &from);
    if (v2 && is_ipv4(&from)) {
        make_ipv4(op, &from, g);
        return;
    }
    g->version_tclass_flow = htobe32(6u << 28);
    g->paylen = htobe16((uint16_t)(op->length + ib_bytes + (v2 ? udp_bytes : 0)));
    g->next_hdr = v2 ? IPPROTO_UDP : ib_next;
    g->hop_limit = hop_limit;
    g->sgid = from;
    g->dgid = op->dgid;
}

/* If this process cannot reach another one, for instance for lack of memory, that is an error of
 * the sender and not a lost packet. */
static enum ibv_wc_status unicast(struct shca_qp *qp, const struct shca_op *op,
                                  const struct shca_source *packet)
{
    struct shca_peer *p = op->dest_port ? shca_peer_get_now(op->dest_qpn >> SHCA_QP_BITS) : NULL;
    enum ibv_wc_status ignored;
    struct shca_qp_sh *t;

    if (!p)
        return op->dest_port && shca_peer_refused() ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_SUCCESS;
    t = &shca_qp_table(p->seg)[op->dest_qpn & (SHCA_QPS - 1)];
    if (!atomic_load(&p->dead)) {
        shca_rx_lock(p->seg, t, shca.pid);
        if (t->qpn == op->dest_qpn && t->port == op->dest_port && shca_accepts_ud(qp, op, t))
            shca_deliver(p, qp, op, t, packet, op->length + grh_bytes, &ignored);
        shca_rx_unlock(t);
    }
    shca_peer_put(p);
    return IBV_WC_SUCCESS;
}

enum ibv_wc_status shca_execute_ud(struct shca_qp *qp, const struct shca_op *op,
                                   const struct shca_source *s)
{
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    struct shca_source packet;
    struct ibv_grh grh;

    make_grh(qp, op, &grh);
    packet.iov[0] = (struct iovec){&grh, sizeof grh};
    memcpy(&packet.iov[1], s->iov, s->n * sizeof s->iov[0]);
    packet.n = s->n + 1;
    if (op->dest_qpn == multicast_qpn)
        shca_multicast(qp, op, &packet, op->length + grh_bytes);
    else
        status = unicast(qp, op, &packet);
    SHCA_COUNT(sends);
    return status;
}
