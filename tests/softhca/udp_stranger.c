/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile senders of packets whose ICRC is right. The peer of the queue pairs is this program with
 * sockets of its own, so that it can send packets that no end point would: from another address or
 * port, with a wrong key, partition, queue pair or sequence number, with missing headers. None of
 * these changes memory or disturbs the connection, all are counted, and only a bad key from the
 * peer itself breaks its queue pair. Marks of congestion are answered. Owns nothing; a process of
 * its own is the victim. */
#include "config.h"

#include "crafted.h"

enum { hostile_rounds = 3 };

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

static void wrong_headers(const struct sender *peer, struct victim *v, const struct victim *other)
{
    struct roce_packet w = write_to(v, 0, "hostile!"), p;

    p = w;
    p.pkey = 0x8123;
    send_packet(peer, v, &p);
    p = w;
    p.opcode = roce_opcode_of(ROCE_UC, ROCE_WRITE_ONLY);
    send_packet(peer, v, &p);
    p = w;
    p.dest_qpn ^= 1u << 14; /* of another process */
    send_packet(peer, v, &p);
    p = w;
    p.dest_qpn ^= other->address.qpn == (p.dest_qpn ^ 0x100) ? 0x200 : 0x100; /* of none */
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
        wrong_headers(&peer, &v, &other);
        wrong_numbers(&peer, &v);
        truncated(&peer, &v);
    }
    marked(&peer, &v);
    bad_key(&peer, &v, &other);
    end_close(&ends[0]);
    end_close(&ends[1]);
    close(peer.fd);
}

/* The number of a queue pair follows neither from the one before nor from an earlier program's: of
 * 16 random ones two are neighbours once in 1000 runs, and eight never. */
static void numbers_are_random(void)
{
    enum { queue_pairs = 16, few = queue_pairs / 2 };
    uint32_t number[2][queue_pairs];
    int neighbours = 0, equal = 0;

    for (int round = 0; round < 2; round++) {
        struct end e[queue_pairs];

        for (int i = 0; i < queue_pairs; i++) {
            end_open(&e[i], NULL);
            number[round][i] = e[i].qp->qp_num;
            neighbours += i > 0 && number[round][i] == number[round][i - 1] + 1;
            equal += round == 1 && number[1][i] - number[1][0] == number[0][i] - number[0][0];
        }
        for (int i = 0; i < queue_pairs; i++)
            end_close(&e[i]);
    }
    CHECK(neighbours < few);
    CHECK(equal < few);
}

/* ---- counters ---- */

static long counted_in(const char *file, int number, const char *name)
{
    char line[4096], *at;
    FILE *f = fopen(file, "r");

    CHECK(f != NULL);
    for (int i = 0; i <= number; i++)
        CHECK(fgets(line, sizeof line, f) != NULL);
    fclose(f);
    at = strstr(line, name);
    CHECK(at != NULL);
    return strtol(at + strlen(name), NULL, 10);
}

/* The second line: the first is a child's, which has a device of its own and got nothing. */
static long counted(const char *file, const char *name)
{
    CHECK_EQ(counted_in(file, 0, name), 0);
    return counted_in(file, 1, name);
}

static void child_that_counts_anew(void)
{
    pid_t pid = fork();
    int status;
    struct end e;

    CHECK(pid >= 0);
    if (pid == 0) {
        deadline(ALARM);
        end_open(&e, NULL);
        end_close(&e);
        _exit(0); /* not looking for leaks: what the parent had open is nobody's here */
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
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
        numbers_are_random();
        attack();
        child_that_counts_anew();
        exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (status == 0) {
        /* Each round: four from elsewhere, two partitions or transports, two queue pairs. */
        CHECK_EQ(counted(stats, " strangers "), hostile_rounds * 8);
        CHECK_EQ(counted(stats, " damaged "), hostile_rounds * 8);
        CHECK_EQ(counted(stats, " address "), hostile_rounds * 2);
        CHECK_EQ(counted(stats, " port "), hostile_rounds * 2);
        CHECK_EQ(counted(stats, " queue "), hostile_rounds * 2);
        CHECK_EQ(counted(stats, " partition "), hostile_rounds);
        CHECK_EQ(counted(stats, " transport "), hostile_rounds);
    }
    unlink(stats);
    if (status != 0)
        fprintf(stderr, "the victim ended with status %#x\n", (unsigned)status);
    return status != 0;
}
