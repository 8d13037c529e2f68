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

/* Fetches one packet into the batch: -1: there is none, 0: it does not go out, 1: it does. */
static int load(struct shca_qp *qp, const struct shca_udp_port *p, unsigned i, uint64_t now)
{
    struct shca_udp_tx *tx = p->tx;
    const struct shca_udp_socket *s;
    const struct roce_request *r;
    struct roce_path path;
    struct shca_inet to;
    size_t n = roce_output(qp->udp->e, now, tx->packet[i], &r);

    if (n == 0)
        return -1;
    if (!destination(qp, r, &to)) {
        if (r)
            shca_udp_group(qp, &((struct shca_wqe *)r->owner)->op);
        return 0;
    }
    s = &p->socket[shca_inet_kind(&to)];
    if (s->fd < 0 || lost(qp, r)) {
        atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
        return 0;
    }
    path = shca_udp_path(&s->at, &to);
    roce_put_icrc(tx->packet[i] + n, roce_icrc(&path, tx->packet[i], n));
    tx->iov[i].iov_len = n + ROCE_ICRC_BYTES;
    tx->by[i] = s;
    tx->message[i].msg_hdr.msg_namelen = shca_udp_name(&to, s->scope, &tx->to[i]);
    return 1;
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
        if (n == SHCA_UDP_BATCH) {
            flush(p->tx, n);
            n = 0;
        }
    }
    flush(p->tx, n);
    shca_unlock(&p->tx->lock);
    return got >= 0;
}
