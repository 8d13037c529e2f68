/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections on demand by librdmacm (transport/verbs/cm/on_demand.c, connect_request.c), between
 * ranks over a fake of it: either end asks, both at once, a peer that does not poll, connects that
 * are lost, duplicated, late or from outside of the job, and answers that fail; over iWARP also
 * which end sends first, and first messages that are late, lost with their connection, or come
 * through shared queues. */
#include "config.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/first_use.h"
#include "failing_rails.h"
#include "fake_rdmacm.h"

#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/conn/unconnected.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/verbs.h"
#include "unit.h"
#include "whole_table.h"

static void lost(uint32_t peer)
{
    (void)peer;
    lost_count++;
}

static const char *sharing, *fewest; /* settings; NULL: no shared receive queues, or large ones */
static unsigned sent[world_max], came[world_max];

static enum tk_status send_one(uint32_t to, enum tk_message_kind kind)
{
    struct tk_message_head head = {.kind = (uint8_t)kind};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    return tk_peer(to)->transport->am.send(tk_peer(to), &m);
}

/* A rank that has received a request may answer it in its handler. */
static void deliver(struct tk_arrival *arrival)
{
    came[tk_peers.me] += arrival->head->kind != TK_REPLY;
    if (arrival->head->kind != TK_REQUEST)
        return;
    assert_int_equal(send_one(arrival->peer->rank, TK_REPLY), TK_OK);
    arrival->replied = true;
}

static void open_ranks_of(enum ibv_transport_type kind, uint32_t size, const char *qps)
{
    fake_reset();
    fake_cm_reset();
    fake.device_count = 1;
    fake.devices[0].transport_type = kind;
    fake_cm.is_iwarp = kind == IBV_TRANSPORT_IWARP;
    if (fake_cm.is_iwarp)
        fake_cm.instead[RDMA_CM_EVENT_CONNECT_RESPONSE] = RDMA_CM_EVENT_ESTABLISHED;
    fake.attr.max_srq = 4;
    fake.attr.max_srq_wr = 4096;
    memset(sent, 0, sizeof(sent));
    memset(came, 0, sizeof(came));
    tk_deliver = deliver;
    world_is_on_demand = true;
    lost_count = 0;
    tk_lost_peer = lost;
    unit_settings("GASNET_IBV_CONNECT=rdmacm", "GASNET_CONNECT_RETRANS_MIN=60000000",
                  "GASNET_CONNECT_RETRANS_MAX=60000000", qps, sharing, fewest, NULL);
    world_open(size, 1 << 16);
    assert_int_equal(fake_cm.connects, 0);
    assert_int_equal(tk_srq_in_use(), sharing != NULL);
}

static void open_ranks(uint32_t size, const char *qps)
{
    open_ranks_of(IBV_TRANSPORT_IB, size, qps);
}

static void close_ranks(void)
{
    world_close();
    assert_int_equal(fake_cm.ids + fake_cm.channels, 0);
    assert_int_equal(fake_sins(), 0);
}

/* Bit R of `ranks`: rank R. */
static void poll_ranks(unsigned who, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        for (uint32_t r = 0; r < 8; r++) {
            if (!(who >> r & 1))
                continue;
            world_be(r);
            tk_verbs_transport()->poll();
        }
}

static void want(uint32_t rank, uint32_t peer)
{
    world_be(rank);
    tk_demand_want(tk_peer(peer));
}

static bool is_up(uint32_t rank, uint32_t peer)
{
    world_be(rank);
    return tk_demand_is_connected(peer);
}

static void assert_connected(uint32_t a, uint32_t b, uint32_t conns)
{
    assert_true(is_up(a, b));
    assert_true(is_up(b, a));
    for (uint32_t k = 0; k < conns; k++) {
        const struct tk_conn *one = conn_to(a, b, k), *other = conn_to(b, a, k);
        assert_int_equal(one->qp->state, IBV_QPS_RTS);
        assert_int_equal(other->qp->state, IBV_QPS_RTS);
        assert_int_equal(fake_attr(one->qp, IBV_QPS_RTR)->dest_qp_num, other->qp->qp_num);
        assert_int_equal(fake_attr(other->qp, IBV_QPS_RTR)->dest_qp_num, one->qp->qp_num);
        assert_false(one->is_held || other->is_held);
        assert_int_equal(tk_counter_read(&one->space), tk_verbs.depth_pp);
    }
}

/* ---- who wants it ---- */

static void the_lower_rank_connects(void **state)
{
    open_ranks(3, "GASNET_NUM_QPS=2");
    want(0, 2);
    poll_ranks(7, 10);
    assert_connected(0, 2, 2);
    assert_int_equal(fake_cm.connects, 2);
    assert_false(is_up(0, 1) || is_up(1, 2));
    assert_table_is_whole(&tk_transport_unconnected);
    close_ranks();
}

/* It sends a connect that is refused; then the other rank connects. */
static void a_higher_rank_asks_for_it(void **state)
{
    open_ranks(2, "GASNET_NUM_QPS=2");
    unit_listen();
    want(1, 0);
    poll_ranks(3, 10);
    assert_connected(0, 1, 2);
    assert_int_equal(fake_cm.connects, 1 + 2);
    assert_null(tk_verbs.cm->ends[0].conn_request);
    assert_string_equal(unit_heard(), "");
    close_ranks();
}

/* In all orders in which the two poll. */
static void both_at_once_get_one_connection(void **state)
{
    for (unsigned order = 0; order < 64; order++) {
        open_ranks(2, "GASNET_NUM_QPS=1");
        unit_listen();
        want(order & 1, !(order & 1));
        want(!(order & 1), order & 1);
        for (unsigned i = 1; i < 6; i++)
            poll_ranks(1 << (order >> i & 1), 1);
        poll_ranks(3, 10);
        assert_connected(0, 1, 1);
        assert_int_equal(conn_to(0, 1, 0)->epoch, 0);
        assert_string_equal(unit_heard(), "");
        close_ranks();
    }
}

static void a_peer_that_computes_is_waited_for(void **state)
{
    for (uint32_t computing = 0; computing < 2; computing++) {
        open_ranks(2, "GASNET_NUM_QPS=1");
        unit_listen();
        fake_cm.unreachable = 3;
        tk_settings.connect_retrans_min = tk_settings.connect_retrans_max = 1;
        want(!computing, computing);
        poll_ranks(1 << !computing, 100);
        assert_false(is_up(!computing, computing));
        poll_ranks(3, 100);
        assert_connected(0, 1, 1);
        assert_int_equal(fake_cm.unreachable, 0);
        assert_string_equal(unit_heard(), "");
        close_ranks();
    }
}

/* ---- what goes wrong ---- */

/* An answer that can't be completed: the attempt's queue pairs are destroyed, and others are
 * made. */
static void an_attempt_that_breaks_is_made_anew(void **state)
{
    static const enum fake_cm_call calls[] = {FAKE_CM_ESTABLISH, FAKE_CM_ACCEPT, FAKE_CM_CONNECT,
                                              FAKE_CM_INIT_ATTR};
    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        open_ranks(2, "GASNET_NUM_QPS=2");
        unit_listen();
        fake_cm.failing[calls[i]].error = 22;
        fake_cm.failing[calls[i]].allowed = 1; /* the second queue pair */
        want(0, 1);
        poll_ranks(3, 3);
        assert_false(is_up(0, 1));
        fake_cm.failing[calls[i]].error = 0;
        for (unsigned n = 0; n < 100000 && !(is_up(0, 1) && is_up(1, 0)); n++) {
            fake_settle();
            poll_ranks(3, 1);
        }
        unit_assert_says(unit_heard(), "was not connected by librdmacm with rank");
        assert_connected(0, 1, 2);
        assert_true(conn_to(0, 1, 0)->epoch > 0);
        assert_int_equal(conn_to(0, 1, 0)->epoch, conn_to(1, 0, 0)->epoch);
        close_ranks();
    }
}

/* A connection request was lost silently: it is repeated when the network reports that, or the
 * first request ends. */
static void a_connection_request_that_fails_is_repeated(void **state)
{
    open_ranks(2, "GASNET_NUM_QPS=1");
    unit_listen();
    fake_cm.refused_by_network = 2;
    tk_settings.connect_retrans_min = tk_settings.connect_retrans_max = 1;
    want(1, 0);
    for (unsigned n = 0; n < 100000 && !is_up(1, 0); n++)
        poll_ranks(3, 1);
    assert_connected(0, 1, 1);
    assert_string_equal(unit_heard(), "");
    close_ranks();
}

/* ---- who may connect: rank 1, which rank 0 has connected in epoch 1 ---- */

static void expect(const struct tk_cm_request *request, enum tk_cm_verdict verdict)
{
    struct tk_cm_refusal refusal;
    struct tk_cm_end before = tk_verbs.cm->ends[0];
    assert_int_equal(fake_cm_conn_request(request, sizeof(*request), &refusal, sizeof(refusal)),
                     RDMA_CM_EVENT_REJECTED);
    assert_int_equal(tk_cm_refusal_read(&refusal, sizeof(refusal)), verdict);
    assert_memory_equal(&before, &tk_verbs.cm->ends[0], sizeof(before));
}

static void connects_that_are_not_wanted_are_refused(void **state)
{
    struct tk_cm_request good, r;
    open_ranks(3, "GASNET_NUM_QPS=1");
    want(0, 1);
    poll_ranks(3, 10);
    world_be(0);
    tk_cm_request_make(&good, conn_to(0, 1, 0), TK_CM_FIRST);
    world_be(1);
    unit_listen();
    r = good, expect(&r, TK_CM_DUPLICATE);
    r = good, r.epoch--, expect(&r, TK_CM_LATE);
    r = good, r.is_conn_request = 1, expect(&r, TK_CM_CROSSING);
    r = good, r.from = 2, expect(&r, TK_CM_CROSSING);
    r = good, r.secret[3] ^= 1, expect(&r, TK_CM_FOREIGN);
    r = good, r.conn = 1, expect(&r, TK_CM_FOREIGN);
    /* As for a connection that comes back; none does. */
    r = good, r.epoch = 1, expect(&r, TK_CM_EARLY);
    unit_assert_says(unit_heard(), "refused a connect from");
    assert_connected(0, 1, 1);
    close_ranks();
}

/* A rank to which all others are connected stops looking for connects. */
static void the_last_connection_ends_the_listening(void **state)
{
    open_ranks(3, "GASNET_NUM_QPS=1");
    want(0, 1);
    poll_ranks(7, 10);
    assert_true(tk_counter_read(&world_verbs(0)->pending_work) > 0);
    assert_non_null(world_verbs(0)->cm->listeners[0].id);
    want(2, 0);
    poll_ranks(7, 10);
    for (unsigned n = 0; n < 100000 && tk_counter_read(&world_verbs(0)->pending_work) > 0; n++)
        poll_ranks(7, 1);
    assert_int_equal(tk_counter_read(&world_verbs(0)->pending_work), 0);
    assert_null(world_verbs(0)->cm->listeners[0].id);
    assert_non_null(world_verbs(1)->cm->listeners[0].id);
    want(1, 2);
    poll_ranks(7, 10);
    assert_connected(1, 2, 1);
    close_ranks();
}

static void a_refusal_of_a_peer_ends_the_job(void **state)
{
    for (uint32_t asks = 0; asks < 2; asks++) {
        open_ranks(2, "GASNET_NUM_QPS=1");
        world_be(asks);
        tk_verbs.cm->secret[0] ^= 1; /* its peer takes it for another job's rank */
        unit_listen();
        want(asks, !asks);
        poll_ranks(3, 10);
        assert_false(is_up(asks, !asks));
        const char *said = unit_heard();
        unit_assert_says(said, "can't be connected by librdmacm with rank");
        unit_assert_says(said, "the peer refused the connect: it is not of this job");
        assert_true(lost_count > 0);
        close_ranks();
    }
}

/* The failure is logged once and ends the job. Nothing is sent for the queue pairs that do not
 * exist: the same call, and polls of the exit, go on after it. */
static void queue_pairs_that_fail_end_the_job(void **state)
{
    static const enum fake_call calls[] = {FAKE_CREATE_QP, FAKE_MODIFY_QP};
    static const char *const names[] = {"create_qp for rank", "modify_qp to INIT for rank"};
    for (unsigned i = 0; i < 8; i++) {
        uint32_t asks = i >> 1 & 1;
        open_ranks_of(i & 4 ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB, 2, "GASNET_NUM_QPS=1");
        unit_listen();
        fake.failing[calls[i & 1]].error = EINVAL;
        fake.failing[calls[i & 1]].allowed = 0;
        want(asks, !asks);
        assert_int_equal(lost_count, 1);
        tk_settings.connect_retrans_min = tk_settings.connect_retrans_max = 1;
        want(asks, !asks);
        poll_ranks(1 << asks, 10);
        assert_false(is_up(asks, !asks));
        const char *said = unit_heard();
        unit_assert_says(said, names[i & 1]);
        assert_null(strstr(strstr(said, names[i & 1]) + 1, names[i & 1]));
        assert_int_equal(fake_cm.connects, 0);
        close_ranks();
    }
}

/* ---- over iWARP ---- */

static void open_iwarp(const char *qps)
{
    open_ranks_of(IBV_TRANSPORT_IWARP, 2, qps);
    unit_listen();
}

static void poll_both(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        fake_settle();
        poll_ranks(3, 1);
    }
}

/* Both ends are connected, and earlier attempts have left nothing. */
static void assert_open(uint32_t rank, uint32_t conns)
{
    world_be(rank);
    assert_true(tk_demand_is_connected(!rank));
    fake_settle();
    tk_verbs_transport()->poll();
    assert_int_equal(tk_counter_read(&tk_verbs.lanes[0].out), 0);
    assert_int_equal(tk_verbs.cm->waiting, 0);
    for (uint32_t k = 0; k < conns; k++) {
        const struct tk_conn *conn = tk_conns_to(!rank) + k;
        assert_int_equal(conn->qp->state, IBV_QPS_INIT);
        assert_false(conn->is_held);
        assert_int_equal(tk_counter_read(&conn->space), tk_verbs.depth_pp);
        if (!conn->loan)
            assert_int_equal(fake_receives(conn->qp), tk_credit_buffers_posted(conn));
    }
}

/* As many requests as there are credits for, and an exit notice. */
static void exchange_all(void)
{
    for (uint32_t r = 0; r < 2; r++) {
        world_be(r);
        while (send_one(!r, TK_REQUEST) == TK_OK)
            sent[r]++;
        assert_true(sent[r] > 0);
        assert_int_equal(send_one(!r, TK_CONTROL), TK_OK);
    }
    poll_both(4);
    assert_int_equal(came[0], sent[1] + 1);
    assert_int_equal(came[1], sent[0] + 1);
}

static void assert_both_open(uint32_t conns)
{
    assert_string_equal(unit_heard(), "");
    assert_open(0, conns);
    assert_open(1, conns);
    exchange_all();
    close_ranks();
}

static void over_iwarp_the_lower_rank_sends_first(void **state)
{
    for (unsigned who = 1; who <= 3; who++)
        for (unsigned qps = 1; qps <= 3; qps++) {
            open_iwarp(qps == 1   ? "GASNET_NUM_QPS=1"
                       : qps == 2 ? "GASNET_NUM_QPS=2"
                                  : "GASNET_NUM_QPS=3");
            if (who & 1)
                want(0, 1);
            if (who & 2)
                want(1, 0);
            poll_both(20);
            assert_int_equal(conn_to(1, 0, 0)->epoch, 0);
            assert_both_open(qps);
        }
}

/* In all orders of deliveries and polls; before the first messages nothing can be sent, not even an
 * immediate message. */
static void over_iwarp_no_rank_sends_before_the_first_messages(void **state)
{
    for (unsigned order = 0; order < 1 << 12; order += 5) {
        open_iwarp("GASNET_NUM_QPS=2");
        want(order & 1, !(order & 1));
        for (unsigned i = 0; i < 12; i++) {
            poll_ranks(1 << (order >> i & 1), 1);
            if (order >> (11 - i) & 1)
                fake_settle();
            for (uint32_t r = 0; r < 2; r++) {
                if (r != (order & 1) && order & 2) /* that does not want it by itself */
                    continue;
                world_be(r);
                sent[r] += send_one(!r, TK_REQUEST) == TK_OK;
            }
        }
        poll_both(20);
        assert_string_equal(unit_heard(), "");
        assert_int_equal(fake_sins(), 0);
        assert_true(is_up(0, 1) && is_up(1, 0));
        assert_int_equal(world_verbs(0)->cm->waiting + tk_verbs.cm->waiting, 0);
        exchange_all();
        close_ranks();
    }
}

/* The higher rank waits for the greetings over all queue pairs, the lower one for the answer. */
static void over_iwarp_all_queue_pairs_are_greeted(void **state)
{
    open_iwarp("GASNET_NUM_QPS=2");
    want(0, 1);
    poll_ranks(3, 10);
    uint32_t primary = tk_primary_number(!tk_peers.me);
    world_be(0);
    assert_true(fake_carry(conn_to(0, 1, primary)->qp));
    poll_ranks(3, 10);
    assert_false(is_up(0, 1) || is_up(1, 0));
    world_be(0);
    assert_true(fake_carry(conn_to(0, 1, !primary)->qp));
    poll_ranks(3, 10);
    assert_true(is_up(1, 0));
    assert_false(is_up(0, 1));
    poll_both(2);
    assert_both_open(2);
}

/* The driver does not notice a greeting until the next message comes. */
static void over_iwarp_a_greeting_is_not_left_lying(void **state)
{
    open_iwarp("GASNET_NUM_QPS=2");
    fake_cm.is_lazy = true;
    want(0, 1);
    poll_both(40);
    assert_both_open(2);
}

/* The kernel has given up the queue pairs: new ones are made, and nothing is logged. */
static void over_iwarp_queue_pairs_serve_one_connect(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        open_iwarp("GASNET_NUM_QPS=2");
        *(i & 1 ? &fake_cm.unreachable : &fake_cm.refused_by_network) = 1;
        tk_settings.connect_retrans_min = tk_settings.connect_retrans_max = 1;
        want(i >> 1, !(i >> 1));
        for (unsigned n = 0; n < 10000 && !(is_up(0, 1) && is_up(1, 0)); n++)
            poll_both(1);
        assert_int_equal(conn_to(0, 1, 0)->epoch > 0, i < 2);
        assert_both_open(2);
    }
}

/* That flushes receives at both ends, and the greetings in flight. */
static void over_iwarp_a_connection_lost_early_is_made_anew(void **state)
{
    for (unsigned looks = 3; looks < 8; looks++) {
        open_iwarp("GASNET_NUM_QPS=2");
        want(0, 1);
        poll_ranks(3, looks);
        if (looks & 1)
            fake_carry(conn_to(0, 1, 1)->qp);
        if (looks & 2) /* the device says so before librdmacm does */
            fake_part(conn_to(1, 0, 0)->qp->qp_num);
        poll_ranks(looks & 2, 1);
        world_be(0);
        struct tk_cm_end *end = &tk_verbs.cm->ends[tk_verbs.conns_pp];
        assert_int_equal(end->state, TK_CM_GREETS);
        tk_cm_end_fail(end, "a test", 0);
        for (unsigned n = 0; n < 10000 && !(is_up(0, 1) && is_up(1, 0)); n++)
            poll_both(1);
        unit_assert_says(unit_heard(), "was not connected by librdmacm with rank 1");
        assert_true(conn_to(0, 1, 0)->epoch > 0);
        unit_listen();
        assert_both_open(2);
    }
}

static void over_iwarp_receive_queues_may_be_shared(void **state)
{
    sharing = "GASNET_USE_SRQ=1";
    over_iwarp_the_lower_rank_sends_first(state);
    over_iwarp_no_rank_sends_before_the_first_messages(state);
    over_iwarp_all_queue_pairs_are_greeted(state);
    over_iwarp_a_connection_lost_early_is_made_anew(state);
    fewest = "GASNET_RBUF_COUNT=1";
    open_iwarp("GASNET_NUM_QPS=8");
    want(0, 1);
    poll_both(20);
    assert_both_open(8);
    sharing = fewest = NULL;
}

/* ---- the code of first uses */

static uintptr_t page_size;
static unsigned pages_read;

static void on_access(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    void *page = (void *)((uintptr_t)info->si_addr / page_size * page_size);
    if (mprotect(page, page_size, PROT_READ | PROT_EXEC) != 0)
        _exit(1);
    pages_read++;
}

/* A prefetch has no effect on an unmapped page, so the library reads each page when it starts.
 * Pages that other code shares are left out. */
static void the_code_of_first_uses_is_mapped_by_then(void **state)
{
    struct sigaction action = {.sa_sigaction = on_access, .sa_flags = SA_SIGINFO}, before;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)__start_trunkline_first_use + page_size - 1) / page_size;
    uintptr_t end = (uintptr_t)__stop_trunkline_first_use / page_size;
    if (end < first + 2)
        skip();
    sigaction(SIGSEGV, &action, &before);
    assert_int_equal(mprotect((void *)(first * page_size), (end - first) * page_size, PROT_NONE),
                     0);
    open_ranks(2, "GASNET_NUM_QPS=1");
    unsigned count = pages_read;
    assert_int_equal(
        mprotect((void *)(first * page_size), (end - first) * page_size, PROT_READ | PROT_EXEC), 0);
    sigaction(SIGSEGV, &before, NULL);
    assert_int_equal(count, end - first);
    close_ranks();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_code_of_first_uses_is_mapped_by_then),
        cmocka_unit_test(the_lower_rank_connects),
        cmocka_unit_test(a_higher_rank_asks_for_it),
        cmocka_unit_test(both_at_once_get_one_connection),
        cmocka_unit_test(a_peer_that_computes_is_waited_for),
        cmocka_unit_test(an_attempt_that_breaks_is_made_anew),
        cmocka_unit_test(a_connection_request_that_fails_is_repeated),
        cmocka_unit_test(connects_that_are_not_wanted_are_refused),
        cmocka_unit_test(the_last_connection_ends_the_listening),
        cmocka_unit_test(a_refusal_of_a_peer_ends_the_job),
        cmocka_unit_test(queue_pairs_that_fail_end_the_job),
        cmocka_unit_test(over_iwarp_the_lower_rank_sends_first),
        cmocka_unit_test(over_iwarp_no_rank_sends_before_the_first_messages),
        cmocka_unit_test(over_iwarp_all_queue_pairs_are_greeted),
        cmocka_unit_test(over_iwarp_a_greeting_is_not_left_lying),
        cmocka_unit_test(over_iwarp_queue_pairs_serve_one_connect),
        cmocka_unit_test(over_iwarp_a_connection_lost_early_is_made_anew),
        cmocka_unit_test(over_iwarp_receive_queues_may_be_shared)};
    unit_deadline();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
