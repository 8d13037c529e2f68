/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Code common to all ports: the table, the queue of outgoing frames, batches of incoming ones, and
 * injected loss. The buffers are allocated once. */
#include "config.h"

#include "daemon/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { queue_slots = 256 };

struct mcd_port mcd_ports[MCD_PORTS];
unsigned mcd_port_count;
mcd_take *mcd_port_take;

struct slot {
    int fd;
    struct mcd_port *port;
    union mcd_address to;
    socklen_t to_length;
    size_t length;
    bool congested;
};

static struct slot slots[queue_slots];
static uint8_t slot_bytes[queue_slots][MCD_FRAME_MAX];
static unsigned queued;

struct mcd_port *mcd_port_new(enum mcd_kind kind, const char *name)
{
    struct mcd_port *p;

    if (mcd_port_count == MCD_PORTS) {
        fprintf(stderr, "mcswitchd: more than %d ports\n", (int)MCD_PORTS);
        return NULL;
    }
    p = &mcd_ports[mcd_port_count];
    *p = (struct mcd_port){.source.fd = -1, .kind = kind, .number = mcd_port_count++};
    snprintf(p->name, sizeof p->name, "%s", name);
    return p;
}

void mcd_port_close_all(void)
{
    for (unsigned i = 0; i < mcd_port_count; i++) {
        mcd_loop_close(&mcd_ports[i].source);
        if (mcd_ports[i].path[0])
            unlink(mcd_ports[i].path);
    }
}

/* ---- injected loss ---- */

static uint32_t lose_per_million;
static uint64_t lose_state;

void mcd_port_lose(uint32_t per_million, uint64_t seed)
{
    lose_per_million = per_million;
    lose_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

bool mcd_port_percent(const char *text, uint32_t *per_million)
{
    char *end;
    double p = strtod(text, &end);

    *per_million = 0;
    if (((*text < '0' || *text > '9') && *text != '.') || *end || !(p >= 0 && p <= 90))
        return false;
    *per_million = (uint32_t)(p * 10000);
    return true;
}

bool mcd_port_lost(uint64_t *counter)
{
    if (lose_per_million == 0)
        return false;
    lose_state ^= lose_state << 13;
    lose_state ^= lose_state >> 7;
    lose_state ^= lose_state << 17;
    if ((lose_state >> 20) % 1000000 >= lose_per_million)
        return false;
    ++*counter;
    return true;
}

/* ---- outgoing ---- */

static struct slot *next_slot(struct mcd_port *port, size_t length)
{
    struct slot *s;

    if (length > MCD_FRAME_MAX || mcd_port_lost(&port->count.lost_out)) {
        port->count.too_long += length > MCD_FRAME_MAX;
        return NULL;
    }
    if (queued == queue_slots)
        mcd_port_flush();
    s = &slots[queued++];
    s->port = port;
    s->length = length;
    s->congested = false;
    return s;
}

void mcd_port_send(struct mcd_port *port, const uint8_t *frame, size_t length)
{
    struct slot *s = next_slot(port, length);

    if (!s)
        return;
    memcpy(slot_bytes[s - slots], frame, length);
    s->fd = port->source.fd;
    s->to = port->to;
    s->to_length = port->to_length;
}

void mcd_port_datagram(struct mcd_port *port, int fd, const struct sockaddr_in *to,
                       const uint8_t *bytes, size_t length, bool congested)
{
    struct slot *s = next_slot(port, length);

    if (!s)
        return;
    memcpy(slot_bytes[s - slots], bytes, length);
    s->fd = fd;
    s->to.in = *to;
    s->to_length = sizeof *to;
    s->congested = congested;
}

/* The traffic class with both bits of ECN (RFC 3168). */
static size_t mark_congested(uint8_t *room)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)room;
    int class = 3;

    *c = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof class), .cmsg_level = IPPROTO_IP, .cmsg_type = IP_TOS};
    memcpy(CMSG_DATA(c), &class, sizeof class);
    return CMSG_SPACE(sizeof class);
}

/* Frames that the kernel does not take are lost: its queue is full, or the machine does not
 * run. (The kernel reports a refused datagram with the next one, which the caller's loop sends
 * again.) */
static void send_run(unsigned first, unsigned n)
{
    static struct mmsghdr message[queue_slots];
    static struct iovec iov[queue_slots];
    static _Alignas(struct cmsghdr) uint8_t control[queue_slots][32];
    unsigned at = 0, refused = 0;

    for (unsigned i = 0; i < n; i++) {
        struct slot *s = &slots[first + i];

        iov[i] = (struct iovec){slot_bytes[first + i], s->length};
        message[i].msg_hdr = (struct msghdr){.msg_iov = &iov[i],
                                             .msg_iovlen = 1,
                                             .msg_name = s->to_length ? &s->to : NULL,
                                             .msg_namelen = s->to_length};
        if (s->congested) {
            message[i].msg_hdr.msg_control = control[i];
            message[i].msg_hdr.msg_controllen = mark_congested(control[i]);
        }
    }
    while (at < n) {
        int done = sendmmsg(slots[first].fd, message + at, n - at, MSG_DONTWAIT | MSG_NOSIGNAL);

        for (int i = 0; i < done; i++) {
            slots[first + at].port->count.frames_out++;
            slots[first + at].port->count.bytes_out += slots[first + at].length;
            at++;
        }
        if (done > 0 || errno == EINTR || (errno == ECONNREFUSED && refused++ < 2))
            continue;
        slots[first + at].port->count.lost_out++;
        at++;
    }
}

void mcd_port_flush(void)
{
    unsigned first = 0;

    for (unsigned i = 1; i <= queued; i++)
        if (i == queued || slots[i].fd != slots[first].fd) {
            send_run(first, i - first);
            first = i;
        }
    queued = 0;
}

/* ---- incoming ---- */

static struct mcd_batch *batch;
static struct mmsghdr batch_message[MCD_BATCH];
static struct iovec batch_iov[MCD_BATCH];

static bool prepare(void)
{
    size_t stride = MCD_HEADROOM + MCD_FRAME_MAX;
    uint8_t *bytes;

    if (batch)
        return true;
    batch = calloc(1, sizeof *batch);
    bytes = calloc(MCD_BATCH, stride);
    if (!batch || !bytes)
        return false;
    for (unsigned i = 0; i < MCD_BATCH; i++) {
        batch->bytes[i] = bytes + i * stride + MCD_HEADROOM;
        batch_iov[i] = (struct iovec){batch->bytes[i], MCD_FRAME_MAX};
    }
    return true;
}

unsigned mcd_port_receive(int fd, struct mcd_batch **out)
{
    int n;

    if (!prepare())
        return 0;
    for (unsigned i = 0; i < MCD_BATCH; i++)
        batch_message[i].msg_hdr = (struct msghdr){.msg_iov = &batch_iov[i],
                                                   .msg_iovlen = 1,
                                                   .msg_name = &batch->from[i],
                                                   .msg_namelen = sizeof batch->from[i],
                                                   .msg_control = batch->control[i],
                                                   .msg_controllen = sizeof batch->control[i]};
    n = recvmmsg(fd, batch_message, MCD_BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < n; i++) {
        batch->length[i] = batch_message[i].msg_len;
        batch->too_long[i] = batch_message[i].msg_hdr.msg_flags & MSG_TRUNC;
        batch->control_length[i] = batch_message[i].msg_hdr.msg_controllen;
    }
    *out = batch;
    return n > 0 ? (unsigned)n : 0;
}
