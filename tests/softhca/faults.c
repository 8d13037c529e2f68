/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFTHCA_FAULT: the effect of each kind of fault on a work request, and what remains correct:
 * data, order inside a queue pair, errors at both ends. */
#include "config.h"

#include "faults.h"

/* ---- delay ---- */

static void delay_puts_off_everything(void)
{
    struct end a, b;
    struct address to = open_with("delay:ms=100,nth=1", &a, &b);
    double start = write_two(&a, &to);

    /* The second is not delayed itself, but waits behind the first. */
    no_wc(a.scq);
    CHECK(b.buf[0] == 0 && b.buf[8] == 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK(seconds() - start >= 100 * MS);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK(filled(b.buf, 16, 1));
    close_two(&a, &b);
}

/* A program that uses a source buffer again before its completion sends garbage. */
static void delay_shows_reuse_of_a_buffer(void)
{
    struct end a, b;
    struct address to = open_with("delay:ms=5", &a, &b);

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

/* The delay of a request does not affect the next request in its place after a reset. */
static void a_reset_forgets_the_delay(void)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    struct end a, b;
    struct address to_a, to_b;

    faults("delay:ms=10000,nth=1");
    open_two(&a, &b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    CHECK_EQ(write_8(&a, &to_b, 1, 0), 0);
    CHECK_EQ(ibv_modify_qp(a.qp, &reset, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(b.qp, &reset, IBV_QP_STATE), 0);
    connect_to(&a, &to_b);
    connect_to(&b, &to_a);
    CHECK_EQ(write_8(&a, &to_b, 2, 0), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    close_two(&a, &b);
}

static void an_error_flushes_what_is_delayed(void)
{
    struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
    struct end a, b;
    struct address to = open_with("delay:ms=10000", &a, &b);

    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK_EQ(write_8(&a, &to, 2, 0), 0);
    CHECK_EQ(ibv_modify_qp(a.qp, &error, IBV_QP_STATE), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    close_two(&a, &b);
}

/* The engine continues without polls: sender and receiver sleep. */
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
    struct address to = open_with("late:ms=100", &a, &b);
    double start;

    fill(a.buf, 8, 1);
    start = seconds();
    CHECK_EQ(write_8(&a, &to, 1, 0), 0);
    CHECK(filled(b.buf, 8, 1));
    no_wc(a.scq);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(seconds() - start >= 100 * MS);
    close_two(&a, &b);
}

/* Polls that find nothing before the write is complete. */
static int empty_polls(struct end *a, const struct address *to)
{
    struct ibv_wc wc;
    int polls = 0;

    CHECK_EQ(write_8(a, to, 1, 0), 0);
    while (ibv_poll_cq(a->scq, 1, &wc) == 0)
        polls++;
    return polls;
}

/* After 10 ms it comes without polls too: runs in which the process had no CPU for that long are
 * not counted.
 */
static void late_counts_polls(void)
{
    struct end a, b;
    struct address to;
    double start;
    int polls, tries = 0;

    setenv("SOFTHCA_SEED", "0", 1);
    faults("late:polls=5");
    open_two(&a, &b, NULL);
    to = address_of(&b);
    do {
        start = seconds();
        polls = empty_polls(&a, &to);
    } while (seconds() - start > 9 * MS && ++tries < 100);
    CHECK_EQ(polls, 5);
    close_two(&a, &b);
}

/* A sleeper does not count polls: a late completion still arrives, with its event. */
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
                CHECK_EQ(id, next++); /* order within a queue pair is kept */
        }
    }
    CHECK(swapped > 30);
    CHECK_EQ(ibv_destroy_qp(a[1].qp), 0);
    CHECK_EQ(ibv_destroy_qp(b[1].qp), 0);
    close_two(&a[0], &b[0]);
}

/* ---- drop ---- */

#define TIMEOUT    14 /* 67 ms */
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
    CHECK(seconds() - start < HANG);
    CHECK_EQ(state_of(&a), IBV_QPS_ERR);
    CHECK_EQ(state_of(&b), IBV_QPS_RTS);
    no_wc(b.rcq);
    close_two(&a, &b);
}

/* Of three datagrams one arrives: one is dropped, one finds no receive; neither end gets an error.
 */
static void datagrams_are_lost_for_good(void)
{
    struct end a, b;
    struct ibv_ah *ah;

    faults("drop:nth=1;rnr:nth=2");
    ah = open_two_ud(&a, &b);
    CHECK_EQ(post_recv(&b, 1, 0, 48), 0);
    CHECK_EQ(post_recv(&b, 2, 0, 48), 0);
    fill(a.buf, 24, 1);
    for (size_t i = 0; i < 3; i++) {
        post_datagram(&a, &b, ah, i * 8, IBV_SEND_SIGNALED);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(wait_wc(b.rcq).wr_id, 1);
    CHECK_EQ(memcmp(b.buf + 40, a.buf + 16, 8), 0);
    no_wc(b.rcq);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    close_two(&a, &b);
}

/* The sender of an unreliable connection does not notice a loss, and the next message arrives. */
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
    struct address to;
    uint64_t sum;

    faults("drop:op=atomic,every=2");
    open_patient(&a, &b, 8, 7);
    to = address_of(&b);
    for (int i = 0; i < 20; i++) {
        fetch_and_add(&a, &to, 0, 3);
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

    faults("rnr:ms=50");
    open_two(&a, &b, NULL);
    fill(a.buf, 64, 1);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    start = seconds();
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    no_wc(b.rcq);
    CHECK_EQ(wait_wc(b.rcq).wr_id, 7);
    CHECK(seconds() - start >= 50 * MS);
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

static void expect_error(const struct expected_error *e)
{
    struct ibv_async_event ev;
    struct pollfd p;
    struct end a, b;

    break_second(e, &a, &b);
    p = (struct pollfd){.fd = b.ctx->async_fd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, 0), e->event >= 0);
    if (e->event >= 0) {
        CHECK_EQ(ibv_get_async_event(b.ctx, &ev), 0);
        CHECK_EQ(ev.event_type, e->event);
        CHECK(ev.element.qp == b.qp);
        ibv_ack_async_event(&ev);
    }
    close_two(&a, &b);
}

static void errors_break_what_hardware_breaks(void)
{
    static const struct expected_error errors[] = {
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

    in_children(expect_error, errors, sizeof errors / sizeof errors[0]);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(delay_puts_off_everything),
        CASE(delay_shows_reuse_of_a_buffer),
        CASE(a_reset_forgets_the_delay),
        CASE(an_error_flushes_what_is_delayed),
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
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
