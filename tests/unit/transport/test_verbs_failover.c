/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that die: their work goes over others, once and in order; all credits and buffers are
 * accounted for afterwards. One rule at a time; test_verbs_reconnect.c combines them at random. */
#include "config.h"

#include <unistd.h>

#include "failing_rails.h"
#include "op/op.h"
#include "settings/settings.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

/* ---- messages, one rule at a time; connection 1 is primary ---- */

/* Sends five messages: the first `carried` arrive, and the first `acked` of these are
 * acknowledged. */
static void send_five(size_t nbytes, int carried, int acked)
{
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_numbered(1, TK_REQUEST, nbytes), TK_OK);
    while (carried-- > 0)
        assert_true(fake_carry(qp_of(0, 1)));
    while (acked-- > 0)
        assert_true(fake_ack(qp_of(0, 1)));
}

static void assert_each_comes_once(size_t nbytes, int carried, int acked)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    send_five(nbytes, carried, acked);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    const char *said = logged_until_idle();
    assert_int_equal(unit_lines(said), 2);
    unit_assert_says(said, "fake1:1 no longer reaches rank 1 (node1): ");
    unit_assert_says(said, "fake1:1 no longer reaches rank 0 (node0): ");
    assert_int_equal(stream[1].came, 5);
    assert_int_equal(assert_whole(), 0);
    assert_int_equal(tk_peers.rail_to[1], 0);
    send_five(nbytes, 0, 0);
    logged_until_idle();
    assert_int_equal(stream[1].came, 10);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* Unsignaled and signaled ones. */
static void messages_come_once_whatever_became_of_them(void **state)
{
    for (int carried = 0; carried <= 5; carried++)
        for (int acked = 0; acked <= carried; acked++) {
            assert_each_comes_once(0, carried, acked);
            assert_each_comes_once(1000, carried, acked);
        }
}

static void both_ends_notice_at_once(void **state)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    send_five(0, 2, 0);
    world_be(1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(send_numbered(0, TK_REQUEST, 500), TK_OK);
    assert_true(fake_carry(qp_of(1, 1)));
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    fake_break(qp_of(1, 1), IBV_WC_RETRY_EXC_ERR);
    const char *said = logged_until_idle();
    assert_int_equal(unit_lines(said), 2);
    assert_int_equal(stream[0].came, 4);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* The end that learns of the death last finishes first, and its messages find buffers. */
static void a_fast_end_finds_buffers(void **state)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    world_be(1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_numbered(0, TK_REQUEST, 0), TK_OK);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    unit_listen();
    for (int i = 0; i < 3; i++)
        one_polls(0);
    fake_settle();
    for (int i = 0; i < 3; i++)
        one_polls(1);
    fake_settle();
    unit_heard();
    assert_int_equal(stream[0].came, 0);
    logged_until_idle();
    assert_int_equal(stream[0].came, 5);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* The connection that carries the notices dies as well, and so does the next one. */
static void notices_are_sent_again(void **state)
{
    for (int carried = 0; carried < 3; carried++) {
        open_failing_rails(4, "GASNET_NUM_QPS=4", NULL);
        send_five(0, 1, 0);
        fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
        unit_listen();
        for (int i = 0; i < 5; i++)
            one_polls(0);
        for (int i = 0; i < carried; i++)
            fake_carry(qp_of(0, 0));
        fake_break(qp_of(0, 0), IBV_WC_RETRY_EXC_ERR);
        one_polls(1);
        one_polls(0);
        fake_carry(qp_of(0, 2));
        fake_break(qp_of(1, 2), IBV_WC_RETRY_EXC_ERR);
        unit_heard();
        logged_until_idle();
        assert_int_equal(stream[1].came, 5);
        fake.rnr = 0; /* more notices were under way than have buffers */
        assert_int_equal(assert_whole(), 3);
        world_close();
    }
}

/* A credit and a slot that were taken before, and a filled buffer, can be used with the new
 * connection. */
static void space_that_was_taken_moves_along(void **state)
{
    struct tk_am_reservation space = {.kind = TK_REQUEST}, unused = {.kind = TK_REQUEST};
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    space.peer = unused.peer = tk_peer(1);
    assert_int_equal(tk_verbs_reserve(&space, true, true), TK_OK);
    assert_int_equal(tk_verbs_reserve(&unused, true, false), TK_OK);
    send_five(0, 3, 0);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    struct tk_short *front = (struct tk_short *)(void *)space.buffer;
    *front = (struct tk_short){.head = {.kind = TK_REQUEST, .nargs = 1}, .args = {5}};
    struct tk_outgoing m = {.head = &front->head, .head_size = tk_short_size(1)};
    stream[1].sent++;
    assert_int_equal(tk_verbs_send_reserved(&space, &m), TK_OK);
    tk_verbs_release(&unused, false);
    logged_until_idle();
    assert_int_equal(stream[1].came, 6);
    assert_int_equal(assert_whole(), 0);
    assert_int_equal(tk_counter_read(&conn_to(0, 1, 1)->reserved), 0);
    world_close();
}

/* ---- events of ports ---- */

static void port_event(enum ibv_event_type type, enum ibv_port_state state)
{
    fake.ports[0][2].attr.state = state;
    fake.event = type;
    fake.event_port = 2;
    tk_verbs_report_stall();
}

/* Nothing in flight would fail, and a port that is down for a moment causes no failure. */
static void a_port_that_stays_down_is_given_up(void **state)
{
    enum { longer_than_patience = 300000 /* us */ };
    open_failing_rails(1, "GASNET_IBV_PORTS=fake0:1,2", NULL);
    port_event(IBV_EVENT_PORT_ERR, IBV_PORT_DOWN);
    port_event(IBV_EVENT_PORT_ACTIVE, IBV_PORT_ACTIVE);
    usleep(longer_than_patience);
    tk_verbs_report_stall();
    assert_int_equal(assert_whole(), 1);
    port_event(IBV_EVENT_PORT_ERR, IBV_PORT_DOWN);
    assert_true(tk_conn_is_live(conn_to(0, 1, 1)));
    usleep(longer_than_patience);
    unit_listen();
    tk_verbs_report_stall();
    unit_assert_says(unit_heard(), "fake0:2 no longer reaches rank 1 (node1): its port is down;");
    logged_until_idle();
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* ---- puts and gets ---- */

static struct tk_op op;
static struct tk_rma rma;
static struct tk_rma_state posted;

static enum tk_status start(bool is_put, size_t nbytes)
{
    return world_start(&op, &rma, &posted, is_put, nbytes);
}

static void assert_moved(size_t nbytes)
{
    assert_int_equal(posted.done, nbytes);
    assert_true(tk_op_done(&op));
    assert_int_equal(tk_counter_read(&op.pending), 0);
    assert_memory_equal(world_segment(1), world_segment(0), nbytes);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes[0].out), 0);
    assert_int_equal(lost_count, 0);
}

/* A connection has carried three pieces, and one of them is acknowledged. */
static void break_in_the_middle(uint32_t number)
{
    for (int i = 0; i < 3; i++)
        fake_carry(qp_of(0, number));
    fake_ack(qp_of(0, number));
    fake_break(qp_of(0, number), IBV_WC_RETRY_EXC_ERR);
}

static void assert_rma_moves(bool is_put, unsigned devices, const char *ports, uint32_t dead,
                             size_t nbytes)
{
    open_failing_rails(devices, ports, NULL);
    if (!is_put)
        memcpy(world_segment(1), world_segment(0), segment_size / 2);
    assert_int_equal(start(is_put, nbytes), TK_OK);
    break_in_the_middle(dead);
    logged_until_idle();
    assert_moved(nbytes);
    assert_int_equal(assert_whole(), 1 - dead);
    /* Nothing uses that connection any more. */
    int before = fake_sends(qp_of(0, dead));
    assert_int_equal(start(is_put, nbytes), TK_OK);
    assert_int_equal(fake_sends(qp_of(0, dead)), before);
    logged_until_idle();
    assert_moved(nbytes);
    world_close();
}

static void transfers_go_over_another_conn(void **state)
{
    static const size_t sizes[] = {8, 100, 5000, (size_t)piece_count * 2 * stripe + 5};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        for (uint32_t dead = 0; dead < 2; dead++)
            for (int is_put = 0; is_put < 2; is_put++) {
                assert_rma_moves(is_put, 1, "GASNET_IBV_PORTS=fake0:1,2", dead, sizes[i]);
                assert_rma_moves(is_put, 2, "GASNET_NUM_QPS=2", dead, sizes[i]);
            }
}

/* The fast paths, which are logged too. */
static void short_transfers_go_over_another_conn(void **state)
{
    open_failing_rails(1, "GASNET_IBV_PORTS=fake0:1,2", NULL);
    char *own = world_segment(0), *far = world_segment(1), value[8] = "1234567";
    far[100] = 42;
    tk_op_init(&op);
    tk_counter_set(&op.pending, 2);
    assert_true(tk_logged_put(tk_peer(1), &op, (uintptr_t)far, value, 8));
    assert_true(tk_logged_get(tk_peer(1), &op, (uintptr_t)far + 100, own + 100, 1));
    memset(value, 0, sizeof(value)); /* the source was free on return */
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    assert_true(tk_op_done(&op));
    assert_string_equal(far, "1234567");
    assert_int_equal(own[100], 42);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* A Long of one chain: its payload comes before its head over the other connection, too. */
static void assert_long_moves(int carried)
{
    open_failing_rails(1, "GASNET_IBV_PORTS=fake0:1,2", NULL);
    char *own = world_segment(0), *far = world_segment(1);
    struct tk_short message = {.head = {.kind = TK_REQUEST, .nargs = 1},
                               .args = {stream[1].sent++}};
    struct tk_outgoing both = {.head = &message.head,
                               .head_size = tk_short_size(1),
                               .payload = own,
                               .nbytes = 5000,
                               .source = &op};
    tk_op_init(&op);
    memset(own, 5, 5000);
    assert_true(tk_logged_send_long(tk_peer(1), &both, (uintptr_t)far));
    while (carried-- > 0)
        assert_true(fake_carry(qp_of(0, 1)));
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    assert_true(tk_op_done(&op));
    assert_memory_equal(far, own, 5000);
    assert_int_equal(stream[1].came, 1);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

static void a_long_goes_over_another_conn_in_order(void **state)
{
    for (int carried = 0; carried <= 2; carried++)
        assert_long_moves(carried);
}

/* Uses the keys of the new device. */
static void short_transfers_know_the_new_device(void **state)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    char *own = world_segment(0), *far = world_segment(1);
    far[100] = 42;
    tk_op_init(&op);
    tk_counter_set(&op.pending, 1);
    assert_true(tk_logged_get(tk_peer(1), &op, (uintptr_t)far + 100, own + 100, 1));
    logged_until_idle();
    assert_true(tk_op_done(&op));
    assert_int_equal(own[100], 42);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* Puts before a delivered message are not repeated: its reader may have changed the data. */
static void what_was_read_is_not_written_again(void **state)
{
    open_failing_rails(1, "GASNET_IBV_PORTS=fake0:1,2", NULL);
    char *far = world_segment(1);
    assert_int_equal(start(true, 5000), TK_OK);
    assert_int_equal(send_numbered(1, TK_REQUEST, 0), TK_OK);
    assert_true(fake_carry(qp_of(0, 1)) && fake_carry(qp_of(0, 1)));
    memset(far, 7, 5000);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    assert_true(tk_op_done(&op));
    assert_int_equal(far[0], 7);
    assert_int_equal(far[4999], 7);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* A message that came behind a get does not prove that the get was answered. */
static void lost_answers_are_asked_for_again(void **state)
{
    open_failing_rails(1, "GASNET_IBV_PORTS=fake0:1,2", NULL);
    memcpy(world_segment(1), world_segment(0), segment_size / 2);
    assert_int_equal(start(false, 5000), TK_OK);
    assert_int_equal(send_numbered(1, TK_REQUEST, 0), TK_OK);
    assert_true(fake_carry(qp_of(0, 1)) && fake_carry(qp_of(0, 1)));
    memset(world_segment(0), 7, 5000);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    assert_moved(5000);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

static void pieces_wait_for_space_on_another_conn(void **state)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", "GASNET_NETWORKDEPTH_PP=20");
    assert_int_equal(start(true, segment_size / 2), TK_BUSY);
    break_in_the_middle(0);
    unit_listen();
    enum tk_status status = TK_BUSY;
    while (status == TK_BUSY) {
        fake_settle();
        one_polls(1);
        one_polls(0);
        status = tk_verbs_rma(tk_peer(1), &rma, &posted);
    }
    unit_heard();
    logged_until_idle();
    assert_moved(segment_size / 2);
    world_close();
}

/* With a single work request and no spare bounce buffer. */
static void minimal_space_is_enough(void **state)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", "GASNET_NETWORKDEPTH_TOTAL=1");
    send_five(0, 1, 0);
    assert_int_equal(start(true, 8), TK_OK);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    assert_moved(8);
    assert_int_equal(assert_whole(), 0);
    world_close();
}

/* ---- the end ---- */

static void assert_ends(const char *setting, uint32_t conn, enum ibv_wc_status how,
                        const char *said)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", setting);
    assert_int_equal(start(true, (size_t)piece_count * stripe), TK_OK);
    fake_break(conn_to(0, 1, conn)->qp, how);
    const char *heard = logged_until_idle();
    assert_int_equal(unit_lines(heard), 1);
    unit_assert_says(heard, said);
    assert_int_equal(lost_count, 1);
    world_be(0);
    world_close();
}

static void other_deaths_end_the_job(void **state)
{
    assert_ends("GASNET_IBV_FAILOVER=0", 0, IBV_WC_RETRY_EXC_ERR, "failed on fake0:1, queue pair");
    assert_ends("GASNET_IBV_FAILOVER=0", 1, IBV_WC_RETRY_EXC_ERR, "failed on fake1:1, queue pair");
    assert_ends(NULL, 0, IBV_WC_REM_ACCESS_ERR, "failed on fake0:1, queue pair");
    assert_ends(NULL, 1, IBV_WC_REM_ACCESS_ERR, "failed on fake1:1, queue pair");
}

static void the_last_link_names_its_port(void **state)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    assert_int_equal(start(true, 8), TK_OK);
    fake_break(qp_of(0, 0), IBV_WC_RETRY_EXC_ERR);
    const char *heard = logged_until_idle();
    assert_int_equal(unit_lines(heard), 1);
    unit_assert_says(heard, "failed on fake0:1, queue pair");
    assert_int_equal(lost_count, 1);
    world_be(0);
    world_close();
}

/* Two threads may find the last two dead together. */
static void all_conns_at_once_name_their_ports(void **state)
{
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    fake_break(qp_of(0, 1), IBV_WC_RETRY_EXC_ERR);
    unit_listen();
    for (int i = 0; i < 4; i++) /* the event of a shared queue comes late */
        one_polls(0);
    tk_counter_set(&conn_to(0, 1, 0)->state, TK_CLOSING);
    one_polls(0);
    one_polls(0);
    const char *heard = unit_heard();
    assert_int_equal(unit_lines(heard), 2);
    unit_assert_says(heard, "rank 1 (node1, pid 1001) is no longer reached over any port: fake0:1, "
                            "fake1:1; first path: fake0:1 (LID 1) to fake0:1 (LID 1)\n");
    assert_int_equal(lost_count, 1);
    tk_counter_set(&conn_to(0, 1, 0)->state, TK_LIVE);
    world_close();
}

/* A message that a client builds in a buffer of ours begins where its payload is aligned; bytes
 * before that are old contents. */
static void a_message_behind_the_begin_of_its_buffer_is_no_notice(void **state)
{
    enum { before = 8, nbytes = 1000 };
    struct tk_am_reservation reservation = {.kind = TK_REQUEST};
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    world_be(0);
    reservation.peer = tk_peer(1);
    assert_int_equal(tk_verbs_reserve(&reservation, true, true), TK_OK);
    char *at = reservation.buffer;
    memset(at, 0x7f, before);
    at[0] = TK_NOTICE;
    struct tk_short *front = (struct tk_short *)(void *)(at + before);
    struct tk_outgoing m = {.head = &front->head, .head_size = tk_short_size(1), .nbytes = nbytes};
    char *payload = at + before + m.head_size;
    front->head = (struct tk_message_head){.kind = TK_REQUEST, .category = TK_MEDIUM, .nargs = 1};
    front->args[0] = stream[1].sent;
    for (size_t i = 0; i < nbytes; i++)
        payload[i] = pattern(stream[1].sent, i);
    m.payload = payload;
    stream[1].sent++;
    assert_int_equal(tk_verbs_send_reserved(&reservation, &m), TK_OK);
    fake_break(tk_primary(tk_peer(1))->qp, IBV_WC_RETRY_EXC_ERR);
    logged_until_idle();
    assert_int_equal(stream[1].came, stream[1].sent);
    assert_whole();
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_message_behind_the_begin_of_its_buffer_is_no_notice),
    cmocka_unit_test(messages_come_once_whatever_became_of_them),
    cmocka_unit_test(both_ends_notice_at_once),
    cmocka_unit_test(a_fast_end_finds_buffers),
    cmocka_unit_test(notices_are_sent_again),
    cmocka_unit_test(space_that_was_taken_moves_along),
    cmocka_unit_test(a_port_that_stays_down_is_given_up),
    cmocka_unit_test(transfers_go_over_another_conn),
    cmocka_unit_test(short_transfers_go_over_another_conn),
    cmocka_unit_test(a_long_goes_over_another_conn_in_order),
    cmocka_unit_test(short_transfers_know_the_new_device),
    cmocka_unit_test(what_was_read_is_not_written_again),
    cmocka_unit_test(lost_answers_are_asked_for_again),
    cmocka_unit_test(pieces_wait_for_space_on_another_conn),
    cmocka_unit_test(minimal_space_is_enough),
    cmocka_unit_test(other_deaths_end_the_job),
    cmocka_unit_test(the_last_link_names_its_port),
    cmocka_unit_test(all_conns_at_once_name_their_ports),
};

UNIT_MAIN(tests)
