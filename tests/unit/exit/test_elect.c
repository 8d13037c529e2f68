/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which rank notifies the others of the exit: the first that asks rank 0, and some rank even if
 * rank 0 is silent. This test records messages; each case is a child process, because a rank has
 * only one role in its life. */
#include "config.h"

#include "common/clock.h"
#include "exit/exit_private.h"
#include "fake_job.h"
#include "message/message.h"
#include "progress/progress.h"
#include "unit.h"

enum { size = 64 };

static void open_as(uint32_t me)
{
    fake_job_open(size);
    tk_peers.me = me;
    tk_message_open();
    tk_elect_open();
    tk_elect_connect();
}

static void hear(uint32_t from, enum tk_internal_handler handler, int32_t arg)
{
    struct {
        struct tk_message_head head;
        int32_t args[2];
    } message = {.head = {.handler = (uint8_t)handler, .nargs = 2}, .args = {arg}};
    struct tk_arrival arrival = {.peer = tk_peer(from), .head = &message.head};
    tk_deliver(&arrival);
}

/* The next message that was sent. */
static void sent(uint32_t to, enum tk_internal_handler handler, int32_t arg)
{
    static unsigned next;
    assert_true(next < fake_job.count);
    const struct fake_sent *message = &fake_job.sent[next++];
    assert_int_equal(message->to, to);
    assert_int_equal(message->head->handler, handler);
    assert_int_equal(*(const int32_t *)(message->head + 1), arg);
}

static void (*test_body)(void);

static void run(void *unused)
{
    test_body();
}

static void in_child(void (*body)(void))
{
    const char *said;
    test_body = body;
    int status = unit_child(run, NULL, &said);
    if (status != 0)
        fail_msg("status 0x%x: %s", status, said);
}

static void three_ask(void)
{
    open_as(0);
    hear(5, TK_HANDLER_ELECT, TK_ELECT_ASK);
    hear(3, TK_HANDLER_ELECT, TK_ELECT_ASK);
    fake_job.busy_sends = 1;
    tk_elect_serve(); /* no space for the first answer */
    sent(5, TK_HANDLER_ELECT, TK_ELECT_LEAD);
    hear(2, TK_HANDLER_ELECT, TK_ELECT_ASK);
    tk_elect_serve();
    sent(2, TK_HANDLER_ELECT, TK_ELECT_FOLLOW);
    sent(3, TK_HANDLER_ELECT, TK_ELECT_FOLLOW);
    tk_elect_serve();
    assert_int_equal(fake_job.count, 3);
    assert_int_equal(tk_counter_read(&tk_deferred_work_wanted), 0);
    assert_int_equal(tk_elect_step(1, TK_SECOND / 10), TK_ROLE_MEMBER);
}

static void the_first_rank_that_asks_leads(void **state)
{
    in_child(three_ask);
}

static void rank_0_is_first(void)
{
    open_as(0);
    assert_int_equal(tk_elect_step(1, TK_SECOND / 10), TK_ROLE_LEADER);
    hear(7, TK_HANDLER_ELECT, TK_ELECT_ASK);
    tk_elect_serve();
    sent(7, TK_HANDLER_ELECT, TK_ELECT_FOLLOW);
    assert_int_equal(tk_elect_step(2, TK_SECOND / 10), TK_ROLE_LEADER);
}

static void rank_0_may_lead_itself(void **state)
{
    in_child(rank_0_is_first);
}

static void asks(int32_t answer, enum tk_role role)
{
    open_as(9);
    fake_job.busy_sends = 1;
    assert_int_equal(tk_elect_step(1, TK_SECOND / 10), TK_ROLE_OPEN); /* no space yet */
    assert_int_equal(tk_elect_step(2, TK_SECOND / 10), TK_ROLE_OPEN);
    assert_int_equal(tk_elect_step(3, TK_SECOND / 10), TK_ROLE_OPEN);
    sent(0, TK_HANDLER_ELECT, TK_ELECT_ASK);
    assert_int_equal(fake_job.count, 1);
    hear(0, TK_HANDLER_ELECT, answer);
    assert_int_equal(tk_elect_step(4, TK_SECOND / 10), role);
    assert_int_equal(tk_elect_step(TK_SECOND, TK_SECOND / 10), role);
    assert_int_equal(fake_job.count, 1);
}

static void asks_and_leads(void)
{
    asks(TK_ELECT_LEAD, TK_ROLE_LEADER);
}

static void asks_and_follows(void)
{
    asks(TK_ELECT_FOLLOW, TK_ROLE_MEMBER);
}

static void others_ask_rank_0_once(void **state)
{
    in_child(asks_and_leads);
    in_child(asks_and_follows);
}

static void is_requested(void)
{
    open_as(9);
    assert_int_equal(tk_elect_requested(), -1);
    hear(4, TK_HANDLER_EXIT, 7);
    hear(5, TK_HANDLER_EXIT, 8);
    assert_int_equal(tk_elect_requested(), 7);
    assert_int_equal(tk_elect_step(1, TK_SECOND / 10), TK_ROLE_MEMBER);
    assert_int_equal(fake_job.count, 0);
}

static void a_notified_rank_need_not_ask(void **state)
{
    in_child(is_requested);
}

/* The time in milliseconds after which this rank leads if rank 0 never answers. */
static uint64_t turn_of(uint32_t rank)
{
    uint64_t waited = 0;
    open_as(rank);
    while (tk_elect_step(waited * 1000000, TK_SECOND / 10) == TK_ROLE_OPEN)
        waited++;
    return waited;
}

static void first_turn(void)
{
    uint64_t turn = turn_of(1);
    assert_true(turn > 100 && turn < 110);
}

static void last_turn(void)
{
    assert_true(turn_of(63) > 290 && turn_of(63) <= 305);
}

static void if_rank_0_is_silent_each_has_its_turn(void **state)
{
    in_child(first_turn);
    in_child(last_turn);
}

static void tells(void)
{
    open_as(2);
    fake_job.busy_sends = 3; /* 0, 1 and 3 */
    tk_elect_notify(6, 1, TK_SECOND / 10);
    for (uint32_t rank = 4; rank < size; rank++)
        sent(rank, TK_HANDLER_EXIT, 6);
    tk_elect_notify(6, 1, TK_SECOND / 10);
    sent(0, TK_HANDLER_EXIT, 6);
    sent(1, TK_HANDLER_EXIT, 6);
    sent(3, TK_HANDLER_EXIT, 6);
    tk_elect_notify(6, 1, TK_SECOND / 10);
    assert_int_equal(fake_job.count, size - 1);
    for (unsigned i = 0; i < fake_job.count; i++)
        assert_int_equal(fake_job.sent[i].head->kind, TK_CONTROL);
}

static void a_leader_notifies_each_other_rank_once(void **state)
{
    in_child(tells);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_rank_that_asks_leads),
    cmocka_unit_test(rank_0_may_lead_itself),
    cmocka_unit_test(others_ask_rank_0_once),
    cmocka_unit_test(a_notified_rank_need_not_ask),
    cmocka_unit_test(if_rank_0_is_silent_each_has_its_turn),
    cmocka_unit_test(a_leader_notifies_each_other_rank_once),
};

UNIT_MAIN(tests)
