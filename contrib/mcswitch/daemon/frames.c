/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports of Ethernet frames: network interfaces and machines of QEMU. Owns only the sockets, which
 * it puts into the table of ports. */
#include "config.h"

#include "daemon/port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/number.h"
#include "daemon/frames.h"

enum {
    rounds = 4,             /* batches of one port before others are served */
    buffer_bytes = 4 << 20, /* QEMU's datagrams have no flow control */
};

static bool report_error(const char *text, const char *why)
{
    fprintf(stderr, "mcswitchd: --port %s: %s\n", text, why);
    return false;
}

void mcd_frames_buffers(int fd)
{
    int room = buffer_bytes;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
}

static bool mistake(const char *text, const char *why)
{
    mcd_status = 2;
    return report_error(text, why);
}

/* ---- incoming ---- */

/* Inserts the outer VLAN tag again: the kernel removes it from the frame and passes it
 * separately. */
static uint8_t *put_tag_back(const struct mcd_batch *b, unsigned i, size_t *length)
{
    struct msghdr m = {.msg_control = (void *)b->control[i],
                       .msg_controllen = b->control_length[i]};
    struct tpacket_auxdata aux;
    uint8_t *frame = b->bytes[i];
    uint16_t tag[2];

    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
            continue;
        memcpy(&aux, CMSG_DATA(c), sizeof aux);
        if (!(aux.tp_status & TP_STATUS_VLAN_VALID) || *length < 12)
            return frame;
        tag[0] = htons(aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : 0x8100);
        tag[1] = htons(aux.tp_vlan_tci);
        memmove(frame - sizeof tag, frame, 12);
        memcpy(frame + 12 - sizeof tag, tag, sizeof tag);
        *length += sizeof tag;
        return frame - sizeof tag;
    }
    return frame;
}

static bool same_address(const union mcd_address *a, const union mcd_address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_UNIX)
        return strcmp(a->un.sun_path, b->un.sun_path) == 0;
    return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr && a->in.sin_port == b->in.sin_port;
}

static void take(struct mcd_port *p, const struct mcd_batch *b, unsigned i)
{
    size_t length = b->length[i];
    uint8_t *frame = b->bytes[i];

    p->count.frames_in++;
    p->count.bytes_in += length;
    if (p->kind == MCD_DGRAM && !same_address(&b->from[i], &p->to))
        p->count.strangers++;
    else if (b->too_long[i])
        p->count.too_long++;
    else if (!mcd_port_lost(&p->count.lost_in)) {
        if (p->kind == MCD_PACKET)
            frame = put_tag_back(b, i, &length);
        mcd_port_take(p, frame, length);
    }
}

static void ready(struct mcd_source *s, uint32_t events)
{
    struct mcd_port *p = (struct mcd_port *)(void *)s;

    for (int left = rounds; left > 0; left--) {
        struct mcd_batch *b;
        unsigned n = mcd_port_receive(p->source.fd, &b);

        for (unsigned i = 0; i < n; i++)
            take(p, b, i);
        if (n < MCD_BATCH)
            break;
    }
    /* Reads a pending error, which would wake the loop again and again. */
    if (events & (EPOLLERR | EPOLLHUP)) {
        int error;
        socklen_t length = sizeof error;

        getsockopt(p->source.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    }
}

/* ---- opening ---- */

static bool watch(struct mcd_port *p, const char *text)
{
    p->source.ready = ready;
    mcd_frames_buffers(p->source.fd);
    return mcd_loop_add(&p->source, EPOLLIN) || report_error(text, strerror(errno));
}

static bool open_packet(const char *text, const char *interface)
{
    struct mcd_port *p = mcd_port_new(MCD_PACKET, text);
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    struct packet_mreq all = {.mr_type = PACKET_MR_PROMISC};
    int on = 1;

    if (!p)
        return false;
    at.sll_ifindex = (int)if_nametoindex(interface);
    all.mr_ifindex = at.sll_ifindex;
    if (at.sll_ifindex == 0)
        return mistake(text, "there is no such interface");
    p->source.fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->source.fd < 0)
        return report_error(text,
                            errno == EPERM ? "raw sockets need CAP_NET_RAW" : strerror(errno));
    if (setsockopt(p->source.fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
        setsockopt(p->source.fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on) != 0 ||
        setsockopt(p->source.fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0 ||
        bind(p->source.fd, (struct sockaddr *)&at, sizeof at) != 0)
        return report_error(text, strerror(errno));
    return watch(p, text);
}

bool mcd_frames_inet(const char *text, struct sockaddr_in *at, unsigned port_otherwise)
{
    char host[16];
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    uint64_t port = port_otherwise;

    if (length >= sizeof host)
        return false;
    memcpy(host, text, length);
    host[length] = 0;
    if (colon && !tk_number_digits(colon + 1, 1, 65535, &port))
        return false;
    memset(at, 0, sizeof *at);
    at->sin_family = AF_INET;
    at->sin_port = htons((uint16_t)port);
    return port > 0 && inet_pton(AF_INET, host, &at->sin_addr) == 1;
}

static bool parse_end(const char *text, union mcd_address *a, socklen_t *length)
{
    memset(a, 0, sizeof *a);
    if (*text == '/' || *text == '.') {
        a->un.sun_family = AF_UNIX;
        if (strlen(text) >= sizeof a->un.sun_path)
            return false;
        snprintf(a->un.sun_path, sizeof a->un.sun_path, "%s", text);
        *length = sizeof a->un;
        return true;
    }
    *length = sizeof a->in;
    return mcd_frames_inet(text, &a->in, 0);
}

/* Removes the socket of a killed switch, and nothing else. */
static void remove_stale(const char *path)
{
    struct stat s;

    if (lstat(path, &s) == 0 && S_ISSOCK(s.st_mode))
        unlink(path);
}

static bool open_dgram(const char *text, const char *ends)
{
    struct mcd_port *p = mcd_port_new(MCD_DGRAM, text);
    union mcd_address own;
    socklen_t own_length;
    char local[MCD_NAME];
    const char *comma = strchr(ends, ',');

    if (!p)
        return false;
    snprintf(local, sizeof local, "%.*s", comma ? (int)(comma - ends) : 0, ends);
    if (!comma || !parse_end(local, &own, &own_length) ||
        !parse_end(comma + 1, &p->to, &p->to_length) || own.any.sa_family != p->to.any.sa_family)
        return mistake(text, "it is no dgram:LOCAL,REMOTE, where both are A.B.C.D:PORT (1 to "
                             "65535) or both paths of at most 107 bytes");
    p->source.fd = socket(own.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (p->source.fd < 0)
        return report_error(text, strerror(errno));
    if (own.any.sa_family == AF_UNIX)
        remove_stale(own.un.sun_path);
    if (bind(p->source.fd, &own.any, own_length) != 0)
        return report_error(text, strerror(errno));
    if (own.any.sa_family == AF_UNIX)
        memcpy(p->path, own.un.sun_path, sizeof p->path);
    return watch(p, text);
}

bool mcd_port_open(const char *text)
{
    if (strlen(text) >= MCD_NAME)
        return mistake(text, "longer than 111 characters");
    if (strncmp(text, "packet:", 7) == 0)
        return open_packet(text, text + 7);
    if (strncmp(text, "dgram:", 6) == 0)
        return open_dgram(text, text + 6);
    return mistake(text, "it is neither packet:INTERFACE nor dgram:LOCAL,REMOTE");
}
