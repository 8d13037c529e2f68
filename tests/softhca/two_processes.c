/* SPDX-License-Identifier: BSD-3-Clause */
/* The promises between two processes: data of every kind and size over shared and private memory,
 * datagrams, events, early senders, and the errors of a survivor after the other was killed. */
#include "config.h"

#include <sys/resource.h>

#include "harness.h"

static struct end_options options;

static void open_pair(int fd, struct end *e, struct address *peer)
{
    end_open(e, &options);
    *peer = swap_addresses(fd, e);
    connect_to(e, peer);
    meet(fd);
}

static const size_t sizes[] = {0,    1,     7,     8,     9,      63,     64,           65,
                               191,  192,   193,   255,   256,    1000,   4095,         4096,
                               4097, 10000, 65535, 65536, 100001, 500000, BUF_BYTES / 2};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

/* ---- sends ---- */

static void send_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    open_pair(fd, &e, &peer);
    for (unsigned i = 0; i < N_SIZES; i++) {
        unsigned flags = sizes[i] <= 220 && i % 2 ? IBV_SEND_INLINE : 0;

        meet(fd); /* the receive is posted */
        fill(e.buf + i, sizes[i], i);
        CHECK_EQ(post(&e, i % 3 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, i, i, sizes[i],
                      IBV_SEND_SIGNALED | flags, NULL, 0),
                 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
        meet(fd);
    }
    end_close(&e);
}

static void send_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    open_pair(fd, &e, &peer);
    for (unsigned i = 0; i < N_SIZES; i++) {
        struct ibv_wc wc;

        memset(e.buf, 0x55, sizes[i] + 64);
        CHECK_EQ(post_recv(&e, i, 3, sizes[i]), 0);
        meet(fd);
        wc = wait_wc(e.rcq);
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        CHECK_EQ(wc.opcode, IBV_WC_RECV);
        CHECK_EQ(wc.wr_id, i);
        CHECK_EQ(wc.byte_len, sizes[i]);
        CHECK_EQ(wc.src_qp, peer.qpn);
        CHECK_EQ(wc.wc_flags, i % 3 ? 0 : IBV_WC_WITH_IMM);
        if (i % 3 == 0)
            CHECK_EQ(wc.imm_data, 0x12345678);
        CHECK(filled(e.buf + 3, sizes[i], i));
        CHECK(e.buf[2] == 0x55 && e.buf[3 + sizes[i]] == 0x55);
        meet(fd);
    }
    end_close(&e);
}

static void sends_shared(void)
{
    in_two(send_left, send_right);
}

static void sends_private(void)
{
    options.private = true;
    in_two(send_left, send_right);
}

static void sends_roce(void)
{
    setenv("SOFTHCA_LINK", "roce", 1);
    in_two(send_left, send_right);
}

/* ---- small messages of a new connection go without a mapping of the receiver's memory ---- */

static const size_t young[] = {192, 1, 100, 8, 64};
enum { N_YOUNG = 17 }; /* one more than go without */

static size_t young_size(unsigned i)
{
    return young[i % (sizeof young / sizeof young[0])];
}

static unsigned mapped_buffers(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char line[512];
    unsigned n = 0;

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f))
        n += strstr(line, "memfd:test") != NULL;
    fclose(f);
    return n;
}

static void young_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    unsigned own;

    (void)other;
    open_pair(fd, &e, &peer);
    meet(fd); /* the receives are posted */
    own = mapped_buffers();
    for (unsigned i = 0; i < N_YOUNG; i++) {
        CHECK_EQ(mapped_buffers(), own);
        fill(e.buf, young_size(i), i);
        CHECK_EQ(post(&e, IBV_WR_SEND, i, 0, young_size(i), IBV_SEND_SIGNALED, NULL, 0), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(mapped_buffers(), own + 1);
    meet(fd);
    meet(fd);
    end_close(&e);
}

static void young_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    open_pair(fd, &e, &peer);
    for (unsigned i = 0; i < N_YOUNG; i++)
        CHECK_EQ(post_recv(&e, i, i * 512, 512), 0);
    meet(fd);
    meet(fd); /* all were sent, and wait together */
    for (unsigned i = 0; i < N_YOUNG; i++) {
        struct ibv_wc wc = wait_wc(e.rcq);

        CHECK_EQ(wc.wr_id, i);
        CHECK_EQ(wc.byte_len, young_size(i));
        CHECK(filled(e.buf + i * 512, young_size(i), i));
    }
    meet(fd);
    end_close(&e);
}

static void young_connection(void)
{
    in_two(young_left, young_right);
}

/* A sanitizer has memory of its own about each page. */
static bool is_sanitized(void)
{
    const char *sanitizer = getenv("TRUNKLINE_TEST_SANITIZER");
    return sanitizer && strcmp(sanitizer, "no") != 0;
}

/* ---- receive queues side by side ---- */

enum { NEIGHBOURS = 8 };

static void open_neighbours(int fd, struct end *e)
{
    options = (struct end_options){.private = true, .recv_wr = 16};
    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        struct address peer;

        end_open(&e[i], &options);
        peer = swap_addresses(fd, &e[i]);
        connect_to(&e[i], &peer);
        CHECK_EQ(post_recv(&e[i], i, 0, 64), 0);
    }
    meet(fd);
}

static long faults(void)
{
    struct rusage usage;

    CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt;
}

static void neighbours_left(int fd, pid_t other)
{
    struct end e[NEIGHBOURS];
    long before = 0, after;

    (void)other;
    open_neighbours(fd, e);
    for (unsigned i = 0; i < NEIGHBOURS; i++) {
        before = i == 1 ? faults() : before;
        CHECK_EQ(post(&e[i], IBV_WR_SEND, i, 0, 8, IBV_SEND_INLINE, NULL, 0), 0);
    }
    after = faults();
    printf("     %d more queues of a peer are reached with %ld page faults\n", NEIGHBOURS - 1,
           after - before);
    CHECK(is_sanitized() || after - before < NEIGHBOURS / 2);
    meet(fd);
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        end_close(&e[i]);
}

static void neighbours_right(int fd, pid_t other)
{
    struct end e[NEIGHBOURS];

    (void)other;
    open_neighbours(fd, e);
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        CHECK_EQ(wait_wc(e[i].rcq).byte_len, 8);
    meet(fd);
    for (unsigned i = 0; i < NEIGHBOURS; i++)
        end_close(&e[i]);
}

static void neighbours(void)
{
    in_two(neighbours_left, neighbours_right);
}

/* ---- the first two receive queues, however deep they are ---- */

enum { DEEP = 2 };

static void open_deep(int fd, struct end *e, struct address *peers)
{
    options = (struct end_options){.recv_wr = 128};
    for (unsigned i = 0; i < DEEP; i++) {
        end_open(&e[i], &options);
        peers[i] = swap_addresses(fd, &e[i]);
        connect_to(&e[i], &peers[i]);
        CHECK_EQ(post_recv(&e[i], i, 0, 64), 0);
    }
    meet(fd);
}

static void deep_left(int fd, pid_t other)
{
    struct end e[DEEP];
    struct address peers[DEEP];
    long before, after;

    (void)other;
    open_deep(fd, e, peers);
    CHECK_EQ(post(&e[0], IBV_WR_SEND, 0, 0, 0, 0, NULL, 0), 0);
    /* Touches everything that it needs except the receive queue. */
    CHECK_EQ(post(&e[1], IBV_WR_RDMA_WRITE, 0, 0, 0, 0, &peers[1], 0), 0);
    before = faults();
    CHECK_EQ(post(&e[1], IBV_WR_SEND, 1, 0, 0, 0, NULL, 0), 0);
    after = faults();
    printf("     the second queue of a peer is reached with %ld page faults\n", after - before);
    CHECK(is_sanitized() || after == before);
    meet(fd);
    for (unsigned i = 0; i < DEEP; i++)
        end_close(&e[i]);
}

static void deep_right(int fd, pid_t other)
{
    struct end e[DEEP];
    struct address peers[DEEP];

    (void)other;
    open_deep(fd, e, peers);
    for (unsigned i = 0; i < DEEP; i++)
        CHECK_EQ(wait_wc(e[i].rcq).byte_len, 0);
    meet(fd);
    for (unsigned i = 0; i < DEEP; i++)
        end_close(&e[i]);
}

static void deep(void)
{
    in_two(deep_left, deep_right);
}

/* ---- several SGEs on both sides ---- */

static void sges_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    struct ibv_sge sge[4];
    struct ibv_send_wr wr = {
        .sg_list = sge, .num_sge = 4, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    (void)other;
    open_pair(fd, &e, &peer);
    for (int round = 0; round < 3; round++) {
        size_t unit = round == 0 ? 10 : round == 1 ? 100 : 10000;

        fill(e.buf, 10 * unit, 77);
        for (size_t i = 0, at = 0; i < 4; at += (i + 1) * unit, i++)
            sge[i] = sge_of(&e, at, (i + 1) * unit);
        wr.send_flags = IBV_SEND_SIGNALED | (round == 0 ? IBV_SEND_INLINE : 0);
        meet(fd);
        CHECK_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
        meet(fd);
    }
    end_close(&e);
}

static void sges_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    struct ibv_sge sge[4];
    struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 4}, *bad;

    (void)other;
    open_pair(fd, &e, &peer);
    for (int round = 0; round < 3; round++) {
        size_t unit = round == 0 ? 10 : round == 1 ? 100 : 10000;

        memset(e.buf, 0, BUF_BYTES);
        for (size_t i = 0, at = 0; i < 4; at += (4 - i) * unit, i++)
            sge[i] = sge_of(&e, at, (4 - i) * unit);
        CHECK_EQ(ibv_post_recv(e.qp, &wr, &bad), 0);
        meet(fd);
        CHECK_EQ(wait_wc(e.rcq).byte_len, 10 * unit);
        CHECK(filled(e.buf, 10 * unit, 77));
        meet(fd);
    }
    end_close(&e);
}

static void sges_shared(void)
{
    in_two(sges_left, sges_right);
}

static void sges_private(void)
{
    options.private = true;
    in_two(sges_left, sges_right);
}

/* ---- RDMA ---- */

static void rdma_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    size_t half = BUF_BYTES / 2;

    (void)other;
    open_pair(fd, &e, &peer);
    for (unsigned i = 0; i < N_SIZES; i++) {
        fill(e.buf, sizes[i], i + 50);
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, sizes[i], 0, &peer, i), 0);
        CHECK_EQ(post(&e, IBV_WR_RDMA_READ, 2, half, sizes[i], IBV_SEND_SIGNALED, &peer, i), 0);
        CHECK_EQ(wait_wc(e.scq).opcode, IBV_WC_RDMA_READ);
        CHECK(filled(e.buf + half, sizes[i], i + 50));
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, sizes[i], IBV_SEND_SIGNALED, &peer, i),
                 0);
        CHECK_EQ(wait_wc(e.scq).opcode, IBV_WC_RDMA_WRITE);
        meet(fd);
    }
    end_close(&e);
}

static void rdma_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    options.recv_wr = 64;
    end_open(&e, &options);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    for (unsigned i = 0; i < N_SIZES; i++)
        CHECK_EQ(post_recv(&e, i, 0, 0), 0); /* an immediate needs a receive, but no buffer */
    meet(fd);
    for (unsigned i = 0; i < N_SIZES; i++) {
        struct ibv_wc wc = wait_wc(e.rcq);

        CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
        CHECK_EQ(wc.byte_len, sizes[i]);
        CHECK_EQ(wc.imm_data, 0x12345678);
        CHECK(filled(e.buf + i, sizes[i], i + 50));
        meet(fd);
    }
    end_close(&e);
}

static void rdma_shared(void)
{
    in_two(rdma_left, rdma_right);
}

static void rdma_private(void)
{
    options.private = true;
    in_two(rdma_left, rdma_right);
}

/* ---- the last byte comes last ---- */

#define LAST_BYTES   20004
#define LAST_SECONDS 0.7   /* a copy that stores its last byte first is caught at once */
#define LAST_STOP    90000 /* offset of the byte that ends the test */

static bool seen(const char *at, int value)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE) == (char)value;
}

static void last_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    double until;

    (void)other;
    open_pair(fd, &e, &peer);
    until = seconds() + LAST_SECONDS;
    for (int i = 1; seconds() < until; i++) {
        memset(e.buf, i, LAST_BYTES);
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, LAST_BYTES, IBV_SEND_SIGNALED, &peer, 5), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
        while (!seen(e.buf + BUF_BYTES - 1, i))
            sched_yield();
    }
    e.buf[0] = 1;
    CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 1, IBV_SEND_SIGNALED, &peer, LAST_STOP), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    end_close(&e);
}

static void last_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    int rounds = 0;

    (void)other;
    open_pair(fd, &e, &peer);
    for (int i = 1;; i++, rounds++) {
        unsigned turns = 0;

        while (!seen(e.buf + 5 + LAST_BYTES - 1, i) && !seen(e.buf + LAST_STOP, 1))
            if (++turns % 1000 == 0)
                sched_yield();
        if (seen(e.buf + LAST_STOP, 1))
            break;
        /* Downwards: an unfinished copy most likely lacks the upper end. */
        for (int j = LAST_BYTES - 2; j >= 0; j--)
            CHECK_EQ(e.buf[5 + j], (char)i);
        e.buf[0] = (char)i;
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 1, IBV_SEND_SIGNALED, &peer, BUF_BYTES - 1), 0);
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    }
    CHECK(rounds > 0);
    meet(fd);
    end_close(&e);
}

static void last_byte_last(void)
{
    in_two(last_left, last_right);
}

/* ---- datagrams ---- */

static void ud_ready(struct end *e)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void ud_send(struct end *e, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey, size_t n)
{
    struct ibv_sge sge = sge_of(e, 0, n);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey}};
    struct ibv_send_wr *bad;

    CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
}

static void ud_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    struct ibv_ah_attr path;
    struct ibv_ah *ah;

    (void)other;
    options.type = IBV_QPT_UD;
    end_open(&e, &options);
    ud_ready(&e);
    peer = swap_addresses(fd, &e);
    path = path_to(&peer);
    CHECK((ah = ibv_create_ah(e.pd, &path)) != NULL);
    CHECK_EQ(post_recv(&e, 1, 8192, 40 + 4), 0);
    fill(e.buf, 4096, 5);
    meet(fd);
    ud_send(&e, ah, peer.qpn, 0x22222, 100);     /* wrong key: lost */
    ud_send(&e, ah, peer.qpn + 1, 0x11111, 100); /* no such queue pair: lost */
    ud_send(&e, ah, peer.qpn, 0x11111, 4096);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd); /* the answer is here */
    CHECK_EQ(wait_wc(e.rcq).byte_len, 40 + 4);
    ud_send(&e, ah, peer.qpn, 0x11111, 4097);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_LOC_LEN_ERR);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    end_close(&e);
}

static void ud_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    struct ibv_ah *back;
    struct ibv_wc wc;

    (void)other;
    options.type = IBV_QPT_UD;
    end_open(&e, &options);
    ud_ready(&e);
    peer = swap_addresses(fd, &e);
    CHECK_EQ(post_recv(&e, 1, 0, 40 + 4096), 0);
    meet(fd);
    wc = wait_wc(e.rcq);
    CHECK_EQ(wc.byte_len, 40 + 4096);
    CHECK_EQ(wc.src_qp, peer.qpn);
    CHECK(filled(e.buf + 40, 4096, 5));
    back = ibv_create_ah_from_wc(e.pd, &wc, (struct ibv_grh *)(void *)e.buf, 1);
    CHECK(back != NULL);
    ud_send(&e, back, wc.src_qp, 0x11111, 4);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    CHECK_EQ(ibv_destroy_ah(back), 0);
    end_close(&e);
}

static void datagrams(void)
{
    in_two(ud_left, ud_right);
}

static void datagrams_roce(void)
{
    setenv("SOFTHCA_LINK", "roce", 1);
    in_two(ud_left, ud_right);
}

/* ---- events ---- */

static void event_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    open_pair(fd, &e, &peer);
    for (unsigned i = 0; i < 100; i++) {
        meet(fd); /* armed */
        if (i % 10 == 0)
            CHECK_EQ(post_send(&e, i, 0, 8, 0), 0); /* not solicited: no event */
        CHECK_EQ(post_send(&e, i, 0, 8, IBV_SEND_SOLICITED), 0);
        wait_wc(e.scq);
        if (i % 10 == 0)
            wait_wc(e.scq);
    }
    meet(fd);
    end_close(&e);
}

static void event_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    struct ibv_cq *cq;
    void *context;

    (void)other;
    options.channel = true;
    open_pair(fd, &e, &peer);
    for (unsigned i = 0; i < 100; i++) {
        struct pollfd p = {.fd = e.channel->fd, .events = POLLIN};

        CHECK_EQ(poll(&p, 1, 0), 0);
        CHECK_EQ(post_recv(&e, i, 0, 8), 0);
        if (i % 10 == 0)
            CHECK_EQ(post_recv(&e, i, 0, 8), 0);
        CHECK_EQ(ibv_req_notify_cq(e.rcq, i % 10 == 0), 0);
        meet(fd);
        CHECK_EQ(poll(&p, 1, 5000), 1);
        CHECK_EQ(ibv_get_cq_event(e.channel, &cq, &context), 0);
        CHECK(cq == e.rcq && context == &e);
        ibv_ack_cq_events(cq, 1);
        wait_wc(e.rcq);
        if (i % 10 == 0)
            wait_wc(e.rcq); /* both were there: the event came with the second */
    }
    meet(fd);
    end_close(&e);
}

static void events(void)
{
    in_two(event_left, event_right);
}

/* ---- sending before the other is ready ---- */

static void early_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    end_open(&e, &options);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    fill(e.buf, 300, 1);
    CHECK_EQ(post_send(&e, 1, 0, 300, 0), 0);
    no_wc(e.scq);
    meet(fd);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    end_close(&e);
}

static void early_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    end_open(&e, &options);
    peer = swap_addresses(fd, &e);
    meet(fd);
    connect_to(&e, &peer);
    CHECK_EQ(post_recv(&e, 1, 0, 300), 0);
    CHECK_EQ(wait_wc(e.rcq).byte_len, 300);
    CHECK(filled(e.buf, 300, 1));
    meet(fd);
    end_close(&e);
}

static void early_sender(void)
{
    in_two(early_left, early_right);
}

/* ---- death ---- */

static void killed_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    char never;

    (void)other;
    open_pair(fd, &e, &peer);
    if (read(fd, &never, 1) < 0)
        _exit(1);
    for (;;)
        pause();
}

/* Writes to mapped memory of a process until that process is gone: they must begin to fail. */
static void writer_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    struct ibv_wc wc;
    double start;

    open_pair(fd, &e, &peer);
    CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 4096, IBV_SEND_SIGNALED, &peer, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(kill(other, SIGKILL), 0);
    start = seconds();
    do {
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 4096, IBV_SEND_SIGNALED, &peer, 0), 0);
        wc = wait_wc(e.scq);
        CHECK(seconds() - start < HANG);
    } while (wc.status == IBV_WC_SUCCESS);
    CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(post_send(&e, 2, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_WR_FLUSH_ERR);
    end_close(&e);
}

static void death_of_target_shared(void)
{
    in_two(writer_left, killed_right);
}

static void death_of_target_private(void)
{
    options.private = true;
    in_two(writer_left, killed_right);
}

/* A send that waits for a receive for ever (rnr_retry 7) ends when the receiver does. */
static void waiting_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    open_pair(fd, &e, &peer);
    CHECK_EQ(post_send(&e, 1, 0, 8, 0), 0);
    no_wc(e.scq);
    CHECK_EQ(kill(other, SIGKILL), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_RETRY_EXC_ERR);
    end_close(&e);
}

static void death_while_waiting(void)
{
    in_two(waiting_left, killed_right);
}

/* A third process sends to the killed one and to us; it was killed in the middle of sending to us,
 * again and again: we must still be able to receive, poll and close. */
static void hammer_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    open_pair(fd, &e, &peer);
    for (unsigned i = 0;; i++) {
        struct ibv_wc wc[16];

        post_send(&e, i, 0, 1 + i % 9000, 0);
        ibv_poll_cq(e.scq, 16, wc);
    }
}

static void hammered_left(int fd, pid_t other)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct end e;
    struct address peer;
    struct ibv_wc wc;
    unsigned posted = 0, seen = 0;
    double until;

    end_open(&e, &options);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    for (; posted < 64; posted++)
        CHECK_EQ(post_recv(&e, posted, 0, 9000), 0);
    meet(fd);
    until = seconds() + 0.02 + (getpid() % 10) * 0.001;
    while (seconds() < until)
        if (ibv_poll_cq(e.rcq, 1, &wc) == 1) {
            CHECK_EQ(wc.status, IBV_WC_SUCCESS);
            CHECK_EQ(wc.wr_id, seen++);
            CHECK_EQ(post_recv(&e, posted++, 0, 9000), 0);
        }
    CHECK_EQ(kill(other, SIGKILL), 0);
    CHECK_EQ(ibv_modify_qp(e.qp, &attr, IBV_QP_STATE), 0);
    while (seen < posted)
        CHECK_EQ(wait_wc(e.rcq).wr_id, seen++);
    no_wc(e.rcq);
    end_close(&e);
}

static void death_of_sender(void)
{
    for (int i = 0; i < 10; i++) {
        options.private = i % 2;
        in_two(hammered_left, hammer_right);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"sends_shared", sends_shared},
        {"sends_private", sends_private},
        {"sends_roce", sends_roce},
        {"young_connection", young_connection},
        {"neighbours", neighbours},
        {"deep", deep},
        {"sges_shared", sges_shared},
        {"sges_private", sges_private},
        {"rdma_shared", rdma_shared},
        {"rdma_private", rdma_private},
        {"last_byte_last", last_byte_last},
        {"datagrams", datagrams},
        {"datagrams_roce", datagrams_roce},
        {"events", events},
        {"early_sender", early_sender},
        {"death_of_target_shared", death_of_target_shared},
        {"death_of_target_private", death_of_target_private},
        {"death_while_waiting", death_while_waiting},
        {"death_of_sender", death_of_sender},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
