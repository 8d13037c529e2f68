/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended completion queues (fields, order, time stamps, threads), and resizing any. Owns nothing
 * beyond each case. */
#include "config.h"

#include <pthread.h>

#include "harness.h"

#define TIMES  (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
#define SECOND UINT64_C(1000000000)

/* A connected pair whose second end receives into an extended CQ. */
static struct ibv_cq_ex *open_pair(struct end *a, struct end *b, uint64_t wc_flags, uint32_t flags)
{
    static const struct end_options without = {.no_qp = true}, usual;
    struct ibv_cq_init_attr_ex init = {.cqe = 256,
                                       .cq_context = b,
                                       .wc_flags = wc_flags,
                                       .comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
                                       .flags = flags};
    struct address to_a, to_b;
    struct ibv_cq_ex *ex;

    end_open(a, NULL);
    end_open(b, &without);
    CHECK_EQ(ibv_destroy_cq(b->rcq), 0);
    CHECK((ex = ibv_create_cq_ex(b->ctx, &init)) != NULL);
    b->rcq = ibv_cq_ex_to_cq(ex);
    CHECK(b->rcq->cq_context == b && b->rcq->cqe >= 256);
    end_qp(b, &usual);
    to_a = address_of(a);
    to_b = address_of(b);
    connect_to(a, &to_b);
    connect_to(b, &to_a);
    return ex;
}

static void start(struct ibv_cq_ex *ex)
{
    struct ibv_poll_cq_attr attr = {0};
    double until = seconds() + HANG;
    int e;

    while ((e = ibv_start_poll(ex, &attr)) == ENOENT)
        CHECK(seconds() < until);
    CHECK_EQ(e, 0);
}

static void fields(void)
{
    struct ibv_poll_cq_attr attr = {0}, bad = {.comp_mask = 1};
    struct end a, b;
    struct ibv_cq_ex *ex = open_pair(&a, &b, IBV_WC_STANDARD_FLAGS, 0);
    struct address to_b = address_of(&b);

    CHECK_EQ(ibv_start_poll(ex, &bad), EINVAL);
    CHECK_EQ(ibv_start_poll(ex, &attr), ENOENT);
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ(post_recv(&b, 40 + i, 4096, i == 3 ? 50 : 4096), 0);
    CHECK_EQ(post(&a, IBV_WR_SEND_WITH_IMM, 1, 0, 100, IBV_SEND_SIGNALED, NULL, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 200, 0, &to_b, 0), 0);
    start(ex);
    CHECK_EQ(ex->wr_id, 40);
    CHECK_EQ(ex->status, IBV_WC_SUCCESS);
    CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_RECV);
    CHECK_EQ(ibv_wc_read_byte_len(ex), 100);
    CHECK_EQ(ibv_wc_read_imm_data(ex), 0x12345678);
    CHECK_EQ(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
    CHECK_EQ(ibv_wc_read_qp_num(ex), b.qp->qp_num);
    CHECK_EQ(ibv_wc_read_src_qp(ex), a.qp->qp_num);
    CHECK_EQ(ibv_wc_read_vendor_err(ex), 0);
    CHECK_EQ(ibv_wc_read_sl(ex), 0);
    CHECK_EQ(ibv_wc_read_dlid_path_bits(ex), 0);
    ibv_wc_read_slid(ex);
    CHECK_EQ(ibv_next_poll(ex), 0);
    CHECK_EQ(ex->wr_id, 41);
    CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQ(ibv_wc_read_byte_len(ex), 200);
    /* Posting is allowed in the middle, even of work that completes into this CQ. */
    CHECK_EQ(post_send(&a, 3, 0, 10, 0), 0);
    CHECK_EQ(post_send(&b, 4, 0, 10, 0), 0);
    CHECK_EQ(ibv_next_poll(ex), 0);
    CHECK_EQ(ex->wr_id, 42);
    CHECK_EQ(ibv_next_poll(ex), ENOENT);
    ibv_end_poll(ex);
    /* The plain way works on the same CQ, and errors have their status. */
    CHECK_EQ(post_send(&a, 5, 0, 100, 0), 0);
    start(ex);
    CHECK_EQ(ex->wr_id, 43);
    CHECK_EQ(ex->status, IBV_WC_LOC_LEN_ERR);
    ibv_end_poll(ex);
    CHECK_EQ(post_recv(&b, 50, 0, 50), 0);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_WR_FLUSH_ERR);
    close_two(&a, &b);
}

/* Only requested fields can be read, as with real drivers. */
static void asked_for(void)
{
    static const uint64_t never[] = {IBV_WC_EX_WITH_CVLAN, IBV_WC_EX_WITH_FLOW_TAG,
                                     IBV_WC_EX_WITH_TM_INFO, UINT64_C(1) << 40};
    struct ibv_context *ctx = open_softhca(0);
    struct ibv_cq_init_attr_ex init = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_IMM};
    struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &init);

    CHECK(ex && ex->read_imm_data && !ex->read_byte_len && !ex->read_completion_ts);
    CHECK_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        init.wc_flags = never[i];
        errno = 0;
        CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EOPNOTSUPP);
    }
    init.wc_flags = 0;
    init.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
    init.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    errno = 0;
    CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EOPNOTSUPP);
    init.comp_mask = 1 << 5;
    errno = 0;
    CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EOPNOTSUPP);
    init.comp_mask = 0;
    init.cqe = 0;
    errno = 0;
    CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EINVAL);
    init.cqe = 1;
    init.comp_vector = (uint32_t)ctx->num_comp_vectors;
    errno = 0;
    CHECK(!ibv_create_cq_ex(ctx, &init) && errno == EINVAL);
    CHECK_EQ(ibv_close_device(ctx), 0);
}

static uint64_t device_clock(struct ibv_context *ctx)
{
    struct ibv_values_ex v = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, bad = {.comp_mask = 8};

    CHECK_EQ(ibv_query_rt_values_ex(ctx, &bad), EOPNOTSUPP);
    CHECK_EQ(ibv_query_rt_values_ex(ctx, &v), 0);
    CHECK_EQ(v.raw_clock.tv_sec, 0);
    return (uint64_t)v.raw_clock.tv_nsec;
}

/* The time stamp is that of the completion, not that of the poll that finds it. */
static void time_stamps(void)
{
    struct ibv_device_attr_ex attr;
    struct timespec wall;
    uint64_t before, after, stamp, last, ns;
    struct end a, b;
    struct ibv_cq_ex *ex = open_pair(&a, &b, TIMES, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);

    CHECK_EQ(ibv_query_device_ex(b.ctx, NULL, &attr), 0);
    CHECK(attr.hca_core_clock == 1000000 && attr.completion_timestamp_mask == UINT64_MAX);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_EQ(post_recv(&b, i, 0, 100), 0);
    before = device_clock(b.ctx);
    CHECK_EQ(post_send(&a, 1, 0, 10, 0), 0);
    CHECK_EQ(post_send(&a, 1, 0, 10, 0), 0);
    after = device_clock(b.ctx);
    usleep(20000);
    start(ex);
    stamp = ibv_wc_read_completion_ts(ex);
    CHECK(before <= stamp && stamp <= after);
    clock_gettime(CLOCK_REALTIME, &wall);
    ns = (uint64_t)wall.tv_sec * SECOND + (uint64_t)wall.tv_nsec;
    last = ibv_wc_read_completion_wallclock_ns(ex);
    CHECK(ns - last >= SECOND / 50 && ns - last < SECOND);
    CHECK_EQ(ibv_next_poll(ex), 0);
    CHECK(stamp <= ibv_wc_read_completion_ts(ex) && ibv_wc_read_completion_ts(ex) <= after);
    CHECK_EQ(ibv_wc_read_completion_wallclock_ns(ex) - last, ibv_wc_read_completion_ts(ex) - stamp);
    ibv_end_poll(ex);
    close_two(&a, &b);
}

/* Stamps of sends survive a resize of the CQ and the reset of a neighbour. */
static void stamps_move(void)
{
    static const struct end_options usual;
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct ibv_qp *first;
    struct end a, b;
    struct ibv_cq_ex *ex = open_pair(&a, &b, TIMES, 0);
    struct address to_a;
    struct ibv_cq *plain = b.scq;
    uint64_t before, after;

    /* b sends with completions into the extended CQ, on two queue pairs. */
    b.scq = b.rcq;
    first = b.qp;
    end_qp(&b, &usual);
    to_a = address_of(&a);
    connect_to(&b, &to_a);
    CHECK_EQ(ibv_modify_qp(b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_destroy_qp(first), 0);
    first = b.qp;
    end_qp(&b, &usual);
    connect_to(&b, &to_a);
    CHECK_EQ(ibv_modify_qp(b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE), 0);
    {
        struct end other = b;

        other.qp = first;
        CHECK_EQ(post_send(&other, 1, 0, 10, 0), 0);
    }
    usleep(2000);
    before = device_clock(b.ctx);
    CHECK_EQ(post_send(&b, 2, 0, 10, 0), 0);
    after = device_clock(b.ctx);
    CHECK_EQ(ibv_modify_qp(first, &reset, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_resize_cq(b.rcq, 1000), 0);
    start(ex);
    CHECK_EQ(ex->wr_id, 2);
    CHECK(before <= ibv_wc_read_completion_ts(ex) && ibv_wc_read_completion_ts(ex) <= after);
    ibv_end_poll(ex);
    CHECK_EQ(ibv_destroy_qp(first), 0);
    b.scq = plain;
    close_two(&a, &b);
}

/* Between start and end of one thread another one waits: no other thread moves the current entry.
 */
static void *poll_second(void *arg)
{
    struct ibv_cq_ex *ex = arg;

    start(ex);
    CHECK_EQ(ex->wr_id, 2);
    ibv_end_poll(ex);
    return NULL;
}

static void one_poller_at_a_time(void)
{
    struct end a, b;
    struct ibv_cq_ex *ex = open_pair(&a, &b, IBV_WC_STANDARD_FLAGS, 0);
    pthread_t other;

    for (uint64_t i = 1; i <= 2; i++) {
        CHECK_EQ(post_recv(&b, i, 0, 100), 0);
        CHECK_EQ(post_send(&a, i, 0, 50 + i, 0), 0);
    }
    start(ex);
    pthread_create(&other, NULL, poll_second, ex);
    usleep(20000);
    CHECK_EQ(ex->wr_id, 1);
    CHECK_EQ(ibv_wc_read_byte_len(ex), 51);
    ibv_end_poll(ex);
    pthread_join(other, NULL);
    close_two(&a, &b);
}

/* ---- resizing ---- */

#define MESSAGES 20000

static void *send_all(void *arg)
{
    struct end *a = arg;

    for (uint32_t i = 0; i < MESSAGES;) {
        int r = post_send(a, i, 0, 8, IBV_SEND_INLINE);

        CHECK(r == 0 || r == ENOMEM);
        i += r == 0;
        if (r != 0)
            sched_yield();
    }
    return NULL;
}

/* Both CQs change size all the time while messages arrive; each completion comes once, in order. */
static void resize_under_load(void)
{
    static const int sizes[] = {128, 1000, 200, 4000, 130};
    struct end a, b;
    struct ibv_cq_ex *ex = open_pair(&a, &b, IBV_WC_STANDARD_FLAGS, 0);
    uint64_t sent = 0, received = 0;
    struct ibv_wc wc;
    pthread_t sender;

    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQ(post_recv(&b, i, 0, 64), 0);
    pthread_create(&sender, NULL, send_all, &a);
    for (unsigned turn = 0; sent < MESSAGES || received < MESSAGES; turn++) {
        CHECK_EQ(ibv_resize_cq(a.scq, sizes[turn % 5]), 0);
        CHECK_EQ(ibv_resize_cq(b.rcq, sizes[(turn + 2) % 5]), 0);
        CHECK(b.rcq->cqe >= sizes[(turn + 2) % 5]);
        while (ibv_poll_cq(a.scq, 1, &wc) == 1)
            CHECK_EQ(wc.wr_id, sent++);
        if (ibv_start_poll(ex, &(struct ibv_poll_cq_attr){0}) != 0)
            continue;
        do {
            CHECK_EQ(ex->wr_id, received++);
            CHECK_EQ(post_recv(&b, received + 63, 0, 64), 0);
        } while (ibv_next_poll(ex) == 0);
        ibv_end_poll(ex);
    }
    pthread_join(sender, NULL);
    close_two(&a, &b);
}

/* Waiting completions are counted for all queue pairs; a size below that is refused. */
static void shrink(void)
{
    struct end a, b;
    struct ibv_wc wc[8];

    open_two(&a, &b, NULL);
    for (uint64_t i = 0; i < 8; i++) {
        CHECK_EQ(post_recv(&b, i, 0, 64), 0);
        CHECK_EQ(post_send(&a, i, 0, 8, 0), 0);
    }
    CHECK_EQ(ibv_resize_cq(a.scq, 7), EINVAL);
    CHECK_EQ(ibv_resize_cq(b.rcq, 7), EINVAL);
    CHECK_EQ(a.scq->cqe, 256);
    CHECK_EQ(ibv_resize_cq(a.scq, 8), 0);
    CHECK_EQ(ibv_resize_cq(b.rcq, 8), 0);
    CHECK_EQ(ibv_resize_cq(b.rcq, 0), EINVAL);
    CHECK_EQ(ibv_resize_cq(b.rcq, INT32_MAX), EINVAL);
    CHECK_EQ(ibv_poll_cq(a.scq, 8, wc), 8);
    CHECK_EQ(wc[7].wr_id, 7);
    CHECK_EQ(ibv_poll_cq(b.rcq, 8, wc), 8);
    CHECK_EQ(wc[7].wr_id, 7);
    CHECK_EQ(ibv_resize_cq(b.rcq, 1), 0);
    close_two(&a, &b);
}

/* If sends and receives share a CQ, the error that broke a queue pair comes before the flushed
 * work, for each seed. */
static void error_before_its_flushes(void)
{
    static const struct end_options without = {.no_qp = true}, usual;
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct address to_a, to_b;
    struct end a, b;

    setenv("SOFTHCA_SEED", "7", 1);
    end_open(&a, &without);
    CHECK_EQ(ibv_destroy_cq(a.rcq), 0);
    a.rcq = a.scq;
    end_qp(&a, &usual);
    end_open(&b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    for (int i = 0; i < 100; i++) {
        connect_to(&a, &to_b);
        connect_to(&b, &to_a);
        CHECK_EQ(post_recv(&a, 1, 0, 8), 0);
        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 2, 0, 8, 0, &to_b, BUF_BYTES), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_ACCESS_ERR);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
        CHECK_EQ(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE), 0);
        CHECK_EQ(ibv_modify_qp(b.qp, &reset, IBV_QP_STATE), 0);
    }
    a.rcq = ibv_create_cq(a.ctx, 1, NULL, NULL, 0); /* for end_close */
    close_two(&a, &b);
}

/* Messages in a shared receive queue are in the CQ, too. */
static void shrink_shared(void)
{
    static const struct end_options without = {.no_qp = true};
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {16, 0, 1, 0, 0}};
    struct ibv_recv_wr recv = {0}, *bad;
    struct address to_a, to_b;
    struct end a, b;

    end_open(&a, NULL);
    end_open(&b, &without);
    CHECK((init.srq = ibv_create_srq(b.pd, &shared)) != NULL);
    init.send_cq = b.scq;
    init.recv_cq = b.rcq;
    CHECK((b.qp = ibv_create_qp(b.pd, &init)) != NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    connect_to(&a, &to_b);
    connect_to(&b, &to_a);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(ibv_post_srq_recv(init.srq, &recv, &bad), 0);
        CHECK_EQ(post_send(&a, 1, 0, 0, 0), 0);
    }
    CHECK_EQ(ibv_resize_cq(b.rcq, 3), EINVAL);
    CHECK_EQ(ibv_resize_cq(b.rcq, 4), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK_EQ(ibv_destroy_qp(b.qp), 0);
    b.qp = NULL;
    CHECK_EQ(ibv_destroy_srq(init.srq), 0);
    close_two(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"fields", fields},
        {"asked_for", asked_for},
        {"time_stamps", time_stamps},
        {"stamps_move", stamps_move},
        {"one_poller_at_a_time", one_poller_at_a_time},
        {"resize_under_load", resize_under_load},
        {"shrink", shrink},
        {"shrink_shared", shrink_shared},
        {"error_before_its_flushes", error_before_its_flushes},
        {NULL, NULL},
    };

    /* Makes each poll find waiting completions: with another seed some polls find nothing. */
    setenv("SOFTHCA_SEED", "0", 1);
    return run_cases(cases, argc, argv);
}
