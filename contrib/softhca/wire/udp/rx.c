/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: takes packets from the sockets, drops those that are damaged or come from strangers,
 * hands the others to the end points of their queue pairs, and decides when the helper thread looks
 * at the sockets. Owns the buffers; shca_udp.lock protects them. */
#include "config.h"

#include <linux/sock_diag.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "packet/bytes.h"
#include "wire/udp/udp.h"

enum {
    rounds = 8,         /* batches of one call, so that timers are not kept waiting */
    vain_polls = 32,    /* in a row, and the program is taken to do nothing else */
    control_bytes = 64, /* the traffic class of a packet, with room */
};

struct buffers {
    struct mmsghdr message[SHCA_UDP_BATCH];
    struct iovec iov[SHCA_UDP_BATCH];
    union shca_udp_name from[SHCA_UDP_BATCH];
    uint8_t packet[SHCA_UDP_BATCH][ROCE_PACKET_MAX];
    _Alignas(struct cmsghdr) char control[SHCA_UDP_BATCH][control_bytes];
    struct shca_qp *touched[SHCA_UDP_BATCH];
    unsigned n_touched;
};
static struct buffers *buffers;

static _Atomic uint32_t runs; /* calls of shca_udp_progress */
static _Atomic bool missed;   /* another thread found the lock taken */

enum {
    /* The low bits of the traffic class: both set means that a router was congested (RFC 3168). */
    ecn_mask = 3,
    ecn_congested = 3,
    crowded_part = 4, /* of the buffer */
};

static void drop(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- checks ---- */

/* The check of a card's or the kernel's packet covers an IPv4 identification that no UDP receiver
 * gets; softhca sends 0. */
static bool intact(const struct shca_udp_socket *s, const struct shca_inet *from,
                   const uint8_t *packet, size_t n)
{
    struct roce_path path = shca_udp_path(from, &s->at);
    uint32_t computed = roce_icrc(&path, packet, n), received = roce_get_icrc(packet + n);
    uint16_t id;

    return computed == received || (path.version == 4 && !shca_inet_softhca(from->port) &&
                                    roce_icrc_solve_id(computed, received, n, &id));
}

static bool known(const struct shca_qp *qp, const struct shca_udp_socket *s,
                  const struct shca_inet *from)
{
    const struct shca_udp_port *port = &shca_udp_port[qp->sh->port];
    const struct shca_inet *peer = &qp->udp->peer;

    if (!qp->far || s < port->socket || s >= port->socket + SHCA_INET_KINDS)
        return false;
    if (qp->qp.qp_type == IBV_QPT_UD)
        return true;
    return memcmp(from->ip, peer->ip, sizeof peer->ip) == 0 &&
           (peer->port == 0 || from->port == peer->port);
}

static struct shca_qp *find(uint32_t qpn)
{
    if (qpn >> SHCA_QP_BITS != shca.slot)
        return NULL;
    return atomic_load_explicit(&shca_udp.qps[qpn & (SHCA_QPS - 1)], memory_order_acquire);
}

/* ---- a batch ---- */

static void touched(struct shca_qp *qp)
{
    for (unsigned i = 0; i < buffers->n_touched; i++)
        if (buffers->touched[i] == qp)
            return;
    buffers->touched[buffers->n_touched++] = qp;
}

static void take(const struct shca_udp_socket *s, const struct shca_inet *from,
                 const uint8_t *packet, size_t bytes, bool congested, uint64_t now)
{
    const struct roce_counters *c;
    struct roce_packet p;
    struct shca_qp *qp;

    if (bytes < ROCE_BTH_BYTES + ROCE_ICRC_BYTES ||
        roce_packet_parse(packet, bytes - ROCE_ICRC_BYTES, &p) != ROCE_GOOD ||
        !intact(s, from, packet, bytes - ROCE_ICRC_BYTES)) {
        drop(&shca_udp.damaged);
        return;
    }
    qp = find(p.dest_qpn);
    if (!qp) {
        drop(&shca_udp.strangers);
        return;
    }
    shca_lock(&qp->sq_lock);
    if (known(qp, s, from)) {
        uint64_t before;

        c = roce_counters(qp->udp->e);
        before = c->received;
        qp->udp->from = *from;
        if (shca_faults())
            shca_udp_arrives(qp, &p);
        roce_input(qp->udp->e, now, &p, congested);
        if (c->received == before) /* another partition, key or transport */
            drop(&shca_udp.strangers);
        touched(qp);
    } else {
        drop(&shca_udp.strangers);
    }
    shca_unlock(&qp->sq_lock);
}

/* Did a router mark it? */
static bool marked(struct msghdr *m)
{
    struct cmsghdr *c;

    for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            return (*CMSG_DATA(c) & ecn_mask) == ecn_congested;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            int tclass;

            memcpy(&tclass, CMSG_DATA(c), sizeof tclass);
            return (tclass & ecn_mask) == ecn_congested;
        }
    return false;
}

/* A socket that is nearly full loses packets soon, and no router is there to mark them. */
static bool crowded(int fd)
{
    uint32_t info[SK_MEMINFO_VARS];
    socklen_t length = sizeof info;

    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length) != 0)
        return false;
    return info[SK_MEMINFO_RMEM_ALLOC] > info[SK_MEMINFO_RCVBUF] / crowded_part;
}

/* An error of a packet that was sent before is no reason to leave those that came. */
static int receive(const struct shca_udp_socket *s)
{
    int n = recvmmsg(s->fd, buffers->message, SHCA_UDP_BATCH, MSG_DONTWAIT, NULL);

    if (n < 0 && errno != EAGAIN && errno != EINTR && shca_udp_errors(s))
        n = recvmmsg(s->fd, buffers->message, SHCA_UDP_BATCH, MSG_DONTWAIT, NULL);
    return n;
}

static int batch(struct shca_udp_socket *s, uint32_t fabric_port, uint64_t now)
{
    struct buffers *b = buffers;
    int n = receive(s);
    bool full = n == SHCA_UDP_BATCH && crowded(s->fd);

    b->n_touched = 0;
    for (int i = 0; i < n; i++) {
        struct shca_inet from;

        bool congested = full || marked(&b->message[i].msg_hdr);

        shca_udp_named(&b->from[i], &from);
        atomic_fetch_add_explicit(&shca_udp.received, 1, memory_order_relaxed);
        b->message[i].msg_hdr.msg_controllen = sizeof b->control[i];
        b->message[i].msg_hdr.msg_namelen = sizeof b->from[i];
        if (shca_path_cut(fabric_port, fabric_port))
            continue;
        if (b->message[i].msg_hdr.msg_flags & MSG_TRUNC)
            drop(&shca_udp.damaged);
        else
            take(s, &from, b->packet[i], b->message[i].msg_len, congested, now);
    }
    /* Only now: acknowledgements of a batch become one. */
    for (unsigned i = 0; i < b->n_touched; i++) {
        shca_lock(&b->touched[i]->sq_lock);
        if (b->touched[i]->far)
            shca_udp_touch(b->touched[i], now);
        shca_unlock(&b->touched[i]->sq_lock);
    }
    return n;
}

static bool prepare(void)
{
    struct buffers *b = buffers;

    if (b)
        return true;
    b = calloc(1, sizeof *b);
    for (unsigned i = 0; b && i < SHCA_UDP_BATCH; i++) {
        b->iov[i] = (struct iovec){b->packet[i], sizeof b->packet[i]};
        b->message[i].msg_hdr = (struct msghdr){.msg_name = &b->from[i],
                                                .msg_namelen = sizeof b->from[i],
                                                .msg_iov = &b->iov[i],
                                                .msg_iovlen = 1,
                                                .msg_control = b->control[i],
                                                .msg_controllen = sizeof b->control[i]};
    }
    buffers = b;
    return b != NULL;
}

/* ---- the helper thread ---- */

static void arm(bool on)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);

    if (atomic_load_explicit(&shca_udp.attentive, memory_order_relaxed) == on ||
        atomic_exchange(&shca_udp.attentive, on) == on)
        return;
    for (uint32_t i = 1; i <= last; i++)
        for (int k = 0; k < SHCA_INET_KINDS; k++) {
            /* Only arrivals count: what lies in the socket is being taken by another thread. */
            struct epoll_event e = {.events = on ? EPOLLIN | EPOLLET : 0u, .data.ptr = NULL};
            int fd = shca_udp_port[i].socket[k].fd;

            if (fd >= 0 && epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_MOD, fd, &e) != 0)
                epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_ADD, fd, &e);
        }
}

/* A program that polls in vain takes its packets itself, and the thread would only compete for
 * them. With a completion in hand it may do something else, or spin on its memory. */
static void watch_program(void)
{
    static _Atomic uint32_t vain;

    if (atomic_exchange_explicit(&shca_udp.delivered, false, memory_order_relaxed)) {
        atomic_store_explicit(&vain, 0, memory_order_relaxed);
        arm(true);
    } else if (atomic_fetch_add_explicit(&vain, 1, memory_order_relaxed) == vain_polls) {
        arm(false);
    }
}

static void receive_all(void)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);
    uint64_t now = shca_now();

    for (uint32_t i = 1; i <= last && prepare(); i++)
        for (int k = 0; k < SHCA_INET_KINDS; k++) {
            struct shca_udp_socket *s = &shca_udp_port[i].socket[k];
            int left = atomic_load_explicit(&s->used, memory_order_relaxed) ? rounds : 0;

            while (left-- > 0 && batch(s, i, now) == SHCA_UDP_BATCH)
                continue;
        }
    shca_udp_timers(now);
}

void shca_udp_progress(void)
{
    atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed);
    if (atomic_load_explicit(&shca_udp.users, memory_order_relaxed) == 0 &&
        atomic_load_explicit(&shca_udp.held, memory_order_relaxed) == 0)
        return;
    atomic_store(&missed, true);
    while (atomic_load(&missed) && shca_trylock(&shca_udp.lock)) {
        atomic_store(&missed, false);
        receive_all();
        watch_program();
        shca_unlock(&shca_udp.lock);
    }
}

/* It looks once a millisecond whether a program that polled still does. */
uint64_t shca_udp_sleep(void)
{
    static uint32_t seen;
    uint32_t now_runs = atomic_load(&runs);
    bool polls = now_runs - seen > 1; /* one is the thread's own */
    uint64_t now, next, ns;

    seen = now_runs;
    if (atomic_load(&shca_udp.users) == 0 && atomic_load(&shca_udp.held) == 0) {
        arm(false);
        atomic_store(&shca_udp.until, UINT64_MAX);
        return UINT64_MAX;
    }
    if (!polls)
        arm(true);
    now = shca_now();
    next = atomic_load(&shca_udp.next);
    ns = next > now ? next - now : 0;
    if (!atomic_load(&shca_udp.attentive) && ns > 1000000)
        ns = 1000000;
    atomic_store(&shca_udp.until, ns > UINT64_MAX - now ? UINT64_MAX : now + ns);
    return ns;
}

void shca_udp_attend(void)
{
    if (atomic_load_explicit(&shca_udp.users, memory_order_relaxed) > 0)
        arm(true);
}
