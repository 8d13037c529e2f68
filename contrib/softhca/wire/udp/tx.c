/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: packets that an end point has go out in batches, each with its ICRC. Owns the buffers of
 * a socket; its tx lock protects them. */
#include "config.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "packet/bytes.h"
#include "packet/icrc.h"
#include "wire/udp/udp.h"

/* Unreliable transports have no window: this many packets, and then others have their turn. */
enum { turn = 32 };

struct shca_udp_tx {
    struct shca_lock lock;
    struct mmsghdr message[SHCA_UDP_BATCH];
    struct iovec iov[SHCA_UDP_BATCH];
    struct sockaddr_in to[SHCA_UDP_BATCH];
    uint8_t packet[SHCA_UDP_BATCH][ROCE_PACKET_MAX];
};

bool shca_udp_tx_open(struct shca_udp_socket *s)
{
    struct shca_udp_tx *tx = calloc(1, sizeof *tx);

    for (unsigned i = 0; tx && i < SHCA_UDP_BATCH; i++) {
        tx->iov[i].iov_base = tx->packet[i];
        tx->to[i].sin_family = AF_INET;
        tx->message[i].msg_hdr = (struct msghdr){.msg_name = &tx->to[i],
                                                 .msg_namelen = sizeof tx->to[i],
                                                 .msg_iov = &tx->iov[i],
                                                 .msg_iovlen = 1};
    }
    s->tx = tx;
    return tx != NULL;
}

/* Where a packet goes; false: to a group. */
static bool destination(const struct shca_qp *qp, const struct roce_request *r,
                        struct shca_inet *to)
{
    const struct shca_wqe *w = r ? r->owner : NULL;

    *to = qp->udp->peer;
    if (qp->qp.qp_type == IBV_QPT_UD && (!w || !shca_inet_of(&w->op.dgid, to)))
        return false;
    if (to->port == 0)
        to->port = SHCA_INET_PLAIN;
    return true;
}

static void seal(const struct shca_inet *own, const struct shca_inet *to, uint8_t *packet, size_t n)
{
    struct roce_path path = {.version = 4, .source_port = own->port, .destination_port = to->port};
    uint32_t from = htonl(own->ipv4), dest = htonl(to->ipv4);

    memcpy(path.source, &from, sizeof from);
    memcpy(path.destination, &dest, sizeof dest);
    roce_put_icrc(packet + n, roce_icrc(&path, packet, n));
}

/* Is this packet lost on its way: by a rule, or because the port is down? */
static bool lost(struct shca_qp *qp, const struct roce_request *r)
{
    struct shca_fault_subject subject = {.dev = shca_ctx(qp->qp.context)->hca,
                                         .port = qp->attr.port_num,
                                         .qpn = qp->qp.qp_num,
                                         .op = SHCA_OP_ANY,
                                         .call = SHCA_CALL_ANY};
    enum shca_lost what;

    if (shca_path_cut(qp->sh->port, qp->sh->port))
        return true;
    if (!shca_faults())
        return false;
    if (r)
        subject.op = r->kind == ROCE_DO_SEND    ? SHCA_OP_SEND
                     : r->kind == ROCE_DO_WRITE ? SHCA_OP_WRITE
                     : r->kind == ROCE_DO_READ  ? SHCA_OP_READ
                                                : SHCA_OP_ATOMIC;
    what = shca_fault_lost(&subject);
    return r ? what == SHCA_LOST_REQUEST : what != SHCA_LOST_NOTHING;
}

/* A packet that the kernel does not take is a lost one, as any that the network drops. */
static void flush(struct shca_udp_socket *s, unsigned n)
{
    unsigned at = 0;

    while (at < n) {
        int done = sendmmsg(s->fd, s->tx->message + at, n - at, 0);

        if (done > 0) {
            at += (unsigned)done;
            atomic_fetch_add_explicit(&shca_udp.sent, (uint64_t)done, memory_order_relaxed);
        } else if (done < 0 && errno == EINTR) {
            continue;
        } else {
            at++;
            atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
        }
    }
}

/* Fetches one packet into the batch: -1: there is none, 0: it does not go out, 1: it does. */
static int load(struct shca_qp *qp, struct shca_udp_socket *s, unsigned i, uint64_t now)
{
    const struct roce_request *r;
    struct shca_inet to;
    size_t n = roce_output(qp->udp->e, now, s->tx->packet[i], &r);

    if (n == 0)
        return -1;
    if (!destination(qp, r, &to)) {
        if (r)
            shca_udp_group(qp, &((struct shca_wqe *)r->owner)->op);
        return 0;
    }
    if (lost(qp, r)) {
        atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
        return 0;
    }
    seal(&s->at, &to, s->tx->packet[i], n);
    s->tx->iov[i].iov_len = n + ROCE_ICRC_BYTES;
    s->tx->to[i].sin_addr.s_addr = htonl(to.ipv4);
    s->tx->to[i].sin_port = htons(to.port);
    return 1;
}

bool shca_udp_send(struct shca_qp *qp, uint64_t now)
{
    struct shca_udp_socket *s = &shca_udp_socket[qp->sh->port];
    bool reliable = qp->qp.qp_type == IBV_QPT_RC;
    unsigned n = 0, total = 0;
    int got = 0;

    if (s->fd < 0)
        return false;
    shca_lock(&s->tx->lock);
    while ((reliable || total < turn) && (got = load(qp, s, n, now)) >= 0) {
        n += (unsigned)got;
        total++;
        if (n == SHCA_UDP_BATCH) {
            flush(s, n);
            n = 0;
        }
    }
    flush(s, n);
    shca_unlock(&s->tx->lock);
    return got >= 0;
}
