/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that a test makes itself: sockets that play a peer, queue pairs that are connected to
 * them, transport packets with the right ICRC for their path. Owns nothing. */
#ifndef SOFTHCA_CRAFTED_H
#define SOFTHCA_CRAFTED_H

#include "harness.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>

#include "packet/bytes.h"
#include "packet/icrc.h"
#include "packet/packet.h"
#include "packet/psn.h"

enum {
    peer_qpn = 0x4711,
    good_slot = 4096, /* where the peer's own writes go; hostile ones aim at 0 */
};

struct sender {
    int fd;
    struct sockaddr_in at;
};

struct victim {
    struct end *end;
    struct sockaddr_in at;
    struct address address;
    uint32_t psn;  /* the next that it expects */
    uint64_t sent; /* of the peer's writes */
};

static inline struct sender sender_open(uint32_t ipv4, uint16_t port)
{
    struct sender s = {
        .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
        .at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ipv4)}};
    struct timeval limit = {.tv_sec = HANG};
    int discover = IP_PMTUDISC_DO; /* identification 0, which the ICRC covers */
    socklen_t length = sizeof s.at;

    CHECK(s.fd >= 0);
    CHECK_EQ(bind(s.fd, (struct sockaddr *)&s.at, sizeof s.at), 0);
    CHECK_EQ(getsockname(s.fd, (struct sockaddr *)&s.at, &length), 0);
    CHECK_EQ(setsockopt(s.fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover), 0);
    CHECK_EQ(setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    return s;
}

/* The peer's address: one of 127/8 that has port 4791 free, below those that softhca takes. */
static inline struct sender peer_open(void)
{
    return sender_open(UINT32_C(0x7f200000) | ((uint32_t)getpid() & 0xffff) << 4 | 1,
                       ROCE_UDP_PORT);
}

/* Sends the bytes of a transport packet with the ICRC of this path. */
static inline void seal_and_send(const struct sender *s, const struct victim *v, uint8_t *packet,
                                 size_t n)
{
    struct roce_path path = {.version = 4,
                             .source_port = ntohs(s->at.sin_port),
                             .destination_port = ntohs(v->at.sin_port)};

    memcpy(path.source, &s->at.sin_addr, 4);
    memcpy(path.destination, &v->at.sin_addr, 4);
    if (n >= ROCE_BTH_BYTES) /* less has no ICRC */
        roce_put_icrc(packet + n, roce_icrc(&path, packet, n));
    CHECK_EQ(sendto(s->fd, packet, n + ROCE_ICRC_BYTES, 0, (const struct sockaddr *)&v->at,
                    sizeof v->at),
             n + ROCE_ICRC_BYTES);
}

static inline void send_packet(const struct sender *s, const struct victim *v,
                               const struct roce_packet *p)
{
    uint8_t out[ROCE_PACKET_MAX];
    size_t n = roce_packet_build(p, out, sizeof out - ROCE_ICRC_BYTES);

    CHECK(n > 0);
    seal_and_send(s, v, out, n);
}

/* A write of 8 bytes that the victim would execute if it came from its peer. */
static inline struct roce_packet write_to(const struct victim *v, size_t offset, const void *bytes)
{
    return (struct roce_packet){.opcode = roce_opcode_of(ROCE_RC, ROCE_WRITE_ONLY),
                                .ack_request = true,
                                .pkey = 0xffff,
                                .dest_qpn = v->address.qpn,
                                .psn = v->psn,
                                .va = v->address.addr + offset,
                                .rkey = v->address.rkey,
                                .dma_length = 8,
                                .payload = bytes,
                                .payload_length = 8};
}

static unsigned notifications; /* of congestion, that the peer got */

/* The next answer to this sequence number. */
static inline uint8_t answer(const struct sender *peer, uint32_t psn)
{
    uint8_t in[ROCE_PACKET_MAX];
    struct roce_packet p;

    for (;;) {
        ssize_t n = recv(peer->fd, in, sizeof in, 0);

        CHECK(n > ROCE_ICRC_BYTES);
        CHECK_EQ(roce_packet_parse(in, (size_t)n - ROCE_ICRC_BYTES, &p), ROCE_GOOD);
        CHECK_EQ(p.dest_qpn, peer_qpn);
        notifications += p.opcode == ROCE_CNP && p.becn;
        if (p.psn == psn && p.opcode == roce_opcode_of(ROCE_RC, ROCE_ACKNOWLEDGE))
            return p.syndrome;
    }
}

/* The connection still works: the peer's write arrives and is acknowledged, so all earlier packets
 * have been handled. */
static inline void still_good(const struct sender *peer, struct victim *v)
{
    uint64_t bytes = ++v->sent * UINT64_C(0x0101010101010101);
    struct roce_packet p = write_to(v, good_slot, &bytes);

    send_packet(peer, v, &p);
    CHECK_EQ(answer(peer, v->psn) & ROCE_SYNDROME_KIND, ROCE_SYNDROME_ACK);
    v->psn = roce_psn_add(v->psn, 1);
    CHECK_EQ(memcmp(v->end->buf + good_slot, &bytes, 8), 0);
    for (int i = 0; i < good_slot; i++)
        CHECK_EQ(v->end->buf[i], 0);
}

static inline void open_victim(struct victim *v, struct end *e, const struct sender *peer)
{
    union ibv_gid gid = {.global.subnet_prefix = htobe64(UINT64_C(0xfd53484341000001)),
                         .global.interface_id =
                             htobe64((uint64_t)ntohl(peer->at.sin_addr.s_addr) << 32 |
                                     (uint64_t)ROCE_UDP_PORT << 16)};
    struct address to = {.qpn = peer_qpn, .psn = 0x700, .gid = gid};
    uint64_t id;

    end_open(e, NULL);
    *v = (struct victim){.end = e, .address = address_of(e), .psn = to.psn};
    id = be64toh(v->address.gid.global.interface_id);
    v->at.sin_family = AF_INET;
    v->at.sin_addr.s_addr = htonl((uint32_t)(id >> 32));
    v->at.sin_port = htons((uint16_t)(id >> 16));
    connect_to(e, &to);
}

#endif
