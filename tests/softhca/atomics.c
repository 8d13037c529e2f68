/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations: their results and effects, requests that fail, and atomicity: many processes,
 * among them the owner of the memory, add to one counter and take a compare-and-swap lock, in
 * mapped and in unmapped memory. */
#include "config.h"

#include "harness.h"

#define WORKERS 4
#define ADDS    (over_packets() ? 300 : 3000)
#define LOCKS   (over_packets() ? 30 : 300)

static const struct end_options private_memory = {.private = true};

static uint64_t *word(struct end *e, size_t at)
{
    return (uint64_t *)(void *)(e->buf + at);
}

static int post_atomic(struct end *e, enum ibv_wr_opcode op, size_t to_local, size_t length,
                       const struct address *remote, size_t at, uint64_t compare_add, uint64_t swap)
{
    struct ibv_sge sge = sge_of(e, to_local, length);
    struct ibv_send_wr wr = {.wr_id = 3,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.atomic = {.remote_addr = remote->addr + at,
                                           .rkey = remote->rkey,
                                           .compare_add = compare_add,
                                           .swap = swap}};
    struct ibv_send_wr *bad;

    return ibv_post_send(e->qp, &wr, &bad);
}

/* Does one and returns the value it found. */
static uint64_t atomic(struct end *e, enum ibv_wr_opcode op, const struct address *remote,
                       size_t at, uint64_t compare_add, uint64_t swap)
{
    struct ibv_wc wc;

    CHECK_EQ(post_atomic(e, op, 512, 8, remote, at, compare_add, swap), 0);
    wc = wait_wc(e->scq);
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.opcode, op == IBV_WR_ATOMIC_FETCH_AND_ADD ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
    CHECK_EQ(wc.byte_len, 8);
    return *word(e, 512);
}

static void values(const struct end_options *o)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, o);
    to = address_of(&b);
    *word(&b, 64) = UINT64_MAX - 1;
    CHECK(atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, &to, 64, 5, 0) == UINT64_MAX - 1);
    CHECK_EQ(*word(&b, 64), 3); /* wraps */
    CHECK_EQ(atomic(&a, IBV_WR_ATOMIC_CMP_AND_SWP, &to, 64, 4, 99), 3);
    CHECK_EQ(*word(&b, 64), 3);
    CHECK_EQ(atomic(&a, IBV_WR_ATOMIC_CMP_AND_SWP, &to, 64, 3, 99), 3);
    CHECK_EQ(*word(&b, 64), 99);
    CHECK_EQ(*word(&b, 56), 0);
    CHECK_EQ(*word(&b, 72), 0);
    close_two(&a, &b);
}

static void values_shared(void)
{
    values(NULL);
}

static void values_private(void)
{
    values(&private_memory);
}

static void in_pieces(void)
{
    struct end a, b;
    struct address to;
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge,
                             .num_sge = 2,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    const uint64_t value = UINT64_C(0x1122334455667788);

    open_two(&a, &b, NULL);
    to = address_of(&b);
    *word(&b, 0) = value;
    sge[0] = sge_of(&a, 100, 3);
    sge[1] = sge_of(&a, 201, 5);
    wr.wr.atomic.remote_addr = to.addr;
    wr.wr.atomic.rkey = to.rkey;
    CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(memcmp(a.buf + 100, &value, 3) == 0);
    CHECK(memcmp(a.buf + 201, (const char *)&value + 3, 5) == 0);
    close_two(&a, &b);
}

/* ---- refusals ---- */

/* The remote address and the place in memory must both be aligned. */
static void unaligned(uint64_t iova, uint64_t at)
{
    struct end a, b;
    struct address to;
    struct ibv_mr *mr;

    open_two(&a, &b, NULL);
    to = address_of(&b);
    mr =
        ibv_reg_mr_iova(b.pd, b.buf, 4096, iova, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    to.addr = at;
    to.rkey = mr->rkey;
    CHECK_EQ(post_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 512, 8, &to, 0, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_INV_REQ_ERR);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    close_two(&a, &b);
}

static void refused(const struct end_options *o, size_t at, size_t length, uint32_t rkey_change,
                    enum ibv_wc_status status)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, o);
    to = address_of(&b);
    to.rkey ^= rkey_change;
    CHECK_EQ(post_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, length, &to, at, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, status);
    for (size_t i = 0; i < 32; i++)
        CHECK_EQ(b.buf[i], 0);
    close_two(&a, &b);
}

static void refusals(void)
{
    const struct end_options writable = {
        .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

    refused(NULL, 4, 8, 0, IBV_WC_REM_INV_REQ_ERR); /* not aligned */
    unaligned(0x1004, 0x1004);
    unaligned(0x1004, 0x1008);
    refused(NULL, BUF_BYTES, 8, 0, IBV_WC_REM_ACCESS_ERR);
    refused(NULL, 0, 8, 0x100, IBV_WC_REM_ACCESS_ERR);
    refused(&writable, 0, 8, 0, IBV_WC_REM_ACCESS_ERR);
    refused(NULL, 0, 4, 0, IBV_WC_LOC_LEN_ERR);
}

static void connect_depth(struct end *e, const struct address *to, unsigned access, uint8_t in,
                          uint8_t out)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};

    CHECK_EQ(ibv_modify_qp(e->qp, &a,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
             0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = to->qpn,
                             .rq_psn = to->psn,
                             .max_dest_rd_atomic = in,
                             .ah_attr = path_to(to)};
    CHECK_EQ(ibv_modify_qp(e->qp, &a,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .sq_psn = (uint32_t)e->psn,
                             .max_rd_atomic = out};
    CHECK_EQ(ibv_modify_qp(e->qp, &a,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
             0);
}

static void with_depths(enum ibv_wr_opcode op, unsigned access, uint8_t out, uint8_t in,
                        enum ibv_wc_status status)
{
    struct end a, b;
    struct address to_a, to_b;

    end_open(&a, NULL);
    end_open(&b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    connect_depth(&a, &to_b, 0, 1, out);
    connect_depth(&b, &to_a, access, in, 1);
    CHECK_EQ(post(&a, op, 1, 0, 8, IBV_SEND_SIGNALED, &to_b, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, status);
    close_two(&a, &b);
}

/* A queue pair without resources for reads and atomics: as requester it cannot request, as
 * responder it finds the request invalid, also if it does not offer the operation. */
static void depths_and_offers(void)
{
    const unsigned all =
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_WRITE;
    const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                      IBV_WR_ATOMIC_CMP_AND_SWP};

    for (unsigned i = 0; i < 3; i++) {
        with_depths(ops[i], all, 1, 1, IBV_WC_SUCCESS);
        with_depths(ops[i], all, 0, 1, IBV_WC_LOC_QP_OP_ERR);
        with_depths(ops[i], all, 1, 0, IBV_WC_REM_INV_REQ_ERR);
        with_depths(ops[i], IBV_ACCESS_REMOTE_WRITE, 1, 1, IBV_WC_REM_INV_REQ_ERR);
    }
    with_depths(IBV_WR_RDMA_WRITE, all, 0, 0, IBV_WC_SUCCESS);
    with_depths(IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ, 1, 1, IBV_WC_REM_INV_REQ_ERR);
}

/* Shared memory that others can map directly but not through this region: atomics would not be
 * atomic with theirs, so they are refused. Other transfers work. */
static void never_both_ways(void)
{
    struct end a, b;
    struct address to;
    struct ibv_mr *mr;
    char *two;
    int fd;

    open_two(&a, &b, NULL);
    to = address_of(&b);
    fd = memfd_create("half", MFD_CLOEXEC);
    CHECK(ftruncate(fd, 4096) == 0);
    two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mmap(two, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == two);
    mr = ibv_reg_mr(b.pd, two, 8192,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(mr != NULL);
    to.addr = (uintptr_t)two;
    to.rkey = mr->rkey;
    a.buf[0] = 9;
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 1, IBV_SEND_SIGNALED, &to, 4090), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(two[4090], 9);
    CHECK_EQ(post_atomic(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8, &to, 0, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_OP_ERR);
    CHECK_EQ(two[0], 0);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    close_two(&a, &b);
}

/* ---- many at once ---- */

/* Each worker adds to the counter at 0, and adds to the plain word at 16 under the lock at 8. */
static void work(struct end *e, const struct address *to)
{
    const int adds = ADDS, locks = LOCKS;

    for (int i = 0; i < adds; i++)
        atomic(e, IBV_WR_ATOMIC_FETCH_AND_ADD, to, 0, 1, 0);
    for (int i = 0; i < locks; i++) {
        while (atomic(e, IBV_WR_ATOMIC_CMP_AND_SWP, to, 8, 0, 1) != 0)
            sched_yield();
        CHECK_EQ(post(e, IBV_WR_RDMA_READ, 1, 600, 8, IBV_SEND_SIGNALED, to, 16), 0);
        CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
        ++*word(e, 600);
        CHECK_EQ(post(e, IBV_WR_RDMA_WRITE, 1, 600, 8, IBV_SEND_SIGNALED, to, 16), 0);
        CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
        CHECK_EQ(atomic(e, IBV_WR_ATOMIC_CMP_AND_SWP, to, 8, 1, 0), 1);
    }
}

static void worker(int fd, const struct end_options *o)
{
    struct end e;
    struct address to;

    deadline(ALARM);
    end_open(&e, o);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    work(&e, &to);
    meet(fd);
    end_close(&e);
    exit(0);
}

static void second_qp(struct end *owner, struct end *more)
{
    *more = *owner;
    end_qp(more, &(struct end_options){0});
}

static void counter(const struct end_options *o)
{
    struct end owner, own, ends[WORKERS];
    struct address self, mine;
    int fds[WORKERS][2];

    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds[i]), 0);
        if (fork() == 0)
            worker(fds[i][1], o);
        close(fds[i][1]);
    }
    end_open(&owner, o);
    second_qp(&owner, &own);
    self = address_of(&owner);
    mine = address_of(&own);
    connect_to(&owner, &mine);
    connect_to(&own, &self);
    for (int i = 0; i < WORKERS; i++) {
        struct address peer;

        second_qp(&owner, &ends[i]);
        peer = swap_addresses(fds[i][0], &ends[i]);
        connect_to(&ends[i], &peer);
    }
    for (int i = 0; i < WORKERS; i++)
        meet(fds[i][0]);
    work(&owner, &self);
    for (int i = 0; i < WORKERS; i++)
        meet(fds[i][0]);
    CHECK_EQ(*word(&owner, 0), (WORKERS + 1) * ADDS);
    CHECK_EQ(*word(&owner, 8), 0);
    CHECK_EQ(*word(&owner, 16), (WORKERS + 1) * LOCKS);
    for (int i = 0; i < WORKERS; i++) {
        int status;

        CHECK(wait(&status) > 0 && status == 0);
        CHECK_EQ(ibv_destroy_qp(ends[i].qp), 0);
    }
    CHECK_EQ(ibv_destroy_qp(own.qp), 0);
    end_close(&owner);
}

static void counter_shared(void)
{
    counter(&(struct end_options){0});
}

static void counter_private(void)
{
    counter(&private_memory);
}

/* A worker that is killed anywhere leaves a counter that others can use. */
static void killed_right(int fd, pid_t other)
{
    struct end e;
    struct address to;

    (void)other;
    end_open(&e, &private_memory);
    to = swap_addresses(fd, &e);
    connect_to(&e, &to);
    meet(fd);
    for (;;)
        atomic(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, &to, 0, 1, 0);
}

static void killed_left(int fd, pid_t other)
{
    struct end e, own;
    struct address peer, self, mine;

    end_open(&e, &private_memory);
    second_qp(&e, &own);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
    usleep(2000 + (useconds_t)(getpid() % 16) * 100);
    CHECK_EQ(kill(other, SIGKILL), 0);
    self = mine = address_of(&own);
    connect_to(&own, &mine);
    for (int i = 0; i < 10; i++)
        atomic(&own, IBV_WR_ATOMIC_FETCH_AND_ADD, &self, 0, 1, 0);
    CHECK_EQ(ibv_destroy_qp(own.qp), 0);
    end_close(&e);
}

static void killed_worker(void)
{
    for (int i = 0; i < 10; i++)
        in_two(killed_left, killed_right);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"values_shared", values_shared},
        {"values_private", values_private},
        {"in_pieces", in_pieces},
        {"refusals", refusals},
        {"depths_and_offers", depths_and_offers},
        {"never_both_ways", never_both_ways},
        {"counter_shared", counter_shared},
        {"counter_private", counter_private},
        {"killed_worker", killed_worker},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
