/* SPDX-License-Identifier: BSD-3-Clause */
/* A malicious peer: packets with a right ICRC from the address that a queue pair is connected to,
 * and from others. Forbidden requests are refused with the specification's code; unrequested
 * answers have no effect; a message of several packets keeps its receive of an XRC queue and leaves
 * none behind. Under a seeded stream of almost valid packets no byte outside of memory registered
 * for it is written or sent, and each reason for a drop is counted. HOSTILE_SECONDS and
 * HOSTILE_SEED: of that stream. Owns nothing. */
#include "config.h"

#include "crafted.h"
#include "xrc.h"

#include <fcntl.h>

enum {
    mtu = 1024,
    local_bytes = 65536, /* registered without remote access: */
    secret_bytes = 16384,
    read_at = 16384, /* where reads put their data, and atomics, */
    read_bytes = 4096,
    receive_at = 24576, /* receives, */
    receive_bytes = 8192,
    source_at = 32768, /* and what is sent */
    open_at = 131072,  /* registered for everything */
    open_bytes = 8192,
    canary = 0xc5,
    secret = 0x5e,
    attack_byte = 0x33,
};

static struct ibv_mr *open_mr;

/* ---- memory ---- */

static void register_open(struct end *e)
{
    open_mr = ibv_reg_mr(e->pd, e->buf + open_at, open_bytes,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(open_mr != NULL);
}

static void lay_out(struct end *e)
{
    CHECK_EQ(ibv_dereg_mr(e->mr), 0);
    memset(e->buf, canary, BUF_BYTES);
    memset(e->buf, secret, secret_bytes);
    memset(e->buf + open_at, 0, open_bytes);
    memset(e->buf + source_at, 0x11, read_bytes);
    e->mr = ibv_reg_mr(e->pd, e->buf, local_bytes, IBV_ACCESS_LOCAL_WRITE);
    register_open(e);
    CHECK(e->mr != NULL);
}

static void unchanged(const struct end *e, size_t from, size_t to, int byte)
{
    for (size_t i = from; i < to; i++)
        if ((unsigned char)e->buf[i] != byte) {
            fprintf(stderr, "byte %zu of the victim was written: %#x\n", i,
                    (unsigned char)e->buf[i]);
            _exit(1);
        }
}

static void memory_is_whole(const struct end *e)
{
    unchanged(e, 0, secret_bytes, secret);
    unchanged(e, read_at + read_bytes, receive_at, canary);
    unchanged(e, source_at, source_at + read_bytes, 0x11);
    unchanged(e, source_at + read_bytes, open_at, canary);
    unchanged(e, open_at + open_bytes, BUF_BYTES, canary);
}

/* ---- the peer ---- */

static struct address peer_address(const struct sender *peer)
{
    uint64_t id = (uint64_t)ntohl(peer->at.sin_addr.s_addr) << 32 | (uint64_t)ROCE_UDP_PORT << 16;

    return (struct address){.qpn = peer_qpn,
                            .psn = 0x700,
                            .gid.global = {htobe64(UINT64_C(0xfd53484341000001)), htobe64(id)}};
}

/* Where packets for this queue pair of the victim go. */
static struct victim aim(struct end *e, uint32_t qpn)
{
    struct victim v = {.end = e, .psn = 0x700};
    union ibv_gid gid;
    uint64_t id;

    CHECK_EQ(ibv_query_gid(e->ctx, 1, 0, &gid), 0);
    id = be64toh(gid.global.interface_id);
    v.at.sin_family = AF_INET;
    v.at.sin_addr.s_addr = htonl((uint32_t)(id >> 32));
    v.at.sin_port = htons((uint16_t)(id >> 16));
    v.address = (struct address){
        .qpn = qpn, .rkey = open_mr ? open_mr->rkey : 0, .addr = (uintptr_t)e->buf + open_at};
    return v;
}

static void open_first(struct end *e, const struct sender *peer)
{
    (void)peer;
    end_open(e, &(struct end_options){.no_qp = true});
    lay_out(e);
}

static struct victim connected(struct end *e, const struct sender *peer)
{
    static const struct end_options standard;
    struct address to = peer_address(peer);

    end_qp(e, &standard);
    connect_to(e, &to);
    return aim(e, e->qp->qp_num);
}

static void disconnect(struct end *e)
{
    struct ibv_async_event event;
    struct ibv_wc wc;

    CHECK_EQ(fcntl(e->ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
    while (ibv_get_async_event(e->ctx, &event) == 0)
        ibv_ack_async_event(&event);
    CHECK_EQ(ibv_destroy_qp(e->qp), 0);
    e->qp = NULL;
    for (int i = 0; i < 64; i++) {
        ibv_poll_cq(e->scq, 1, &wc);
        ibv_poll_cq(e->rcq, 1, &wc);
    }
}

static void end_of(struct end *e)
{
    CHECK_EQ(ibv_dereg_mr(open_mr), 0);
    open_mr = NULL;
    end_close(e);
}

/* A write of the peer arrives, so all earlier packets have been handled. */
static void alive(const struct sender *peer, struct victim *v)
{
    uint64_t bytes = ++v->sent;
    struct roce_packet p = write_to(v, 0, &bytes);

    send_packet(peer, v, &p);
    CHECK_EQ(answer(peer, v->psn) & ROCE_SYNDROME_KIND, ROCE_SYNDROME_ACK);
    v->psn = roce_psn_add(v->psn, 1);
    CHECK_EQ(memcmp(v->end->buf + open_at, &bytes, sizeof bytes), 0);
    memory_is_whole(v->end);
}

/* ---- requests that are refused ---- */

struct refusal {
    const char *name;
    uint8_t operation;
    int64_t at; /* from the beginning of the open region */
    uint32_t told, payload;
    uint8_t syndrome;
    enum {
        plain,
        local,  /* with the key of the other region */
        wraps,  /* from 4 bytes before 2^64 on */
        inside, /* of a write whose first packet of two came before */
    } how;
};

static const struct refusal refusals[] = {
    {"another region's key", ROCE_WRITE_ONLY, 0, 8, 8, ROCE_NAK_ACCESS, local},
    {"a byte behind", ROCE_WRITE_ONLY, open_bytes - 7, 8, 8, ROCE_NAK_ACCESS, plain},
    {"a byte before", ROCE_WRITE_ONLY, -1, 8, 8, ROCE_NAK_ACCESS, plain},
    {"round the end", ROCE_WRITE_ONLY, 0, 8, 8, ROCE_NAK_ACCESS, wraps},
    {"longer than the region", ROCE_WRITE_FIRST, 0, open_bytes + 1, mtu, ROCE_NAK_ACCESS, plain},
    {"4 GiB", ROCE_WRITE_FIRST, 0, UINT32_MAX, mtu, ROCE_NAK_ACCESS, plain},
    {"4 GiB read", ROCE_READ_REQUEST, 0, UINT32_MAX, 0, ROCE_NAK_ACCESS, plain},
    {"a byte behind, read", ROCE_READ_REQUEST, 1, open_bytes, 0, ROCE_NAK_ACCESS, plain},
    {"round the end, read", ROCE_READ_REQUEST, 0, 8, 0, ROCE_NAK_ACCESS, wraps},
    {"another region's key, read", ROCE_READ_REQUEST, 0, 8, 0, ROCE_NAK_ACCESS, local},
    {"an atomic behind", ROCE_FETCH_ADD, open_bytes, 0, 0, ROCE_NAK_ACCESS, plain},
    {"an atomic between two words", ROCE_FETCH_ADD, 4, 0, 0, ROCE_NAK_INVALID, plain},
    {"an atomic with another key", ROCE_COMPARE_SWAP, 0, 0, 0, ROCE_NAK_ACCESS, local},
    {"more than it says", ROCE_WRITE_ONLY, 0, 4, 8, ROCE_NAK_INVALID, plain},
    {"less than it says", ROCE_WRITE_ONLY, 0, 16, 8, ROCE_NAK_INVALID, plain},
    {"more than the MTU", ROCE_WRITE_ONLY, 0, mtu + 4, mtu + 4, ROCE_NAK_INVALID, plain},
    {"a first one that is short", ROCE_WRITE_FIRST, 0, 2000, 1000, ROCE_NAK_INVALID, plain},
    {"a middle without a first", ROCE_WRITE_MIDDLE, 0, 0, mtu, ROCE_NAK_INVALID, plain},
    {"a last without a first", ROCE_WRITE_LAST, 0, 0, 8, ROCE_NAK_INVALID, plain},
    {"a send's middle", ROCE_SEND_MIDDLE, 0, 0, mtu, ROCE_NAK_INVALID, plain},
    {"a send's last", ROCE_SEND_LAST_IMM, 0, 0, 8, ROCE_NAK_INVALID, plain},
    {"a send in a write", ROCE_SEND_ONLY, 0, 0, 8, ROCE_NAK_INVALID, inside},
    {"a read in a write", ROCE_READ_REQUEST, 0, 8, 0, ROCE_NAK_INVALID, inside},
    {"a first in a write", ROCE_WRITE_FIRST, 0, 2 * mtu, mtu, ROCE_NAK_INVALID, inside},
    {"a middle too many", ROCE_WRITE_MIDDLE, 0, 0, mtu, ROCE_NAK_INVALID, inside},
    {"a last that is short", ROCE_WRITE_LAST, 0, 0, mtu - 4, ROCE_NAK_INVALID, inside},
    {"a last of a send", ROCE_SEND_LAST, 0, 0, mtu, ROCE_NAK_INVALID, inside},
};

static void refuse_one(const struct refusal *r, struct end *e, const struct sender *peer)
{
    struct victim v = connected(e, peer);
    uint8_t bytes[ROCE_MTU_MAX];
    struct roce_packet p = write_to(&v, 0, bytes);
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    memset(bytes, attack_byte, sizeof bytes);
    memset(e->buf + open_at, 0, open_bytes);
    if (r->how == inside) {
        p.opcode = roce_opcode_of(ROCE_RC, ROCE_WRITE_FIRST);
        p.dma_length = 2 * mtu;
        p.payload_length = mtu;
        p.va += 4096;
        send_packet(peer, &v, &p);
        p.psn = roce_psn_add(p.psn, 1);
    }
    p.opcode = roce_opcode_of(ROCE_RC, r->operation);
    p.va = r->how == wraps ? UINT64_MAX - 3 : v.address.addr + (uint64_t)r->at;
    p.rkey = r->how == local ? e->mr->rkey : open_mr->rkey;
    if (r->how == local)
        p.va = (uintptr_t)e->buf;
    p.dma_length = r->told;
    p.payload_length = r->payload;
    send_packet(peer, &v, &p);
    if (answer(peer, p.psn) != r->syndrome) {
        fprintf(stderr, "%s: another answer\n", r->name);
        _exit(1);
    }
    memory_is_whole(e);
    unchanged(e, open_at, open_at + 4096, 0);
    CHECK_EQ(ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init), 0);
    CHECK_EQ(attr.qp_state, IBV_QPS_ERR);
    disconnect(e);
}

static void refused(void)
{
    struct sender peer = peer_open();
    struct end e;

    open_first(&e, &peer);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        refuse_one(&refusals[i], &e, &peer);
    end_of(&e);
}

/* ---- answers to nothing ---- */

static void send_answer(const struct sender *peer, const struct victim *v, unsigned operation,
                        uint32_t psn, uint8_t syndrome)
{
    static const uint8_t bytes[mtu] = {attack_byte};
    struct roce_packet p = {.opcode = roce_opcode_of(ROCE_RC, operation),
                            .pkey = 0xffff,
                            .dest_qpn = v->address.qpn,
                            .psn = psn,
                            .syndrome = syndrome,
                            .original = UINT64_C(0x3333333333333333),
                            .payload = bytes};

    if (roce_opcode(p.opcode).payload)
        p.payload_length = mtu;
    send_packet(peer, v, &p);
}

static void send_all_answers(const struct sender *peer, const struct victim *v, uint32_t psn)
{
    static const uint8_t syndromes[] = {0x00, 0x1f, 0x20, 0x3f, 0x40, 0x60, 0x61,
                                        0x62, 0x63, 0x64, 0x7f, 0x80, 0xff};

    for (size_t i = 0; i < sizeof syndromes; i++)
        send_answer(peer, v, ROCE_ACKNOWLEDGE, psn, syndromes[i]);
    for (unsigned o = ROCE_READ_RESPONSE_FIRST; o <= ROCE_READ_RESPONSE_ONLY; o++)
        send_answer(peer, v, o, psn, 0x1f);
    send_answer(peer, v, ROCE_ATOMIC_ACKNOWLEDGE, psn, 0x1f);
}

static void unasked(void)
{
    struct sender peer = peer_open();
    struct victim v;
    struct end e;
    uint32_t psn;

    open_first(&e, &peer);
    v = connected(&e, &peer);
    psn = (uint32_t)e.psn;
    alive(&peer, &v);
    /* Nothing was ever sent. */
    for (int32_t far = -2; far <= 2; far++)
        send_all_answers(&peer, &v, roce_psn_add(psn, (uint32_t)far & ROCE_PSN_MASK));
    send_all_answers(&peer, &v, roce_psn_add(psn, 1 << 23));
    alive(&peer, &v);
    no_wc(e.scq);
    /* Two sends are under way: nothing later, nothing earlier, and no data for them. */
    CHECK_EQ(post_send(&e, 1, source_at, 8, 0), 0);
    CHECK_EQ(post_send(&e, 2, source_at, 8, 0), 0);
    send_all_answers(&peer, &v, roce_psn_add(psn, 2));
    send_all_answers(&peer, &v, roce_psn_add(psn, ROCE_PSN_MASK));
    for (unsigned o = ROCE_READ_RESPONSE_FIRST; o <= ROCE_READ_RESPONSE_ONLY; o++)
        send_answer(&peer, &v, o, roce_psn_add(psn, 1), 0x1f);
    send_answer(&peer, &v, ROCE_ATOMIC_ACKNOWLEDGE, roce_psn_add(psn, 1), 0x1f);
    alive(&peer, &v);
    no_wc(e.scq);
    send_answer(&peer, &v, ROCE_ACKNOWLEDGE, roce_psn_add(psn, 1), 0x1f);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(e.scq).wr_id, 2);
    memory_is_whole(&e);
    disconnect(&e);
    end_of(&e);
}

/* ---- a program that sleeps ---- */

/* The helper thread handles all that came, though it is woken once for several. */
static void bursts(void)
{
    struct sender peer = peer_open();
    struct victim v;
    struct end e;

    open_first(&e, &peer);
    v = connected(&e, &peer);
    for (int i = 0; i < 400; i++) {
        for (int n = 0; n < 3; n++) {
            struct roce_packet p = write_to(&v, 0, "no reply");

            p.ack_request = false;
            send_packet(&peer, &v, &p);
            v.psn = roce_psn_add(v.psn, 1);
        }
        alive(&peer, &v);
    }
    disconnect(&e);
    end_of(&e);
}

/* ---- what goes while packets come ---- */

/* The number depends on how many came in time. */
static void access_refused(const struct sender *peer)
{
    uint8_t in[ROCE_PACKET_MAX];
    struct roce_packet p = {0};

    while (roce_opcode(p.opcode).kind != ROCE_KIND_ACK || p.syndrome != ROCE_NAK_ACCESS) {
        ssize_t n = recv(peer->fd, in, sizeof in, 0);

        CHECK(n > ROCE_ICRC_BYTES);
        CHECK_EQ(roce_packet_parse(in, (size_t)n - ROCE_ICRC_BYTES, &p), ROCE_GOOD);
    }
}

/* Once its region is deregistered, memory is the program's: to write there would end this process.
 */
static void regions_go(void)
{
    struct sender peer = peer_open();
    uint8_t bytes[mtu] = {attack_byte};
    struct end e;

    open_first(&e, &peer);
    for (int i = 0; i < 300; i++) {
        struct victim v = connected(&e, &peer);
        struct roce_packet p;

        for (int n = 0; n < 8 + i % 16; n++) {
            p = write_to(&v, 0, bytes);
            p.ack_request = false;
            p.dma_length = p.payload_length = mtu;
            send_packet(&peer, &v, &p);
            v.psn = roce_psn_add(v.psn, 1);
        }
        if (i % 3 > 0) {
            CHECK_EQ(ibv_dereg_mr(open_mr), 0);
            CHECK_EQ(mprotect(e.buf + open_at, open_bytes, PROT_NONE), 0);
            p = write_to(&v, 0, bytes);
            send_packet(&peer, &v, &p);
            access_refused(&peer);
            CHECK_EQ(mprotect(e.buf + open_at, open_bytes, PROT_READ | PROT_WRITE), 0);
            register_open(&e);
        }
        disconnect(&e); /* in between, too */
    }
    end_of(&e);
}

/* ---- XRC ---- */

enum { targets = 3 };

static void send_xrc(const struct sender *peer, struct victim *v, uint32_t srqn, unsigned operation,
                     uint32_t length, int byte)
{
    uint8_t bytes[mtu];
    struct roce_packet p = {.opcode = roce_opcode_of(ROCE_XRC, operation),
                            .pkey = 0xffff,
                            .dest_qpn = v->address.qpn,
                            .psn = v->psn,
                            .srqn = srqn,
                            .payload = bytes,
                            .payload_length = length};

    memset(bytes, byte, sizeof bytes);
    send_packet(peer, v, &p);
    v->psn = roce_psn_add(v->psn, 1);
}

static void expect_xrc(struct side *s, uint64_t id, const struct victim *v, int byte, size_t length)
{
    expect_message(s, id, v->address.qpn, length);
    unchanged(&s->e, id * 4096, id * 4096 + length, byte);
}

/* Each message keeps the receive that its first packet took; the one that is ready first completes
 * first; the receive of an abandoned message serves the next. */
static void kept_receives(void)
{
    struct sender peer = peer_open();
    struct address to = peer_address(&peer);
    struct ibv_qp *qp[targets];
    struct victim v[targets];
    struct ibv_async_event event;
    struct side s;

    open_side(&s, -1, false);
    for (int i = 0; i < targets; i++) {
        qp[i] = make_target(&s);
        connect_target(qp[i], &to);
        v[i] = aim(&s.e, qp[i]->qp_num);
    }
    for (unsigned i = 0; i < 5; i++)
        CHECK_EQ(post_queue(&s, i, (size_t)i * 4096, 4096), 0);
    send_xrc(&peer, &v[0], s.srqn, ROCE_SEND_FIRST, mtu, 'a');
    send_xrc(&peer, &v[1], s.srqn, ROCE_SEND_FIRST, mtu, 'b');
    send_xrc(&peer, &v[2], s.srqn, ROCE_SEND_ONLY, 8, 'c');
    expect_xrc(&s, 2, &v[2], 'c', 8);
    send_xrc(&peer, &v[1], s.srqn, ROCE_SEND_LAST, 100, 'b');
    expect_xrc(&s, 1, &v[1], 'b', mtu + 100);
    send_xrc(&peer, &v[0], s.srqn, ROCE_SEND_LAST, 100, 'a');
    expect_xrc(&s, 0, &v[0], 'a', mtu + 100);
    /* 3 is kept by one that then goes, */
    send_xrc(&peer, &v[0], s.srqn, ROCE_SEND_FIRST, mtu, 'd');
    send_xrc(&peer, &v[2], s.srqn, ROCE_SEND_ONLY, 8, 'e');
    expect_xrc(&s, 4, &v[2], 'e', 8);
    CHECK_EQ(ibv_destroy_qp(qp[0]), 0);
    send_xrc(&peer, &v[1], s.srqn, ROCE_SEND_FIRST, mtu, 'f');
    send_xrc(&peer, &v[1], s.srqn, ROCE_SEND_LAST, 8, 'f');
    expect_xrc(&s, 3, &v[1], 'f', mtu + 8);
    /* and a queue that goes under a message is an invalid request of the next packet. */
    CHECK_EQ(post_queue(&s, 0, 0, 4096), 0);
    send_xrc(&peer, &v[1], s.srqn, ROCE_SEND_FIRST, mtu, 'g');
    usleep(20000);
    CHECK_EQ(ibv_destroy_srq(s.e.srq), 0);
    send_xrc(&peer, &v[1], s.srqn, ROCE_SEND_LAST, 8, 'g');
    do {
        CHECK_EQ(ibv_get_async_event(s.e.ctx, &event), 0);
        ibv_ack_async_event(&event);
    } while (event.element.qp != qp[1] || event.event_type == IBV_EVENT_COMM_EST);
    CHECK_EQ(event.event_type, IBV_EVENT_QP_REQ_ERR);
    for (int i = 1; i < targets; i++)
        CHECK_EQ(ibv_destroy_qp(qp[i]), 0);
    CHECK_EQ(ibv_close_xrcd(s.xrcd), 0);
    end_close(&s.e);
}

/* ---- a seeded stream of half-right packets ---- */

static uint64_t random_state;

static uint32_t below(uint32_t n)
{
    uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)((z ^ (z >> 31)) >> 16) % n;
}

struct stream {
    struct end e;
    struct sender peer, address, port;
    struct victim v;
    enum roce_transport transport;
    uint32_t srqn;
    uint64_t packets;
    uint8_t bytes[ROCE_MTU_MAX];
};

static uint64_t some_va(const struct stream *s)
{
    uint64_t open = s->v.address.addr, all = (uintptr_t)s->e.buf;

    switch (below(12)) {
    case 0:
        return open + open_bytes - below(16);
    case 1:
        return open - below(16);
    case 2:
        return UINT64_MAX - below(16);
    case 3:
        return all + below(BUF_BYTES);
    case 4:
        return open + below(open_bytes);
    case 5:
        return 0;
    default:
        return open + 8 * below(64);
    }
}

static uint32_t some_length(uint32_t payload)
{
    switch (below(10)) {
    case 0:
        return 0;
    case 1:
        return UINT32_MAX - below(4);
    case 2:
        return UINT32_C(1) << 31;
    case 3:
        return below(2 * open_bytes);
    case 4:
    case 5:
        return 2 * mtu + below(100);
    default:
        return payload;
    }
}

static uint32_t some_payload(void)
{
    switch (below(6)) {
    case 0:
        return below(mtu + 80);
    case 1:
        return 4 * below(ROCE_MTU_MAX / 4);
    case 2:
        return 0;
    case 3:
        return 8;
    default:
        return mtu;
    }
}

static uint32_t some_psn(const struct stream *s, bool response)
{
    uint32_t base = response ? (uint32_t)s->e.psn + below(12) : s->v.psn;

    switch (below(12)) {
    case 0:
        return below(1 << 24);
    case 1:
        return roce_psn_add(base, 1 + below(4));
    case 2:
        return roce_psn_add(base, ROCE_PSN_MASK - below(8));
    default:
        return roce_psn_add(base, 0);
    }
}

static void make_up(const struct stream *s, struct roce_packet *p)
{
    enum roce_transport t = below(16) ? s->transport : (enum roce_transport)below(8);
    uint8_t opcode = roce_opcode_of(t, below(ROCE_OPERATIONS + 1));
    struct roce_opcode o = roce_opcode(opcode);

    memset(p, 0, sizeof *p);
    p->opcode = opcode;
    p->ack_request = below(2);
    p->solicited = below(2);
    p->pkey = below(20) ? 0xffff : (uint16_t)below(65536);
    p->dest_qpn = below(20) ? s->v.address.qpn : s->v.address.qpn ^ 1u << below(24);
    p->psn = some_psn(s, roce_is_response(opcode));
    p->va = some_va(s);
    p->rkey = below(4) ? open_mr->rkey : below(2) ? s->e.mr->rkey : below(UINT32_MAX);
    if (p->rkey == s->e.mr->rkey)
        p->va = (uintptr_t)s->e.buf + 8 * below(local_bytes / 8);
    p->payload = s->bytes;
    p->payload_length = o.payload ? some_payload() : 0;
    p->dma_length = some_length(p->payload_length);
    p->qkey = below(8) ? 0x11111 : below(UINT32_MAX);
    p->srqn = below(8) ? s->srqn : below(1 << 24);
    p->syndrome = below(2) ? 0x1f : (uint8_t)below(256);
    p->msn = below(1 << 24);
    p->swap_add = p->compare = p->original = UINT64_C(0x3333333333333333);
    if (o.kind == ROCE_KIND_CNP)
        p->payload_length = ROCE_CNP_BYTES;
}

static void send_one(struct stream *s)
{
    uint8_t out[2 * ROCE_PACKET_MAX];
    const struct sender *from = below(12) ? &s->peer : below(2) ? &s->address : &s->port;
    struct roce_packet p;
    size_t n;

    make_up(s, &p);
    n = roce_packet_build(&p, out, sizeof out);
    CHECK(n > 0);
    if (below(8) == 0)
        for (uint32_t flips = 1 + below(4); flips > 0; flips--)
            out[below(n < 64 ? (uint32_t)n : 64)] ^= (uint8_t)(1 + below(255));
    if (below(12) == 0)
        out[1] ^= (uint8_t)(below(4) << 4); /* the padding that it claims */
    if (below(12) == 0)
        n = below(2) ? below((uint32_t)n) : 4 * below((uint32_t)n / 4 + 1);
    seal_and_send(from, &s->v, out, n);
    s->packets++;
}

/* Checks that no packet of the victim has its secrets; learns the numbers that it expects. */
static void read_answers(struct stream *s)
{
    uint8_t in[65536];
    struct roce_packet p;
    ssize_t n;

    while ((n = recv(s->peer.fd, in, sizeof in, MSG_DONTWAIT)) > 0) {
        unsigned run = 0;

        CHECK_EQ(roce_packet_parse(in, (size_t)n - ROCE_ICRC_BYTES, &p), ROCE_GOOD);
        for (uint32_t i = 0; i < p.payload_length && run < 8; i++)
            run = p.payload[i] == secret || p.payload[i] == canary ? run + 1 : 0;
        CHECK(run < 8);
        if (roce_opcode(p.opcode).kind == ROCE_KIND_ACK)
            s->v.psn = p.syndrome & ROCE_SYNDROME_KIND ? p.psn : roce_psn_add(p.psn, 1);
    }
}

static void let_it_work(struct stream *s)
{
    struct ibv_wc wc[4];

    for (int i = 0; i < 2; i++) {
        CHECK(ibv_poll_cq(s->e.scq, 4, wc) >= 0);
        CHECK(ibv_poll_cq(s->e.rcq, 4, wc) >= 0);
    }
}

static void datagram_to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

    to_init(qp);
    CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* Posts the victim's own requests and receives. */
static void post_own(struct stream *s)
{
    struct end *e = &s->e;

    for (size_t i = 0; i < 4; i++)
        CHECK_EQ(post_recv(e, i, receive_at + i * 2048, 2048), 0);
    if (s->transport != ROCE_RC)
        return;
    CHECK_EQ(post(e, IBV_WR_RDMA_READ, 1, read_at, 3000, IBV_SEND_SIGNALED, &s->v.address, 0), 0);
    CHECK_EQ(post(e, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, read_at + 3072, 8, IBV_SEND_SIGNALED,
                  &s->v.address, 0),
             0);
    CHECK_EQ(post_send(e, 3, source_at, 2000, 0), 0);
    CHECK_EQ(post(e, IBV_WR_RDMA_WRITE, 4, source_at, 100, 0, &s->v.address, 0), 0);
}

static void open_queue_pair(struct stream *s)
{
    static const enum roce_transport transports[] = {ROCE_RC, ROCE_RC, ROCE_UC, ROCE_UD};
    static const int types[] = {IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    struct address to = peer_address(&s->peer);
    uint32_t kind = below(4);

    s->transport = transports[kind];
    end_qp(&s->e, &(struct end_options){.type = types[kind]});
    s->e.psn = (int)below(1 << 24);
    to.psn = below(1 << 24);
    if (s->transport == ROCE_UD)
        datagram_to_rts(s->e.qp);
    else
        connect_to(&s->e, &to);
    s->v = aim(&s->e, s->e.qp->qp_num);
    s->v.psn = to.psn;
    post_own(s);
}

static void fuzz(void)
{
    const char *want = getenv("HOSTILE_SEED"), *length = getenv("HOSTILE_SECONDS");
    double until = seconds() + (length ? strtod(length, NULL) : 1.5);
    static struct stream s;
    uint32_t ipv4;

    if (length)
        deadline(ALARM + (int)strtod(length, NULL));
    random_state = want ? strtoull(want, NULL, 0) : (uint64_t)(seconds() * 1e9);
    printf("HOSTILE_SEED=%llu\n", (unsigned long long)random_state);
    s.peer = peer_open();
    ipv4 = ntohl(s.peer.at.sin_addr.s_addr);
    s.address = sender_open(ipv4 + 1, ROCE_UDP_PORT);
    s.port = sender_open(ipv4, 0);
    memset(s.bytes, attack_byte, sizeof s.bytes);
    open_first(&s.e, &s.peer);
    while (seconds() < until) {
        open_queue_pair(&s);
        for (uint32_t n = 20 + below(60); n > 0; n--) {
            send_one(&s);
            let_it_work(&s);
            read_answers(&s);
        }
        disconnect(&s.e);
        memory_is_whole(&s.e);
    }
    end_of(&s.e);
    printf("%llu packets\n", (unsigned long long)s.packets);
}

/* ---- */

static int uncounted(const char *file)
{
    static const char *const reasons[] = {
        "short",     "opcode",    "version", "pad",   "payload", "queue", "address", "port",
        "partition", "transport", "key",     "state", "unasked", "early", "again",   "unfit"};
    unsigned long long sum[sizeof reasons / sizeof reasons[0]] = {0};
    char line[4096];
    FILE *f = fopen(file, "r");
    int missing = 0;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f))
        for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
            char word[32];
            const char *at;

            snprintf(word, sizeof word, " %s ", reasons[i]);
            at = strstr(line, word);
            CHECK(at != NULL);
            sum[i] += strtoull(at + strlen(word), NULL, 10);
        }
    fclose(f);
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (sum[i] == 0) {
            fprintf(stderr, "no drop was counted as: %s\n", reasons[i]);
            missing++;
        }
    return missing;
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"refused", refused},
        {"unasked", unasked},
        {"bursts", bursts},
        {"regions_go", regions_go},
        {"kept_receives", kept_receives},
        {"fuzz", fuzz},
        {NULL, NULL},
    };
    char stats[] = "/tmp/udp_hostile.XXXXXX";
    int fd = mkstemp(stats), status;

    CHECK(fd >= 0);
    close(fd);
    setenv("SOFTHCA_WIRE", "udp", 1);
    setenv("SOFTHCA_STATS", stats, 1);
    status = run_cases(cases, argc, argv);
    if (status == 0 && argc == 1)
        status = uncounted(stats) != 0;
    unlink(stats);
    return status;
}
