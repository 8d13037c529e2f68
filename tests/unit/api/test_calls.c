/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts, gets, events and messages as clients call them: the effect of flags and pairs of endpoints
 * on the rooms below, values, codes, limits. The paths of transfers and messages are tested in rma/
 * and message/. */
#include "config.h"

#include "collective/barrier.h"
#include "event/event.h"
#include "fake_job.h"
#include "message/message.h"
#include "progress/progress.h"
#include "stats/write.h"
#include "team/objects.h"
#include "unit.h"

enum { ranks = 3, handler = 200, bytes_max = 256 };

static char remote[bytes_max], local[bytes_max];
static gex_TM_t tm;

/* ---- the rooms below */

static enum tk_status (*rma_of_fake)(struct tk_peer *peer, const struct tk_rma *rma,
                                     struct tk_rma_state *state);
static struct tk_rma seen; /* the last one */

static enum tk_status look_at_rma(struct tk_peer *peer, const struct tk_rma *rma,
                                  struct tk_rma_state *state)
{
    seen = *rma;
    return rma_of_fake(peer, rma, state);
}

static const uint32_t keys[] = {5};

struct tk_bound tk_bound_of(uint32_t rank, uint32_t endpoint)
{
    (void)rank;
    return (struct tk_bound){.base = (uintptr_t)remote,
                             .size = sizeof(remote),
                             .endpoint = endpoint,
                             .keys = endpoint == 7 ? keys : NULL,
                             .fd = -1};
}

bool tk_bound_find_published(uintptr_t address, size_t nbytes, struct tk_bound *bound)
{
    (void)address, (void)nbytes, (void)bound;
    return false;
}

static struct trunkline_segment segment;
static struct trunkline_ep ep1 = {.client = &tk_client, .index = 1};

struct trunkline_ep *tk_ep_at(gex_EP_Index_t index)
{
    return index == 1 ? &ep1 : &tk_ep;
}

struct trunkline_client tk_client;
struct trunkline_ep tk_ep = {.client = &tk_client};
struct trunkline_tm tk_tm = {.ep = &tk_ep};
struct tk_ep_pair tk_pairs[tk_endpoints_max * tk_pair_columns];

void tk_barrier_start(struct tk_op *op)
{
    tk_counter_set(&op->pending, 0);
}

/* No rank is a neighbour, so inline calls reach the library. */
static int set_up(void **state)
{
    static uintptr_t unmapped[ranks] = {tk_unmapped, tk_unmapped, tk_unmapped};
    unit_settings(NULL, NULL);
    fake_job_open(ranks);
    for (uint32_t r = 0; r < ranks; r++) {
        tk_peer(r)->segment_base = (uintptr_t)remote;
        tk_peer(r)->segment_size = sizeof(remote);
    }
    tk_tm.head = (struct tk_team_head){unmapped, tk_peer(0)};
    tk_list_make_rule(&tk_tm.jobranks, 0, 1, ranks);
    for (size_t i = 0; i < sizeof(tk_pairs) / sizeof(tk_pairs[0]); i++)
        tk_pairs[i].head.offsets = unmapped;
    tm = &tk_tm;
    if (!rma_of_fake)
        rma_of_fake = fake_transport.rma.post;
    fake_transport.rma.post = look_at_rma;
    fake_job.hold = true; /* no handlers here */
    ep1.segment = NULL;
    memset(remote, 'r', sizeof(remote));
    memset(local, 'l', sizeof(local));
    return 0;
}

static int tear_down(void **state)
{
    fake_job.hold_ops = false;
    while (fake_job.reaped < fake_job.count)
        fake_transport.reap();
    fake_job_close();
    return 0;
}

/* ---- values */

static void a_value_is_put_by_its_low_order_bytes_and_no_others(void **state)
{
    for (size_t n = 1; n <= 8; n++) {
        uint64_t there = 0, expected = UINT64_C(0x1122334455667788);
        gex_RMA_PutBlockingVal(tm, 1, remote, expected, n, 0);
        memcpy(&there, remote, 8);
        uint64_t mask = n == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * n) - 1;
        assert_int_equal(there & mask, expected & mask);
        assert_int_equal(remote[8], 'r');
        if (n < 8)
            assert_int_equal(remote[n], 'r');
    }
}

static void a_value_is_got_with_zeros_above_it(void **state)
{
    memset(remote, 0x81, 8);
    assert_int_equal(gex_RMA_GetBlockingVal(tm, 1, remote, 1, 0), 0x81);
    assert_int_equal(gex_RMA_GetBlockingVal(tm, 1, remote, 3, 0), 0x818181);
    assert_true(gex_RMA_GetBlockingVal(tm, 1, remote, 8, 0) == UINT64_C(0x8181818181818181));
}

/* The value lies on the stack of a call that returns. */
static void a_value_is_not_read_after_its_call_has_returned(void **state)
{
    gex_Event_t event = gex_RMA_PutNBVal(tm, 1, remote, 1, 8, 0);
    assert_true(fake_job.sent[0].copy_source);
    gex_Event_Wait(event);
    gex_RMA_PutNBIVal(tm, 1, remote, 1, 8, 0);
    assert_true(fake_job.sent[1].copy_source);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/* ---- GEX_FLAG_IMMEDIATE */

static void immediate_says_that_nothing_was_done(void **state)
{
    const gex_Flags_t now = GEX_FLAG_IMMEDIATE;
    fake_job.busy_rmas = 6;
    assert_int_not_equal(gex_RMA_PutBlocking(tm, 1, remote, local, 99, now), 0);
    assert_int_not_equal(gex_RMA_GetBlocking(tm, local, 1, remote, 99, now), 0);
    assert_ptr_equal(gex_RMA_PutNB(tm, 1, remote, local, 99, GEX_EVENT_DEFER, now),
                     GEX_EVENT_NO_OP);
    assert_ptr_equal(gex_RMA_GetNB(tm, local, 1, remote, 99, now), GEX_EVENT_NO_OP);
    assert_int_not_equal(gex_RMA_PutNBI(tm, 1, remote, local, 99, GEX_EVENT_DEFER, now), 0);
    assert_int_not_equal(gex_RMA_GetNBI(tm, local, 1, remote, 99, now), 0);
    assert_int_equal(fake_job.busy_rmas, 0);
    assert_int_equal(fake_job.polls, 0);
    assert_int_equal(remote[0], 'r');
    assert_int_equal(local[0], 'l');
}

static void without_it_a_call_waits_for_space(void **state)
{
    fake_job.busy_rmas = 3;
    assert_int_equal(gex_RMA_PutBlocking(tm, 1, remote, local, 99, 0), 0);
    assert_int_equal(fake_job.busy_rmas, 0);
    assert_memory_equal(remote, local, 99);
}

/* The calls for values have no return value for "nothing was done". */
static void a_get_of_a_value_waits_whatever_its_flags(void **state)
{
    fake_job.busy_rmas = 3;
    assert_int_equal(gex_RMA_GetBlockingVal(tm, 1, remote, 1, GEX_FLAG_IMMEDIATE), 'r');
}

static void a_request_that_is_immediate_says_that_nothing_was_sent(void **state)
{
    fake_job.busy_sends = 2;
    assert_int_not_equal(gex_AM_RequestShort0(tm, 1, handler, GEX_FLAG_IMMEDIATE), 0);
    assert_int_not_equal(
        gex_AM_RequestMedium0(tm, 1, handler, local, 9, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE), 0);
    assert_int_equal(fake_job.count, 0);
    assert_int_equal(gex_AM_RequestShort0(tm, 1, handler, GEX_FLAG_IMMEDIATE), 0);
    assert_int_equal(fake_job.count, 1);
}

/* ---- pairs of endpoints */

static void between_endpoints_0_a_transfer_is_of_no_pair(void **state)
{
    gex_RMA_PutBlocking(tm, 1, remote, local, 99, 0);
    assert_false(seen.is_pair);
}

static void assert_pair(const struct tk_region *home)
{
    assert_true(seen.is_pair);
    assert_int_equal(seen.endpoint, 7);
    assert_ptr_equal(seen.remote_keys, keys);
    assert_ptr_equal(seen.home, home);
    memset(&seen, 0, sizeof(seen));
}

static void a_pair_says_whose_keys_and_which_registered_memory_are_used(void **state)
{
    gex_TM_t pair = tk_pair(ep1.index, 7);
    gex_RMA_PutBlocking(pair, 1, remote, local, 99, 0);
    assert_pair(NULL);
    ep1.segment = &segment;
    gex_RMA_PutBlocking(pair, 1, remote, local, 99, 0);
    assert_pair(&segment.region);
    gex_RMA_GetBlocking(pair, local, 1, remote, 99, 0);
    assert_pair(&segment.region);
    gex_Event_Wait(gex_RMA_PutNB(pair, 1, remote, local, 99, GEX_EVENT_DEFER, 0));
    assert_pair(&segment.region);
    gex_Event_Wait(gex_RMA_GetNB(pair, local, 1, remote, 99, 0));
    assert_pair(&segment.region);
    gex_RMA_PutNBI(pair, 1, remote, local, 99, GEX_EVENT_DEFER, 0);
    assert_pair(&segment.region);
    gex_RMA_GetNBI(pair, local, 1, remote, 99, 0);
    assert_pair(&segment.region);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

/* ---- events */

static gex_Event_t start_put(void)
{
    return gex_RMA_PutNB(tm, 1, remote, local, 99, GEX_EVENT_DEFER, 0);
}

static void a_test_completes_what_the_device_has_finished_and_runs_no_handler(void **state)
{
    fake_job.hold_ops = true;
    gex_Event_t event = start_put();
    assert_int_equal(gex_Event_Test(event), GASNET_ERR_NOT_READY);
    fake_job.hold_ops = false;
    assert_int_equal(gex_Event_Test(event), GASNET_OK);
    assert_int_equal(fake_job.polls, 0);
    assert_int_equal(gex_Event_Test(GEX_EVENT_INVALID), GASNET_OK);
}

static void some_is_one_or_none_at_all(void **state)
{
    gex_Event_t none[] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID};
    assert_int_equal(gex_Event_TestSome(none, 2, 0), GASNET_OK);
    assert_int_equal(gex_Event_TestSome(NULL, 0, 0), GASNET_OK);
    fake_job.hold_ops = true;
    gex_Event_t events[] = {start_put(), start_put()};
    assert_int_equal(gex_Event_TestSome(events, 2, 0), GASNET_ERR_NOT_READY);
    fake_job.hold_ops = false;
    gex_Event_WaitSome(events, 2, 0);
    assert_int_equal((events[0] == GEX_EVENT_INVALID) + (events[1] == GEX_EVENT_INVALID), 1);
    gex_Event_WaitAll(events, 2, 0);
}

static void all_is_each_of_them(void **state)
{
    fake_job.hold_ops = true;
    gex_Event_t events[] = {start_put(), GEX_EVENT_INVALID, start_put()};
    assert_int_equal(gex_Event_TestAll(events, 3, 0), GASNET_ERR_NOT_READY);
    fake_job.hold_ops = false;
    fake_transport.reap();
    fake_job.hold_ops = true;
    assert_int_equal(gex_Event_TestAll(events, 3, 0), GASNET_ERR_NOT_READY);
    fake_job.hold_ops = false;
    assert_int_equal(gex_Event_TestAll(events, 3, 0), GASNET_OK);
    assert_ptr_equal(events[2], GEX_EVENT_INVALID);
}

static void implicit_operations_are_tested_by_category(void **state)
{
    fake_job.hold_ops = true;
    gex_RMA_PutNBI(tm, 1, remote, local, 99, GEX_EVENT_DEFER, 0);
    assert_int_equal(gex_NBI_Test(GEX_EC_PUT, 0), GASNET_ERR_NOT_READY);
    assert_int_equal(gex_NBI_Test(GEX_EC_GET, 0), GASNET_OK);
    fake_job.hold_ops = false;
    gex_NBI_Wait(GEX_EC_PUT, 0);
    assert_int_equal(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
}

static void the_event_of_a_region_is_of_all_that_was_started_in_it(void **state)
{
    fake_job.hold_ops = true;
    gex_NBI_BeginAccessRegion(0);
    gex_RMA_PutNBI(tm, 1, remote, local, 99, GEX_EVENT_DEFER, 0);
    gex_RMA_GetNBI(tm, local, 1, remote, 99, 0);
    gex_Event_t event = gex_NBI_EndAccessRegion(0);
    assert_int_equal(gex_NBI_Test(GEX_EC_ALL, 0), GASNET_OK);
    assert_int_equal(gex_Event_Test(event), GASNET_ERR_NOT_READY);
    fake_job.hold_ops = false;
    fake_transport.reap();
    fake_job.hold_ops = true;
    assert_int_equal(gex_Event_Test(event), GASNET_ERR_NOT_READY);
    fake_job.hold_ops = false;
    gex_Event_Wait(event);
}

static void barrier_in_handler(void *blocking)
{
    tk_in_handler = 1;
    if (blocking)
        gex_Coll_BarrierBlocking(tm, 0);
    gex_Coll_BarrierNB(tm, 0);
}

static void a_barrier_in_a_handler_ends_the_process(void **state)
{
    unit_assert_panic(barrier_in_handler, NULL, "gex_Coll_BarrierNB was called from a handler");
    unit_assert_panic(barrier_in_handler, local, "gex_Coll_BarrierBlocking was called from");
}

/* ---- limits of messages */

static void each_argument_costs_payload_and_the_least_limit_holds_for_all(void **state)
{
    assert_int_equal(gex_AM_MaxArgs(), 16);
    for (unsigned n = 0; n <= gex_AM_MaxArgs(); n++) {
        size_t most = gex_AM_MaxRequestMedium(tm, 1, GEX_EVENT_NOW, 0, n);
        assert_true(most >= gex_AM_LUBRequestMedium());
        assert_true(most + 4 * n + 8 <= TK_MAX_MEDIUM);
        assert_int_equal(gex_AM_MaxReplyMedium(tm, 1, GEX_EVENT_NOW, 0, n), most);
        assert_true(gex_AM_MaxRequestLong(tm, 1, GEX_EVENT_NOW, 0, n) >= gex_AM_LUBRequestLong());
        assert_int_equal(gex_AM_MaxRequestLong(tm, 1, NULL, GEX_FLAG_AM_PREPARE_LEAST_ALLOC, n),
                         tk_long_packed_max(n));
    }
    assert_int_equal(gex_AM_LUBRequestMedium(), gex_AM_MaxRequestMedium(tm, 1, NULL, 0, 16));
    assert_int_equal(gex_AM_LUBReplyMedium(), gex_AM_LUBRequestMedium());
}

static void send_medium(void *size)
{
    static char bytes[TK_MAX_MEDIUM];
    gex_AM_RequestMedium0(tm, 1, handler, bytes, *(size_t *)size, GEX_EVENT_NOW, 0);
}

static void send_long(void *size)
{
    gex_AM_RequestLong0(tm, 1, handler, local, *(size_t *)size, remote, GEX_EVENT_NOW, 0);
}

static void a_message_of_the_limit_is_sent_and_a_byte_more_ends_the_process(void **state)
{
    size_t medium = gex_AM_MaxRequestMedium(tm, 1, GEX_EVENT_NOW, 0, 0), more = medium + 1;
    send_medium(&medium);
    assert_int_equal(fake_job.sent[0].nbytes, medium);
    unit_assert_panic(send_medium, &more, "gex_AM_RequestMedium: ");
    more = gex_AM_MaxRequestLong(tm, 1, GEX_EVENT_NOW, 0, 0) + 1;
    unit_assert_panic(send_long, &more, "gex_AM_RequestLong: ");
}

/* ---- negotiated payload */

static gex_AM_SrcDesc_t prepare(size_t least, size_t most, gex_Flags_t flags)
{
    return gex_AM_PrepareRequestMedium(tm, 1, NULL, least, most, NULL, flags, 0);
}

static void what_is_prepared_is_at_least_and_at_most_what_was_asked_for(void **state)
{
    gex_AM_SrcDesc_t sd = prepare(10, 100, 0);
    assert_in_range(gex_AM_SrcDescSize(sd), 10, 100);
    memset(gex_AM_SrcDescAddr(sd), 'p', 50);
    gex_AM_CommitRequestMedium0(sd, handler, 50);
    assert_int_equal(fake_job.sent[0].nbytes, 50);
    assert_int_equal(*((char *)fake_job.sent[0].head + fake_job.sent[0].head_size), 'p');
}

static void a_prepare_that_is_immediate_may_prepare_nothing(void **state)
{
    fake_job.busy_rooms = 1;
    assert_ptr_equal(prepare(1, 10, GEX_FLAG_IMMEDIATE), GEX_AM_SRCDESC_NO_OP);
    assert_int_equal(fake_job.credits_held, 0);
}

static void a_cancel_gives_everything_back_and_sends_nothing(void **state)
{
    assert_int_equal(gex_AM_CancelRequestMedium(prepare(1, 10, 0), 0), GASNET_OK);
    assert_int_equal(fake_job.credits_held + fake_job.places_held + fake_job.count, 0);
    assert_int_equal(gex_AM_CancelRequestMedium(prepare(1, 10, 0), 0), GASNET_OK);
}

static void prepare_too_much(void *unused)
{
    size_t most = gex_AM_MaxRequestMedium(tm, 1, NULL, 0, 0);
    prepare(most + 1, most + 1, 0);
}

static void commit_too_much(void *unused)
{
    gex_AM_CommitRequestMedium0(prepare(10, 10, 0), handler, 11);
}

static void more_than_there_can_be_or_than_was_prepared_ends_the_process(void **state)
{
    unit_assert_panic(prepare_too_much, NULL, "gex_AM_PrepareRequestMedium: least_payload");
    unit_assert_panic(commit_too_much, NULL, "11 bytes are more than gex_AM_SrcDescSize");
}

/* ---- the turn of requests */

static void request(unsigned i, gex_Flags_t flags)
{
    switch (i % 5) {
    case 0:
        gex_AM_RequestShort0(tm, 1, handler, flags);
        break;
    case 1:
        gex_AM_RequestShort3(tm, 1, handler, flags, 1, 2, 3);
        break;
    case 2:
        gex_AM_RequestMedium0(tm, 1, handler, local, 8, GEX_EVENT_NOW, flags);
        break;
    case 3:
        gex_AM_RequestLong0(tm, 1, handler, local, 8, remote, GEX_EVENT_NOW, flags);
        break;
    default:
        gex_AM_CommitRequestMedium0(gex_AM_PrepareRequestMedium(tm, 1, NULL, 8, 8, NULL, flags, 0),
                                    handler, 8);
    }
}

/* Drops earlier messages: the fake job keeps only a few hundred. */
static void begin_turn(void)
{
    for (unsigned before = fake_job.polls; fake_job.polls == before;)
        request(0, 0);
    tear_down(NULL);
    set_up(NULL);
}

static void one_request_in_a_turn_polls_whatever_it_is(void **state)
{
    begin_turn();
    const unsigned before = fake_job.polls;
    for (unsigned i = 1; i < tk_request_turn; i++)
        request(i, 0);
    assert_int_equal(fake_job.polls, before);
    for (unsigned kind = 0; kind < 5; kind++) {
        begin_turn();
        for (unsigned i = 1; i < tk_request_turn; i++)
            request(i, 0);
        const unsigned now = fake_job.polls;
        request(kind, 0);
        assert_int_equal(fake_job.polls, now + 1);
    }
}

static void immediate_requests_do_not_poll_but_the_next_one_does(void **state)
{
    begin_turn();
    for (unsigned i = 1; i < tk_request_turn; i++)
        request(i, 0);
    const unsigned before = fake_job.polls;
    for (unsigned i = 0; i < 10; i++)
        request(i, GEX_FLAG_IMMEDIATE);
    assert_int_equal(fake_job.polls, before);
    request(0, 0);
    assert_int_equal(fake_job.polls, before + 1);
}

static void shorts_are_counted_by_the_turns_of_them(void **state)
{
    struct tk_stats stats;
    begin_turn();
    tk_stats_reset();
    for (unsigned i = 0; i < 200; i++)
        request(i, i % 7 ? 0 : GEX_FLAG_IMMEDIATE);
    fake_job.busy_sends = 2;
    assert_int_equal(gex_AM_RequestShort0(tm, 1, handler, GEX_FLAG_IMMEDIATE), 1);
    assert_int_equal(gex_AM_RequestShort3(tm, 1, handler, GEX_FLAG_IMMEDIATE, 1, 2, 3), 1);
    tk_stats_sum(&stats);
    assert_int_equal(stats.counts[tk_counter_short_requests], 80);
    assert_int_equal(stats.counts[tk_counter_medium_requests], 80);
    assert_int_equal(stats.counts[tk_counter_long_requests], 40);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(a_value_is_put_by_its_low_order_bytes_and_no_others),
    TEST(a_value_is_got_with_zeros_above_it),
    TEST(a_value_is_not_read_after_its_call_has_returned),
    TEST(immediate_says_that_nothing_was_done),
    TEST(without_it_a_call_waits_for_space),
    TEST(a_get_of_a_value_waits_whatever_its_flags),
    TEST(a_request_that_is_immediate_says_that_nothing_was_sent),
    TEST(between_endpoints_0_a_transfer_is_of_no_pair),
    TEST(a_pair_says_whose_keys_and_which_registered_memory_are_used),
    TEST(a_test_completes_what_the_device_has_finished_and_runs_no_handler),
    TEST(some_is_one_or_none_at_all),
    TEST(all_is_each_of_them),
    TEST(implicit_operations_are_tested_by_category),
    TEST(the_event_of_a_region_is_of_all_that_was_started_in_it),
    TEST(a_barrier_in_a_handler_ends_the_process),
    TEST(each_argument_costs_payload_and_the_least_limit_holds_for_all),
    TEST(a_message_of_the_limit_is_sent_and_a_byte_more_ends_the_process),
    TEST(what_is_prepared_is_at_least_and_at_most_what_was_asked_for),
    TEST(a_prepare_that_is_immediate_may_prepare_nothing),
    TEST(a_cancel_gives_everything_back_and_sends_nothing),
    TEST(more_than_there_can_be_or_than_was_prepared_ends_the_process),
    TEST(one_request_in_a_turn_polls_whatever_it_is),
    TEST(immediate_requests_do_not_poll_but_the_next_one_does),
    TEST(shorts_are_counted_by_the_turns_of_them),
};

UNIT_MAIN(tests)
