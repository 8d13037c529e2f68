/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Credits, one rule at a time: what a request takes, when credits return, when buffers are posted,
 * and calls that find no space. test_verbs_credit_model.c tries them all together. */
#include "config.h"

#include <errno.h>

#include "fake_world.h"
#include "base/pool.h"
#include "settings/settings.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/data/housekeeping.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

/* The last delivered message, and the state of receive queues while it was handled. */
static struct {
    unsigned count;
    struct tk_message_head head;
    char payload[tk_message_max];
    size_t nbytes;
    int receives;
    bool reply, reply_by_tag, was_inline;
} got;

static void send_reply(struct tk_arrival *arrival)
{
    struct tk_message_head head = {.kind = TK_REPLY};
    struct tk_outgoing reply = {.head = &head, .head_size = sizeof(head)};
    assert_int_equal(tk_verbs_send(arrival->peer, &reply), TK_OK);
    arrival->replied = true;
}

/* As most Shorts are sent. */
static void send_small_reply(struct tk_arrival *arrival)
{
    const uint64_t args = UINT64_C(5) << 32 | 4;
    unsigned posted = fake.posted;
    assert_int_equal(tk_verbs_send_small(arrival->peer, tk_tag(true, 2, 3), args, NULL), TK_OK);
    assert_int_equal(fake.posted, posted + 1);
    got.was_inline = fake.last.send_flags & IBV_SEND_INLINE;
    arrival->replied = true;
}

static void deliver(struct tk_arrival *arrival)
{
    struct tk_conn *conn = arrival->peer->connection;
    got.count++;
    got.head = *arrival->head;
    got.nbytes = arrival->nbytes;
    got.receives = tk_verbs.device.srq ? fake_srq_receives(tk_verbs.device.srq->queue)
                                       : fake_receives(conn->qp);
    if (arrival->nbytes > 0)
        memcpy(got.payload, arrival->payload, arrival->nbytes);
    if (got.reply && arrival->head->kind == TK_REQUEST)
        send_reply(arrival);
    if (got.reply_by_tag && arrival->head->kind == TK_REQUEST)
        send_small_reply(arrival);
}

static void reset(void)
{
    memset(&got, 0, sizeof(got));
    fake_reset();
    tk_deliver = deliver;
}

static void open_world(uint32_t size, bool is_shared)
{
    reset();
    if (is_shared) {
        fake.attr.max_srq = 1;
        fake.attr.max_srq_wr = 4096;
    }
    world_open(size, 0);
}

/* A job with these settings ("NAME=value"; NULL: the defaults), without and with receive queues
 * that peers share. */
#define OPEN(size, ...)  (unit_settings(__VA_ARGS__, NULL), open_world(size, false))
#define OPEN_SHARED(...) (unit_settings("GASNET_USE_SRQ=1", __VA_ARGS__, NULL), open_world(2, true))

/* Nothing is in flight any more, and the device was used correctly. */
static void close_world(void)
{
    world_settle();
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static enum tk_status send_with(uint32_t to, enum tk_message_kind kind, size_t nbytes)
{
    static char payload[tk_message_max];
    struct tk_message_head head = {.kind = (uint8_t)kind, .category = TK_MEDIUM};
    struct tk_outgoing m = {
        .head = &head, .head_size = sizeof(head), .payload = payload, .nbytes = nbytes};
    for (size_t i = 0; i < nbytes; i++)
        payload[i] = (char)(i * 7);
    return tk_verbs_send(tk_peer(to), &m);
}

static enum tk_status request(uint32_t to)
{
    return send_with(to, TK_REQUEST, 0);
}

static void requests(uint32_t to, int n)
{
    while (n-- > 0)
        assert_int_equal(request(to), TK_OK);
}

/* The last message had this much payload, as send_with() sends it. */
static void assert_payload(size_t nbytes)
{
    assert_int_equal(got.nbytes, nbytes);
    for (size_t i = 0; i < nbytes; i++)
        assert_int_equal(got.payload[i], (char)(i * 7));
}

static int credits(uint32_t from, uint32_t to)
{
    return world_conn(from, to)->credits;
}

static void a_request_takes_a_credit_and_the_last_one_is_the_last(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=2");
    requests(1, 2);
    assert_int_equal(credits(0, 1), 0);
    unsigned posted = fake.posted;
    assert_int_equal(request(1), TK_BUSY);
    assert_int_equal(fake.posted, posted);
    close_world();
}

/* A Short with up to two arguments is not compared with the limit. Uses a reply, because the first
 * request finds no extra buffer and takes the slow path. */
static void a_short_goes_inline_only_where_the_device_takes_it(void **state)
{
    static const struct {
        uint32_t device, limit;
        bool is_inline;
    } cases[] = {{1024, 72, true}, {40, 32, true}, {18, 16, true}, {10, 0, false}, {0, 0, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unit_settings(NULL, NULL);
        reset();
        fake.inline_max = cases[i].device;
        world_open(2, 0);
        assert_int_equal(tk_verbs.inline_limit, cases[i].limit);
        got.reply_by_tag = true;
        assert_int_equal(request(1), TK_OK);
        world_settle();
        assert_int_equal(got.was_inline, cases[i].is_inline);
        assert_int_equal(got.count, 2);
        assert_int_equal(got.head.nargs, 2);
        assert_int_equal(got.head.handler, 3);
        close_world();
    }
}

/* Without it the reply could find no buffer (RNR). */
static void each_request_has_a_buffer_for_its_reply(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=3");
    struct tk_conn *conn = world_conn(0, 1);
    assert_int_equal(fake_receives(conn->qp), 3 + 1); /* requests, and the exit notice */
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(request(1), TK_OK);
        assert_int_equal(fake_receives(conn->qp), 3 + 1 + i);
    }
    close_world();
}

static void a_request_without_a_buffer_for_its_reply_does_not_go(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=3");
    while (tk_pool_take(&tk_verbs.rails[0].recv_pool))
        continue;
    fake.failing[FAKE_REG_MR].allowed = 0;
    fake.failing[FAKE_REG_MR].error = ENOMEM;
    unsigned posted = fake.posted;
    unit_listen();
    enum tk_status status = request(1);
    unit_heard();
    assert_int_equal(status, TK_BUSY);
    assert_int_equal(fake.posted, posted);
    assert_int_equal(credits(0, 1), 3);
    fake.failing[FAKE_REG_MR].allowed = -1;
    assert_int_equal(request(1), TK_OK); /* more buffers were made */
    close_world();
}

/* The handler's reply returns the credit, so the sender's next request may arrive at once. */
static void the_replacement_is_posted_before_the_handler_runs(void **state)
{
    static const size_t sizes[] = {0, 200, 300, 65000}; /* copied, copied, swapped, swapped */
    for (int i = 0; i < 4; i++) {
        OPEN(2, "GASNET_AM_CREDITS_PP=1");
        assert_int_equal(send_with(1, TK_REQUEST, sizes[i]), TK_OK);
        world_settle();
        assert_int_equal(got.count, 1);
        assert_int_equal(got.receives, 1 + 1);
        close_world();
    }
}

/* The same for a shared queue, except that a buffer whose payload a handler reads may be posted
 * later. */
static void a_shared_queue_is_full_again_before_the_handler_runs(void **state)
{
    static const size_t sizes[] = {0, 200, 300, 65000}; /* the first is sent as a Short, too */
    const struct tk_message_head head = {.kind = TK_REQUEST};
    for (int i = -2; i < 4; i++) {
        OPEN_SHARED("GASNET_RBUF_COUNT=4");
        if (i == -2)
            assert_int_equal(send_with(1, TK_BOUNDED, 0), TK_OK);
        else if (i == -1)
            assert_int_equal(tk_verbs_send_short(tk_peer(1), head, NULL, NULL), TK_OK);
        else
            assert_int_equal(send_with(1, TK_REQUEST, sizes[i]), TK_OK);
        world_settle();
        assert_int_equal(got.count, 1);
        /* The handler holds one buffer; of the last message only a rendezvous request came through
         * the queue. */
        const int all = 4 + tk_verbs.srq_plan.bounded;
        assert_int_equal(got.receives, all - (i == 2));
        assert_payload(i >= 0 ? sizes[i] : 0);
        assert_int_equal(fake_srq_receives(tk_verbs.device.srq->queue), all);
        close_world();
    }
}

static void a_handler_beyond_those_that_may_hold_a_buffer_gets_a_copy(void **state)
{
    OPEN_SHARED("GASNET_RBUF_COUNT=4");
    world_be(1);
    assert_true(tk_srq_hold(tk_verbs.device.srq));
    assert_false(tk_srq_hold(tk_verbs.device.srq));
    world_be(0);
    assert_int_equal(send_with(1, TK_REQUEST, 3000), TK_OK);
    world_settle();
    assert_int_equal(got.receives, 4 + tk_verbs.srq_plan.bounded);
    assert_payload(3000);
    close_world();
}

static void a_payload_arrives_as_it_was_sent(void **state)
{
    static const size_t sizes[] = {1, 64, 65, 248, 249, 1499, 1500, 65528};
    OPEN(2, NULL);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        assert_int_equal(send_with(1, TK_REQUEST, sizes[s]), TK_OK);
        world_settle();
        assert_payload(sizes[s]);
    }
    close_world();
}

static void without_spares_the_handler_gets_a_copy(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=1");
    assert_int_equal(send_with(1, TK_REQUEST, 3000), TK_OK);
    world_be(1);
    while (tk_pool_take(&tk_verbs.rails[0].recv_pool))
        continue;
    world_be(0);
    world_settle();
    assert_int_equal(got.count, 1);
    assert_int_equal(got.receives, 1 + 1);
    assert_payload(3000);
    close_world();
}

static void a_reply_gives_the_credit_back(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=2");
    got.reply = true;
    assert_int_equal(request(1), TK_OK);
    world_settle();
    assert_int_equal(got.head.kind, TK_REPLY);
    assert_int_equal(credits(0, 1), 2);
    assert_int_equal(world_conn(1, 0)->credits_to_return, 0);
    close_world();
}

static void without_slack_an_ack_gives_it_back_at_once(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_SLACK=0");
    assert_int_equal(request(1), TK_OK);
    world_settle();
    assert_int_equal(credits(0, 1), 12);
    assert_int_equal(got.count, 1); /* no handler runs for an ACK */
    close_world();
}

static void slack_credits_are_banked_and_ride_on_the_next_message(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_SLACK=2");
    requests(1, 2);
    world_settle();
    assert_int_equal(credits(0, 1), 10);
    assert_int_equal(world_conn(1, 0)->credits_to_return, 2);
    world_be(1);
    assert_int_equal(request(0), TK_OK);
    world_be(0);
    world_settle();
    assert_int_equal(got.head.credits, 2);
    assert_int_equal(credits(0, 1), 12);
    assert_int_equal(world_conn(1, 0)->credits_to_return, 0);
    close_world();
}

static void beyond_the_slack_all_banked_credits_come_in_one_ack(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_SLACK=2");
    unsigned before = fake.posted;
    requests(1, 3);
    world_settle();
    assert_int_equal(credits(0, 1), 12);
    assert_int_equal(fake.posted - before, 3 + 1);
    close_world();
}

/* Messages that one poll takes together, with less than a third of the credits held back. */
static void what_came_together_is_acknowledged_together(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_SLACK=0", "GASNET_AM_CREDITS_PP=30");
    for (int n = 1; n <= 13; n += 4) {
        unsigned before = fake.posted;
        requests(1, n);
        fake_settle();
        world_be(1);
        tk_verbs_poll();
        assert_int_equal(world_conn(1, 0)->credits_to_return, 0);
        world_be(0);
        world_settle();
        assert_int_equal(fake.posted - before, n + (n + 9) / 10);
        assert_int_equal(credits(0, 1), 30);
    }
    close_world();
}

/* The exit notice has a buffer outside of the credits, and carries no credits. */
static void an_exit_notice_needs_no_credit(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=1");
    assert_int_equal(request(1), TK_OK);
    assert_int_equal(request(1), TK_BUSY);
    assert_int_equal(send_with(1, TK_CONTROL, 0), TK_OK);
    world_settle();
    assert_int_equal(got.count, 2);
    assert_int_equal(world_conn(1, 0)->control_expected, 0);
    close_world();
}

static bool is_balanced(void)
{
    struct tk_pair_balance of[2];
    for (uint32_t r = 0; r < 2; r++) {
        world_be(r);
        of[r] = tk_pair_balance(tk_conns_to(!r));
    }
    world_be(0);
    return of[0].out == of[1].owed && of[1].out == of[0].owed;
}

/* The connection may be closed only when all of them have come. */
static void a_bounded_message_takes_no_credit_and_has_no_answer(void **state)
{
    OPEN_SHARED("GASNET_AM_CREDITS_PP=1");
    unsigned before = fake.posted;
    assert_int_equal(request(1), TK_OK);
    assert_int_equal(request(1), TK_BUSY);
    for (int i = 0; i < tk_verbs.srq_plan.bounded; i++)
        assert_int_equal(send_with(1, TK_BOUNDED, 0), TK_OK);
    assert_false(is_balanced());
    world_settle();
    assert_int_equal(got.count, 1 + tk_verbs.srq_plan.bounded);
    assert_int_equal(credits(0, 1), 1);
    assert_int_equal(fake.posted - before, 2 + tk_verbs.srq_plan.bounded); /* and an ACK */
    assert_true(is_balanced());
    assert_int_equal(send_with(1, TK_BOUNDED, 0), TK_OK);
    assert_false(is_balanced());
    close_world();
}

static void without_shared_queues_a_bounded_message_is_a_request(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=1");
    assert_int_equal(send_with(1, TK_BOUNDED, 0), TK_OK);
    assert_int_equal(send_with(1, TK_BOUNDED, 0), TK_BUSY);
    world_settle();
    assert_int_equal(got.head.kind, TK_REQUEST);
    assert_int_equal(credits(0, 1), 1);
    close_world();
}

static void freeze(struct tk_conn *conn)
{
    while (!tk_pair_freeze(conn)) { /* unsignaled messages are flushed first */
        world_settle();
        tk_verbs_reap();
    }
}

static unsigned bounce_buffers(void)
{
    unsigned n = 0;
    for (const struct tk_pool_item *item = tk_verbs.bounce_pool.free; item; item = item->next)
        n++;
    return n;
}

/* Its last messages had no completions of their own. */
static void a_connection_to_be_closed_gives_its_bounce_buffers_back(void **state)
{
    OPEN(2, NULL);
    unsigned all = bounce_buffers();
    for (int i = 0; i < 2; i++)
        assert_int_equal(send_with(1, TK_REQUEST, 4000), TK_OK);
    world_settle();
    assert_int_equal(got.count, 2);
    assert_int_equal(bounce_buffers(), all - 2);
    assert_false(tk_pair_freeze(world_conn(0, 1)));
    assert_int_equal(bounce_buffers(), all - 2);
    freeze(world_conn(0, 1));
    assert_int_equal(bounce_buffers(), all);
    tk_pair_release(world_conn(0, 1));
    close_world();
}

/* Not closed before the peer has read the message, nor before we know that. */
static void a_connection_is_not_closed_while_a_message_waits_to_be_read(void **state)
{
    OPEN_SHARED(NULL);
    assert_int_equal(send_with(1, TK_REQUEST, 65000), TK_OK);
    for (int i = 0; i < 4; i++) {
        assert_false(tk_pair_freeze(world_conn(0, 1)));
        fake_settle();
        tk_verbs_reap();
    }
    world_settle();
    assert_int_equal(got.count, 1);
    freeze(world_conn(0, 1));
    tk_pair_release(world_conn(0, 1));
    close_world();
}

/* A thread that found the peer connected just before releases a credit. It must not take it again:
 * it would keep it beyond the end of the connection, and the next connection would get it twice. */
static void a_credit_that_comes_back_while_the_connection_is_held_stays_there(void **state)
{
    struct tk_am_reservation r = {.kind = TK_REQUEST};
    OPEN(2, "GASNET_AM_CREDITS_PP=2", "GASNET_AM_CREDITS_SLACK=1");
    r.peer = tk_peer(1);
    assert_int_equal(request(1), TK_OK);
    world_settle();
    freeze(world_conn(0, 1));
    assert_int_equal(credits(0, 1), 0);
    world_be(1);
    assert_int_equal(request(0), TK_OK); /* carries the credits that were held back */
    world_be(0);
    world_settle();
    assert_int_equal(credits(0, 1), 1);
    assert_int_equal(tk_verbs_reserve(&r, false, false), TK_BUSY);
    assert_int_equal(tk_verbs_reserve(&r, true, true), TK_BUSY);
    assert_int_equal(request(1), TK_BUSY);
    assert_int_equal(credits(0, 1), 1);
    tk_pair_release(world_conn(0, 1));
    assert_int_equal(credits(0, 1), 2);
    assert_int_equal(tk_verbs_reserve(&r, false, false), TK_OK);
    tk_verbs_release(&r, false);
    close_world();
}

static void the_process_as_a_whole_has_a_limit_too(void **state)
{
    OPEN(3, "GASNET_AM_CREDITS_PP=4", "GASNET_AM_CREDITS_TOTAL=5");
    requests(1, 4);
    requests(2, 1);
    assert_int_equal(request(2), TK_BUSY);
    assert_int_equal(credits(0, 2), 3);
    world_settle();
    assert_int_equal(request(2), TK_OK);
    close_world();
}

static void a_full_send_queue_gives_the_credit_back(void **state)
{
    OPEN(2, "GASNET_NETWORKDEPTH_PP=2");
    requests(1, 2);
    assert_int_equal(request(1), TK_BUSY);
    assert_int_equal(credits(0, 1), 10);
    close_world();
}

static void an_ack_that_finds_no_space_goes_with_a_later_poll(void **state)
{
    OPEN(2, "GASNET_NETWORKDEPTH_PP=2", "GASNET_AM_CREDITS_SLACK=0");
    request(1);
    fake_settle();
    world_be(1);
    requests(0, 2); /* the send queue of rank 1 is full */
    tk_verbs_poll();
    assert_true(world_conn(1, 0)->ack_due);
    assert_int_equal(tk_counter_read(&tk_verbs.pending_work), 1);
    world_be(0);
    assert_int_equal(credits(0, 1), 11);
    world_settle();
    assert_int_equal(credits(0, 1), 12);
    assert_false(world_conn(1, 0)->ack_due);
    assert_int_equal(tk_counter_read(&world_verbs(1)->pending_work), 0);
    close_world();
}

/* Another message carried the credits of a due ACK meanwhile, so no ACK is needed any more. */
static void an_ack_that_is_not_needed_any_more_is_not_sent(void **state)
{
    OPEN(2, "GASNET_NETWORKDEPTH_PP=2", "GASNET_AM_CREDITS_SLACK=0");
    request(1);
    fake_settle();
    world_be(1);
    requests(0, 2);
    tk_verbs_poll();
    fake_settle();
    tk_verbs_reap();
    unsigned before = fake.posted;
    request(0); /* carries the credit */
    tk_acks_send();
    assert_int_equal(fake.posted - before, 1);
    assert_int_equal(tk_counter_read(&tk_verbs.pending_work), 0);
    world_settle();
    assert_int_equal(world_conn(0, 1)->credits, 12);
    close_world();
}

static void inject(void *bytes)
{
    fake_inject(world_conn(0, 1)->qp, bytes, *(uint32_t *)bytes == 0 ? 4 : 8);
    tk_verbs_poll();
}

static void unknown_credits_are_refused(void **state)
{
    struct tk_message_head ack = {.kind = TK_ACK};
    struct tk_message_head too_rich = {.kind = TK_CONTROL, .credits = 1};
    OPEN(2, NULL);
    unit_assert_panic(inject, &ack, "more credits came back than were given from rank 1 (node1");
    unit_assert_panic(inject, &too_rich, "more credits came back than were given");
    close_world();
}

static void malformed_messages_are_refused(void **state)
{
    static const struct tk_message_head bad[] = {{.kind = TK_CONTROL + 1},
                                                 {.kind = TK_REQUEST, .category = TK_LONG + 1},
                                                 {.kind = TK_REQUEST, .nargs = tk_max_args + 1}};
    struct tk_message_head shorter = {.kind = TK_REPLY, .nargs = 1};
    struct tk_message_head no_place = {.kind = TK_REPLY, .category = TK_LONG};
    struct tk_message_head cut = {.kind = TK_REQUEST};
    OPEN(2, NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        unit_assert_panic(inject, (void *)&bad[i], "a malformed message came from rank 1");
    unit_assert_panic(inject, &cut, "a malformed message came"); /* 4 bytes */
    unit_assert_panic(inject, &shorter, "shorter than its head says");
    unit_assert_panic(inject, &no_place, "shorter than its head says");
    close_world();
}

static void inject_shared(void *message)
{
    bool is_cut = ((struct tk_short *)message)->args[2] != 0;
    fake_inject(world_conn(0, 1)->qp, message, (uint32_t)tk_short_size(3) - (is_cut ? 8 : 0));
    tk_verbs_transport()->poll();
}

static void malformed_messages_about_credits_are_refused(void **state)
{
    static const int32_t bad[][3] = {{4, 1, 0}, {0, 13, 0}, {0, -1, 0}, {1, 1, 1}};
    struct tk_short message = {.head = {.kind = TK_LOAN, .category = TK_SHORT, .nargs = 3}};
    OPEN_SHARED(NULL);
    for (int i = 0; i < 4; i++) {
        memcpy(message.args, bad[i], sizeof(bad[i]));
        unit_assert_panic(inject_shared, &message, "a malformed message about credits came");
    }
    close_world();
}

static void inject_offer(void *offer)
{
    const struct tk_rndv_request *o = offer;
    fake_inject(world_conn(0, 1)->qp, offer, o->word ? sizeof(*o) : sizeof(*o) - 8);
    tk_verbs_transport()->poll();
}

/* A request that is truncated, larger than any message, or too small. */
static void malformed_offers_are_refused(void **state)
{
    struct tk_rndv_request offer = {.head = {.kind = TK_RENDEZVOUS}, .size = 10000};
    OPEN_SHARED(NULL);
    unit_assert_panic(inject_offer, &offer, "a malformed message came");
    offer.word = 1;
    offer.size = tk_message_max + 1;
    unit_assert_panic(inject_offer, &offer, "a malformed rendezvous request came");
    offer.size = tk_verbs.recv_small;
    unit_assert_panic(inject_offer, &offer, "a malformed rendezvous request came");
    close_world();
}

static void a_peer_that_does_not_serve_is_named(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=1", "GASNET_AM_STALL_SECONDS=0.000001");
    unit_listen();
    request(1);
    tk_verbs_report_stall(); /* out of credits, but no request was refused yet */
    const char *said = unit_heard();
    assert_string_equal(said, "");
    request(1);
    do {
        unit_listen();
        tk_verbs_report_stall();
        said = unit_heard();
    } while (*said == '\0');
    unit_assert_says(said, "to send active messages to rank 1 (node1, pid 1001): all 1 "
                           "credits are out");
    assert_int_equal(unit_lines(said), 1);
    close_world();
}

static void assert_no_stall_is_reported(void)
{
    unit_listen();
    for (int i = 0; i < 1000; i++)
        tk_verbs_report_stall();
    assert_string_equal(unit_heard(), "");
}

/* A client that was refused and does something else does not count as waiting when the credit is
 * back. */
static void a_stall_ends_when_the_credit_comes_back(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=1", "GASNET_AM_STALL_SECONDS=0.000001");
    request(1);
    request(1); /* refused */
    assert_true(world_conn(0, 1)->starved_since != 0);
    world_settle();
    world_be(0);
    assert_no_stall_is_reported();
    close_world();
}

static void a_stall_of_zero_seconds_is_never_reported(void **state)
{
    OPEN(2, "GASNET_AM_CREDITS_PP=1", "GASNET_AM_STALL_SECONDS=0");
    request(1);
    request(1);
    assert_no_stall_is_reported();
    close_world();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_request_takes_a_credit_and_the_last_one_is_the_last),
    cmocka_unit_test(a_short_goes_inline_only_where_the_device_takes_it),
    cmocka_unit_test(each_request_has_a_buffer_for_its_reply),
    cmocka_unit_test(a_request_without_a_buffer_for_its_reply_does_not_go),
    cmocka_unit_test(the_replacement_is_posted_before_the_handler_runs),
    cmocka_unit_test(a_shared_queue_is_full_again_before_the_handler_runs),
    cmocka_unit_test(a_handler_beyond_those_that_may_hold_a_buffer_gets_a_copy),
    cmocka_unit_test(malformed_messages_about_credits_are_refused),
    cmocka_unit_test(malformed_offers_are_refused),
    cmocka_unit_test(a_connection_to_be_closed_gives_its_bounce_buffers_back),
    cmocka_unit_test(a_connection_is_not_closed_while_a_message_waits_to_be_read),
    cmocka_unit_test(a_payload_arrives_as_it_was_sent),
    cmocka_unit_test(without_spares_the_handler_gets_a_copy),
    cmocka_unit_test(a_reply_gives_the_credit_back),
    cmocka_unit_test(without_slack_an_ack_gives_it_back_at_once),
    cmocka_unit_test(slack_credits_are_banked_and_ride_on_the_next_message),
    cmocka_unit_test(beyond_the_slack_all_banked_credits_come_in_one_ack),
    cmocka_unit_test(what_came_together_is_acknowledged_together),
    cmocka_unit_test(an_exit_notice_needs_no_credit),
    cmocka_unit_test(a_bounded_message_takes_no_credit_and_has_no_answer),
    cmocka_unit_test(without_shared_queues_a_bounded_message_is_a_request),
    cmocka_unit_test(a_credit_that_comes_back_while_the_connection_is_held_stays_there),
    cmocka_unit_test(the_process_as_a_whole_has_a_limit_too),
    cmocka_unit_test(a_full_send_queue_gives_the_credit_back),
    cmocka_unit_test(an_ack_that_finds_no_space_goes_with_a_later_poll),
    cmocka_unit_test(an_ack_that_is_not_needed_any_more_is_not_sent),
    cmocka_unit_test(unknown_credits_are_refused),
    cmocka_unit_test(malformed_messages_are_refused),
    cmocka_unit_test(a_peer_that_does_not_serve_is_named),
    cmocka_unit_test(a_stall_ends_when_the_credit_comes_back),
    cmocka_unit_test(a_stall_of_zero_seconds_is_never_reported),
};

UNIT_MAIN(tests)
