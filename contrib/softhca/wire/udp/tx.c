/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: packets that an end point has go out in batches, each with its ICRC. Owns the buffers of
 * a port; their lock protects them. */
#include "config.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "packet/bytes.h"
#include "wire/udp/udp.h"

/* Unreliable transports have no window: this many packets, and then others have their turn. */
enum { turn = 32 };

struct shca_udp_tx {
    struct shca_lock lock;
    struct mmsghdr message[SHCA_UDP_BATCH];
    struct iovec iov[SHCA_UDP_BATCH];
    union shca_udp_name to[SHCA_UDP_BATCH];
    const struct shca_udp_socket *by[SHCA_UDP_BATCH];
    uint8_t packet[SHCA_UDP_BATCH][ROCE_PACKET_MAX];
};

struct shca_udp_tx *shca_udp_tx_open(void)
{
    struct shca_udp_tx *tx = calloc(1, sizeof *tx);

    for (unsigned i = 0; tx && i < SHCA_UDP_BATCH; i++) {
        tx->iov[i].iov_base = tx->packet[i];
        tx->message[i].msg_hdr =
            (struct msghdr){.msg_name = &tx->to[i], .msg_iov = &tx->iov[i], .msg_iovlen = 1};
    }
    return tx;
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

/* How many packets from one on leave by the same socket. */
static unsigned run_of(const struct shca_udp_tx *tx, unsigned at, unsigned n)
{
    unsigned end = at + 1;

    while (end < n && tx->by[end] == tx->by[at])
        end++;
    return end - at;
}

/* A packet that the kernel does not take is a lost one, as any that the network drops. But its
 * first refusal may be about a packet before it. */
static void flush(struct shca_udp_tx *tx, unsigned n)
{
    bool again = false;
    unsigned at = 0;

    while (at < n) {
        int done = sendmmsg(tx->by[at]->fd, tx->message + at, run_of(tx, at, n), 0);
        int error = errno;

        if (done > 0) {
            at += (unsigned)done;
            again = false;
            atomic_fetch_add_explicit(&shca_udp.sent, (uint64_t)done, memory_order_relaxed);
        } else if (done < 0 && error == EINTR) {
            continue;
        } else if (done < 0 && shca_udp_errors(tx->by[at]) && !again) {
            again = true;
        } else {
            struct shca_inet to;

            shca_udp_named(&tx->to[at], &to);
            shca_udp_refused(&to, error);
            at++;
            again = false;
            atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
        }
    }
}

/* While the wire of a port with a limit is busy only answers go. */
static size_t make(struct shca_qp *qp, uint64_t now, uint8_t *out, const struct roce_request **r)
{
    struct shca_udp *u = qp->udp;

    u->moved = u->payload = 0;
    u->waited = shca_detours() && shca_udp_wire_busy(qp, now);
    if (!u->waited)
        return roce_output(u->e, now, out, r);
    *r = NULL;
    return roce_answer_output(u->e, now, out);
}

/* Does it leave this port, and now? */
static bool goes(struct shca_qp *qp, const struct roce_request *r, const struct shca_udp_to *to,
                 const uint8_t *packet, size_t n, uint64_t now)
{
    bool faults = r && shca_faults(), sent;

    if (faults)
        shca_udp_before(qp, r);
    if (to->by->fd < 0 || shca_path_cut(qp->sh->port, qp->sh->port)) {
        atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
        return false;
    }
    sent = !shca_detours() || shca_udp_goes(qp, r, to, packet, n, now);
    if (faults)
        qp->udp->dies |= shca_udp_after(qp, r);
    return sent;
}

/* Fetches one packet into the batch: -1: there is none, 0: it does not go out, 1: it does. */
static int load(struct shca_qp *qp, const struct shca_udp_port *p, unsigned i, uint64_t now)
{
    struct shca_udp_tx *tx = p->tx;
    uint8_t *packet = tx->packet[i];
    const struct shca_udp_socket *s;
    const struct roce_request *r;
    struct roce_path path;
    struct shca_inet to;
    socklen_t length;
    size_t n = make(qp, now, packet, &r);

    if (n == 0)
        return -1;
    if (!destination(qp, r, &to)) {
        if (r)
            shca_udp_group(qp, &((struct shca_wqe *)r->owner)->op);
        return 0;
    }
    s = &p->socket[shca_inet_kind(&to)];
    path = shca_udp_path(&s->at, &to);
    roce_put_icrc(packet + n, roce_icrc(&path, packet, n));
    n += ROCE_ICRC_BYTES;
    length = shca_udp_name(&to, s->scope, &tx->to[i]);
    tx->iov[i].iov_len = n;
    tx->by[i] = s;
    tx->message[i].msg_hdr.msg_namelen = length;
    return goes(qp, r, &(struct shca_udp_to){s, &tx->to[i], length}, packet, n, now);
}

bool shca_udp_send(struct shca_qp *qp, uint64_t now)
{
    struct shca_udp_port *p = &shca_udp_port[qp->sh->port];
    bool reliable = qp->qp.qp_type == IBV_QPT_RC;
    unsigned n = 0, total = 0;
    int got = 0;

    if (!p->tx)
        return false;
    shca_lock(&p->tx->lock);
    while ((reliable || total < turn) && (got = load(qp, p, n, now)) >= 0) {
        n += (unsigned)got;
        total++;
        /* What is held back must not overtake what was not. */
        if (n == SHCA_UDP_BATCH || got == 0 || qp->udp->dies) {
            flush(p->tx, n);
            n = 0;
        }
        if (qp->udp->dies)
            shca_fault_die();
    }
    flush(p->tx, n);
    shca_unlock(&p->tx->lock);
    return got >= 0;
}
