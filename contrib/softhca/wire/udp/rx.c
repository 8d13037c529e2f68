/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving: takes packets from the sockets, several in one datagram where the kernel has joined
 * them again, drops those that are damaged or from foreign senders, and hands the others to the end
 * points of their queue pairs. Owns the buffers; shca_udp.lock protects them. */
#include "config.h"

#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "packet/bytes.h"
#include "wire/udp/udp.h"

enum {
    looks_for_one = 4,  /* that found one, and then for many */
    rounds = 8,         /* batches of one call, so that timers are not kept waiting */
    control_bytes = 96, /* the traffic class and the length of packets, with some slack */
    datagram_bytes = 65536,
    /* Not a power of two, or the beginnings of all would compete for the same lines of a cache. */
    stride = datagram_bytes + 5 * 64,
    touched_max = 64,
    /* The low bits of the traffic class: both set means that a router was congested (RFC 3168). */
    ecn_mask = 3,
    ecn_congested = 3,
    crowded_part = 4,    /* of the buffer */
    datagram_room = 512, /* for the kernel's description of one */
};

struct buffers {
    struct mmsghdr message[SHCA_UDP_BATCH];
    struct iovec iov[SHCA_UDP_BATCH];
    union shca_udp_name from[SHCA_UDP_BATCH];
    _Alignas(struct cmsghdr) char control[SHCA_UDP_BATCH][control_bytes];
    struct shca_qp *touched[touched_max];
    unsigned n_touched;
    uint8_t packets[SHCA_UDP_BATCH][stride]; /* of which most is never used, and no memory */
};
static struct buffers *buffers;

/* Of the datagram that is being handled. */
struct arrival {
    const struct shca_udp_socket *by;
    struct shca_inet from;
    bool congested;
    uint64_t now;
};

static void drop(enum shca_udp_drop why)
{
    atomic_fetch_add_explicit(&shca_udp.drops[why], 1, memory_order_relaxed);
}

/* ---- checks ---- */

/* The check of a card's or the kernel's packet covers an IPv4 identification that no UDP receiver
 * gets; softhca sends 0. */
static bool intact(const struct arrival *a, struct shca_udp_icrc *known, const uint8_t *packet,
                   size_t n)
{
    uint32_t state, computed, received = roce_get_icrc(packet + n);
    uint16_t id;

    if (!known || !shca_udp_icrc_find(known, n, &state)) {
        struct roce_path path = shca_udp_path(&a->from, &a->by->at);

        state = roce_icrc_path(&path, n);
        if (known)
            shca_udp_icrc_keep(known, n, state);
    }
    computed = roce_icrc_rest(state, packet, n);
    return computed == received ||
           (shca_inet_kind(&a->from) == SHCA_INET_IPV4 && !shca_inet_softhca(a->from.port) &&
            roce_icrc_solve_id(computed, received, n, &id));
}

/* Checks that the packet arrived at the right port, from the peer. SHCA_UDP_DROPS: it did. */
static enum shca_udp_drop known(const struct shca_qp *qp, const struct shca_udp_socket *s,
                                const struct shca_inet *from, uint8_t opcode)
{
    const struct shca_udp_port *port = &shca_udp_port[qp->sh->port];
    const struct shca_inet *peer = &qp->udp->peer;

    if (!qp->far || s < port->socket || s >= port->socket + SHCA_INET_KINDS)
        return SHCA_DROP_QUEUE;
    /* Another process that holds the target may have ended it. */
    if (qp->qp.qp_type == IBV_QPT_XRC_RECV && !shca_receiving(qp->sh) && !roce_failed(qp->udp->e))
        return SHCA_DROP_QUEUE;
    if (qp->qp.qp_type == IBV_QPT_UD)
        return SHCA_UDP_DROPS;
    if (s != &port->socket[shca_inet_kind(peer)] || memcmp(from->ip, peer->ip, sizeof peer->ip))
        return SHCA_DROP_ADDRESS;
    return shca_udp_source_fits(qp->udp, opcode, from->port) ? SHCA_UDP_DROPS : SHCA_DROP_PORT;
}

static struct shca_qp *find(uint32_t qpn)
{
    if (qpn >> SHCA_QP_BITS != shca.slot)
        return NULL;
    return atomic_load_explicit(&shca_udp.qps[qpn & (SHCA_QPS - 1)], memory_order_acquire);
}

/* ---- a batch ---- */

/* Its end point has output when all of the batch was handed in, or now if too many have. */
static void touched(struct shca_qp *qp, uint64_t now)
{
    for (unsigned i = buffers->n_touched; i > 0; i--)
        if (buffers->touched[i - 1] == qp)
            return;
    if (buffers->n_touched < touched_max)
        buffers->touched[buffers->n_touched++] = qp;
    else
        shca_udp_touch(qp, now);
}

/* Packets of a connection come from one address and port, so their headers are known. */
static void take_known(struct shca_qp *qp, const struct arrival *a, const struct roce_packet *p,
                       const uint8_t *packet, size_t n)
{
    struct shca_udp *u = qp->udp;
    bool same = shca_udp_source_is(u, a->from.port);

    if (!intact(a, same ? &u->icrc_in : NULL, packet, n)) {
        drop(SHCA_DROP_ICRC);
        return;
    }
    if (!same)
        shca_udp_source_learn(u, p, a->from.port);
    u->from = a->from;
    if (shca_faults())
        shca_udp_arrives(qp, p);
    roce_input(u->e, a->now, p, a->congested);
    touched(qp, a->now);
}

/* Counts a packet for an unknown queue pair, or not from its peer; but a damaged packet counts as
 * damaged. */
static void drop_stranger(const struct arrival *a, const uint8_t *packet, size_t n,
                          enum shca_udp_drop why)
{
    drop(intact(a, NULL, packet, n) ? why : SHCA_DROP_ICRC);
}

static void take(const struct arrival *a, const uint8_t *packet, size_t bytes)
{
    enum roce_verdict verdict = ROCE_TOO_SHORT;
    enum shca_udp_drop why = SHCA_DROP_QUEUE;
    size_t n = bytes - ROCE_ICRC_BYTES;
    struct roce_packet p;
    struct shca_qp *qp;

    if (bytes >= ROCE_BTH_BYTES + ROCE_ICRC_BYTES)
        verdict = roce_packet_parse(packet, n, &p);
    if (verdict != ROCE_GOOD) {
        drop(shca_udp_drop_of(verdict));
        return;
    }
    qp = find(p.dest_qpn);
    if (qp) {
        shca_lock(&qp->sq_lock);
        why = known(qp, a->by, &a->from, p.opcode);
        if (why == SHCA_UDP_DROPS)
            take_known(qp, a, &p, packet, n);
        shca_unlock(&qp->sq_lock);
    }
    if (why != SHCA_UDP_DROPS)
        drop_stranger(a, packet, n, why);
}

/* Whether a router marked it, and the length of its packets if there are several. */
static bool marked(struct msghdr *m, size_t *segment)
{
    bool congested = false;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        int value;

        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
            congested = (*CMSG_DATA(c) & ecn_mask) == ecn_congested;
        if (c->cmsg_len < CMSG_LEN(sizeof value))
            continue;
        memcpy(&value, CMSG_DATA(c), sizeof value);
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)
            congested = (value & ecn_mask) == ecn_congested;
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO && value > 0)
            *segment = (size_t)value;
    }
    return congested;
}

/* The space that datagrams received together took in the socket's buffer: more than their bytes. */
static size_t room_of(int n)
{
    size_t room = 0;

    for (int i = 0; i < n; i++)
        room += buffers->message[i].msg_len * 5 / 4 + datagram_room;
    return room;
}

static size_t left_in(int fd)
{
    uint32_t info[SK_MEMINFO_VARS];
    socklen_t length = sizeof info;

    return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length) == 0 ? info[SK_MEMINFO_RMEM_ALLOC]
                                                                      : 0;
}

/* A socket that fills up between two polls soon loses packets, and there is no router to mark them.
 */
static bool crowded(struct shca_udp_socket *s, int n, int most)
{
    socklen_t length = sizeof s->room;
    size_t used;

    if (s->room == 0 && getsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &s->room, &length) != 0)
        return false;
    used = n > 0 ? room_of(n) : 0;
    if (n > 1 && n == most)
        used += left_in(s->fd);
    return used > (size_t)s->room / crowded_part;
}

/* Without the C library, whose calls are points of cancellation. */
static int receive_up_to(const struct shca_udp_socket *s, int most)
{
    struct mmsghdr *m = buffers->message;
    long n;

    if (most > 1)
        return (int)syscall(SYS_recvmmsg, s->fd, m, most, MSG_DONTWAIT, NULL);
    n = syscall(SYS_recvmsg, s->fd, &m->msg_hdr, MSG_DONTWAIT);
    m->msg_len = (unsigned)n;
    return n < 0 ? -1 : 1;
}

/* An error of a packet sent earlier must not keep us from receiving packets. */
static int receive(const struct shca_udp_socket *s, int most)
{
    int n = receive_up_to(s, most);

    if (n < 0 && errno != EAGAIN && errno != EINTR && shca_udp_errors(s))
        n = receive_up_to(s, most);
    return n;
}

/* All packets of one datagram. */
static unsigned take_all(struct arrival *a, unsigned i, bool cut)
{
    struct msghdr *m = &buffers->message[i].msg_hdr;
    size_t bytes = buffers->message[i].msg_len, segment = bytes ? bytes : 1;
    unsigned packets = 0;

    a->congested |= marked(m, &segment);
    shca_udp_named(&buffers->from[i], &a->from);
    m->msg_controllen = control_bytes;
    m->msg_namelen = sizeof buffers->from[i];
    for (size_t at = 0; at < bytes || packets == 0; at += segment, packets++)
        if (!cut)
            take(a, buffers->packets[i] + at, bytes - at < segment ? bytes - at : segment);
    return packets;
}

static int batch(struct shca_udp_socket *s, uint32_t fabric_port, int most, uint64_t now)
{
    struct buffers *b = buffers;
    int n = receive(s, most);
    bool full = crowded(s, n, most);
    bool cut = n > 0 && shca_path_cut(fabric_port, fabric_port);
    unsigned packets = 0;

    b->n_touched = 0;
    for (int i = 0; i < n; i++)
        packets += take_all(&(struct arrival){.by = s, .congested = full, .now = now}, i, cut);
    if (packets > 0)
        atomic_fetch_add_explicit(&shca_udp.received, packets, memory_order_relaxed);
    /* Only now: acknowledgements of a batch become one. */
    for (unsigned i = 0; i < b->n_touched; i++) {
        shca_lock(&b->touched[i]->sq_lock);
        if (b->touched[i]->far && !shca_udp_put_off_answer(b->touched[i], packets, now))
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
        b->iov[i] = (struct iovec){b->packets[i], datagram_bytes};
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

/* Receives one packet at a time if none was found lately: trying to receive a second one takes time
 * too, and the program may answer the first. Receives all of them if the helper thread waits,
 * because only arrivals wake it, not packets that are in the socket already. */
static void receive_from(struct shca_udp_socket *s, uint32_t fabric_port, uint64_t now)
{
    bool waits = atomic_load(&shca_udp.attentive);
    int most = s->flows > looks_for_one || waits ? SHCA_UDP_BATCH : 1, n = 0;

    if (!atomic_load_explicit(&s->used, memory_order_acquire)) /* and what the opener wrote */
        return;
    for (int left = rounds; left > 0; left--) {
        n = batch(s, fabric_port, most, now);
        s->flows = n > 0 ? s->flows + 1 : 0;
        if (n < SHCA_UDP_BATCH)
            return;
    }
    if (waits)
        shca_helper_wake();
}

static void receive_all(void)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);
    uint64_t now = tk_now();

    for (uint32_t i = 1; i <= last && prepare(); i++)
        for (int k = 0; k < SHCA_INET_KINDS; k++)
            receive_from(&shca_udp_port[i].socket[k], i, now);
    shca_udp_put_off_run(now, shca_udp_touch);
    shca_udp_timers(now);
}

void shca_udp_progress(void)
{
    atomic_fetch_add_explicit(&shca_udp.runs, 1, memory_order_relaxed);
    if (atomic_load_explicit(&shca_udp.users, memory_order_relaxed) == 0 &&
        atomic_load_explicit(&shca_udp.held, memory_order_relaxed) == 0)
        return;
    atomic_store(&shca_udp.missed, true);
    while (atomic_load(&shca_udp.missed) && shca_trylock(&shca_udp.lock)) {
        atomic_store(&shca_udp.missed, false);
        receive_all();
        shca_udp_watch_program();
        shca_unlock(&shca_udp.lock);
    }
}

/* The peer must not wait for an answer that was put off by a program that ends. */
__attribute__((destructor)) static void put_off_finish(void)
{
    if (shca.seg && shca.pid == (uint32_t)getpid() && shca_trylock(&shca_udp.lock)) {
        shca_udp_put_off_run(ROCE_NEVER, shca_udp_touch);
        shca_unlock(&shca_udp.lock);
    }
}
