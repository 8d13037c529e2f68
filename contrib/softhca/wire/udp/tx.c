/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending: fetches the packets that an end point has and gives each its ICRC. Owns nothing; sq_lock
 * is held. */
#include "config.h"

#include "packet/bytes.h"
#include "wire/udp/udp.h"

/* Unreliable transports have no window: after this many packets other queue pairs are served. */
enum { turn = 32 };

/* Where a packet goes; false: to a group. */
static bool destination(const struct shca_qp *qp, const struct roce_request *r,
                        struct shca_inet *to)
{
    const struct shca_wqe *w = r ? r->owner : NULL;

    *to = qp->udp->peer;
    if (qp->qp.qp_type == IBV_QPT_UD && (!w || !shca_inet_of(&w->op.dgid, to)))
        return false;
    return true;
}

/* While the wire of a port with a limit is busy only answers go. */
static size_t make(struct shca_qp *qp, enum shca_udp_order *order, uint64_t now, uint8_t *out,
                   const struct roce_request **r)
{
    struct shca_udp *u = qp->udp;
    size_t n = 0;

    u->moved = u->payload = 0;
    u->waited = shca_detours() && shca_udp_wire_busy(qp, now);
    if (!u->waited && *order == SHCA_UDP_REQUESTS_FIRST) {
        n = roce_request_output(u->e, now, out, r);
        if (n > 0)
            return n;
        *order = SHCA_UDP_ANSWERS_FIRST;
    }
    if (!u->waited && *order == SHCA_UDP_ANSWERS_FIRST)
        return roce_output(u->e, now, out, r);
    *r = NULL;
    return roce_answer_output(u->e, now, out);
}

/* Packets of one connection have few lengths, and their headers are always the same. */
static uint32_t icrc(struct shca_qp *qp, const struct shca_udp_socket *s,
                     const struct shca_inet *to, const uint8_t *packet, size_t n)
{
    struct shca_udp_icrc *known = &qp->udp->icrc_out;
    struct roce_path path;
    uint32_t state;

    if (qp->qp.qp_type != IBV_QPT_UD && shca_udp_icrc_find(known, n, &state))
        return roce_icrc_rest(state, packet, n);
    path = shca_udp_path(&s->at, to);
    state = roce_icrc_path(&path, n);
    shca_udp_icrc_keep(known, n, state);
    return roce_icrc_rest(state, packet, n);
}

/* Whether it leaves this port, and now. */
static bool goes(struct shca_qp *qp, const struct roce_request *r, const struct shca_udp_socket *s,
                 const struct shca_inet *to, const uint8_t *packet, size_t n, uint64_t now)
{
    bool faults = r && shca_faults(), sent = true;

    if (faults)
        shca_udp_before(qp, r);
    if (s->fd < 0 || shca_path_cut(qp->sh->port, qp->sh->port)) {
        atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
        return false;
    }
    if (shca_detours()) {
        union shca_udp_name name;
        socklen_t length = shca_udp_name(to, s->scope, &name);

        sent = shca_udp_goes(qp, r, &(struct shca_udp_to){s, &name, length}, packet, n, now);
    }
    if (faults)
        qp->udp->dies |= shca_udp_after(qp, r);
    return sent;
}

/* Fetches one packet into the batch. -1: there is no packet, 0: the packet is not sent, 1: it is
 * sent. */
static int load(struct shca_qp *qp, const struct shca_udp_port *p, enum shca_udp_order *order,
                uint64_t now)
{
    uint8_t *packet = shca_udp_tx_room(p->tx);
    const struct shca_udp_socket *s;
    const struct roce_request *r;
    struct shca_inet to;
    bool segments;
    size_t n = make(qp, order, now, packet, &r);

    if (n == 0)
        return -1;
    if (!destination(qp, r, &to)) {
        if (r)
            shca_udp_group(qp, &((struct shca_wqe *)r->owner)->op);
        return 0;
    }
    segments =
        atomic_load_explicit(&shca_udp.segments, memory_order_relaxed) && shca_udp_segments(&to);
    if (to.port == 0)
        to.port = SHCA_INET_PLAIN;
    s = &p->socket[shca_inet_kind(&to)];
    roce_put_icrc(packet + n, icrc(qp, s, &to, packet, n));
    n += ROCE_ICRC_BYTES;
    if (!goes(qp, r, s, &to, packet, n, now))
        return 0;
    shca_udp_tx_add(p->tx, s, &to, n, segments);
    return 1;
}

bool shca_udp_send(struct shca_qp *qp, enum shca_udp_order order, uint64_t now)
{
    struct shca_udp_port *p = &shca_udp_port[qp->sh->port];
    bool reliable = qp->qp.qp_type != IBV_QPT_UC && qp->qp.qp_type != IBV_QPT_UD;
    int got = 0;

    if (!p->tx)
        return false;
    shca_udp_tx_lock(p->tx);
    for (unsigned total = 0; (reliable || total < turn) && got >= 0; total++) {
        got = load(qp, p, &order, now);
        /* A packet that is held back must not overtake packets that were not. */
        if (got == 0 || qp->udp->dies)
            shca_udp_tx_flush(p->tx);
        if (qp->udp->dies)
            shca_fault_die();
    }
    shca_udp_tx_flush(p->tx);
    shca_udp_tx_unlock(p->tx);
    return got >= 0;
}
