/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFTHCA_FAULT: each kind of fault is seen to act, the selectors say when, and what must stay
 * right stays right - data, order inside a queue pair, errors at both ends. */
#include "config.h"

#include "harness.h"

#include <stddef.h>
#include <sys/un.h>

#include "contrib/softhca/names.h"

#define MS 0.001

static void faults(const char *rules)
{
    setenv("SOFTHCA_FAULT", rules, 1);
}

static enum ibv_qp_state state_of(const struct end *e)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;

    CHECK_EQ(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &i), 0);
    return a.qp_state;
}

/* Ends whose sender resends after 4.096 us << timeout, retry times (7 times for ever for RNR). */
static void open_patient(struct end *a, struct end *b, int timeout, int rnr_retry)
{
    struct address to_a, to_b;

    end_open(a, NULL);
    end_open(b, NULL);
    to_a = address_of(a);
    to_b = address_of(b);
    to_init(a->qp);
    to_rtr(a->qp, &to_b);
    to_rts(a, timeout, rnr_retry);
    connect_to(b, &to_a);
}

static int write_8(struct end *a, const struct address *to, uint64_t id, size_t from)
{
    return post(a, IBV_WR_RDMA_WRITE, id, from, 8, IBV_SEND_SIGNALED, to, from);
}

/* ---- delay ---- */

static void delay_puts_off_everything(void)
{
    struct end a, b;
    struct address to;
    double start;

    faults("delay:ms=20,nth=1");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    fill(a.buf, 16, 1);
    start = seconds();
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(write_8(&a, &to, 2, 8), 0); /* not delayed itself, but behind */
    no_wc(a.scq);
    CHECK(b.buf[0] == 0 && b.buf[8] == 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK(seconds() - start >= 20 * MS);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK(filled(b.buf, 16, 1));
    close_two(&a, &b);
}

/* A program that uses a source buffer again before its completion sends garbage. */
static void delay_shows_reuse_of_a_buffer(void)
{
    struct end a, b;
    struct address to;

    faults("delay:ms=5");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    fill(a.buf, 64, 1);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 64, IBV_SEND_SIGNALED, &to, 0), 0);
    fill(a.buf, 64, 2);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 64, 2));
    fill(a.buf, 64, 3);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 64, IBV_SEND_SIGNALED | IBV_SEND_INLINE, &to, 0), 0);
    fill(a.buf, 64, 4); /* inline: allowed */
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 64, 3));
    close_two(&a, &b);
}

/* The engine goes on by itself: the sender sleeps, and so does the receiver. */
static void delay_ends_without_polling(void)
{
    struct end a, b;
    struct ibv_cq *cq;
    struct pollfd p;
    void *context;

    faults("delay:ms=5");
    open_two(&a, &b, &(struct end_options){.channel = true});
    p = (struct pollfd){.fd = b.channel->fd, .events = POLLIN};
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(ibv_req_notify_cq(b.rcq, 0), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(poll(&p, 1, 0), 0);
    CHECK_EQ(poll(&p, 1, 2000), 1);
    CHECK_EQ(ibv_get_cq_event(b.channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    close_two(&a, &b);
}

/* ---- late, reorder ---- */

static void late_holds_back_the_completion_only(void)
{
    struct end a, b;
    struct address to;
    double start;

    faults("late:ms=20");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    fill(a.buf, 8, 1);
    start = seconds();
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK(filled(b.buf, 8, 1));
    no_wc(a.scq);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(seconds() - start >= 20 * MS);
    close_two(&a, &b);
}

static void late_counts_polls(void)
{
    struct end a, b;
    struct address to;
    struct ibv_wc wc;
    int polls = 0;

    setenv("SOFTHCA_SEED", "0", 1);
    faults("late:polls=5");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    while (ibv_poll_cq(a.scq, 1, &wc) == 0)
        polls++;
    CHECK_EQ(polls, 5);
    close_two(&a, &b);
}

/* A sleeper does not count polls: a late completion comes all the same, with its event. */
static void late_polls_end_without_polling(void)
{
    struct end a, b;
    struct address to, back;
    struct ibv_cq *cq;
    struct pollfd p;
    void *context;

    faults("late:polls=1000000");
    open_two(&a, &b, &(struct end_options){.channel = true});
    to = address_of(&b);
    back = address_of(&a);
    CHECK_EQ(ibv_destroy_qp(a.qp), 0);
    CHECK_EQ(ibv_destroy_cq(a.scq), 0);
    CHECK((a.scq = ibv_create_cq(a.ctx, 256, NULL, a.channel, 0)) != NULL);
    end_qp(&a, &(struct end_options){0});
    back = address_of(&a);
    CHECK_EQ(ibv_destroy_qp(b.qp), 0);
    end_qp(&b, &(struct end_options){0});
    connect_to(&b, &back);
    to = address_of(&b);
    connect_to(&a, &to);
    p = (struct pollfd){.fd = a.channel->fd, .events = POLLIN};
    CHECK_EQ(ibv_req_notify_cq(a.scq, 0), 0);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(poll(&p, 1, 0), 0);
    CHECK_EQ(poll(&p, 1, 2000), 1);
    CHECK_EQ(ibv_get_cq_event(a.channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    close_two(&a, &b);
}

static void reorder_mixes_queue_pairs(void)
{
    struct end a[2], b[2];
    struct address to[2], from;
    int swapped = 0;

    setenv("SOFTHCA_SEED", "5", 1);
    faults("reorder");
    open_two(&a[0], &b[0], NULL);
    a[1] = a[0];
    b[1] = b[0];
    end_qp(&a[1], &(struct end_options){0});
    end_qp(&b[1], &(struct end_options){0});
    from = address_of(&a[1]);
    to[0] = address_of(&b[0]);
    to[1] = address_of(&b[1]);
    connect_to(&b[1], &from);
    connect_to(&a[1], &to[1]);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(write_8(&a[0], &to[0], 0, 0), 0);
        CHECK_EQ(write_8(&a[0], &to[0], 1, 0), 0);
        CHECK_EQ(write_8(&a[1], &to[1], 2, 0), 0);
        for (int k = 0, next = 0; k < 3; k++) {
            uint64_t id = wait_wc(a[0].scq).wr_id;

            swapped += id == 2 && next < 2;
            if (id < 2)
                CHECK_EQ(id, next++); /* inside a queue pair nothing changes places */
        }
    }
    CHECK(swapped > 30);
}

/* ---- drop ---- */

#define TIMEOUT    12 /* 16.8 ms */
#define TIMEOUT_MS (0.004096 * (1 << TIMEOUT))

static void drop_is_sent_again(void)
{
    struct end a, b;
    struct address to;
    double start;

    faults("drop:nth=2");
    open_patient(&a, &b, TIMEOUT, 7);
    to = address_of(&b);
    fill(a.buf, 24, 1);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    start = seconds();
    CHECK_EQ(write_8(&a, &to, 2, 8), 0);
    CHECK_EQ(write_8(&a, &to, 3, 16), 0);
    no_wc(a.scq);
    CHECK(b.buf[8] == 0 && b.buf[16] == 0); /* lost, and nothing overtakes it */
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK(seconds() - start >= TIMEOUT_MS * MS);
    CHECK_EQ(wait_wc(a.scq).wr_id, 3);
    CHECK(filled(b.buf, 24, 1));
    close_two(&a, &b);
}

static void drop_for_ever_exceeds_the_retries(void)
{
    struct end a, b;
    double start;

    faults("drop");
    open_patient(&a, &b, 10, 7); /* 4.2 ms, eight times */
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    start = seconds();
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK(seconds() - start >= 7 * 4.19 * MS);
    CHECK(seconds() - start < 1);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    CHECK_EQ(state_of(&b), IBV_QPS_RTS);
    no_wc(b.rcq);
    close_two(&a, &b);
}

static void ready_datagrams(struct end *e)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

    end_open(e, &(struct end_options){.type = IBV_QPT_UD});
    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void send_datagram(struct end *e, struct ibv_ah *ah, uint32_t qpn, size_t at)
{
    struct ibv_sge sge = sge_of(e, at, 8);
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = 0x11111}};
    struct ibv_send_wr *bad;

    CHECK_EQ(ibv_post_send(e->qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
}

/* Of three datagrams one arrives: one is dropped, one finds no receive; nobody is told. */
static void datagrams_are_lost_for_good(void)
{
    struct ibv_ah_attr path;
    struct end a, b;
    struct address to;
    struct ibv_ah *ah;

    faults("drop:nth=1;rnr:nth=2");
    ready_datagrams(&a);
    ready_datagrams(&b);
    to = address_of(&b);
    path = path_to(&to);
    CHECK((ah = ibv_create_ah(a.pd, &path)) != NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 48), 0);
    CHECK_EQ(post_recv(&b, 2, 0, 48), 0);
    fill(a.buf, 24, 1);
    for (size_t i = 0; i < 3; i++)
        send_datagram(&a, ah, to.qpn, i * 8);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 1);
    CHECK_EQ(memcmp(b.buf + 40, a.buf + 16, 8), 0);
    no_wc(b.rcq);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    close_two(&a, &b);
}

/* Of an unreliable connection the sender cannot know, and the next message arrives. */
static void uc_loses_for_good(void)
{
    struct end a, b;

    faults("drop:nth=1");
    open_two(&a, &b, &(struct end_options){.type = IBV_QPT_UC});
    CHECK_EQ(post_recv(&b, 7, 0, 8), 0);
    fill(a.buf, 16, 1);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    no_wc(b.rcq);
    CHECK_EQ(post_send(&a, 2, 8, 8, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    CHECK_EQ(memcmp(b.buf, a.buf + 8, 8), 0);
    close_two(&a, &b);
}

/* Sent twice, done once. */
static void a_lost_atomic_counts_once(void)
{
    struct end a, b;
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    uint64_t sum;

    faults("drop:op=atomic,every=2");
    open_patient(&a, &b, 8, 7);
    sge = sge_of(&a, 0, 8);
    wr.wr.atomic.remote_addr = (uintptr_t)b.buf;
    wr.wr.atomic.rkey = b.mr->rkey;
    wr.wr.atomic.compare_add = 3;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    memcpy(&sum, b.buf, sizeof sum);
    CHECK_EQ(sum, 60);
    close_two(&a, &b);
}

/* ---- rnr ---- */

static void rnr_is_tried_again(void)
{
    struct end a, b;
    double start;

    faults("rnr:ms=10");
    open_two(&a, &b, NULL);
    fill(a.buf, 64, 1);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    start = seconds();
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    no_wc(b.rcq);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    CHECK(seconds() - start >= 10 * MS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 64, 1));
    close_two(&a, &b);
}

static void rnr_exceeds_the_retries(void)
{
    struct end a, b;
    struct address to;

    faults("rnr:ms=1000");
    open_patient(&a, &b, 14, 2);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 128), 0); /* a write needs no receive */
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    CHECK_EQ(state_of(&b), IBV_QPS_RTS);
    close_two(&a, &b);
}

/* ---- error ---- */

static void expect_error(const char *name, enum ibv_wc_status status, int event)
{
    struct ibv_async_event ev;
    struct pollfd p;
    struct end a, b;
    struct address to;
    char rules[64];
    struct ibv_wc wc;

    snprintf(rules, sizeof rules, "error:status=%s,nth=2", name);
    faults(rules);
    open_two(&a, &b, NULL);
    to = address_of(&b);
    fill(a.buf, 24, 1);
    for (uint64_t i = 0; i < 3; i++) /* the second needs no signal: errors are always told */
        CHECK_EQ(
            post(&a, IBV_WR_RDMA_WRITE, i, i * 8, 8, i == 1 ? 0 : IBV_SEND_SIGNALED, &to, i * 8),
            0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    wc = wait_wc(a.scq);
    CHECK_EQ(wc.status, status);
    CHECK_EQ(wc.wr_id, 1);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK(b.buf[8] == 0 && b.buf[16] == 0);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    CHECK_EQ(state_of(&b), event >= 0 ? IBV_QPS_ERR : IBV_QPS_RTS);
    p = (struct pollfd){.fd = b.ctx->async_fd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, 0), event >= 0);
    if (event >= 0) {
        CHECK_EQ(ibv_get_async_event(b.ctx, &ev), 0);
        CHECK_EQ(ev.event_type, event);
        CHECK(ev.element.qp == b.qp);
        ibv_ack_async_event(&ev);
    }
    close_two(&a, &b);
}

static void in_child(void (*what)(const char *, enum ibv_wc_status, int), const char *name,
                     enum ibv_wc_status status, int event)
{
    pid_t child = fork();
    int result;

    CHECK(child >= 0);
    if (child == 0) {
        what(name, status, event);
        exit(0);
    }
    CHECK_EQ(waitpid(child, &result, 0), child);
    if (result != 0)
        fprintf(stderr, "with %s\n", name);
    CHECK_EQ(result, 0);
}

/* The rules are read once in a process, so each error has one of its own. */
static void errors_break_what_hardware_breaks(void)
{
    static const struct {
        const char *name;
        enum ibv_wc_status status;
        int event; /* at the other end, -1: it notices nothing */
    } errors[] = {
        {"loc_len", IBV_WC_LOC_LEN_ERR, -1},
        {"loc_qp_op", IBV_WC_LOC_QP_OP_ERR, -1},
        {"loc_prot", IBV_WC_LOC_PROT_ERR, -1},
        {"mw_bind", IBV_WC_MW_BIND_ERR, -1},
        {"bad_resp", IBV_WC_BAD_RESP_ERR, -1},
        {"loc_access", IBV_WC_LOC_ACCESS_ERR, -1},
        {"rem_inv_req", IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR},
        {"rem_access", IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
        {"rem_op", IBV_WC_REM_OP_ERR, IBV_EVENT_QP_FATAL},
        {"retry_exc", IBV_WC_RETRY_EXC_ERR, -1},
        {"rnr_retry_exc", IBV_WC_RNR_RETRY_EXC_ERR, -1},
        {"rem_abort", IBV_WC_REM_ABORT_ERR, -1},
        {"fatal", IBV_WC_FATAL_ERR, -1},
        {"general", IBV_WC_GENERAL_ERR, -1},
    };

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        in_child(expect_error, errors[i].name, errors[i].status, errors[i].event);
}

/* ---- calls ---- */

static struct end maker;

static void *make_pd(void)
{
    return ibv_alloc_pd(maker.ctx);
}

static void *make_ah(void)
{
    struct address to = address_of(&maker);
    struct ibv_ah_attr path = path_to(&to);

    return ibv_create_ah(maker.pd, &path);
}

static void *make_channel(void)
{
    return ibv_create_comp_channel(maker.ctx);
}

static void *make_cq(void)
{
    return ibv_create_cq(maker.ctx, 1, NULL, NULL, 0);
}

static void *make_qp(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = maker.scq, .recv_cq = maker.rcq, .qp_type = IBV_QPT_RC};

    return ibv_create_qp(maker.pd, &init);
}

static void *make_mr(void)
{
    return ibv_reg_mr(maker.pd, maker.buf, 4096, 0);
}

static void *make_larger_cq(void)
{
    errno = ibv_resize_cq(maker.scq, 512);
    return errno == 0 ? maker.scq : NULL;
}

struct maker {
    const char *name;
    void *(*make)(void);
    int before; /* calls of this kind that opening an end makes */
};

static void expect_enomem(const struct maker *m)
{
    char rules[64];

    snprintf(rules, sizeof rules, "enomem:call=%s,nth=%d", m->name, m->before + 2);
    faults(rules);
    end_open(&maker, NULL);
    CHECK(m->make() != NULL);
    errno = 0;
    CHECK(m->make() == NULL);
    CHECK_EQ(errno, ENOMEM);
    CHECK(m->make() != NULL);
}

static void calls_run_out_of_memory(void)
{
    static const struct maker makers[] = {
        {"alloc_pd", make_pd, 1},
        {"create_ah", make_ah, 0},
        {"create_comp_channel", make_channel, 0},
        {"create_cq", make_cq, 2},
        {"create_qp", make_qp, 1},
        {"reg_mr", make_mr, 1},
        {"resize_cq", make_larger_cq, 0},
    };

    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        pid_t child = fork();
        int result;

        CHECK(child >= 0);
        if (child == 0) {
            expect_enomem(&makers[i]);
            exit(0);
        }
        CHECK_EQ(waitpid(child, &result, 0), child);
        if (result != 0)
            fprintf(stderr, "with %s\n", makers[i].name);
        CHECK_EQ(result, 0);
    }
}

static void the_send_queue_is_full(void)
{
    struct end a, b;
    struct address to;

    faults("sqfull:nth=2");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(write_8(&a, &to, 2, 0), ENOMEM);
    CHECK_EQ(write_8(&a, &to, 3, 0), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(a.scq).wr_id, 3);
    no_wc(a.scq);
    close_two(&a, &b);
}

static void the_completion_queue_overruns(void)
{
    struct ibv_async_event ev;
    struct end a, b;
    struct address to;

    faults("cqoverrun:nth=2");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(write_8(&a, &to, 2, 0), 0);
    CHECK_EQ(ibv_get_async_event(a.ctx, &ev), 0);
    CHECK_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
    CHECK(ev.element.cq == a.scq);
    ibv_ack_async_event(&ev);
    wait_wc(a.scq);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    close_two(&a, &b);
}

/* ---- kill ---- */

static struct end_options options;
static enum ibv_wr_opcode killing;
static size_t length = 100000;

static void open_pair(int fd, struct end *e, struct address *peer)
{
    end_open(e, &options);
    *peer = swap_addresses(fd, e);
    connect_to(e, peer);
}

static void killed_right(int fd, pid_t other)
{
    struct end e;
    struct address peer;

    (void)other;
    faults("kill:nth=1");
    open_pair(fd, &e, &peer);
    fill(e.buf, length, 1);
    meet(fd);
    post(&e, killing, 1, 0, length, IBV_SEND_SIGNALED, &peer, 0);
    _exit(1);
}

/* Half of the data is here, nothing is told, and life goes on. */
static void surviving_left(int fd, pid_t other)
{
    struct end e;
    struct address peer;
    siginfo_t info;

    open_pair(fd, &e, &peer);
    CHECK_EQ(post_recv(&e, 7, 0, length), 0);
    meet(fd);
    CHECK_EQ(waitid(P_PID, (id_t)other, &info, WEXITED | WNOWAIT), 0);
    CHECK_EQ(info.si_status, SIGKILL);
    if (killing != IBV_WR_RDMA_READ) {
        CHECK(filled(e.buf, length / 2, 1));
        CHECK(e.buf[length / 2 + 1] == 0 && e.buf[length - 1] == 0);
    }
    no_wc(e.rcq);
    CHECK_EQ(post_send(&e, 1, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(wait_wc(e.rcq).status, IBV_WC_WR_FLUSH_ERR);
    end_close(&e);
}

static void killed_while_writing(void)
{
    killing = IBV_WR_RDMA_WRITE;
    in_two(surviving_left, killed_right);
}

static void killed_while_sending(void)
{
    killing = IBV_WR_SEND;
    in_two(surviving_left, killed_right);
}

static void killed_while_sending_to_private_memory(void)
{
    killing = IBV_WR_SEND;
    options.private = true;
    length = 2000; /* would wait in the segment, all or nothing */
    in_two(surviving_left, killed_right);
}

static void killed_while_reading(void)
{
    killing = IBV_WR_RDMA_READ;
    in_two(surviving_left, killed_right);
}

/* ---- selectors ---- */

/* Which of eight writes and of eight sends (posted in turn) a rule hits; a bit for each. */
static unsigned hit_by(const char *rule)
{
    unsigned hits = 0;
    int fds[2], status;
    pid_t child;

    CHECK_EQ(pipe(fds), 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct end a, b;
        struct address to;

        faults(rule);
        open_two(&a, &b, &(struct end_options){.send_wr = 64});
        to = address_of(&b);
        for (int i = 0; i < 8; i++) {
            CHECK_EQ(post_recv(&b, 1, 0, 8), 0);
            hits |= (unsigned)(write_8(&a, &to, 1, 0) == ENOMEM) << i;
            hits |= (unsigned)(post_send(&a, 1, 0, 8, 0) == ENOMEM) << (8 + i);
        }
        CHECK_EQ(write(fds[1], &hits, sizeof hits), sizeof hits);
        exit(0);
    }
    close(fds[1]);
    CHECK_EQ(read(fds[0], &hits, sizeof hits), sizeof hits);
    close(fds[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return hits;
}

static void selectors_choose(void)
{
    CHECK_EQ(hit_by("sqfull"), 0xffff);
    CHECK_EQ(hit_by("sqfull:op=any"), 0xffff);
    CHECK_EQ(hit_by("sqfull:op=write"), 0x00ff);
    CHECK_EQ(hit_by("sqfull:op=send"), 0xff00);
    CHECK_EQ(hit_by("sqfull:op=read"), 0);
    CHECK_EQ(hit_by("sqfull:op=atomic"), 0);
    CHECK_EQ(hit_by("sqfull:op=write,nth=3"), 0x0004);
    CHECK_EQ(hit_by("sqfull:op=write,every=3"), 0x0024);
    CHECK_EQ(hit_by("sqfull:op=write,after=5"), 0x00e0);
    CHECK_EQ(hit_by("sqfull:op=write,after=3,every=2"), 0x0050);
    CHECK_EQ(hit_by("sqfull:op=write,count=2"), 0x0003);
    CHECK_EQ(hit_by("sqfull:op=write,after=2,every=2,count=2"), 0x0028);
    CHECK_EQ(hit_by("sqfull:op=write,nth=1;sqfull:op=send,nth=8"), 0x8001);
    CHECK_EQ(hit_by("sqfull:dev=softhca0,port=1"), 0xffff);
    CHECK_EQ(hit_by("sqfull:dev=softhca1"), 0);
    CHECK_EQ(hit_by("sqfull:port=2"), 0);
    CHECK_EQ(hit_by("sqfull:qp=1"), 0);
    CHECK_EQ(hit_by("sqfull:for=60000"), 0xffff);
}

static void probability_follows_the_seed(void)
{
    unsigned once = hit_by("sqfull:p=0.5"), again = hit_by("sqfull:p=0.5");

    CHECK_EQ(once, again);
    CHECK(__builtin_popcount(once) >= 2 && __builtin_popcount(once) <= 14);
    setenv("SOFTHCA_SEED", "2", 1);
    CHECK(hit_by("sqfull:p=0.5") != once);
}

/* ---- at run time ---- */

/* Asks the member that owns a queue pair, as the softhca command does. */
static const char *ask(const struct end *e, const char *request)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX}, me = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    static char reply[4096];
    char fabric[SHCA_NAME];
    ssize_t n;

    CHECK(fd >= 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&me, sizeof(sa_family_t)), 0);
    shca_name_fabric(getenv("SOFTHCA_FABRIC"), geteuid(), fabric);
    shca_name_claim(to.sun_path + 1, sizeof to.sun_path - 1, fabric, e->qp->qp_num >> SHCA_QP_BITS);
    CHECK_EQ(
        sendto(fd, request, strlen(request), 0, (struct sockaddr *)&to,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(to.sun_path + 1))),
        strlen(request));
    n = recv(fd, reply, sizeof reply - 1, 0);
    CHECK(n > 0);
    reply[n] = 0;
    close(fd);
    return reply;
}

static void one_queue_pair_of_two_from_now_on(void)
{
    struct end a, b;
    struct address to_a, to_b;
    char rules[64], expected[160];

    open_two(&a, &b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    CHECK_EQ(write_8(&a, &to_b, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    snprintf(rules, sizeof rules, "fault set sqfull:qp=%u", a.qp->qp_num);
    CHECK_EQ(strncmp(ask(&a, rules), "ok", 2), 0);
    CHECK_EQ(write_8(&a, &to_b, 1, 0), ENOMEM);
    CHECK_EQ(write_8(&b, &to_a, 1, 0), 0);
    CHECK_EQ(wait_wc(b.scq).status, IBV_WC_SUCCESS);
    snprintf(expected, sizeof expected, "ok\n%s matched 1 acted 1\n", rules + 10);
    CHECK_EQ(strcmp(ask(&a, "fault list"), expected), 0);
    CHECK_EQ(strcmp(ask(&a, "fault set drop:x=1"),
                    "error drop takes no 'x'; it takes dev, port, qp, op, nth, every, after, "
                    "count, p, for"),
             0);
    CHECK_EQ(strcmp(ask(&a, "fault list"), expected), 0); /* a mistake changes nothing */
    CHECK_EQ(strncmp(ask(&a, "fault clear"), "ok", 2), 0);
    CHECK_EQ(write_8(&a, &to_b, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    close_two(&a, &b);
}

/* A request under way keeps its fault when the rules go: it ends as it was told to. */
static void a_fault_under_way_ends_by_itself(void)
{
    struct end a, b;
    struct address to;

    faults("delay:ms=20");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(write_8(&a, &to, 2, 0), 0);
    CHECK_EQ(strncmp(ask(&a, "fault clear"), "ok", 2), 0);
    no_wc(a.scq);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    close_two(&a, &b);
}

static void the_window_ends(void)
{
    struct end a, b;
    struct address to;
    double start;

    faults("sqfull:for=50");
    start = seconds();
    open_two(&a, &b, NULL);
    to = address_of(&b);
    CHECK_EQ(write_8(&a, &to, 1, 0), ENOMEM);
    CHECK(seconds() - start < 50 * MS);
    while (seconds() - start < 60 * MS)
        usleep(1000);
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    close_two(&a, &b);
}

/* ---- the variable ---- */

static void bad_rules_are_refused_at_once(void)
{
    int fds[2], saved = dup(STDERR_FILENO);
    char line[256];
    ssize_t n;

    CHECK_EQ(pipe(fds), 0);
    faults("drop:nth=1;delai:us=4");
    dup2(fds[1], STDERR_FILENO);
    CHECK(ibv_get_device_list(NULL) == NULL);
    dup2(saved, STDERR_FILENO);
    CHECK_EQ(errno, EINVAL);
    n = read(fds[0], line, sizeof line - 1);
    CHECK(n > 0);
    line[n] = 0;
    CHECK(strncmp(line, "softhca: SOFTHCA_FAULT: 'delai' is not a fault; known are ", 57) == 0);
    CHECK(line[n - 1] == '\n' && strchr(line, '\n') == line + n - 1);
}

/* ---- everything at once ---- */

#define PAIRS    4
#define MESSAGES 60

static void many_qps(int fd, struct end *e)
{
    struct address peer;

    end_open(&e[0], &(struct end_options){.cqe = PAIRS * MESSAGES,
                                          .send_wr = 2 * MESSAGES,
                                          .recv_wr = MESSAGES,
                                          .private = options.private});
    for (int i = 1; i < PAIRS; i++) {
        e[i] = e[0];
        end_qp(&e[i], &(struct end_options){.send_wr = 2 * MESSAGES, .recv_wr = MESSAGES});
    }
    for (int i = 0; i < PAIRS; i++) {
        peer = swap_addresses(fd, &e[i]);
        to_init(e[i].qp);
        to_rtr(e[i].qp, &peer);
        to_rts(&e[i], 8, 7); /* lost packets are sent again after 1 ms */
    }
}

/* Where message k of queue pair i goes out, comes in. */
static size_t out_at(int i, int k)
{
    return (size_t)(i * MESSAGES + k) * 1024;
}

static size_t in_at(int i, int k)
{
    return BUF_BYTES / 2 + out_at(i, k);
}

static void exchange_all(struct end *e)
{
    int sent = 0, next[PAIRS] = {0}, got = 0;
    struct ibv_wc wc;

    for (int k = 0; k < MESSAGES; k++)
        for (int i = 0; i < PAIRS; i++)
            CHECK_EQ(post_send(&e[i], (uint64_t)k, out_at(i, k), 1000, 0), 0);
    while (sent < PAIRS * MESSAGES || got < PAIRS * MESSAGES) {
        if (ibv_poll_cq(e[0].scq, 1, &wc) == 1) {
            CHECK_EQ(wc.status, IBV_WC_SUCCESS);
            sent++;
        }
        if (ibv_poll_cq(e[0].rcq, 1, &wc) == 1) {
            int i = (int)(wc.wr_id / MESSAGES), k = (int)(wc.wr_id % MESSAGES);

            CHECK_EQ(wc.status, IBV_WC_SUCCESS);
            CHECK_EQ(wc.qp_num, e[i].qp->qp_num);
            CHECK_EQ(k, next[i]++);
            CHECK(filled(e[0].buf + in_at(i, k), 1000, wc.wr_id));
            got++;
        }
    }
}

static void stormy(int fd, pid_t other)
{
    struct end e[PAIRS];

    (void)other;
    faults("delay:us=0-300,p=0.1;drop:p=0.05;rnr:ms=1,p=0.05;reorder:p=0.3;late:us=100,every=7");
    many_qps(fd, e);
    for (int k = 0; k < MESSAGES; k++)
        for (int i = 0; i < PAIRS; i++) {
            fill(e[0].buf + out_at(i, k), 1000, (unsigned)(i * MESSAGES + k));
            CHECK_EQ(post_recv(&e[i], (uint64_t)(i * MESSAGES + k), in_at(i, k), 1000), 0);
        }
    meet(fd);
    exchange_all(e);
    meet(fd);
    for (int i = 1; i < PAIRS; i++)
        CHECK_EQ(ibv_destroy_qp(e[i].qp), 0);
    end_close(&e[0]);
}

static void a_storm_loses_nothing(void)
{
    in_two(stormy, stormy);
}

static void a_storm_over_private_memory_loses_nothing(void)
{
    options.private = true;
    in_two(stormy, stormy);
}

#define CASE(name)                                                                                 \
    {                                                                                              \
#        name, name                                                                                \
    }

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(delay_puts_off_everything),
        CASE(delay_shows_reuse_of_a_buffer),
        CASE(delay_ends_without_polling),
        CASE(late_holds_back_the_completion_only),
        CASE(late_counts_polls),
        CASE(late_polls_end_without_polling),
        CASE(reorder_mixes_queue_pairs),
        CASE(drop_is_sent_again),
        CASE(drop_for_ever_exceeds_the_retries),
        CASE(datagrams_are_lost_for_good),
        CASE(uc_loses_for_good),
        CASE(a_lost_atomic_counts_once),
        CASE(rnr_is_tried_again),
        CASE(rnr_exceeds_the_retries),
        CASE(errors_break_what_hardware_breaks),
        CASE(calls_run_out_of_memory),
        CASE(the_send_queue_is_full),
        CASE(the_completion_queue_overruns),
        CASE(killed_while_writing),
        CASE(killed_while_sending),
        CASE(killed_while_sending_to_private_memory),
        CASE(killed_while_reading),
        CASE(selectors_choose),
        CASE(probability_follows_the_seed),
        CASE(one_queue_pair_of_two_from_now_on),
        CASE(a_fault_under_way_ends_by_itself),
        CASE(the_window_ends),
        CASE(bad_rules_are_refused_at_once),
        CASE(a_storm_loses_nothing),
        CASE(a_storm_over_private_memory_loses_nothing),
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
