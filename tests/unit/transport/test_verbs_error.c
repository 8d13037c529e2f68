/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When the network fails: the cause is reported once, with everything needed to find it, and
 * work that was flushed behind it is not reported. */
#include "config.h"

#include <errno.h>

#include "fake_world.h"
#include "unit.h"
#include "base/pool.h"
#include "op/op.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/send.h"

static unsigned lost_count;
static uint32_t lost_rank;

static void lost(uint32_t rank)
{
    lost_count++;
    lost_rank = rank;
}

static void deliver(struct tk_arrival *arrival)
{
    (void)arrival;
}

static void open_world(void)
{
    unit_settings(NULL, NULL);
    fake_reset();
    lost_count = 0;
    tk_lost_peer = lost;
    tk_deliver = deliver;
    world_open(3, 4096);
}

static struct tk_op op;

static enum tk_status transfer(uint32_t to, bool is_put, size_t nbytes)
{
    struct tk_rma rma = {.remote = (uintptr_t)world_segment(to),
                         .local = tk_segment_area.base,
                         .nbytes = nbytes,
                         .op = &op,
                         .is_put = is_put};
    struct tk_rma_state posted = {.done = 0};
    return tk_verbs_rma(tk_peer(to), &rma, &posted);
}

static enum tk_status send(uint32_t to, size_t nbytes)
{
    static char payload[1000];
    struct tk_message_head head = {.kind = TK_REQUEST, .category = TK_MEDIUM};
    struct tk_outgoing m = {
        .head = &head, .head_size = sizeof(head), .payload = payload, .nbytes = nbytes};
    return tk_verbs_send(tk_peer(to), &m);
}

/* Small messages have no completion unless they fail. */
static enum tk_status message(uint32_t to)
{
    return send(to, 0);
}

static enum tk_status large_message(uint32_t to)
{
    return send(to, 1000);
}

static const char *heard_after_break(uint32_t peer, enum ibv_wc_status status)
{
    fake_break(world_conn(0, peer)->qp, status);
    unit_listen();
    while (tk_verbs_poll())
        continue;
    return unit_heard();
}

static void only_the_first_failure_is_reported(void **state)
{
    open_world();
    transfer(2, true, 2000);
    message(2);
    transfer(2, false, 100);
    const char *said = heard_after_break(2, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "put of 2000 bytes to rank 2 (node2, pid 1002) failed on fake0:1, "
                           "queue pair ");
    unit_assert_says(said, "the peer does not answer");
    unit_assert_says(said, "; path: fake0:1 (LID 1) to fake0:1 (LID 1)\n");
    assert_int_equal(lost_count, 1);
    assert_int_equal(lost_rank, 2);
    world_close();
}

static void each_kind_of_operation_is_named(void **state)
{
    open_world();
    transfer(1, false, 64);
    unit_assert_says(heard_after_break(1, IBV_WC_REM_ACCESS_ERR), "get of 64 bytes to rank 1");
    tk_verbs.unsignaled_bounces_max = 0;
    large_message(2);
    unit_assert_says(heard_after_break(2, IBV_WC_RETRY_EXC_ERR), "message of 1008 bytes to rank 2");
    assert_int_equal(lost_count, 2);
    world_close();
}

/* Nothing else is in flight, so no other reason exists to poll the send queue. */
static void reported_though_unsignaled(enum tk_status (*send)(uint32_t))
{
    open_world();
    send(2);
    const char *said = heard_after_break(2, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "message to rank 2 (node2, pid 1002) failed");
    assert_int_equal(lost_count, 1);
    world_close();
}

static void a_failed_unsignaled_message_is_reported_too(void **state)
{
    reported_though_unsignaled(message);
    reported_though_unsignaled(large_message);
}

static void the_likely_cause_is_reported(void **state)
{
    static const struct {
        enum ibv_wc_status status;
        const char *cause;
        bool is_of_peer; /* may its end be the cause */
    } causes[] = {{IBV_WC_RETRY_EXC_ERR, "its process or host is gone", true},
                  {IBV_WC_REM_ACCESS_ERR, "outside the peer's segment", true},
                  {IBV_WC_LOC_PROT_ERR, "no longer mapped", false},
                  {IBV_WC_LOC_QP_OP_ERR, "could not do it here", false},
                  {IBV_WC_RNR_RETRY_EXC_ERR, "an error of this library", true},
                  {IBV_WC_REM_INV_REQ_ERR, "the receive buffer do not fit", true},
                  {IBV_WC_GENERAL_ERR, "vendor code", false}};
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        open_world();
        transfer(1, true, 500);
        unit_assert_says(heard_after_break(1, causes[i].status), causes[i].cause);
        assert_int_equal(lost_rank, causes[i].is_of_peer ? 1 : tk_no_peer);
        world_close();
    }
}

/* The other side has reported the cause; flushed work here is not reported. */
static void flushed_receives_are_no_news(void **state)
{
    open_world();
    assert_string_equal(heard_after_break(1, IBV_WC_WR_FLUSH_ERR), "");
    assert_int_equal(lost_count, 0);
    world_close();
}

/* While a job leaves, peers may vanish without error. */
static void nothing_is_reported_while_leaving(void **state)
{
    open_world();
    tk_lost_peer = NULL;
    transfer(1, true, 500);
    assert_string_equal(heard_after_break(1, IBV_WC_RETRY_EXC_ERR), "");
    world_close();
}

/* Exit notices go to one peer after the other: one that is gone must not hold them up. */
static void a_full_queue_does_not_delay_leaving(void **state)
{
    open_world();
    tk_lost_peer = NULL;
    while (transfer(1, true, 500) == TK_OK)
        continue;
    assert_int_equal(message(1), TK_BUSY);
    heard_after_break(1, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(message(1), TK_OK);
    assert_int_equal(message(2), TK_OK);
    world_close();
}

static void other_peers_are_still_reached(void **state)
{
    open_world();
    transfer(1, true, 500);
    heard_after_break(1, IBV_WC_RETRY_EXC_ERR);
    tk_op_init(&op);
    assert_int_equal(transfer(2, true, 500), TK_OK);
    fake_settle();
    tk_verbs_reap();
    assert_true(tk_op_done(&op));
    world_close();
}

static void a_send_that_the_device_refuses_is_reported(void **state)
{
    open_world();
    fake.failing[FAKE_POST_SEND].allowed = 0;
    fake.failing[FAKE_POST_SEND].error = EINVAL;
    unit_listen();
    transfer(1, true, 500);
    transfer(1, true, 500);
    const char *said = unit_heard();
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "put of 500 bytes to rank 1");
    unit_assert_says(said, "the device refused the work request: Invalid argument");
    assert_int_equal(lost_count, 1);
    world_close();
}

/* Reports once and ends the job: a sender that waits would ask again at once. */
static void buffers_that_cannot_be_registered_end_the_job(void **state)
{
    open_world();
    while (tk_pool_take(&tk_verbs.rails[0].recv_pool))
        continue;
    fake.failing[FAKE_REG_MR].allowed = 0;
    fake.failing[FAKE_REG_MR].error = ENOMEM;
    unit_listen();
    assert_int_equal(message(1), TK_BUSY);
    unit_assert_says(unit_heard(), "can't register");
    assert_int_equal(lost_count, 1);
    fake.failing[FAKE_REG_MR].allowed = -1;
    world_close();
}

static void post_receive(void *unused)
{
    fake.failing[FAKE_POST_RECV].allowed = 0;
    fake.failing[FAKE_POST_RECV].error = ENOMEM;
    message(1);
}

static void a_receive_that_the_device_refuses_ends_the_program(void **state)
{
    open_world();
    unit_assert_panic(post_receive, NULL,
                      "ibv_post_recv for rank 1 failed with error 12, 13 "
                      "buffers posted");
    world_close();
}

static void poll(void *unused)
{
    fake.failing[FAKE_POLL_CQ].allowed = 0;
    fake.failing[FAKE_POLL_CQ].error = EIO;
    tk_verbs_poll();
}

static void a_queue_that_cannot_be_polled_ends_the_program(void **state)
{
    open_world();
    unit_assert_panic(poll, NULL, "ibv_poll_cq failed with error -5");
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_the_first_failure_is_reported),
    cmocka_unit_test(each_kind_of_operation_is_named),
    cmocka_unit_test(a_failed_unsignaled_message_is_reported_too),
    cmocka_unit_test(the_likely_cause_is_reported),
    cmocka_unit_test(flushed_receives_are_no_news),
    cmocka_unit_test(nothing_is_reported_while_leaving),
    cmocka_unit_test(a_full_queue_does_not_delay_leaving),
    cmocka_unit_test(other_peers_are_still_reached),
    cmocka_unit_test(a_send_that_the_device_refuses_is_reported),
    cmocka_unit_test(buffers_that_cannot_be_registered_end_the_job),
    cmocka_unit_test(a_receive_that_the_device_refuses_ends_the_program),
    cmocka_unit_test(a_queue_that_cannot_be_polled_ends_the_program),
};

UNIT_MAIN(tests)
