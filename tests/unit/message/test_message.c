/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages from call to handler, over a transport that loops messages back: every argument
 * count and category, payloads, the wire format, which calls wait for what, and hostile
 * messages. */
#include "config.h"

#include <unistd.h>

#include "event/event.h"
#include "fake_job.h"
#include "message/medium.h"
#include "message/message.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "stats/write.h"
#include "transport/self/self.h"
#include "unit.h"

enum { short_base = 128, payload_base = 160, replier = 200 };

/* Arguments of the last handler. */
static struct {
    unsigned calls, nargs, depth;
    gex_AM_Arg_t args[tk_max_args];
    void *buf;
    size_t nbytes;
    char bytes[tk_message_max];
    uint32_t from;
    const gex_AM_Entry_t *entry;
    bool is_request;
} got;

static void note(gex_Token_t token, void *buf, size_t nbytes, unsigned nargs,
                 const gex_AM_Arg_t *args)
{
    got.calls++;
    got.nargs = nargs;
    got.depth = tk_in_handler;
    got.from = token->arrival.peer->rank;
    got.entry = tk_handler_entry(0, tk_token_head(token).handler);
    got.is_request = tk_token_head(token).kind == TK_REQUEST;
    got.buf = buf;
    got.nbytes = nbytes;
    memcpy(got.args, args, nargs * sizeof(*args));
    if (nbytes)
        memcpy(got.bytes, buf, nbytes);
}

/* Handlers with 0..16 parameters, as a client would write them. */
#define HANDLERS(M)                                                                                \
    static void short##M(gex_Token_t token TRUNKLINE_P##M)                                         \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        note(token, NULL, 0, M, args);                                                             \
    }                                                                                              \
    static void payload##M(gex_Token_t token, void *buf, size_t nbytes TRUNKLINE_P##M)             \
    {                                                                                              \
        const gex_AM_Arg_t args[] = TRUNKLINE_ARRAY##M;                                            \
        note(token, buf, nbytes, M, args);                                                         \
    }
#define ALL(X)                                                                                     \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)
ALL(HANDLERS)

#define SHORT_ENTRY(M)                                                                             \
    {short_base + M, (gex_AM_Fn_t) short##M, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, M, NULL, ""},
#define PAYLOAD_ENTRY(M)                                                                           \
    {payload_base + M,                                                                             \
     (gex_AM_Fn_t)payload##M,                                                                      \
     GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQREP,                                                     \
     M,                                                                                            \
     NULL,                                                                                         \
     ""},

static int (*reply_in_handler)(gex_Token_t token);
static int reply_result;

static void reply_handler(gex_Token_t token)
{
    reply_result = reply_in_handler(token);
}

static gex_AM_Entry_t table[] = {ALL(SHORT_ENTRY) ALL(PAYLOAD_ENTRY){
    replier, (gex_AM_Fn_t)reply_handler, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, ""}};

static _Alignas(8) char segment[65536];
static char source[65536];
static gex_AM_Arg_t arguments[tk_max_args];

static int set_up(void **state)
{
    unit_settings(NULL, NULL);
    fake_job_open(4);
    tk_message_open();
    memset(&got, 0, sizeof(got));
    memset(segment, 0, sizeof(segment));
    tk_segment_area = (struct tk_area){.base = segment, .size = sizeof(segment), .fd = -1};
    for (int i = 0; i < (int)sizeof(source); i++)
        source[i] = (char)(i * 13 + i / 256);
    for (int i = 0; i < tk_max_args; i++)
        arguments[i] = 0x01010101 * (i + 1);
    return 0;
}

static int tear_down(void **state)
{
    fake_job_close();
    return 0;
}

static struct tk_message message(enum tk_message_category category, unsigned nargs, size_t nbytes)
{
    unsigned base = category == TK_SHORT ? short_base : payload_base;
    return (struct tk_message){.peer = tk_peer(3),
                               .category = (uint8_t)category,
                               .handler = (uint8_t)(base + nargs),
                               .payload = source,
                               .nbytes = nbytes,
                               .dest = segment + 8,
                               .lc_opt = GEX_EVENT_NOW,
                               .nargs = nargs,
                               .args = arguments};
}

static void assert_handled(unsigned nargs, size_t nbytes)
{
    while (fake_job_deliver())
        continue;
    assert_int_equal(got.calls, 1);
    assert_int_equal(got.nargs, nargs);
    assert_memory_equal(got.args, arguments, nargs * sizeof(arguments[0]));
    assert_int_equal(got.nbytes, nbytes);
    assert_memory_equal(got.bytes, source, nbytes);
    assert_int_equal(got.from, 3);
    got.calls = 0;
}

static void every_argument_count_of_every_category_arrives(void **state)
{
    for (unsigned nargs = 0; nargs <= tk_max_args; nargs++) {
        struct tk_message m = message(TK_SHORT, nargs, 0);
        assert_int_equal(tk_request(&m), 0);
        assert_handled(nargs, 0);
        m = message(TK_MEDIUM, nargs, 77);
        assert_int_equal(tk_request(&m), 0);
        assert_handled(nargs, 77);
        m = message(TK_LONG, nargs, 99); /* packed */
        assert_int_equal(tk_request(&m), 0);
        assert_handled(nargs, 99);
        m = message(TK_LONG, nargs, 5000); /* put */
        assert_int_equal(tk_request(&m), 0);
        assert_handled(nargs, 5000);
    }
}

static void payloads_of_every_size_around_the_limits_arrive(void **state)
{
    static const size_t sizes[] = {0,    1,    7,    8,    9,    1024, 1025, 1499,
                                   1500, 4011, 4012, 4013, 8191, 8192, 60000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct tk_message m = message(TK_MEDIUM, 1, sizes[i]);
        assert_int_equal(tk_request(&m), 0);
        assert_handled(1, sizes[i]);
        m = message(TK_LONG, 1, sizes[i]);
        assert_int_equal(tk_request(&m), 0);
        assert_handled(1, sizes[i]);
        assert_ptr_equal(got.buf, segment + 8);
    }
}

static void a_mediums_buffer_is_aligned(void **state)
{
    for (unsigned nargs = 0; nargs <= tk_max_args; nargs++) {
        struct tk_message m = message(TK_MEDIUM, nargs, 8);
        tk_request(&m);
        assert_handled(nargs, 8);
        assert_int_equal((uintptr_t)got.buf % 8, 0);
    }
}

/* gex_AM_Max*: the space that head and arguments leave in a message of a buffer's size. */
static void the_largest_medium_fits_exactly(void **state)
{
    for (unsigned nargs = 0; nargs <= tk_max_args; nargs++) {
        struct tk_message m = message(TK_MEDIUM, nargs, tk_medium_max(nargs));
        assert_int_equal(tk_request(&m), 0);
        const struct fake_sent *sent = &fake_job.sent[fake_job.count - 1];
        assert_int_equal(sent->head_size + sent->nbytes, tk_message_max);
        assert_handled(nargs, tk_medium_max(nargs));
    }
    assert_int_equal(tk_medium_max(16), atoi(TK_MAX_MEDIUM_LUB_TEXT)); /* $GASNetAMMaxMedium */
}

static void nothing_of_our_stack_leaves_with_the_padding(void **state)
{
    for (unsigned nargs = 0; nargs <= tk_max_args; nargs++) {
        struct tk_message m = message(TK_MEDIUM, nargs, 8);
        tk_request(&m);
        const struct fake_sent *sent = &fake_job.sent[fake_job.count - 1];
        assert_int_equal(sent->head_size % 8, 0);
        assert_int_equal(sent->head->reserved, 0);
        size_t used = sizeof(struct tk_message_head) + 4 * nargs;
        for (size_t i = used; i < sent->head_size; i++)
            assert_int_equal(((char *)sent->head)[i], 0);
        assert_handled(nargs, 8);
    }
}

/* The smaller of GASNET_PACKEDLONG_LIMIT and the transport's maximum. */
static void a_long_is_packed_up_to_the_limit(void **state)
{
    struct tk_message m = message(TK_LONG, 0, 4012);
    tk_request(&m);
    assert_int_equal(fake_job.count, 1);
    assert_true(fake_job.sent[0].head->packed);
    m = message(TK_LONG, 0, 4013);
    tk_request(&m);
    assert_int_equal(fake_job.count, 3);
    assert_true(fake_job.sent[1].is_rma && fake_job.sent[1].is_put);
    assert_false(fake_job.sent[2].head->packed);
    assert_int_equal(fake_job.sent[2].nbytes, 0);
    fake_transport.am.packed_max = 10;
    m = message(TK_LONG, 0, 11);
    tk_request(&m);
    assert_true(fake_job.sent[3].is_rma);
    fake_transport.am.packed_max = 60000;
}

/* The device reads it from the segment without a copy, and the receiver needs no copy; between
 * neighbours it is one copy in any case. */
static void a_long_from_the_segment_is_put_from_its_least_size_on(void **state)
{
    struct tk_message m = message(TK_LONG, 0, 1023);
    m.payload = segment + 4096;
    tk_request(&m);
    assert_int_equal(fake_job.count, 1);
    assert_true(fake_job.sent[0].head->packed);
    m.nbytes = 1024;
    tk_request(&m);
    assert_int_equal(fake_job.count, 3);
    assert_true(fake_job.sent[1].is_rma && fake_job.sent[1].is_put);
    assert_false(fake_job.sent[2].head->packed);
    fake_transport.reach = TK_REACH_NEIGHBOUR;
    tk_request(&m);
    fake_transport.reach = TK_REACH_NETWORK;
    assert_int_equal(fake_job.count, 4);
    assert_true(fake_job.sent[3].head->packed);
}

static void a_long_of_nothing_is_one_message(void **state)
{
    struct tk_message m = message(TK_LONG, 2, 0);
    m.dest = (void *)(uintptr_t)0x1000; /* anywhere: nothing is written */
    tk_request(&m);
    assert_int_equal(fake_job.count, 1);
    assert_handled(2, 0);
    assert_ptr_equal(got.buf, (void *)(uintptr_t)0x1000);
}

static void the_handler_knows_where_it_is(void **state)
{
    struct tk_message m = message(TK_SHORT, 3, 0);
    tk_request(&m);
    assert_handled(3, 0);
    assert_int_equal(got.depth, 1);
    assert_int_equal(tk_in_handler, 0);
    assert_int_equal(got.entry->gex_index, short_base + 3);
    assert_int_equal(got.entry->gex_nargs, 3);
}

static void a_request_waits_by_polling(void **state)
{
    fake_job.busy_sends = 5;
    struct tk_message m = message(TK_SHORT, 0, 0);
    assert_int_equal(tk_request(&m), 0);
    assert_int_equal(fake_job.polls, 5);
    assert_int_equal(fake_job.count, 1);
}

/* A transport with a fast path for Mediums, which finds no space, like the general path. */
static int send_direct(size_t nbytes, bool immediate)
{
    return tk_medium_direct(tk_peer(3), tk_head_of_medium(TK_REQUEST, payload_base + 3, 3),
                            arguments, source, nbytes, tk_medium_if_busy[immediate]);
}

static void a_medium_sent_directly_waits_with_all_that_it_has(void **state)
{
    fake_transport.am.send_medium = tk_send_medium_whole;
    fake_job.busy_sends = 3;
    assert_int_equal(send_direct(5000, false), 0);
    assert_int_equal(fake_job.polls, 3);
    assert_handled(3, 5000);
    fake_transport.am.send_medium = NULL;
}

static void a_medium_that_was_refused_is_not_counted(void **state)
{
    struct tk_stats before, after;
    fake_transport.am.send_medium = tk_send_medium_whole;
    assert_int_equal(send_direct(77, true), 0);
    tk_stats_sum(&before);
    fake_job.busy_sends = 1;
    assert_int_equal(send_direct(77, true), 1);
    tk_stats_sum(&after);
    assert_int_equal(fake_job.polls, 0);
    assert_memory_equal(&before, &after, sizeof(before));
    assert_int_equal(send_direct(77, true), 0);
    tk_stats_sum(&after);
    assert_int_equal(after.counts[tk_counter_medium_requests],
                     before.counts[tk_counter_medium_requests] + 1);
    fake_transport.am.send_medium = NULL;
}

static void an_immediate_request_does_not_wait(void **state)
{
    static const enum tk_message_category categories[] = {TK_SHORT, TK_MEDIUM, TK_LONG};
    gex_Event_t event;
    for (int i = 0; i < 6; i++) {
        fake_job.busy_sends = 1;
        struct tk_message m = message(categories[i / 2], 0, 10);
        m.immediate = true;
        if (i % 2)
            m.lc_opt = &event;
        assert_int_equal(tk_request(&m), 1);
        if (i % 2 && categories[i / 2] != TK_SHORT)
            assert_ptr_equal(event, GEX_EVENT_INVALID);
        assert_int_equal(fake_job.polls, 0);
        assert_int_equal(fake_job.count, 0);
        assert_int_equal(tk_request(&m), 0);
        fake_job_close();
        fake_job_open(4);
    }
}

static void an_immediate_long_goes_on_once_its_payload_is_under_way(void **state)
{
    struct tk_message m = message(TK_LONG, 0, 5000);
    m.immediate = true;
    fake_job.busy_rmas = 1;
    assert_int_equal(tk_request(&m), 1);
    assert_int_equal(fake_job.count, 0);
    fake_job.rma_piece = 2000;
    fake_job.busy_sends = 3;
    assert_int_equal(tk_request(&m), 0);
    assert_int_equal(fake_job.count, 4); /* three pieces and the head */
    assert_int_equal(fake_job.polls, 0); /* no handler may need what is reserved */
    assert_handled(0, 5000);
}

/* Both parts of a Long find space, or neither is posted and nothing remains reserved. */
static void an_immediate_long_reserves_space_for_both_parts(void **state)
{
    struct tk_message m = message(TK_LONG, 0, 5000);
    m.immediate = true;
    fake_job.busy_rooms = 1;
    assert_int_equal(tk_request(&m), 1);
    fake_job.busy_rmas = 1;
    assert_int_equal(tk_request(&m), 1);
    assert_int_equal(fake_job.count, 0);
    assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
    assert_int_equal(tk_request(&m), 0);
    assert_int_equal(fake_job.count, 2);
    assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
}

/* A message that waits for more pieces reserves no slot: otherwise threads could wait for each
 * other. */
static unsigned places_while_waiting;

static enum tk_status note_places(struct tk_peer *to, const struct tk_rma *r,
                                  struct tk_rma_state *state)
{
    if (state->done > 0)
        places_while_waiting += fake_job.places_held;
    (void)to;
    state->done += 2500;
    return state->done < r->nbytes ? TK_BUSY : TK_OK;
}

static void a_long_in_pieces_holds_no_place_while_it_waits(void **state)
{
    enum tk_status (*rma)(struct tk_peer *, const struct tk_rma *, struct tk_rma_state *) =
        fake_transport.rma.post;
    struct tk_message m = message(TK_LONG, 0, 5000);
    m.immediate = true;
    fake_transport.rma.post = note_places;
    assert_int_equal(tk_request(&m), 0);
    fake_transport.rma.post = rma;
    assert_int_equal(places_while_waiting, 0);
    assert_int_equal(fake_job.credits_held, 0);
}

static void prepared_is_a_message_like_others(void **state)
{
    for (unsigned nargs = 0; nargs <= tk_max_args; nargs++)
        for (int lent = 0; lent < 2; lent++) {
            struct tk_message m = message(TK_MEDIUM, nargs, 0);
            m.payload = lent ? NULL : source;
            gex_AM_SrcDesc_t sd = tk_prepare_request(&m, 3000);
            assert_true(tk_is_preparing(TK_REQUEST) && !tk_is_preparing(TK_REPLY));
            assert_int_equal(sd->size, 3000);
            assert_int_equal(fake_job.places_held, lent);
            if (lent) {
                assert_int_equal((uintptr_t)sd->address % 16, 0);
                memcpy(sd->address, source, 2000);
            }
            m.nbytes = 2000;
            tk_commit(sd, &m);
            assert_false(tk_is_preparing(TK_REQUEST));
            assert_handled(nargs, 2000);
        }
    assert_int_equal(fake_job.credits_held + fake_job.places_held, 0);
}

static void cancel_gives_everything_back(void **state)
{
    struct tk_message m = message(TK_LONG, 3, 0);
    m.payload = NULL;
    tk_cancel(tk_prepare_request(&m, 10));
    assert_false(tk_is_preparing(TK_REQUEST));
    assert_int_equal(fake_job.credits_held + fake_job.places_held + fake_job.count, 0);
}

static void an_immediate_prepare_does_not_wait(void **state)
{
    struct tk_message m = message(TK_MEDIUM, 0, 0);
    m.immediate = true;
    fake_job.busy_rooms = 1;
    assert_null(tk_prepare_request(&m, 10));
    assert_false(tk_is_preparing(TK_REQUEST));
    assert_int_equal(fake_job.polls, 0);
    m.immediate = false;
    fake_job.busy_rooms = 5;
    gex_AM_SrcDesc_t sd = tk_prepare_request(&m, 10);
    assert_int_equal(fake_job.polls, 5);
    tk_cancel(sd);
}

/* NOW: the source may be overwritten on return, however the transport sends it. */
static void with_now_the_source_is_free_on_return(void **state)
{
    struct tk_message m = message(TK_MEDIUM, 0, 2000);
    tk_request(&m);
    assert_false(fake_job.sent[0].may_gather);
    m = message(TK_LONG, 0, 5000);
    tk_request(&m);
    assert_true(fake_job.sent[1].copy_source && fake_job.sent[1].sources_only);
    assert_null(fake_job.sent[2].op);
}

static struct tk_op *placed;
static struct tk_message_head placed_head;
static bool may_place;

static bool place_both(struct tk_peer *peer, struct tk_outgoing *both, uintptr_t remote)
{
    (void)peer;
    if (!may_place)
        return false;
    memcpy((void *)remote, both->payload, both->nbytes);
    placed = both->source;
    placed_head = *both->head;
    tk_counter_add(&placed->pending, 1);
    return true;
}

/* One call takes both parts if the transport accepts that; refused and copied payloads take the
 * other path. */
static void a_long_whose_source_may_wait_is_given_away_whole(void **state)
{
    gex_Event_t event;
    fake_transport.am.send_long = place_both;
    placed = NULL;
    may_place = true;
    struct tk_message m = message(TK_LONG, 0, 5000);
    m.lc_opt = &event;
    assert_int_equal(tk_request(&m), 0);
    assert_non_null(placed);
    assert_int_equal(fake_job.count, 0);
    assert_true(placed_head.category == TK_LONG && !placed_head.packed);
    assert_memory_equal(m.dest, m.payload, 5000);
    assert_false(tk_event_test(event));
    tk_counter_add(&placed->pending, -1);
    assert_true(tk_event_test(event));
    placed = NULL;
    m.lc_opt = GEX_EVENT_NOW;
    assert_int_equal(tk_request(&m), 0);
    assert_null(placed);
    assert_true(fake_job.sent[0].is_rma && fake_job.sent[0].copy_source);
    may_place = false;
    m.lc_opt = &event;
    assert_int_equal(tk_request(&m), 0);
    assert_true(fake_job.sent[2].is_rma && !fake_job.sent[2].copy_source);
    assert_int_equal(fake_job.count, 4);
    for (unsigned i = 0; i < fake_job.count; i++)
        tk_reap();
    assert_true(tk_event_test(event));
    may_place = true;
    fake_transport.am.stripe_min = 5000; /* striped connections keep no order */
    assert_int_equal(tk_request(&m), 0);
    assert_null(placed);
    assert_int_equal(fake_job.count, 6);
    fake_transport.am.stripe_min = 0;
    fake_transport.am.send_long = NULL;
}

static bool complete_placed(void)
{
    if (!placed)
        return false;
    tk_counter_add(&placed->pending, -1);
    placed = NULL;
    return true;
}

static void learn_to_lend(void)
{
    struct tk_op op;
    tk_op_init(&op);
    while (!tk_source_lend())
        continue;
    placed = &op;
    tk_counter_set(&op.pending, 1);
    tk_source_look(&op.pending);
    assert_true(tk_source_lends());
}

static uint64_t longs_sent(void)
{
    static struct tk_stats sum;
    tk_stats_sum(&sum);
    return sum.counts[tk_counter_long_requests];
}

/* Where devices are fast: returns when the source is free. Of what it refuses nothing is done. */
static void a_long_goes_directly_while_sources_are_lent(void **state)
{
    fake_transport.am.send_long = place_both;
    fake_transport.reap = complete_placed;
    tk_progress_use(&fake_transport);
    placed = NULL;
    may_place = true;
    struct tk_message m = message(TK_LONG, 0, 5000);
    assert_false(tk_source_lends() || tk_long_direct(&m, TK_REQUEST));
    learn_to_lend();
    uint64_t before = longs_sent();
    assert_true(tk_long_direct(&m, TK_REQUEST));
    assert_null(placed);
    assert_memory_equal(m.dest, m.payload, 5000);
    assert_int_equal(longs_sent(), before + 1);
    fake_transport.am.stripe_min = 5000;
    assert_false(tk_long_direct(&m, TK_REQUEST));
    fake_transport.am.stripe_min = 0;
    may_place = false;
    assert_false(tk_long_direct(&m, TK_REQUEST));
    fake_transport.am.send_long = NULL;
    assert_false(tk_long_direct(&m, TK_REQUEST));
    assert_int_equal(longs_sent(), before + 1);
    assert_int_equal(fake_job.count, 0);
    fake_transport.reap = fake_transport.reap_in_handler;
    tk_progress_use(&fake_transport);
}

static void with_an_event_the_source_is_free_when_it_is_done(void **state)
{
    gex_Event_t event;
    fake_job.hold_ops = true;
    struct tk_message m = message(TK_MEDIUM, 0, 2000);
    m.lc_opt = &event;
    assert_int_equal(tk_request(&m), 0);
    assert_true(fake_job.sent[0].may_gather);
    assert_ptr_not_equal(event, GEX_EVENT_INVALID);
    assert_false(tk_event_test(event));
    fake_job.hold_ops = false;
    tk_reap();
    assert_true(tk_event_test(event));
}

static void an_event_that_is_done_already_is_none(void **state)
{
    gex_Event_t event = (gex_Event_t)(uintptr_t)64;
    struct tk_message m = message(TK_MEDIUM, 0, 0);
    m.lc_opt = &event;
    m.peer = &(struct tk_peer){.transport = &tk_transport_self};
    assert_int_equal(tk_request(&m), 0);
    assert_ptr_equal(event, GEX_EVENT_INVALID);
}

static void deliver_request(int (*reply)(gex_Token_t))
{
    struct tk_message m = {.peer = tk_peer(2), .category = TK_SHORT, .handler = replier};
    reply_in_handler = reply;
    assert_int_equal(tk_request(&m), 0);
    assert_true(fake_job_deliver());
}

static bool seen_replied;

static int reply_medium(gex_Token_t token)
{
    struct tk_message m = message(TK_MEDIUM, 4, 100);
    int rc = tk_reply(token, &m);
    seen_replied = token->arrival.replied;
    return rc;
}

static int reply_immediately(gex_Token_t token)
{
    struct tk_message m = message(TK_SHORT, 1, 0);
    m.immediate = true;
    fake_job.busy_sends = 1;
    int rc = tk_reply(token, &m);
    seen_replied = token->arrival.replied;
    return rc;
}

static int reply_after_waiting(gex_Token_t token)
{
    struct tk_message m = message(TK_SHORT, 1, 0);
    fake_job.busy_sends = 4;
    return tk_reply(token, &m);
}

static void a_reply_goes_to_whom_the_request_came_from(void **state)
{
    deliver_request(reply_medium);
    assert_int_equal(reply_result, 0);
    assert_true(seen_replied);
    assert_int_equal(fake_job.sent[1].to, 2);
    assert_int_equal(fake_job.sent[1].head->kind, TK_REPLY);
    assert_true(fake_job_deliver());
    assert_int_equal(got.nargs, 4);
    assert_int_equal(got.nbytes, 100);
}

/* Otherwise the credit would be neither in a reply nor in an ACK. */
static void an_immediate_reply_that_did_not_go_is_no_reply(void **state)
{
    deliver_request(reply_immediately);
    assert_int_equal(reply_result, 1);
    assert_false(seen_replied);
}

/* A handler that waits must not run other handlers, or the stack would grow with the traffic. */
static void a_reply_waits_for_our_own_sends_only(void **state)
{
    unsigned polls = fake_job.polls, reaps = fake_job.reaps;
    deliver_request(reply_after_waiting);
    assert_int_equal(reply_result, 0);
    assert_int_equal(fake_job.polls, polls);
    assert_int_equal(fake_job.reaps - reaps, 4);
}

static struct {
    struct tk_peer *from;
    int32_t args[2];
} told;

static void internal(struct tk_peer *from, const int32_t *args)
{
    told.from = from;
    memcpy(told.args, args, sizeof(told.args));
}

static void the_librarys_own_messages_reach_its_own_handlers(void **state)
{
    static const int32_t args[] = {-7, 9};
    tk_internal_register(TK_HANDLER_BARRIER, internal);
    assert_int_equal(tk_internal_send(tk_peer(1), TK_REQUEST, TK_HANDLER_BARRIER, 2, args), TK_OK);
    assert_true(fake_job_deliver());
    assert_ptr_equal(told.from, tk_peer(1));
    assert_memory_equal(told.args, args, sizeof(args));
    fake_job.busy_sends = 1;
    assert_int_equal(tk_internal_send(tk_peer(1), TK_REQUEST, TK_HANDLER_BARRIER, 2, args),
                     TK_BUSY);
    assert_int_equal(fake_job.polls, 0);
}

static void deliver_head(void *head)
{
    struct tk_arrival arrival = {.peer = tk_peer(1), .head = head};
    tk_deliver(&arrival);
}

static void a_message_without_a_handler_ends_the_program(void **state)
{
    struct tk_message_head head = {.handler = 250};
    unit_assert_panic(deliver_head, &head,
                      "a message for handler 250 came from rank 1 (elsewhere), but none is");
    head.handler = tk_internal_handlers;
    unit_assert_panic(deliver_head, &head, "and there is no such handler");
    head.handler = TK_HANDLER_EXIT;
    unit_assert_panic(deliver_head, &head, "a message for library handler 2 came from rank 1");
}

/* As neighbours send it: without a head, from a place that has no bytes behind its arguments. */
static void a_tag_says_of_a_short_what_a_head_does(void **state)
{
    for (unsigned n = 0; n <= tk_tag_args_max; n++) {
        memset(&got, 0, sizeof(got));
        tk_deliver_short(tk_peer(3), tk_tag(n % 2, n, (uint8_t)(short_base + n)), arguments);
        assert_handled(n, 0);
        assert_int_equal(got.depth, 1);
        assert_ptr_equal(got.entry, tk_handler_entry(0, (uint8_t)(short_base + n)));
        assert_int_equal(got.is_request, n % 2 == 0);
    }
    assert_int_equal(tk_in_handler, 0);
}

static void deliver_tag(void *tag)
{
    tk_deliver_short(tk_peer(1), *(unsigned *)tag, arguments);
}

static void a_tag_without_a_handler_ends_the_program(void **state)
{
    unsigned tag = tk_tag(false, 0, 250);
    unit_assert_panic(deliver_tag, &tag,
                      "a message for handler 250 came from rank 1 (elsewhere), but none is");
    tag = tk_tag(true, 2, TK_HANDLER_BARRIER);
    unit_assert_panic(deliver_tag, &tag, "a message for library handler 1 came from rank 1");
}

struct wire_long {
    struct tk_message_head head;
    struct tk_long_head front;
    char payload[64];
};

static struct wire_long wire_long(uintptr_t dest, uint32_t nbytes)
{
    return (struct wire_long){.head = {.handler = payload_base, .category = TK_LONG, .packed = 1},
                              .front = {.dest = dest, .nbytes = nbytes}};
}

static void deliver_long(void *wire)
{
    struct wire_long *w = wire;
    struct tk_arrival arrival = {
        .peer = tk_peer(1), .head = &w->head, .payload = w->payload, .nbytes = sizeof(w->payload)};
    tk_deliver(&arrival);
}

/* The address came over the wire. */
static void a_packed_long_writes_inside_the_segment_or_not_at_all(void **state)
{
    uintptr_t start = (uintptr_t)segment, end = start + sizeof(segment);
    struct wire_long w = wire_long(end - 64, 64);
    deliver_long(&w);
    assert_int_equal(got.nbytes, 64);
    w = wire_long(end - 63, 64);
    unit_assert_panic(deliver_long, &w, "rank 1 (elsewhere) sent a Long of 64 bytes to ");
    w = wire_long(start - 1, 1);
    unit_assert_panic(deliver_long, &w, "not inside this rank's segment");
    w = wire_long(0, 1);
    unit_assert_panic(deliver_long, &w, "not inside this rank's segment");
    w = wire_long(start, 65); /* more than came */
    unit_assert_panic(deliver_long, &w, "sent a Long of 65 bytes");
    w = wire_long(start, UINT32_MAX);
    unit_assert_panic(deliver_long, &w, "sent a Long of 4294967295 bytes");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void a_tag_stands_for_the_head_of_most_shorts(void **state)
{
    static const uint8_t handlers[] = {GEX_AM_INDEX_BASE, 200, 255};
    for (unsigned i = 0; i < 3 * 2 * (tk_tag_args_max + 1); i++) {
        struct tk_message_head head = {.kind = i % 2 ? TK_REPLY : TK_REQUEST,
                                       .category = TK_SHORT,
                                       .nargs = (uint8_t)(i / 6),
                                       .handler = handlers[i % 3]};
        unsigned tag = tk_tag(head.kind == TK_REPLY, head.nargs, head.handler);
        struct tk_message_head same = tk_tag_head(tag);
        assert_memory_equal(&same, &head, sizeof(head));
        head.credits = 255;
        assert_true(tk_head_has_tag(tk_head_number(&head)));
        assert_int_equal(tk_head_tag(&head), tag);
    }
}

static void other_heads_have_no_tag(void **state)
{
    static const struct tk_message_head others[] = {
        {.kind = TK_ACK, .handler = 200},
        {.kind = TK_CONTROL, .handler = 200},
        {.category = TK_MEDIUM, .handler = 200},
        {.packed = 1, .handler = 200},
        {.reserved = 1, .handler = 200},
        {.reserved = 0x8000, .handler = 200},
        {.nargs = tk_tag_args_max + 1, .handler = 200},
        {.handler = TK_HANDLER_EXIT},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(tk_head_has_tag(tk_head_number(&others[i])));
}

static const struct CMUnitTest tests[] = {
    TEST(every_argument_count_of_every_category_arrives),
    TEST(payloads_of_every_size_around_the_limits_arrive),
    TEST(a_mediums_buffer_is_aligned),
    TEST(the_largest_medium_fits_exactly),
    TEST(nothing_of_our_stack_leaves_with_the_padding),
    TEST(a_long_is_packed_up_to_the_limit),
    TEST(a_long_from_the_segment_is_put_from_its_least_size_on),
    TEST(a_long_of_nothing_is_one_message),
    TEST(the_handler_knows_where_it_is),
    TEST(a_request_waits_by_polling),
    TEST(a_medium_sent_directly_waits_with_all_that_it_has),
    TEST(a_medium_that_was_refused_is_not_counted),
    TEST(an_immediate_request_does_not_wait),
    TEST(an_immediate_long_goes_on_once_its_payload_is_under_way),
    TEST(an_immediate_long_reserves_space_for_both_parts),
    TEST(a_long_in_pieces_holds_no_place_while_it_waits),
    TEST(prepared_is_a_message_like_others),
    TEST(cancel_gives_everything_back),
    TEST(an_immediate_prepare_does_not_wait),
    TEST(with_now_the_source_is_free_on_return),
    TEST(a_long_whose_source_may_wait_is_given_away_whole),
    TEST(a_long_goes_directly_while_sources_are_lent),
    TEST(with_an_event_the_source_is_free_when_it_is_done),
    TEST(an_event_that_is_done_already_is_none),
    TEST(a_reply_goes_to_whom_the_request_came_from),
    TEST(an_immediate_reply_that_did_not_go_is_no_reply),
    TEST(a_reply_waits_for_our_own_sends_only),
    TEST(the_librarys_own_messages_reach_its_own_handlers),
    TEST(a_tag_says_of_a_short_what_a_head_does),
    TEST(a_tag_without_a_handler_ends_the_program),
    TEST(a_message_without_a_handler_ends_the_program),
    TEST(a_packed_long_writes_inside_the_segment_or_not_at_all),
    TEST(a_tag_stands_for_the_head_of_most_shorts),
    TEST(other_heads_have_no_tag),
};

int main(void)
{
    unit_deadline();
    if (tk_handlers_register(0, table, sizeof(table) / sizeof(table[0])) != GASNET_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
