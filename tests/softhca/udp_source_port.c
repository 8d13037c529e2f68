/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP port from which packets of a connection come, if the peer's GID does not contain it. On
 * loopback it is 4791 from the beginning; for a card or the kernel the receiver learns it from the
 * first request and the first response with the expected numbers. A sender that knows all numbers
 * of the connection and has the peer's address, but another port, changes nothing: no request, no
 * acknowledgement, no NAK, no data of a read. Each such packet is counted. Owns nothing; the victim
 * is a process of its own. */
#include "config.h"

#include "crafted.h"

enum {
    first_psn = 0x700,
    card_port = 0xc123,   /* that a card asks from, */
    answer_port = 0xd234, /* and where its answers come from */
    read_offset = 8192,
};

static unsigned dropped; /* packets so far that have to be counted as from a wrong port */

/* ---- both ends ---- */

/* In softhca's own part of 127/8, or below, where others have addresses too. */
static uint32_t address_for(bool own_part, unsigned number)
{
    uint32_t base = own_part ? UINT32_C(0x7fc00000) : UINT32_C(0x7f210000);

    return base | ((uint32_t)getpid() & 0x3fff) << 2 | (number & 1) << 1 | 1;
}

static struct address plain_address(uint32_t ipv4)
{
    return (struct address){.qpn = peer_qpn,
                            .psn = first_psn,
                            .gid.global.interface_id =
                                htobe64(UINT64_C(0x0000ffff00000000) | ipv4)};
}

static void aim(struct victim *v, struct end *e)
{
    uint64_t id;

    *v = (struct victim){.end = e, .address = address_of(e), .psn = first_psn};
    id = be64toh(v->address.gid.global.interface_id);
    v->at.sin_family = AF_INET;
    v->at.sin_addr.s_addr = htonl((uint32_t)(id >> 32));
    v->at.sin_port = htons((uint16_t)(id >> 16));
}

/* Its requests are given up after half a minute: a machine may be busy. */
static void connect_patiently(struct end *e, const struct address *to)
{
    enum { timeout = 20 /* 4.3 s, eight times */ };

    to_init_at(e->qp, e->port);
    to_rtr_at(e->qp, to, e->port);
    to_rts(e, timeout, 7);
}

static void open_plain(struct victim *v, struct end *e, uint32_t ipv4)
{
    struct address to = plain_address(ipv4);

    end_open(e, NULL);
    connect_patiently(e, &to);
    aim(v, e);
}

/* A write of the peer arrives and is acknowledged: what came before it has been looked at. */
static void good(const struct sender *from, const struct sender *answers, struct victim *v)
{
    uint64_t bytes = ++v->sent * UINT64_C(0x0101010101010101);
    struct roce_packet p = write_to(v, good_slot, &bytes);

    send_packet(from, v, &p);
    CHECK_EQ(answer(answers, v->psn) & ROCE_SYNDROME_KIND, ROCE_SYNDROME_ACK);
    v->psn = roce_psn_add(v->psn, 1);
    CHECK_EQ(memcmp(v->end->buf + good_slot, &bytes, 8), 0);
    for (int i = 0; i < good_slot; i++)
        CHECK_EQ(v->end->buf[i], 0);
}

static struct roce_packet response(const struct victim *v, unsigned operation, uint32_t psn,
                                   uint8_t syndrome)
{
    return (struct roce_packet){.opcode = roce_opcode_of(ROCE_RC, operation),
                                .pkey = 0xffff,
                                .dest_qpn = v->address.qpn,
                                .psn = psn,
                                .syndrome = syndrome};
}

static void ask(struct victim *v, enum ibv_wr_opcode opcode)
{
    static const struct address remote = {.rkey = 0x77, .addr = 0x1000};

    CHECK_EQ(post(v->end, opcode, 1, read_offset, 8, IBV_SEND_SIGNALED, &remote, 0), 0);
}

/* ---- packets of a stranger ---- */

static void forge_requests(const struct sender *stranger, struct victim *v)
{
    struct roce_packet w = write_to(v, 0, "hostile!"), send = w;

    send.opcode = roce_opcode_of(ROCE_RC, ROCE_SEND_ONLY);
    send_packet(stranger, v, &w);
    send_packet(stranger, v, &send);
    dropped += 2;
    w.psn = roce_psn_add(v->psn, 3); /* too early: no NAK either */
    send_packet(stranger, v, &w);
    dropped++;
}

static void forge_notification(const struct sender *stranger, const struct victim *v)
{
    static const uint8_t reserved[16];
    struct roce_packet p = {.opcode = ROCE_CNP,
                            .becn = true,
                            .pkey = 0xffff,
                            .dest_qpn = v->address.qpn,
                            .payload = reserved,
                            .payload_length = sizeof reserved};

    send_packet(stranger, v, &p);
    dropped++;
}

static void forge_responses(const struct sender *stranger, struct victim *v, uint32_t psn)
{
    static const uint8_t naks[] = {ROCE_NAK_SEQUENCE, ROCE_NAK_INVALID, ROCE_NAK_ACCESS,
                                   ROCE_NAK_OPERATION};
    struct roce_packet p;

    for (size_t i = 0; i < sizeof naks; i++) {
        p = response(v, ROCE_ACKNOWLEDGE, psn, naks[i]);
        send_packet(stranger, v, &p);
    }
    p = response(v, ROCE_ACKNOWLEDGE, psn, ROCE_SYNDROME_ACK);
    send_packet(stranger, v, &p);
    p = response(v, ROCE_READ_RESPONSE_ONLY, psn, ROCE_SYNDROME_ACK);
    p.payload = (const uint8_t *)"hostile!";
    p.payload_length = 8;
    send_packet(stranger, v, &p);
    dropped += sizeof naks + 2;
}

/* A write and a read of the victim, which strangers and then the peer answer. */
static void answered_by_peer_alone(const struct sender *asks, const struct sender *says,
                                   const struct sender *at_4791, const struct sender *stranger,
                                   struct victim *v, uint32_t *next)
{
    static const enum ibv_wr_opcode kinds[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

    for (size_t i = 0; i < 2; i++) {
        struct roce_packet p;

        memset(v->end->buf + read_offset, 0, 8);
        ask(v, kinds[i]);
        forge_responses(stranger, v, *next);
        good(asks, at_4791, v);
        no_wc(v->end->scq);
        p = response(v, i ? ROCE_READ_RESPONSE_ONLY : ROCE_ACKNOWLEDGE, *next, ROCE_SYNDROME_ACK);
        if (i) {
            p.payload = (const uint8_t *)"the peer";
            p.payload_length = 8;
        }
        send_packet(says, v, &p);
        CHECK_EQ(wait_wc(v->end->scq).status, IBV_WC_SUCCESS);
        CHECK_EQ(memcmp(v->end->buf + read_offset, i ? "the peer" : "\0\0\0\0\0\0\0", 8), 0);
        *next = roce_psn_add(*next, 1);
    }
}

/* ---- cases ---- */

/* Not even before the first packet of the peer. */
static void loopback(void)
{
    uint32_t ipv4 = address_for(true, 0);
    struct sender peer = sender_open(ipv4, ROCE_UDP_PORT), stranger = sender_open(ipv4, 0);
    struct victim v;
    struct end e;
    uint32_t next;

    open_plain(&v, &e, ipv4);
    next = (uint32_t)e.psn;
    CHECK_EQ(post_recv(&e, 1, 0, 64), 0);
    forge_requests(&stranger, &v);
    forge_notification(&stranger, &v);
    answered_by_peer_alone(&peer, &peer, &peer, &stranger, &v, &next);
    forge_requests(&stranger, &v);
    good(&peer, &peer, &v);
    no_wc(e.rcq);
    end_close(&e);
    close(peer.fd);
    close(stranger.fd);
}

/* The receiver learns nothing from a packet with a wrong number, or from an unrequested
 * response. */
static void learnt(void)
{
    uint32_t ipv4 = address_for(false, 1);
    struct sender at_4791 = sender_open(ipv4, ROCE_UDP_PORT), asks = sender_open(ipv4, card_port),
                  says = sender_open(ipv4, answer_port), stranger = sender_open(ipv4, 0);
    struct roce_packet p;
    struct victim v;
    struct end e;
    uint32_t next;

    open_plain(&v, &e, ipv4);
    next = (uint32_t)e.psn;
    CHECK_EQ(post_recv(&e, 1, 0, 64), 0);
    p = write_to(&v, 0, "hostile!");
    p.psn = roce_psn_add(v.psn, 5);
    send_packet(&stranger, &v, &p);
    CHECK_EQ(answer(&at_4791, v.psn), ROCE_NAK_SEQUENCE);
    p = response(&v, ROCE_ACKNOWLEDGE, next, ROCE_NAK_ACCESS);
    send_packet(&stranger, &v, &p);
    good(&asks, &at_4791, &v);
    forge_requests(&stranger, &v);
    forge_requests(&says, &v);
    ask(&v, IBV_WR_RDMA_WRITE);
    p = response(&v, ROCE_ACKNOWLEDGE, next, ROCE_SYNDROME_ACK);
    send_packet(&says, &v, &p);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    next = roce_psn_add(next, 1);
    answered_by_peer_alone(&asks, &says, &at_4791, &stranger, &v, &next);
    forge_requests(&stranger, &v);
    good(&asks, &at_4791, &v);
    no_wc(e.rcq);
    end_close(&e);
    close(at_4791.fd);
    close(asks.fd);
    close(says.fd);
    close(stranger.fd);
}

/* The learnt ports belong to one connection: the next one has another peer. */
static void learnt_anew(void)
{
    uint32_t ipv4 = address_for(false, 0);
    struct sender at_4791 = sender_open(ipv4, ROCE_UDP_PORT), one = sender_open(ipv4, 0),
                  other = sender_open(ipv4, 0);
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct address to = plain_address(ipv4);
    struct victim v;
    struct end e;

    open_plain(&v, &e, ipv4);
    good(&one, &at_4791, &v);
    forge_requests(&other, &v);
    good(&one, &at_4791, &v);
    CHECK_EQ(ibv_modify_qp(e.qp, &reset, IBV_QP_STATE), 0);
    memset(e.buf, 0, BUF_BYTES);
    connect_patiently(&e, &to);
    aim(&v, &e);
    good(&other, &at_4791, &v);
    forge_requests(&one, &v);
    good(&other, &at_4791, &v);
    end_close(&e);
    close(at_4791.fd);
    close(one.fd);
    close(other.fd);
}

/* ---- counters ---- */

static long counted(const char *file, const char *name)
{
    char line[4096], *at;
    FILE *f = fopen(file, "r");

    CHECK(f != NULL);
    CHECK(fgets(line, sizeof line, f) != NULL);
    fclose(f);
    at = strstr(line, name);
    CHECK(at != NULL);
    return strtol(at + strlen(name), NULL, 10);
}

/* Counters are written when a process ends. */
static void in_a_process(const char *name, void (*act)(void))
{
    char stats[] = "/tmp/udp_source_port.XXXXXX";
    int fd = mkstemp(stats), pipe_of[2], status;
    unsigned expected = 0;
    pid_t pid;

    CHECK(fd >= 0 && pipe(pipe_of) == 0);
    close(fd);
    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("SOFTHCA_STATS", stats, 1);
        deadline(ALARM);
        act();
        CHECK_EQ(write(pipe_of[1], &dropped, sizeof dropped), sizeof dropped);
        exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    if (status == 0)
        CHECK_EQ(read(pipe_of[0], &expected, sizeof expected), sizeof expected);
    else
        fprintf(stderr, "%s: the victim ended with status %#x\n", name, (unsigned)status);
    close(pipe_of[0]);
    close(pipe_of[1]);
    CHECK_EQ(status, 0);
    CHECK_EQ(counted(stats, " port "), expected);
    CHECK_EQ(counted(stats, " strangers "), expected);
    CHECK_EQ(counted(stats, " damaged "), 0);
    unlink(stats);
    printf("ok   %s\n", name);
}

int main(void)
{
    setenv("SOFTHCA_WIRE", "udp", 1);
    deadline(ALARM);
    in_a_process("loopback", loopback);
    in_a_process("learnt", learnt);
    in_a_process("learnt_anew", learnt_anew);
    return 0;
}
