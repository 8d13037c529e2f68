/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The UDP port that the peer of a connection sends from. Every user of a host may send from all its
 * loopback addresses and from its addresses on a network; but only one process has a port of an
 * address. So the port distinguishes the peer from other users of its host. A softhca sends
 * everything from the port that its GID has, 4791 with a plain one. Adapters and the kernel choose
 * a port for each queue pair and do not announce it: it is learned from the first packets with
 * expected numbers, and does not change afterwards. Owns nothing; sq_lock protects. */
#include "config.h"

#include "wire/udp/udp.h"

/* Addresses that only softhcas have: their own part of 127/8, and this port's address itself, for
 * the kernel's RoCE has the port of all addresses of a host, or of none. */
static bool of_softhca(const struct shca_qp *qp)
{
    const struct shca_inet *peer = &qp->udp->peer, *own;

    own = &shca_udp_port[qp->sh->port].socket[shca_inet_kind(peer)].at;
    return shca_inet_own_loopback(peer) || memcmp(peer->ip, own->ip, sizeof own->ip) == 0;
}

void shca_udp_source_begin(struct shca_qp *qp)
{
    struct shca_udp *u = qp->udp;
    uint16_t port = u->peer.port;

    if (port == 0 && qp->qp.qp_type != IBV_QPT_UD && of_softhca(qp))
        port = SHCA_INET_PLAIN;
    for (int i = 0; i < SHCA_UDP_SOURCES; i++)
        u->source[i] = port;
}

static enum shca_udp_source source_of(uint8_t opcode)
{
    return roce_is_response(opcode) ? SHCA_FROM_RESPONDER : SHCA_FROM_REQUESTER;
}

/* Notifications of congestion have no number, and cards send them from a port of their own. */
bool shca_udp_source_fits(const struct shca_udp *u, uint8_t opcode, uint16_t port)
{
    uint16_t known = u->source[source_of(opcode)];

    if (opcode == ROCE_CNP && u->peer.port == 0 && known != SHCA_INET_PLAIN)
        return true;
    return known == 0 || known == port;
}

void shca_udp_source_learn(struct shca_udp *u, const struct roce_packet *p, uint16_t port)
{
    uint16_t *known = &u->source[source_of(p->opcode)];

    if (*known == 0 && roce_expects(u->e, p))
        *known = port;
}
