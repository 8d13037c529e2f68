/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting by librdmacm (transport/verbs/cm): start-up of several ranks over a fake of it; who
 * may connect, and connects that cross, arrive twice, late or from outside of the job; answers that
 * fail or are missing, each detected in time with one line. test_verbs_reconnect_cm tests
 * reopening. */
#include "config.h"

#include "failing_rails.h"
#include "fake_rdmacm.h"

#include "op/op_type.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/data/rma_post.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

static void set_up(unsigned devices, const char *qps, const char *more)
{
    fake_reset();
    fake_cm_reset();
    fake.device_count = (int)devices;
    /* If a name is set twice, the first value counts. */
    unit_settings(qps, more ? more : "GASNET_IBV_CONNECT=rdmacm", "GASNET_IBV_CONNECT=rdmacm",
                  "GASNET_IBV_CONNECT_TIMEOUT=0.1", NULL);
}

static const struct tk_cm_end *end_at(uint32_t rank, uint32_t peer, uint32_t number)
{
    const struct tk_verbs *verbs = world_verbs(rank);
    return &verbs->cm->ends[peer * verbs->conns_pp + number];
}

static void assert_all_closed(void)
{
    world_close();
    assert_int_equal(fake_cm.ids + fake_cm.channels, 0);
    assert_int_equal(fake_sins(), 0);
}

/* One line says why, and nothing is left open. */
static void assert_connect_fails(const char *why)
{
    unit_listen();
    enum tk_status status = tk_verbs_connect(world_hosts);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, why);
    assert_all_closed();
}

/* ---- start-up ---- */

static void assert_connected(uint32_t rank, uint32_t peer, uint32_t number)
{
    const struct tk_conn *conn = conn_to(rank, peer, number), *far = conn_to(peer, rank, number);
    assert_int_equal(end_at(rank, peer, number)->state, TK_CM_UP);
    assert_int_equal(conn->qp->state, IBV_QPS_RTS);
    const struct ibv_qp_attr *rtr = fake_attr(conn->qp, IBV_QPS_RTR);
    const struct ibv_qp_attr *rts = fake_attr(conn->qp, IBV_QPS_RTS);
    assert_int_equal(rtr->dest_qp_num, far->qp->qp_num);
    assert_int_equal(rtr->rq_psn, fake_attr(far->qp, IBV_QPS_RTS)->sq_psn);
    assert_int_equal(rtr->max_dest_rd_atomic, 8);
    assert_int_equal(rtr->min_rnr_timer, 12);
    assert_int_equal(rts->max_rd_atomic, 8);
    assert_int_equal(rts->timeout, 18);
    assert_int_equal(rts->retry_cnt, 7);
    assert_int_equal(rts->rnr_retry, 7);
    assert_int_equal(fake_receives(conn->qp), tk_credit_buffers_posted(conn));
    assert_int_equal(tk_counter_read(&conn->space), tk_verbs.depth_pp);
}

static void assert_all_connected(uint32_t size, uint32_t conns)
{
    for (uint32_t r = 0; r < size; r++)
        for (uint32_t p = 0; p < size; p++)
            for (uint32_t k = 0; r != p && k < conns; k++)
                assert_connected(r, p, k);
}

/* Connects are not encrypted, so they carry another secret than packet numbers are made of. */
static void assert_secrets(uint32_t size)
{
    static const uint8_t none[tk_cm_secret_size];
    const uint8_t *secret = world_verbs(0)->cm->secret, *job = world_cards[0]->secret;
    assert_memory_not_equal(secret, none, 8);
    assert_memory_not_equal(secret + 8, none, 8);
    assert_memory_not_equal(secret, secret + 8, 8);
    assert_memory_not_equal(secret, job, 8);
    assert_memory_not_equal(secret + 8, job + 8, 8);
    for (uint32_t r = 1; r < size; r++)
        assert_memory_equal(world_verbs(r)->cm->secret, secret, tk_cm_secret_size);
}

static void ranks_connect_over_all_rails(void **state)
{
    set_up(2, "GASNET_NUM_QPS=3", NULL);
    world_open(4, 1 << 16);
    assert_all_connected(4, 3);
    assert_secrets(4);
    /* The lower rank sends one connect for each connection. */
    assert_int_equal(fake_cm.connects, 4 * 3 / 2 * 3);
    assert_all_closed();
}

/* Without failover only the primary has receive buffers, and none are for notices. */
static void connections_without_buffers_are_greeted_too(void **state)
{
    set_up(1, "GASNET_NUM_QPS=3", "GASNET_IBV_FAILOVER=0");
    world_open(3, 1 << 16);
    assert_all_connected(3, 3);
    /* No rank listens any more. */
    assert_null(world_verbs(0)->cm->listeners[0].id);
    assert_all_closed();
}

static void verbs_is_the_default(void **state)
{
    fake_reset();
    fake_cm_reset();
    unit_settings(NULL);
    world_open(2, 1 << 16);
    assert_null(world_verbs(0)->cm);
    assert_int_equal(fake_cm.connects, 0);
    world_close();
}

static void make_iwarp(void)
{
    for (int d = 0; d < fake_devices_max; d++)
        fake.devices[d].transport_type = IBV_TRANSPORT_IWARP;
}

/* Its kernel drivers set the states of queue pairs; a completion does not mean that data arrived.
 */
static void iwarp_is_connected_without_being_asked(void **state)
{
    struct tk_op op;
    struct tk_rma rma;
    struct tk_rma_state posted;
    set_up(2, "GASNET_NUM_QPS=2", "GASNET_IBV_CONNECT=auto");
    make_iwarp();
    fake_cm.instead[RDMA_CM_EVENT_CONNECT_RESPONSE] = RDMA_CM_EVENT_ESTABLISHED;
    fake_cm.is_iwarp = true;
    world_open(2, 1 << 16);
    assert_false(tk_verbs.failover_enabled);
    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(end_at(r, 1 - r, k)->state, TK_CM_UP);
            assert_int_equal(conn_to(r, 1 - r, k)->qp->state, IBV_QPS_INIT);
            assert_true(conn_to(r, 1 - r, k)->is_fenced);
        }
    /* A put is complete when the read behind it is complete. */
    world_be(0);
    unsigned before = fake.posted;
    assert_int_equal(world_start(&op, &rma, &posted, true, 8), TK_OK);
    assert_int_equal(fake.posted - before, 2);
    assert_int_equal(fake.last.opcode, IBV_WR_RDMA_READ);
    assert_int_equal(fake.last.num_sge, 1);
    assert_all_closed();
}

static void iwarp_can_not_do_without(void **state)
{
    set_up(1, "GASNET_NUM_QPS=1", "GASNET_IBV_CONNECT=verbs");
    make_iwarp();
    struct tk_peer_info *info = world_info(2);
    world_peers(0, 2);
    unit_listen();
    enum tk_status status = tk_verbs_open(&info, 0);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "fake0:1 is an iWARP port, which only librdmacm connects");
    tk_verbs_close();
    free(info);
    free(tk_peers.at);
    free(tk_peers.rail_to);
    free(tk_peers.keys);
}

/* ---- who may connect: rank 1 of two, which rank 0 has connected ---- */

static void expect(const struct tk_cm_request *request, enum tk_cm_verdict verdict)
{
    struct tk_cm_refusal refusal;
    const struct tk_cm_end before = *tk_cm_end_of(conn_to(1, 0, 0));
    enum rdma_cm_event_type type =
        fake_cm_conn_request(request, sizeof(*request), &refusal, sizeof(refusal));
    assert_int_equal(type, RDMA_CM_EVENT_REJECTED);
    assert_int_equal(tk_cm_refusal_read(&refusal, sizeof(refusal)), verdict);
    assert_memory_equal(&before, tk_cm_end_of(conn_to(1, 0, 0)), sizeof(before));
}

/* The request that rank 0 would send for its first connection again. */
static struct tk_cm_request open_and_ask(void)
{
    struct tk_cm_request request;
    set_up(2, "GASNET_NUM_QPS=2", NULL);
    world_open(3, 1 << 16);
    world_be(0);
    tk_cm_request_make(&request, conn_to(0, 1, 0), 0);
    world_be(1);
    return request;
}

static void foreign_connects_are_refused(void **state)
{
    uint64_t data[2] = {0};
    const struct tk_cm_request good = open_and_ask();
    struct tk_cm_request r;
    unit_listen();
    r = good, r.magic++, expect(&r, TK_CM_FOREIGN);
    r = good, r.version++, expect(&r, TK_CM_FOREIGN);
    r = good, r.secret[15] ^= 1, expect(&r, TK_CM_FOREIGN);
    r = good, r.to = 2, expect(&r, TK_CM_FOREIGN);
    r = good, r.from = 1, expect(&r, TK_CM_FOREIGN);
    r = good, r.from = 3, expect(&r, TK_CM_FOREIGN);
    r = good, r.rail = 1, expect(&r, TK_CM_FOREIGN);
    r = good, r.conn = 1, expect(&r, TK_CM_FOREIGN);
    r = good, r.conn = 2, expect(&r, TK_CM_FOREIGN);
    assert_int_equal(fake_cm_conn_request(&good, 8, data, sizeof(data)), RDMA_CM_EVENT_REJECTED);
    const char *said = unit_heard();
    /* One line, however many there were. */
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "fake0:1 refused a connect from 0.0.0.0: it is not of this job");
    assert_all_closed();
}

static void crossing_connects_are_refused(void **state)
{
    struct tk_cm_request r = open_and_ask();
    unit_listen();
    r.from = 2;
    expect(&r, TK_CM_CROSSING);
    unit_assert_says(unit_heard(), "the lower rank of a pair connects, not the higher one");
    assert_all_closed();
}

static void a_second_connect_is_refused(void **state)
{
    struct tk_cm_request r = open_and_ask();
    unit_listen();
    expect(&r, TK_CM_DUPLICATE);
    unit_assert_says(unit_heard(), "the connection was asked for already");
    assert_all_closed();
}

/* Connects of the previous incarnation, which has ended here, and of the next one, which is not
 * open yet. */
static void late_and_early_connects_are_refused(void **state)
{
    struct tk_cm_request r = open_and_ask();
    unit_listen();
    tk_cm_reset(conn_to(1, 0, 0), 1);
    expect(&r, TK_CM_LATE);
    r.epoch = 2;
    expect(&r, TK_CM_EARLY);
    unit_assert_says(unit_heard(), "of an incarnation of the connection that is over");
    assert_int_equal(tk_cm_end_judge(tk_cm_end_of(conn_to(1, 0, 0)), 1), TK_CM_WELCOME);
    assert_all_closed();
}

/* ---- start-ups that fail: rank 0 asks, rank 1 listens ---- */

static const char *start_up(uint32_t rank, bool is_alone)
{
    world_open_only(2, 0);
    fake_cm.is_alone = is_alone;
    unit_listen();
    world_be(rank);
    enum tk_status status = tk_verbs_connect(world_hosts);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    return said;
}

static void a_peer_that_never_connects_is_named(void **state)
{
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    const char *said = start_up(1, true);
    unit_assert_says(said, "fake0:1 (10.0.1.1:");
    unit_assert_says(said, "can't be connected by librdmacm with rank 0 (node0, 10.0.1.1:");
    unit_assert_says(said, "the peer, whose turn it is, has not connected in time");
    assert_all_closed();
}

static void a_peer_that_never_answers_is_named(void **state)
{
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    fake_cm.lost_connects = 1;
    unit_assert_says(start_up(0, true), "with rank 1 (node1, 10.0.1.1:");
    assert_all_closed();
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    unit_assert_says(start_up(0, true), ": the peer has not answered in time");
    assert_all_closed();
}

static void what_the_network_reports_is_logged(void **state)
{
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    fake_cm.instead[RDMA_CM_EVENT_CONNECT_REQUEST] = RDMA_CM_EVENT_DEVICE_REMOVAL;
    fake_cm.instead[RDMA_CM_EVENT_ROUTE_RESOLVED] = RDMA_CM_EVENT_UNREACHABLE;
    fake_cm.instead_status = -110;
    unit_assert_says(start_up(0, true),
                     ": RDMA_CM_EVENT_UNREACHABLE, status -110 (Connection timed out)");
    assert_all_closed();
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    fake_cm.instead[RDMA_CM_EVENT_ADDR_RESOLVED] = RDMA_CM_EVENT_ADDR_ERROR;
    fake_cm.instead_status = -19;
    unit_assert_says(start_up(0, true), ": RDMA_CM_EVENT_ADDR_ERROR, status -19 (No such device)");
    assert_all_closed();
}

/* An overrun listener, or an earlier connection that the kernel remembers. */
static void what_the_network_refuses_is_tried_again(void **state)
{
    set_up(1, "GASNET_NUM_QPS=2", NULL);
    fake_cm.refused_by_network = 7;
    world_open(2, 0);
    assert_all_connected(2, 2);
    assert_all_closed();
}

static void a_refusal_of_the_peer_is_final(void **state)
{
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    world_open_only(2, 0);
    struct tk_cm_end *end = NULL;
    world_be(0);
    assert_int_equal(tk_verbs.cm->failed, 0);
    unit_listen();
    tk_verbs.cm->is_starting = true;
    end = tk_cm_end_of(conn_to(0, 1, 0));
    tk_cm_end_open(end, 0);
    end->state = TK_CM_ASKED;
    tk_verbs.cm->in_flight = 1;
    tk_cm_end_refused(end, TK_CM_FOREIGN, 28);
    const char *said = unit_heard();
    assert_int_equal(end->state, TK_CM_FAILED);
    unit_assert_says(said, "the peer refused the connect: it is not of this job");
    assert_all_closed();
}

/* After "not yet" a rank asks again only for a limited time. */
static void a_peer_that_is_never_open_is_given_up(void **state)
{
    unsigned asked = 0;
    set_up(1, "GASNET_NUM_QPS=1", "GASNET_IBV_CONNECT_TIMEOUT=60");
    world_open_only(2, 0);
    world_be(0);
    struct tk_cm_end *end = tk_cm_end_of(conn_to(0, 1, 0));
    unit_listen();
    tk_cm_end_open(end, 0);
    for (; asked < 1000 && end->state == TK_CM_HOLDS; asked++) {
        end->state = TK_CM_ASKED;
        tk_verbs.cm->in_flight++;
        tk_cm_end_refused(end, TK_CM_EARLY, 28);
    }
    const char *said = unit_heard();
    assert_int_equal(asked, 40);
    assert_int_equal(end->state, TK_CM_FAILED);
    assert_int_equal(tk_verbs.cm->in_flight, 0);
    unit_assert_says(said,
                     "the connection is not open at this end so far; it is tried again later");
    assert_all_closed();
}

static void each_call_that_fails_is_named(void **state)
{
    static const struct {
        enum fake_cm_call call;
        const char *said;
        bool is_passive;
    } cases[] = {
        {FAKE_CM_CREATE_ID, ": rdma_create_id, status -12 (Cannot allocate memory)", false},
        {FAKE_CM_RESOLVE_ADDR, ": rdma_resolve_addr, status -12", false},
        {FAKE_CM_RESOLVE_ROUTE, ": rdma_resolve_route, status -12", false},
        {FAKE_CM_CONNECT, ": rdma_connect, status -12", false}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up(1, "GASNET_NUM_QPS=1", NULL);
        world_open_only(2, 0);
        fake_cm.failing[cases[i].call].error = 12;
        fake_cm.is_alone = true;
        assert_connect_fails(cases[i].said);
    }
}

/* The accept or its completion fails: the rank that listens fails, and the other one is refused or
 * times out. */
static void answers_that_fail_are_named(void **state)
{
    static const struct {
        enum fake_cm_call call;
        int allowed;
        const char *said;
    } cases[] = {{FAKE_CM_ACCEPT, 0, ": rdma_accept, status -22"},
                 {FAKE_CM_INIT_ATTR, 0, ": modify_qp to INIT, status -22"},
                 {FAKE_CM_INIT_ATTR, 1, ": modify_qp to RTR, status -22"},
                 {FAKE_CM_INIT_ATTR, 2, ": modify_qp to RTS, status -22"},
                 {FAKE_CM_ESTABLISH, 0, ": rdma_establish, status -22"}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up(1, "GASNET_NUM_QPS=1", NULL);
        world_open_only(2, 0);
        fake_cm.failing[cases[i].call].error = 22;
        fake_cm.failing[cases[i].call].allowed = cases[i].allowed;
        unit_listen();
        for (uint32_t r = 0; r < 2; r++) {
            world_be(r);
            tk_verbs.cm->is_starting = true;
            tk_cm_end_open(tk_cm_end_of(conn_to(r, 1 - r, 0)), 0);
        }
        memcpy(tk_verbs.cm->secret, world_verbs(0)->cm->secret, tk_cm_secret_size);
        world_be(0);
        tk_verbs.cm->places[1] = world_verbs(1)->cm->listeners[0].place;
        tk_cm_go(conn_to(0, 1, 0));
        for (uint32_t turn = 0; turn < 8; turn++) {
            world_be(turn % 2);
            tk_cm_events_read();
        }
        unit_assert_says(unit_heard(), cases[i].said);
        assert_all_closed();
    }
}

/* ---- opening ---- */

static const char *open_one(void)
{
    struct tk_peer_info *info = world_info(2);
    world_peers(0, 2);
    unit_listen();
    enum tk_status status = tk_verbs_open(&info, 0);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    tk_verbs_close();
    free(info);
    free(tk_peers.at);
    free(tk_peers.rail_to);
    free(tk_peers.keys);
    assert_int_equal(unit_lines(said), 1);
    assert_int_equal(fake_cm.ids + fake_cm.channels, 0);
    return said;
}

static void what_is_missing_to_listen_is_named(void **state)
{
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    fake_cm.failing[FAKE_CM_BIND].error = 19;
    unit_assert_says(open_one(), "fake0:1 has no IP address by which librdmacm finds it: give its "
                                 "network interface one (IPoIB), or connect without: "
                                 "GASNET_IBV_CONNECT=verbs");
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    fake_cm.failing[FAKE_CM_CHANNEL].error = 13;
    unit_assert_says(open_one(),
                     "librdmacm can't be used: Permission denied; is the kernel's module "
                     "rdma_ucm loaded");
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    fake_cm.failing[FAKE_CM_LISTEN].error = 98;
    unit_assert_says(open_one(),
                     "fake0:1 (10.0.1.1:0): rdma_listen failed: Address already in use");
}

/* What another process sent is checked; one without listeners has only ports of other networks. */
static void addresses_of_a_peer_are_judged(void **state)
{
    static const struct {
        uint32_t places, credits;
        const char *said;
    } cases[] = {{1, 1,
                  "rank 1 published 1 addresses for librdmacm and 1 credits, which make no sense "
                  "with 2 ports and "},
                 {2, 0, "rank 1 published 2 addresses for librdmacm and 0 credits"},
                 {2, 1u << 30, "rank 1 published 2 addresses for librdmacm and 1073741824 credits"},
                 {0, 1,
                  "fake0:1 is connected by librdmacm, its counterpart of rank 1 (node1) is "
                  "not: iWARP does not reach other networks"}};
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up(2, "GASNET_NUM_QPS=2", NULL);
        world_open_only(2, 0);
        assert_int_equal(world_cards[1]->cm_places, 2);
        world_cards[1]->cm_places = cases[i].places;
        world_cards[1]->credits = cases[i].credits;
        assert_connect_fails(cases[i].said);
    }
}

/* Each rail has the address of its own port, not the first that binds. */
static void each_rail_listens_at_its_own_address(void **state)
{
    char text[128];
    set_up(3, "GASNET_NUM_QPS=3", NULL);
    world_open(2, 0);
    for (uint32_t i = 0; i < 3; i++) {
        char expected[64];
        snprintf(expected, sizeof(expected), "connected by librdmacm from 10.%u.1.1:", i);
        tk_cm_describe(i, text, sizeof(text));
        unit_assert_says(text, expected);
    }
    assert_all_closed();
}

/* RoCE: the address in the rail's own GID. */
static void roce_listens_at_its_gid(void **state)
{
    char text[128];
    set_up(1, "GASNET_NUM_QPS=1", NULL);
    fake_make_ethernet(&fake.ports[0][1]);
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.2.1");
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.1.1");
    world_open(2, 0);
    tk_cm_describe(0, text, sizeof(text));
    unit_assert_says(text, "from 10.0.1.1:");
    assert_all_closed();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_connect_over_all_rails),
        cmocka_unit_test(connections_without_buffers_are_greeted_too),
        cmocka_unit_test(verbs_is_the_default),
        cmocka_unit_test(iwarp_is_connected_without_being_asked),
        cmocka_unit_test(iwarp_can_not_do_without),
        cmocka_unit_test(foreign_connects_are_refused),
        cmocka_unit_test(crossing_connects_are_refused),
        cmocka_unit_test(a_second_connect_is_refused),
        cmocka_unit_test(late_and_early_connects_are_refused),
        cmocka_unit_test(a_peer_that_never_connects_is_named),
        cmocka_unit_test(a_peer_that_never_answers_is_named),
        cmocka_unit_test(what_the_network_reports_is_logged),
        cmocka_unit_test(what_the_network_refuses_is_tried_again),
        cmocka_unit_test(a_refusal_of_the_peer_is_final),
        cmocka_unit_test(a_peer_that_is_never_open_is_given_up),
        cmocka_unit_test(each_call_that_fails_is_named),
        cmocka_unit_test(answers_that_fail_are_named),
        cmocka_unit_test(what_is_missing_to_listen_is_named),
        cmocka_unit_test(each_rail_listens_at_its_own_address),
        cmocka_unit_test(addresses_of_a_peer_are_judged),
        cmocka_unit_test(roce_listens_at_its_gid)};
    unit_deadline();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
