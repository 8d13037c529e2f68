/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Datagrams: the header that a receiver finds in front of the payload, and groups. Owns nothing;
 * sq_lock is held. */
#include "config.h"

#include <endian.h>
#include <netinet/ip.h>

#include "wire/udp/udp.h"

enum {
    hop_limit = 64,
    mapped = 12,      /* bytes in front of an IPv4 address */
    over_ip = 8 + 24, /* UDP; BTH, DETH and ICRC */
};

/* RoCE v2 over IPv4: the header is in the second half of the 40 bytes (annex A17.4.5.2). */
static void plain_grh(const struct shca_qp *qp, uint32_t length, struct ibv_grh *g)
{
    const struct shca_inet *own = &shca.seg->inet[qp->sh->port][SHCA_INET_IPV4];
    struct iphdr ip = {.version = 4,
                       .ihl = 5,
                       .tot_len = htobe16((uint16_t)(length + sizeof ip + over_ip)),
                       .frag_off = htobe16(IP_DF),
                       .ttl = hop_limit,
                       .protocol = IPPROTO_UDP};
    uint32_t sum = 0;
    uint16_t word[sizeof ip / 2];

    memcpy(&ip.saddr, qp->udp->from.ip + mapped, sizeof ip.saddr);
    memcpy(&ip.daddr, own->ip + mapped, sizeof ip.daddr);
    memcpy(word, &ip, sizeof ip);
    for (unsigned i = 0; i < sizeof ip / 2; i++)
        sum += word[i];
    sum = (sum & 0xffff) + (sum >> 16);
    ip.check = (uint16_t) ~(sum + (sum >> 16));
    memcpy((char *)g + sizeof *g - sizeof ip, &ip, sizeof ip);
}

void shca_udp_grh(const struct shca_qp *qp, uint32_t length, struct ibv_grh *g)
{
    const struct shca_inet *from = &qp->udp->from;
    const struct shca_inet *own = &shca.seg->inet[qp->sh->port][shca_inet_kind(from)];
    bool ipv4 = shca_inet_kind(from) == SHCA_INET_IPV4;
    /* An answer to a process with another UDP port needs the form of GID that contains a port. */
    bool with_port = shca_inet_softhca(from->port) && from->port != SHCA_INET_PLAIN;

    memset(g, 0, sizeof *g);
    if (ipv4 && !with_port && own->port == SHCA_INET_PLAIN) {
        plain_grh(qp, length, g);
        return;
    }
    g->version_tclass_flow = htobe32(6u << 28);
    g->paylen = htobe16((uint16_t)(length + over_ip));
    g->next_hdr = IPPROTO_UDP;
    g->hop_limit = hop_limit;
    shca_inet_gid(from, ipv4 || with_port, &g->sgid);
    shca_inet_gid(own, true, &g->dgid);
}

void shca_udp_group(struct shca_qp *qp, const struct shca_op *op)
{
    struct shca_source s = {.n = 0};

    for (uint32_t i = 0; i < op->nsge; i++)
        if (op->sge[i].length)
            s.iov[s.n++] = (struct iovec){(void *)(uintptr_t)op->sge[i].addr, op->sge[i].length};
    (void)shca_execute_ud(qp, op, &s);
}
