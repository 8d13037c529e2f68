/* SPDX-License-Identifier: BSD-3-Clause */
/* The promises about errors, one case each, between two ends of one process: which requests fail,
 * with which status, on which side, and the fate of the work behind them. Where each status is
 * tested:
 *
 *     LOC_LEN        here (receiver, sender); atomics.c; unreliable.c; two_processes.c (datagrams)
 *     LOC_QP_OP      atomics.c (no depth for reads)
 *     LOC_PROT       here (sender, receiver); unreliable.c
 *     WR_FLUSH       here, and behind nearly every other
 *     REM_INV_REQ    here (too long); atomics.c (alignment, depth, not offered)
 *     REM_ACCESS     here; atomics.c
 *     REM_OP         here (receiver's key, CQ overrun); atomics.c
 *     RETRY_EXC      here (no answer); two_processes.c (death); addressing.c (partitions, frames);
 *                    link_state.c
 *     RNR_RETRY_EXC  here
 *
 * Never reported: LOC_ACCESS and MW_BIND (no memory windows; a receive buffer that is not writable
 * gives LOC_PROT), LOC_EEC_OP, LOC_RDD_VIOL, REM_INV_RD_REQ, INV_EECN, INV_EEC_STATE (no RD
 * transport), BAD_RESP (no damaged answers), REM_ABORT (nothing is aborted half-way), FATAL (a
 * broken HCA flushes, link_state.c), RESP_TIMEOUT and GENERAL (no driver reports them for these
 * operations), TM_* (no tag matching). */
#include "config.h"

#include "harness.h"

static void expect_flush(struct end *e, struct ibv_cq *cq, uint64_t id)
{
    struct ibv_wc wc = wait_wc(cq);

    CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(wc.wr_id, id);
    CHECK_EQ(wc.qp_num, e->qp->qp_num);
}

static enum ibv_qp_state state_of(struct end *e)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;

    CHECK_EQ(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &i), 0);
    return a.qp_state;
}

/* Posts one request that must fail with a status and leave both sides broken; returns after the
 * asynchronous event of the other side was checked. */
static void expect_failure(struct end *a, struct end *b, enum ibv_wr_opcode op, size_t length,
                           const struct address *to, size_t at, enum ibv_wc_status status,
                           enum ibv_event_type event)
{
    struct ibv_async_event ev;
    struct ibv_wc wc;

    CHECK_EQ(post_recv(b, 900, 0, 64), 0);
    CHECK_EQ(post(a, op, 1, 0, length, IBV_SEND_SIGNALED, to, at), 0);
    wc = wait_wc(a->scq);
    CHECK_EQ(wc.status, status);
    CHECK_EQ(wc.wr_id, 1);
    CHECK_EQ(state_of(a), IBV_QPS_ERR);
    CHECK_EQ(state_of(b), IBV_QPS_ERR);
    expect_flush(b, b->rcq, 900);
    CHECK_EQ(ibv_get_async_event(b->ctx, &ev), 0);
    CHECK_EQ(ev.event_type, event);
    CHECK(ev.element.qp == b->qp);
    ibv_ack_async_event(&ev);
    CHECK_EQ(post_send(a, 2, 0, 8, 0), 0);
    expect_flush(a, a->scq, 2);
}

static void rem_access_range(void)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, NULL);
    to = address_of(&b);
    expect_failure(&a, &b, IBV_WR_RDMA_WRITE, 64, &to, BUF_BYTES - 63, IBV_WC_REM_ACCESS_ERR,
                   IBV_EVENT_QP_ACCESS_ERR);
    CHECK_EQ(b.buf[BUF_BYTES - 1], 0);
    close_two(&a, &b);
}

static void rem_access_key(void)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, NULL);
    to = address_of(&b);
    to.rkey += 1; /* the generation after this one */
    expect_failure(&a, &b, IBV_WR_RDMA_READ, 64, &to, 0, IBV_WC_REM_ACCESS_ERR,
                   IBV_EVENT_QP_ACCESS_ERR);
    close_two(&a, &b);
}

static void rem_access_flags(void)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b,
             &(struct end_options){.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ});
    to = address_of(&b);
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 5, 0, 64, IBV_SEND_SIGNALED, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    expect_failure(&a, &b, IBV_WR_RDMA_WRITE, 64, &to, 0, IBV_WC_REM_ACCESS_ERR,
                   IBV_EVENT_QP_ACCESS_ERR);
    close_two(&a, &b);
}

static void rem_access_dead_region(void)
{
    struct end a, b;
    struct address to;
    struct ibv_mr *mr;

    open_two(&a, &b, NULL);
    to = address_of(&b);
    mr = ibv_reg_mr(b.pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    to.rkey = mr->rkey;
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 5, 0, 64, IBV_SEND_SIGNALED, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    expect_failure(&a, &b, IBV_WR_RDMA_WRITE, 64, &to, 0, IBV_WC_REM_ACCESS_ERR,
                   IBV_EVENT_QP_ACCESS_ERR);
    close_two(&a, &b);
}

static void rem_access_other_pd(void)
{
    struct end a, b;
    struct address to;
    struct ibv_pd *pd;
    struct ibv_mr *mr;

    open_two(&a, &b, NULL);
    to = address_of(&b);
    pd = ibv_alloc_pd(b.ctx);
    mr = ibv_reg_mr(pd, b.buf, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    to.rkey = mr->rkey;
    CHECK_EQ(ibv_dealloc_pd(pd), EBUSY);
    expect_failure(&a, &b, IBV_WR_RDMA_WRITE, 64, &to, 0, IBV_WC_REM_ACCESS_ERR,
                   IBV_EVENT_QP_ACCESS_ERR);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    CHECK_EQ(ibv_dealloc_pd(pd), 0);
    close_two(&a, &b);
}

static void loc_prot(void)
{
    struct end a, b;
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    struct ibv_send_wr *bad;

    open_two(&a, &b, NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    sge = sge_of(&a, BUF_BYTES - 8, 9); /* not signaled: errors always complete */
    CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    CHECK_EQ(state_of(&b), IBV_QPS_RTS); /* nothing went out */
    no_wc(b.rcq);
    close_two(&a, &b);
}

static void loc_prot_receiver(void)
{
    struct end a, b;
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;

    open_two(&a, &b, NULL);
    sge = sge_of(&b, 0, 64);
    sge.lkey ^= 0x100;
    CHECK_EQ(ibv_post_recv(b.qp, &wr, &bad), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_OP_ERR);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(wc.wr_id, 3);
    CHECK_EQ(state_of(&b), IBV_QPS_ERR);
    close_two(&a, &b);
}

static void too_long_for_receive(void)
{
    struct end a, b;
    struct ibv_wc wc;

    open_two(&a, &b, NULL);
    CHECK_EQ(post_recv(&b, 7, 0, 63), 0);
    CHECK_EQ(post_recv(&b, 8, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_INV_REQ_ERR);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
    CHECK_EQ(wc.wr_id, 7);
    expect_flush(&b, b.rcq, 8);
    close_two(&a, &b);
}

static void too_long_for_port(void)
{
    struct end a, b;

    setenv("SOFTHCA_MAX_MSG", "65536", 1);
    open_two(&a, &b, NULL);
    CHECK_EQ(post_send(&a, 1, 0, 65537, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_LEN_ERR);
    close_two(&a, &b);
}

static void rnr_exceeded(void)
{
    struct end a, b;
    struct address to_a, to_b;
    double start;

    end_open(&a, NULL);
    end_open(&b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    to_init(a.qp);
    to_rtr(a.qp, &to_b);
    to_rts(&a, 14, 3);
    connect_to(&b, &to_a);
    start = seconds();
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(post_send(&a, 2, 0, 64, 0), 0);
    no_wc(a.scq);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    CHECK(seconds() - start >= 3 * 0.00064); /* timer 12 is 0.64 ms */
    CHECK(seconds() - start < HANG);
    expect_flush(&a, a.scq, 2);
    CHECK_EQ(state_of(&b), IBV_QPS_RTS);
    close_two(&a, &b);
}

static void rnr_for_ever(void)
{
    struct end a, b;
    double until;

    open_two(&a, &b, NULL);
    fill(a.buf, 64, 9);
    CHECK_EQ(post_send(&a, 1, 0, 64, IBV_SEND_INLINE), 0);
    fill(a.buf, 64, 10); /* inline: the buffer is free at once, even while the request waits */
    for (until = seconds() + 0.05; seconds() < until;)
        no_wc(a.scq);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 64, 9));
    close_two(&a, &b);
}

/* A connection attribute that does not match: packets are ignored until the retries are used up. */
static void expect_silence(void (*spoil)(struct address *))
{
    struct end a, b;
    struct address to_a, to_b;
    double start;

    end_open(&a, NULL);
    end_open(&b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    spoil(&to_a);
    to_init(a.qp);
    to_rtr(a.qp, &to_b);
    to_rts(&a, 12, 7); /* 16.8 ms, eight times */
    connect_to(&b, &to_a);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    start = seconds();
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK(seconds() - start > 0.12 && seconds() - start < HANG);
    no_wc(b.rcq);
    close_two(&a, &b);
}

static void spoil_psn(struct address *a)
{
    a->psn++;
}

static void spoil_qpn(struct address *a)
{
    a->qpn++;
}

static void spoil_lid(struct address *a)
{
    a->lid += 77;
}

static void retry_psn(void)
{
    expect_silence(spoil_psn);
}

static void retry_qpn(void)
{
    expect_silence(spoil_qpn);
}

static void retry_lid(void)
{
    expect_silence(spoil_lid);
}

static void flush_by_modify(void)
{
    struct end a, b;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    open_two(&a, &b, NULL);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0); /* waits: nothing is posted there */
    CHECK_EQ(post_send(&a, 2, 0, 8, 0), 0);
    CHECK_EQ(post_recv(&a, 11, 0, 8), 0);
    CHECK_EQ(post_recv(&a, 12, 0, 8), 0);
    CHECK_EQ(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
    expect_flush(&a, a.scq, 1);
    expect_flush(&a, a.scq, 2);
    expect_flush(&a, a.rcq, 11);
    expect_flush(&a, a.rcq, 12);
    CHECK_EQ(post_recv(&a, 13, 0, 8), 0);
    expect_flush(&a, a.rcq, 13);
    close_two(&a, &b);
}

static void reset_drops_all(void)
{
    struct end a, b;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct address to_a, to_b;

    open_two(&a, &b, NULL);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
    no_wc(a.scq);
    no_wc(b.rcq);
    to_a = address_of(&a);
    to_b = address_of(&b);
    connect_to(&a, &to_b);
    connect_to(&b, &to_a);
    CHECK_EQ(post_recv(&b, 8, 0, 64), 0);
    CHECK_EQ(post_send(&a, 2, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 8);
    close_two(&a, &b);
}

/* One side restarts with the same numbers: the other must forget what it knew about its
 * receives. */
static void reset_of_one_side(void)
{
    struct end a, b;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    struct address to_a;

    open_two(&a, &b, NULL);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
    to_a = address_of(&a);
    connect_to(&b, &to_a);
    CHECK_EQ(post_send(&a, 2, 0, 8, 0), 0);
    no_wc(b.rcq);
    no_wc(a.scq);
    CHECK_EQ(post_recv(&b, 8, 0, 64), 0);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 8);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    close_two(&a, &b);
}

static void full_queues(void)
{
    struct end a, b;

    open_two(&a, &b, &(struct end_options){.send_wr = 4, .recv_wr = 4});
    for (int i = 0; i < 4; i++)
        CHECK_EQ(post_recv(&b, (uint64_t)i, 0, 64), 0);
    CHECK_EQ(post_recv(&b, 4, 0, 64), ENOMEM);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(post_send(&a, (uint64_t)i, 0, 8, 0), 0);
    CHECK_EQ(post_send(&a, 4, 0, 8, 0), ENOMEM); /* done, but not polled */
    CHECK_EQ(post_recv(&b, 4, 0, 64), ENOMEM);
    CHECK_EQ(wait_wc(a.scq).wr_id, 0);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 0);
    CHECK_EQ(post_recv(&b, 4, 0, 64), 0);
    CHECK_EQ(post_recv(&b, 5, 0, 64), ENOMEM);
    CHECK_EQ(post_send(&a, 4, 0, 8, 0), 0);
    CHECK_EQ(post_send(&a, 5, 0, 8, 0), ENOMEM);
    close_two(&a, &b);
}

static void expect_cq_error(struct end *e, struct ibv_cq *cq)
{
    struct ibv_async_event ev;

    CHECK_EQ(ibv_get_async_event(e->ctx, &ev), 0);
    CHECK_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
    CHECK(ev.element.cq == cq);
    ibv_ack_async_event(&ev);
}

static void cq_overrun(void)
{
    struct end a, b;
    struct address to;

    open_two(&a, &b, &(struct end_options){.cqe = 4});
    to = address_of(&b);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8, IBV_SEND_SIGNALED, &to, 0), 0);
    expect_cq_error(&a, a.scq);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    close_two(&a, &b);
}

static void cq_overrun_by_peer(void)
{
    struct end a, b;
    struct ibv_async_event ev;

    open_two(&a, &b, &(struct end_options){.cqe = 4});
    for (int i = 0; i < 8; i++)
        CHECK_EQ(post_recv(&b, (uint64_t)i, 0, 64), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_OP_ERR);
    expect_cq_error(&b, b.rcq);
    CHECK_EQ(ibv_get_async_event(b.ctx, &ev), 0);
    ibv_ack_async_event(&ev);
    close_two(&a, &b);
}

static void inline_limit(void)
{
    struct end a, b;

    open_two(&a, &b, NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 4096), 0);
    CHECK_EQ(post_send(&a, 1, 0, 1025, IBV_SEND_INLINE), EINVAL);
    CHECK_EQ(post_send(&a, 2, 0, 220, IBV_SEND_INLINE), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    close_two(&a, &b);
}

static void states_and_masks(void)
{
    struct end e;
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    struct address self;

    end_open(&e, NULL);
    CHECK_EQ(post_recv(&e, 1, 0, 64), EINVAL); /* RESET */
    CHECK_EQ(post_send(&e, 1, 0, 64, 0), EINVAL);
    CHECK_EQ(ibv_modify_qp(e.qp, &a, init & ~IBV_QP_PORT), EINVAL);
    CHECK_EQ(ibv_modify_qp(e.qp, &a, init | IBV_QP_QKEY), EINVAL);
    a.port_num = 2;
    CHECK_EQ(ibv_modify_qp(e.qp, &a, init), EINVAL);
    a.port_num = 1;
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE), EINVAL);
    a.qp_state = IBV_QPS_INIT;
    CHECK_EQ(ibv_modify_qp(e.qp, &a, init), 0);
    CHECK_EQ(post_recv(&e, 1, 0, 64), 0);
    CHECK_EQ(post_send(&e, 1, 0, 64, 0), EINVAL);
    self = address_of(&e);
    to_rtr(e.qp, &self);
    CHECK_EQ(post_send(&e, 1, 0, 64, 0), EINVAL);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
    to_rts(&e, 14, 7);
    CHECK_EQ(post_send(&e, 5, 0, 64, 0), 0); /* to itself */
    CHECK_EQ(wait_wc(e.scq).wr_id, 5);
    CHECK_EQ(wait_wc(e.rcq).wr_id, 1);
    end_close(&e);
}

static void drained_queue(void)
{
    struct end a, b;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

    open_two(&a, &b, NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    no_wc(a.scq);
    no_wc(b.rcq);
    attr.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 1);
    close_two(&a, &b);
}

static bool is_refused(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    errno = 0;
    return !ibv_reg_mr(pd, addr, length, access) && errno == EFAULT;
}

/* As pinning does: memory that is not writable cannot be registered for writing, memory that is not
 * there or not readable not at all; both ends count. */
static void unfit_memory(struct ibv_pd *pd)
{
    enum { PAGE = 4096 };
    char *at = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(pd, at, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE);

    CHECK(at != MAP_FAILED && mr && ibv_dereg_mr(mr) == 0);
    CHECK(mprotect(at + 2 * PAGE, PAGE, PROT_READ) == 0);
    CHECK(is_refused(pd, at, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE));
    CHECK(is_refused(pd, at + 2 * PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE));
    mr = ibv_reg_mr(pd, at, 3 * PAGE, 0);
    CHECK(mr && ibv_dereg_mr(mr) == 0);
    CHECK(mprotect(at, PAGE, PROT_NONE) == 0);
    CHECK(is_refused(pd, at, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE) && is_refused(pd, at, 2 * PAGE, 0));
    munmap(at + 2 * PAGE, PAGE);
    CHECK(is_refused(pd, at + PAGE, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE));
    CHECK(is_refused(pd, at + PAGE, PAGE + 1, 0));
    munmap(at, 2 * PAGE);
}

static void not_offered(void)
{
    struct end a, b;
    struct ibv_qp_init_attr raw;

    open_two(&a, &b, NULL);
    raw = (struct ibv_qp_init_attr){
        .send_cq = a.scq, .recv_cq = a.rcq, .qp_type = IBV_QPT_RAW_PACKET, .cap = {1, 1, 1, 1, 0}};
    CHECK(ibv_create_qp(a.pd, &raw) == NULL && errno == EOPNOTSUPP);
    CHECK_EQ(post(&a, IBV_WR_LOCAL_INV, 1, 0, 8, 0, NULL, 0), EOPNOTSUPP);
    CHECK_EQ(post(&a, IBV_WR_SEND_WITH_INV, 1, 0, 8, 0, NULL, 0), EOPNOTSUPP);
    CHECK(ibv_reg_mr(a.pd, (void *)16, 4096, 0) == NULL && errno == EFAULT);
    unfit_memory(a.pd);
    CHECK(ibv_reg_mr(a.pd, a.buf, 4096, IBV_ACCESS_REMOTE_WRITE) == NULL && errno == EINVAL);
    close_two(&a, &b);
}

static void after_fork(void)
{
    struct end a, b;
    int status;
    pid_t pid;

    open_two(&a, &b, NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    pid = fork();
    if (pid == 0) {
        struct end fresh;

        CHECK(post_send(&a, 1, 0, 64, 0) != 0);
        end_open(&fresh, NULL);
        CHECK(fresh.qp->qp_num != a.qp->qp_num);
        end_close(&fresh);
        _exit(0);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(post_send(&a, 2, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    close_two(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"rem_access_range", rem_access_range},
        {"rem_access_key", rem_access_key},
        {"rem_access_flags", rem_access_flags},
        {"rem_access_dead_region", rem_access_dead_region},
        {"rem_access_other_pd", rem_access_other_pd},
        {"loc_prot", loc_prot},
        {"loc_prot_receiver", loc_prot_receiver},
        {"too_long_for_receive", too_long_for_receive},
        {"too_long_for_port", too_long_for_port},
        {"rnr_exceeded", rnr_exceeded},
        {"rnr_for_ever", rnr_for_ever},
        {"retry_psn", retry_psn},
        {"retry_qpn", retry_qpn},
        {"retry_lid", retry_lid},
        {"flush_by_modify", flush_by_modify},
        {"reset_drops_all", reset_drops_all},
        {"reset_of_one_side", reset_of_one_side},
        {"full_queues", full_queues},
        {"cq_overrun", cq_overrun},
        {"cq_overrun_by_peer", cq_overrun_by_peer},
        {"inline_limit", inline_limit},
        {"states_and_masks", states_and_masks},
        {"drained_queue", drained_queue},
        {"not_offered", not_offered},
        {"after_fork", after_fork},
        {NULL, NULL},
    };

    int failed = run_cases(cases, argc, argv);

    traffic_first = true;
    return run_cases(cases, argc, argv) | failed;
}
