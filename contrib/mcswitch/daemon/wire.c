/* SPDX-License-Identifier: BSD-3-Clause
 *
 * softhca's wire; see wire.h. */
#include "config.h"

#include "daemon/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "daemon/frames.h"
#include "packet/bytes.h"
#include "packet/icrc.h"
#include "packet/packet.h"

enum {
    ethernet = 14,
    ip_bytes = 20,
    headers = ethernet + ip_bytes + 8,
    covered = ip_bytes + 8 + ROCE_BTH_BYTES, /* the part of the headers that may change */
    softhca_first = 45056,                   /* ports of softhca beside RoCE's */
    softhca_last = 49151,
    slots = 4096, /* members; a power of two */
    rounds = 4,
    class_e = 0xf0, /* first byte of the addresses made here */
};

enum { REQUESTS, COPIES, ENDS };

struct end {
    struct mcd_source source;
    struct sockaddr_in at;
};

struct member {
    uint32_t ip; /* host order */
    uint16_t port;
    uint16_t users; /* 0: free, but a search continues behind it if `used` */
    bool used;
};

static struct end ends[ENDS];
static struct member members[slots];
static struct mcd_port *wire;
static const struct mcd_vips *vips;

struct mcd_port *mcd_wire_port(void)
{
    return wire;
}

/* ---- members ---- */

static unsigned slot_of(uint32_t ip, uint16_t port)
{
    return ((ip ^ (uint32_t)port << 16) * UINT32_C(2654435761)) >> 20;
}

static struct member *find(uint32_t ip, uint16_t port)
{
    for (unsigned i = 0, at = slot_of(ip, port); i < slots; i++, at++) {
        struct member *m = &members[at & (slots - 1)];

        if (!m->used)
            return NULL;
        if (m->users && m->ip == ip && m->port == port)
            return m;
    }
    return NULL;
}

static struct member *find_free(uint32_t ip, uint16_t port)
{
    for (unsigned i = 0, at = slot_of(ip, port); i < slots; i++, at++)
        if (!members[at & (slots - 1)].users)
            return &members[at & (slots - 1)];
    return NULL;
}

/* A member with RoCE's own port keeps its real address, so that headers need no change. */
static uint32_t in_frames(const struct member *m)
{
    if (m->port == ROCE_UDP_PORT)
        return m->ip;
    return (uint32_t)class_e << 24 | (uint32_t)(m - members);
}

bool mcd_wire_join(const uint8_t ip[4], uint16_t port, uint8_t out[4])
{
    struct member *m = find(roce_get32(ip), port);

    if (!m)
        m = find_free(roce_get32(ip), port);
    if (!m)
        return false;
    m->ip = roce_get32(ip);
    m->port = port;
    m->used = true;
    m->users++;
    roce_put32(out, in_frames(m));
    return true;
}

/* The member with that address in frames. */
static struct member *member_of(const uint8_t *ip)
{
    if (ip[0] == class_e)
        return &members[roce_get32(ip) & (slots - 1)];
    return find(roce_get32(ip), ROCE_UDP_PORT);
}

void mcd_wire_leave(const uint8_t ip[4])
{
    struct member *m = member_of(ip);

    if (m && m->users)
        m->users--;
}

/* ---- headers ---- */

/* IPv4 and UDP in front of a transport packet, as softhca's sockets send them. */
static void write_headers(uint8_t *ip, size_t packet, uint8_t class, const uint8_t *from,
                          uint16_t from_port, const uint8_t *to, uint16_t to_port)
{
    static const uint8_t plain[ip_bytes] = {0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17};
    uint32_t sum = 0;

    memcpy(ip, plain, ip_bytes);
    ip[1] = class;
    roce_put16(ip + 2, (uint16_t)(ip_bytes + 8 + packet));
    memcpy(ip + 12, from, 4);
    memcpy(ip + 16, to, 4);
    for (unsigned i = 0; i < ip_bytes; i += 2)
        sum += roce_get16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    roce_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
    roce_put16(ip + 20, from_port);
    roce_put16(ip + 22, to_port);
    roce_put16(ip + 24, (uint16_t)(8 + packet));
    roce_put16(ip + 26, 0);
}

/* Updates the ICRC after a change of headers; `was` and `is` begin with IP and end with the BTH. */
static void follow(const uint8_t *was, const uint8_t *is, uint8_t *packet, size_t length)
{
    uint8_t *icrc = packet + length - ROCE_ICRC_BYTES;

    if (memcmp(was + 2, is + 2, 6) == 0 && memcmp(was + 12, is + 12, 12) == 0)
        return;
    roce_put_icrc(icrc, roce_icrc_rewrite(roce_get_icrc(icrc), was, is, covered,
                                          length - ROCE_BTH_BYTES - ROCE_ICRC_BYTES));
}

/* ---- incoming ---- */

static uint8_t class_of(const struct mcd_batch *b, unsigned i)
{
    struct msghdr m = {.msg_control = (void *)b->control[i],
                       .msg_controllen = b->control_length[i]};

    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
            return *CMSG_DATA(c);
    return 0;
}

static void take(const struct end *e, struct mcd_batch *b, unsigned i)
{
    const struct sockaddr_in *from = &b->from[i].in;
    struct member *m = find(ntohl(from->sin_addr.s_addr), ntohs(from->sin_port));
    uint8_t was[covered], ip[4], *packet = b->bytes[i], *frame = packet - headers;
    size_t length = b->length[i];

    wire->count.frames_in++;
    wire->count.bytes_in += length;
    if (!m || length < ROCE_BTH_BYTES + ROCE_ICRC_BYTES || length > ROCE_PACKET_MAX) {
        wire->count.strangers += !m;
        wire->count.too_long += length > ROCE_PACKET_MAX;
        return;
    }
    if (mcd_port_lost(&wire->count.lost_in))
        return;
    roce_put32(ip, in_frames(m));
    memcpy(frame, vips->mac, 6);
    frame[6] = 2; /* a locally administered address, which no code reads */
    frame[7] = 0;
    memcpy(frame + 8, ip, 4);
    roce_put16(frame + 12, 0x0800);
    write_headers(frame + ethernet, length, class_of(b, i), ip, ROCE_UDP_PORT,
                  e == &ends[REQUESTS] ? vips->requests : vips->copies, ROCE_UDP_PORT);
    write_headers(was, length, 0, (const uint8_t *)&from->sin_addr, ntohs(from->sin_port),
                  (const uint8_t *)&e->at.sin_addr, ntohs(e->at.sin_port));
    memcpy(was + ip_bytes + 8, packet, ROCE_BTH_BYTES);
    follow(was, frame + ethernet, packet, length);
    mcd_port_take(wire, frame, headers + length);
}

static void ready(struct mcd_source *s, uint32_t events)
{
    (void)events;
    for (int left = rounds; left > 0; left--) {
        struct mcd_batch *b;
        unsigned n = mcd_port_receive(s->fd, &b);

        for (unsigned i = 0; i < n; i++)
            take((const struct end *)(const void *)s, b, i);
        if (n < MCD_BATCH)
            return;
    }
}

/* ---- outgoing ---- */

void mcd_wire_send(const uint8_t *frame, size_t length)
{
    const uint8_t *ip = frame + ethernet;
    const struct member *m =
        length < headers + ROCE_BTH_BYTES + ROCE_ICRC_BYTES ? NULL : member_of(ip + 16);
    const struct end *e = &ends[memcmp(ip + 12, vips->copies, 4) == 0 ? COPIES : REQUESTS];
    uint8_t is[covered], packet[ROCE_PACKET_MAX], to_ip[4];
    struct sockaddr_in to = {.sin_family = AF_INET};

    if (!m || !m->users || length > headers + sizeof packet) {
        wire->count.lost_out++;
        return;
    }
    length -= headers;
    memcpy(packet, frame + headers, length);
    roce_put32(to_ip, m->ip);
    write_headers(is, length, 0, (const uint8_t *)&e->at.sin_addr, ntohs(e->at.sin_port), to_ip,
                  m->port);
    memcpy(is + ip_bytes + 8, packet, ROCE_BTH_BYTES);
    follow(ip, is, packet, length);
    to.sin_addr.s_addr = htonl(m->ip);
    to.sin_port = htons(m->port);
    mcd_port_datagram(wire, e->source.fd, &to, packet, length, (ip[1] & 3) == 3);
}

/* ---- opening ---- */

static bool report_error(const char *text, const char *why)
{
    fprintf(stderr, "mcswitchd: --udp %s: %s\n", text, why);
    return false;
}

static bool parse(const char *text)
{
    const char *comma = strchr(text, ',');
    char first[32];

    if (!comma || comma - text >= (ptrdiff_t)sizeof first)
        return false;
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = 0;
    for (int i = 0; i < ENDS; i++) {
        unsigned port;

        if (!mcd_frames_inet(i == REQUESTS ? first : comma + 1, &ends[i].at, ROCE_UDP_PORT))
            return false;
        port = ntohs(ends[i].at.sin_port);
        if (port != ROCE_UDP_PORT && (port < softhca_first || port > softhca_last))
            return false;
    }
    return ends[REQUESTS].at.sin_addr.s_addr != ends[COPIES].at.sin_addr.s_addr ||
           ends[REQUESTS].at.sin_port != ends[COPIES].at.sin_port;
}

static bool open_end(struct end *e)
{
    int discover = IP_PMTUDISC_DO; /* makes IP's identification 0; the ICRC covers it */
    int capable = 2, on = 1;

    e->source = (struct mcd_source){
        .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), .ready = ready};
    if (e->source.fd < 0)
        return false;
    setsockopt(e->source.fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    setsockopt(e->source.fd, IPPROTO_IP, IP_TOS, &capable, sizeof capable);
    setsockopt(e->source.fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
    mcd_frames_buffers(e->source.fd);
    return bind(e->source.fd, (struct sockaddr *)&e->at, sizeof e->at) == 0 &&
           mcd_loop_add(&e->source, EPOLLIN);
}

/* Chooses the switch's addresses in frames: the real ones if they differ. */
static void choose_vips(struct mcd_vips *v)
{
    static const uint8_t made[ENDS][4] = {{class_e, 255, 255, 1}, {class_e, 255, 255, 2}};
    bool real = ends[REQUESTS].at.sin_addr.s_addr != ends[COPIES].at.sin_addr.s_addr;

    memcpy(v->requests, real ? (void *)&ends[REQUESTS].at.sin_addr : made[REQUESTS], 4);
    memcpy(v->copies, real ? (void *)&ends[COPIES].at.sin_addr : made[COPIES], 4);
}

bool mcd_wire_open(const char *text, struct mcd_vips *v)
{
    ends[REQUESTS].source.fd = ends[COPIES].source.fd = -1;
    if (strlen(text) >= MCD_NAME || !parse(text)) {
        mcd_status = 2;
        return report_error(text,
                            "it is no REQUESTS,COPIES: two different addresses A.B.C.D[:PORT], "
                            "port 4791 or 45056 to 49151");
    }
    wire = mcd_port_new(MCD_WIRE, text);
    if (!wire)
        return false;
    for (int i = 0; i < ENDS; i++)
        if (!open_end(&ends[i]))
            return report_error(text, strerror(errno));
    if (v->requests[0] == 0)
        choose_vips(v);
    vips = v;
    return true;
}

void mcd_wire_close(void)
{
    for (int i = 0; i < ENDS && wire; i++)
        mcd_loop_close(&ends[i].source);
}

static void write_gid(const struct sockaddr_in *at, uint8_t gid[16])
{
    static const uint8_t prefix[8] = {0xfd, 0x53, 0x48, 0x43, 0x41, 0, 0, 1}; /* softhca's form */

    memset(gid, 0, 16);
    memcpy(gid, prefix, sizeof prefix);
    memcpy(gid + 8, &at->sin_addr, 4);
    memcpy(gid + 12, &at->sin_port, 2);
}

void mcd_wire_gids(uint8_t requests[16], uint8_t copies[16])
{
    write_gid(&ends[REQUESTS].at, requests);
    write_gid(&ends[COPIES].at, copies);
}
