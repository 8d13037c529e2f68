/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packets on their way into the kernel: one system call for many, and one datagram with
 * segmentation offload for neighbours of equal length to the same peer. Owns the buffers of a port,
 * in which packets lie behind each other; their lock protects them. */
#include "config.h"

#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/udp/udp.h"

enum {
    segments_max = 64, /* of one datagram, in every kernel that has them */
    datagram_max = 65535 - 40 - 8,
    room = 128 << 10,
    control_bytes = CMSG_SPACE(sizeof(uint16_t)),
};

struct datagram {
    const struct shca_udp_socket *by;
    struct shca_inet to;
    uint32_t segment; /* bytes of the first packet */
    uint32_t packets;
    bool open; /* another one of that length may follow */
};

struct shca_udp_tx {
    struct shca_lock lock;
    unsigned n;
    size_t used;
    struct mmsghdr message[SHCA_UDP_BATCH];
    struct iovec iov[SHCA_UDP_BATCH];
    union shca_udp_name name[SHCA_UDP_BATCH];
    struct datagram datagram[SHCA_UDP_BATCH];
    _Alignas(struct cmsghdr) char control[SHCA_UDP_BATCH][control_bytes];
    uint8_t packets[room];
};

struct shca_udp_tx *shca_udp_tx_open(void)
{
    struct shca_udp_tx *tx = calloc(1, sizeof *tx);

    for (unsigned i = 0; tx && i < SHCA_UDP_BATCH; i++)
        tx->message[i].msg_hdr =
            (struct msghdr){.msg_name = &tx->name[i], .msg_iov = &tx->iov[i], .msg_iovlen = 1};
    return tx;
}

void shca_udp_tx_lock(struct shca_udp_tx *tx)
{
    shca_lock(&tx->lock);
}

void shca_udp_tx_unlock(struct shca_udp_tx *tx)
{
    shca_unlock(&tx->lock);
}

uint8_t *shca_udp_tx_room(struct shca_udp_tx *tx)
{
    if (tx->n == SHCA_UDP_BATCH || tx->used + ROCE_PACKET_MAX > room)
        shca_udp_tx_flush(tx);
    return tx->packets + tx->used;
}

/* ---- segmentation ---- */

/* Segments have IPv4 identifications that count, and the ICRC covers those; over loopback datagrams
 * are not segmented, and only softhcas receive them, which compute the ICRC with identification 0.
 * IPv6 has no identification. */
static bool may_follow(const struct datagram *d, const struct shca_udp_socket *by,
                       const struct shca_inet *to, size_t bytes)
{
    return d->open && d->by == by && bytes <= d->segment && d->packets < segments_max &&
           (size_t)d->segment * d->packets + bytes <= datagram_max && d->to.port == to->port &&
           memcmp(d->to.ip, to->ip, sizeof to->ip) == 0;
}

static void set_segment(struct shca_udp_tx *tx, unsigned i)
{
    struct msghdr *m = &tx->message[i].msg_hdr;
    uint16_t size = (uint16_t)tx->datagram[i].segment;
    struct cmsghdr *c;

    if (m->msg_control)
        return;
    m->msg_control = tx->control[i];
    m->msg_controllen = control_bytes;
    c = CMSG_FIRSTHDR(m);
    *c = (struct cmsghdr){
        .cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT, .cmsg_len = CMSG_LEN(sizeof size)};
    memcpy(CMSG_DATA(c), &size, sizeof size);
}

void shca_udp_tx_add(struct shca_udp_tx *tx, const struct shca_udp_socket *by,
                     const struct shca_inet *to, size_t bytes, bool segments)
{
    unsigned i = tx->n;

    if (segments && i > 0 && may_follow(&tx->datagram[i - 1], by, to, bytes)) {
        i--;
        tx->iov[i].iov_len += bytes;
        tx->datagram[i].packets++;
        tx->datagram[i].open = bytes == tx->datagram[i].segment;
        set_segment(tx, i);
    } else {
        tx->datagram[i] = (struct datagram){by, *to, (uint32_t)bytes, 1, segments};
        tx->iov[i] = (struct iovec){tx->packets + tx->used, bytes};
        tx->message[i].msg_hdr.msg_namelen = shca_udp_name(to, by->scope, &tx->name[i]);
        tx->message[i].msg_hdr.msg_control = NULL;
        tx->message[i].msg_hdr.msg_controllen = 0;
        tx->n++;
    }
    tx->used += bytes;
}

/* ---- sending ---- */

/* The number of consecutive datagrams, from this one on, that leave by the same socket. */
static unsigned run_of(const struct shca_udp_tx *tx, unsigned at)
{
    unsigned end = at + 1;

    while (end < tx->n && tx->datagram[end].by == tx->datagram[at].by)
        end++;
    return end - at;
}

static void count(_Atomic uint64_t *counter, const struct datagram *d, unsigned n)
{
    uint64_t packets = 0;

    for (unsigned i = 0; i < n; i++)
        packets += d[i].packets;
    atomic_fetch_add_explicit(counter, packets, memory_order_relaxed);
}

/* Without the C library, whose calls are points of cancellation. */
static long pass_on(struct shca_udp_tx *tx, unsigned at)
{
    const struct shca_udp_socket *by = tx->datagram[at].by;
    unsigned n = run_of(tx, at);

    if (n > 1)
        return syscall(SYS_sendmmsg, by->fd, tx->message + at, n, 0);
    return syscall(SYS_sendmsg, by->fd, &tx->message[at].msg_hdr, 0) < 0 ? -1 : 1;
}

/* An interface that computes no checksums supports no segmentation either: all its packets are sent
 * singly, because a lost one would be repeated only after a while. */
static bool send_singly(struct shca_udp_tx *tx, unsigned at, int *error)
{
    struct datagram *d = &tx->datagram[at];
    struct iovec whole = tx->iov[at];
    struct msghdr m = tx->message[at].msg_hdr;
    bool taken = true;

    if (d->packets == 1 || (*error != EIO && *error != EINVAL))
        return false;
    atomic_store_explicit(&shca_udp.segments, false, memory_order_relaxed);
    m.msg_control = NULL;
    m.msg_controllen = 0;
    for (size_t done = 0; done < whole.iov_len && taken; done += d->segment) {
        size_t rest = whole.iov_len - done;
        struct iovec one = {(char *)whole.iov_base + done, rest < d->segment ? rest : d->segment};

        m.msg_iov = &one;
        taken = syscall(SYS_sendmsg, d->by->fd, &m, 0) >= 0;
    }
    if (taken)
        count(&shca_udp.sent, d, 1);
    else
        *error = errno;
    return taken;
}

/* A packet that the kernel does not take counts as lost, like a packet that the network drops. But
 * its first refusal may be about an earlier packet. */
void shca_udp_tx_flush(struct shca_udp_tx *tx)
{
    bool again = false;
    unsigned at = 0;

    while (at < tx->n) {
        const struct shca_udp_socket *by = tx->datagram[at].by;
        long done = pass_on(tx, at);
        int error = errno;

        if (done > 0) {
            count(&shca_udp.sent, tx->datagram + at, (unsigned)done);
            at += (unsigned)done;
            again = false;
        } else if (error == EINTR) {
            continue;
        } else if (shca_udp_errors(by) && !again) {
            again = true;
        } else if (send_singly(tx, at, &error)) {
            at++;
            again = false;
        } else {
            shca_udp_refused(&tx->datagram[at].to, error);
            count(&shca_udp.lost, tx->datagram + at, 1);
            at++;
            again = false;
        }
    }
    tx->n = 0;
    tx->used = 0;
}
