/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sleeping until a device has something: which files exist, what makes them readable and what does
 * not, and events on which threads must not sleep. Single-threaded. */
#include "config.h"

#include <errno.h>
#include <poll.h>

#include "fake_world.h"
#include "op/op_type.h"
#include "topology/topology.h"
#include "transport/device_events.h"
#include "transport/verbs/data/events.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

static unsigned came;

static void deliver(struct tk_arrival *arrival)
{
    (void)arrival;
    came++;
}

/* Ranks that outnumber the CPUs sleep on events; others spin, and have no channels. */
static void open_on(int devices, bool is_crowded)
{
    fake_reset();
    fake.device_count = devices;
    came = 0;
    tk_deliver = deliver;
    tk_topology.oversubscribed = is_crowded;
    unit_settings("GASNET_IBV_FAILOVER=0", devices > 1 ? "GASNET_NUM_QPS=2" : NULL, NULL);
    world_open(2, 4096);
    tk_channels_serve(tk_verbs_transport());
}

static void close_world(void)
{
    world_settle();
    assert_int_equal(fake_sins(), 0);
    world_close();
    tk_topology.oversubscribed = false;
    assert_int_equal(fake.channels, 0);
}

static void send_to_us(void)
{
    struct tk_message_head head = {.kind = TK_ACK};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    struct tk_conn *conn;
    world_be(1);
    conn = tk_peer(0)->connection;
    head.kind = TK_REQUEST;
    assert_int_equal(tk_verbs_send(tk_peer(0), &m), TK_OK);
    assert_true(fake_carry(conn->qp));
    world_be(0);
}

static int readable(unsigned roles)
{
    struct pollfd all[tk_device_files_max];
    unsigned count = tk_verbs_events.files(roles, all, tk_device_files_max);
    return poll(all, count, 0);
}

static bool is_armed(unsigned roles, bool expect_any)
{
    bool armed;
    assert_int_equal(tk_verbs_events.arm(roles, &armed), expect_any);
    return armed;
}

static void where_nothing_sleeps_there_are_no_channels(void **state)
{
    open_on(1, false);
    assert_int_equal(fake.channels, 0);
    assert_false(tk_verbs_events.is_open());
    close_world();
}

static void each_queue_has_a_file(void **state)
{
    struct pollfd all[8];
    for (int devices = 1; devices <= 2; devices++) {
        open_on(devices, true);
        assert_true(tk_verbs_events.is_open());
        assert_int_equal(tk_verbs_events.devices(), devices);
        assert_string_equal(tk_verbs_events.name(0), "fake0");
        assert_int_equal(fake.channels, 2 * 2 * devices); /* of two ranks */
        assert_int_equal(tk_verbs_events.files(TK_DEVICE_ANY, all, 8), 2 * devices);
        assert_int_equal(tk_verbs_events.files(TK_DEVICE_RECEIVES, all, 8), devices);
        assert_int_equal(all[0].fd, tk_verbs.device.recv_events->fd);
        assert_int_equal(tk_verbs_events.files(TK_DEVICE_SENDS, all, 8), devices);
        assert_int_equal(all[0].fd, tk_verbs.device.send_events->fd);
        assert_int_equal(tk_verbs_events.files(TK_DEVICE_ANY, all, 1), 1);
        close_world();
    }
}

/* Devices report once, and only later completions. */
static void what_comes_behind_arming_wakes_once(void **state)
{
    open_on(1, true);
    send_to_us();
    assert_int_equal(readable(TK_DEVICE_ANY), 0);
    assert_true(is_armed(TK_DEVICE_RECEIVES, true)); /* what was there is served */
    assert_int_equal(came, 1);
    assert_int_equal(readable(TK_DEVICE_ANY), 0);
    send_to_us();
    assert_int_equal(readable(TK_DEVICE_RECEIVES), 1);
    assert_int_equal(readable(TK_DEVICE_SENDS), 0);
    tk_verbs_events.take(TK_DEVICE_RECEIVES);
    assert_int_equal(readable(TK_DEVICE_ANY), 0);
    send_to_us();
    assert_int_equal(readable(TK_DEVICE_ANY), 0);
    assert_true(is_armed(TK_DEVICE_RECEIVES, true));
    assert_int_equal(came, 3);
    assert_true(is_armed(TK_DEVICE_RECEIVES, false));
    close_world();
}

static void a_completion_wakes_threads_that_wait_for_sends(void **state)
{
    struct tk_op op = {.pending = 0};
    struct tk_rma rma;
    struct tk_rma_state progress;
    open_on(1, true);
    assert_int_equal(world_start(&op, &rma, &progress, true, 2048), TK_OK);
    struct tk_conn *conn = tk_peer(1)->connection;
    assert_true(is_armed(TK_DEVICE_SENDS, false));
    assert_true(fake_carry(conn->qp));
    assert_true(fake_ack(conn->qp));
    assert_int_equal(readable(TK_DEVICE_SENDS), 1);
    assert_int_equal(readable(TK_DEVICE_RECEIVES), 0);
    tk_verbs_events.take(TK_DEVICE_SENDS);
    assert_true(is_armed(TK_DEVICE_SENDS, true));
    assert_int_equal(tk_counter_read(&op.pending), 0);
    close_world();
}

/* No event reports space for an ACK, or that a connection must be moved. */
static void with_work_pending_no_thread_sleeps_on_receives(void **state)
{
    open_on(1, true);
    tk_counter_add(&tk_verbs.pending_work, 1);
    assert_false(is_armed(TK_DEVICE_RECEIVES, true)); /* polls continue the work */
    assert_false(is_armed(TK_DEVICE_ANY, true));
    assert_true(is_armed(TK_DEVICE_SENDS, false));
    tk_counter_add(&tk_verbs.pending_work, -1);
    assert_true(is_armed(TK_DEVICE_RECEIVES, false));
    close_world();
}

static void a_device_without_channels_is_used_without_them(void **state)
{
    for (int made = 0; made < 2; made++) {
        fake_reset();
        tk_deliver = deliver;
        tk_topology.oversubscribed = true;
        unit_settings("GASNET_IBV_FAILOVER=0", NULL);
        fake.failing[FAKE_CREATE_CHANNEL].allowed = made;
        fake.failing[FAKE_CREATE_CHANNEL].error = ENOMEM;
        world_open(2, 4096);
        assert_int_equal(fake.channels, 0);
        assert_false(tk_verbs_events.is_open());
        send_to_us();
        close_world();
    }
}

/* The last case: the refusal is remembered for the rest of the process. */
static void a_device_that_refuses_is_not_slept_on_again(void **state)
{
    open_on(1, true);
    fake.failing[FAKE_NOTIFY_CQ].allowed = 1; /* that of receives */
    fake.failing[FAKE_NOTIFY_CQ].error = EIO;
    send_to_us();
    assert_false(is_armed(TK_DEVICE_ANY, true)); /* pending events are still served */
    assert_int_equal(came, 1);
    assert_false(tk_verbs_events.is_open());
    fake.failing[FAKE_NOTIFY_CQ].allowed = -1;
    assert_false(is_armed(TK_DEVICE_SENDS, false));
    close_world();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(where_nothing_sleeps_there_are_no_channels),
    cmocka_unit_test(each_queue_has_a_file),
    cmocka_unit_test(what_comes_behind_arming_wakes_once),
    cmocka_unit_test(a_completion_wakes_threads_that_wait_for_sends),
    cmocka_unit_test(with_work_pending_no_thread_sleeps_on_receives),
    cmocka_unit_test(a_device_without_channels_is_used_without_them),
    cmocka_unit_test(a_device_that_refuses_is_not_slept_on_again),
};

UNIT_MAIN(tests)
