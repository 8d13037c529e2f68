/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile senders of packets whose ICRC is right. The peer of the queue pairs is this program with
 * sockets of its own, so that it also sends what no end point would: from another address or port,
 * with a wrong key, partition, queue pair or sequence number, with headers missing. Nothing of that
 * changes memory or disturbs the connection, all of it is counted, and only a bad key from the peer
 * itself breaks the queue pair that it came to. And marks of congestion are answered. Owns nothing;
 * a process of its own is the victim.
 */
#include "config.h"

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
    hostile_rounds = 3,
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

static struct sender sender_open(uint32_t ipv4, uint16_t port)
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
static struct sender peer_open(void)
{
    return sender_open(UINT32_C(0x7f200000) | ((uint32_t)getpid() & 0xffff) << 4 | 1,
                       ROCE_UDP_PORT);
}

/* Sends the bytes of a transport packet with the ICRC of this path. */
static void seal_and_send(const struct sender *s, const struct victim *v, uint8_t *packet, size_t n)
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

static void send_packet(const struct sender *s, const struct victim *v, const struct roce_packet *p)
{
    uint8_t out[ROCE_PACKET_MAX];
    size_t n = roce_packet_build(p, out, sizeof out - ROCE_ICRC_BYTES);

    CHECK(n > 0);
    seal_and_send(s, v, out, n);
}

/* A write of 8 bytes that the victim would execute if it came from its peer. */
static struct roce_packet write_to(const struct victim *v, size_t offset, const void *bytes)
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
static uint8_t answer(const struct sender *peer, uint32_t psn)
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

/* The connection still works: the peer's write arrives and is acknowledged, and all that was sent
 * before it has been looked at. */
static void still_good(const struct sender *peer, struct victim *v)
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

static void open_victim(struct victim *v, struct end *e, const struct sender *peer)
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

/* A packet that a router marked as it was congested is answered by a notification. */
static void marked(const struct sender *peer, struct victim *v)
{
    int congested = 3, capable = 2;

    CHECK_EQ(setsockopt(peer->fd, IPPROTO_IP, IP_TOS, &capable, sizeof capable), 0);
    still_good(peer, v);
    CHECK_EQ(notifications, 0);
    CHECK_EQ(setsockopt(peer->fd, IPPROTO_IP, IP_TOS, &congested, sizeof congested), 0);
    still_good(peer, v);
    CHECK_EQ(setsockopt(peer->fd, IPPROTO_IP, IP_TOS, &capable, sizeof capable), 0);
    still_good(peer, v);
    CHECK_EQ(notifications, 1);
}

/* ---- hostile packets ---- */

static void from_elsewhere(const struct sender *peer, struct victim *v)
{
    uint32_t ipv4 = ntohl(peer->at.sin_addr.s_addr);
    struct sender address = sender_open(ipv4 + 1, ROCE_UDP_PORT), port = sender_open(ipv4, 0);
    struct roce_packet w = write_to(v, 0, "hostile!");
    struct roce_packet ack = {.opcode = roce_opcode_of(ROCE_RC, ROCE_ACKNOWLEDGE),
                              .pkey = 0xffff,
                              .dest_qpn = v->address.qpn,
                              .psn = v->psn,
                              .syndrome = ROCE_NAK_ACCESS};

    send_packet(&address, v, &w);
    send_packet(&port, v, &w);
    send_packet(&address, v, &ack);
    send_packet(&port, v, &ack);
    still_good(peer, v);
    close(address.fd);
    close(port.fd);
}

static void wrong_headers(const struct sender *peer, struct victim *v)
{
    struct roce_packet w = write_to(v, 0, "hostile!"), p;

    p = w;
    p.pkey = 0x8123;
    send_packet(peer, v, &p);
    p = w;
    p.opcode = roce_opcode_of(ROCE_UC, ROCE_WRITE_ONLY);
    send_packet(peer, v, &p);
    p = w;
    p.dest_qpn ^= 1u << 12; /* of another process */
    send_packet(peer, v, &p);
    p = w;
    p.dest_qpn ^= 0x100; /* of none */
    send_packet(peer, v, &p);
    still_good(peer, v);
}

/* Too early: one NAK, nothing is written. Long ago: acknowledged again, not written. */
static void wrong_numbers(const struct sender *peer, struct victim *v)
{
    struct roce_packet p = write_to(v, 0, "hostile!");

    p.psn = roce_psn_add(v->psn, 1000);
    send_packet(peer, v, &p);
    CHECK_EQ(answer(peer, v->psn), ROCE_NAK_SEQUENCE);
    p.psn = roce_psn_add(v->psn, ROCE_PSN_MASK - 1);
    send_packet(peer, v, &p);
    p.psn = roce_psn_add(v->psn, 1u << 22);
    send_packet(peer, v, &p);
    still_good(peer, v);
}

/* A packet that ends inside of its headers, behind a right ICRC. */
static void truncated(const struct sender *peer, struct victim *v)
{
    struct roce_packet p = write_to(v, 0, "hostile!");
    uint8_t out[ROCE_PACKET_MAX];

    for (size_t n = 0; n < ROCE_BTH_BYTES + 16; n += 4) {
        CHECK(roce_packet_build(&p, out, sizeof out) > n);
        seal_and_send(peer, v, out, n);
    }
    /* More padding than payload. */
    CHECK(roce_packet_build(&p, out, sizeof out) > 0);
    out[1] |= 0x30;
    seal_and_send(peer, v, out, ROCE_BTH_BYTES + 16);
    still_good(peer, v);
}

/* From the right address, to the right queue pair, in order: this one breaks, no other does. */
static void bad_key(const struct sender *peer, struct victim *v, struct victim *other)
{
    struct roce_packet p = write_to(v, 0, "hostile!");
    struct ibv_async_event event;

    p.rkey ^= 0x5500;
    send_packet(peer, v, &p);
    CHECK_EQ(answer(peer, v->psn), ROCE_NAK_ACCESS);
    do {
        CHECK_EQ(ibv_get_async_event(v->end->ctx, &event), 0);
        ibv_ack_async_event(&event);
    } while (event.event_type == IBV_EVENT_COMM_EST);
    CHECK_EQ(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
    CHECK_EQ(v->end->buf[0], 0);
    still_good(peer, other);
}

static void attack(void)
{
    struct sender peer = peer_open();
    struct victim v, other;
    struct end ends[2];

    open_victim(&v, &ends[0], &peer);
    open_victim(&other, &ends[1], &peer);
    still_good(&peer, &v);
    still_good(&peer, &other);
    for (int i = 0; i < hostile_rounds; i++) {
        from_elsewhere(&peer, &v);
        wrong_headers(&peer, &v);
        wrong_numbers(&peer, &v);
        truncated(&peer, &v);
    }
    marked(&peer, &v);
    bad_key(&peer, &v, &other);
    end_close(&ends[0]);
    end_close(&ends[1]);
    close(peer.fd);
}

/* ---- counters ---- */

static long counted(const char *file, const char *name)
{
    char line[4096], *at;
    FILE *f = fopen(file, "r");

    CHECK(f != NULL && fgets(line, sizeof line, f) != NULL);
    fclose(f);
    at = strstr(line, name);
    CHECK(at != NULL);
    return strtol(at + strlen(name), NULL, 10);
}

int main(void)
{
    char stats[] = "/tmp/udp_stranger.XXXXXX";
    int fd = mkstemp(stats), status;
    pid_t pid;

    CHECK(fd >= 0);
    close(fd);
    setenv("SOFTHCA_WIRE", "udp", 1);
    setenv("SOFTHCA_STATS", stats, 1);
    deadline(ALARM);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        deadline(ALARM);
        attack();
        exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (status == 0) {
        /* Each round: four from elsewhere, two partitions or transports, two queue pairs. */
        CHECK_EQ(counted(stats, " strangers "), hostile_rounds * 8);
        CHECK_EQ(counted(stats, " damaged "), hostile_rounds * 8);
    }
    unlink(stats);
    if (status != 0)
        fprintf(stderr, "the victim ended with status %#x\n", (unsigned)status);
    return status != 0;
}
