/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of threads that wait for credits of one connection (data/credit.c), in the build for
 * threads. One thread plays all of them: a waiter is represented by its wait. */
#include "config.h"

#include "fake_world.h"
#include "unit.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/send.h"
#include "transport/wait_ticket.h"

enum { waits_max = 8 };

static struct tk_wait_ticket waits[waits_max];

static void ignore(struct tk_arrival *arrival)
{
    if (arrival->head->kind != TK_REQUEST)
        return;
    struct tk_message_head head = {.kind = TK_REPLY};
    struct tk_outgoing reply = {.head = &head, .head_size = sizeof(head)};
    assert_int_equal(tk_verbs_send(arrival->peer, &reply), TK_OK);
    arrival->replied = true;
}

static bool ignore_short(struct tk_peer *from, unsigned tag, const int32_t *args)
{
    (void)from, (void)tag, (void)args;
    return false;
}

static void open_world(const char *credits)
{
    memset(waits, 0, sizeof(waits));
    unit_settings(credits, "GASNET_AM_CREDITS_SLACK=0", NULL);
    fake_reset();
    tk_deliver = ignore;
    tk_deliver_short = ignore_short;
    world_open(2, 0);
}

static struct tk_conn *conn(void)
{
    return tk_verbs.conns_of[1];
}

/* Sends by a thread that does not wait, as for an immediate message. */
static enum tk_status send_now(void)
{
    const struct tk_message_head head = {.kind = TK_REQUEST};
    return tk_verbs_send_short(tk_peer(1), head, NULL, NULL);
}

static enum tk_status try_in(struct tk_wait_ticket *wait)
{
    tk_wait_ticket = wait;
    wait->is_up = true;
    enum tk_status status = send_now();
    wait->is_up = false;
    tk_wait_ticket = NULL;
    return status;
}

/* A waiter tries again, and stops waiting if it sent. */
static bool goes(unsigned number)
{
    struct tk_wait_ticket *wait = &waits[number];
    if (try_in(wait) != TK_OK)
        return false;
    if (wait->queue)
        tk_verbs_leave_queue(tk_peer(1), wait);
    *wait = (struct tk_wait_ticket){.outer = NULL};
    return true;
}

static void carry(struct tk_conn *from)
{
    assert_true(fake_carry(from->qp));
    while (fake_ack(from->qp))
        continue;
    tk_verbs_reap();
}

/* Delivers `count` answers. */
static void answers(int count)
{
    for (int i = 0; i < count; i++) {
        carry(conn());
        world_be(1);
        tk_verbs_poll();
        carry(tk_verbs.conns_of[0]);
        world_be(0);
        tk_verbs_poll();
    }
}

static void spend(int credits)
{
    for (int i = 0; i < credits; i++)
        assert_int_equal(send_now(), TK_OK);
    assert_int_equal(send_now(), TK_BUSY);
}

static void close_world(void)
{
    assert_int_equal(conn()->waiting, 0);
    world_settle();
    world_be(0);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static void waiters_go_first_and_in_order(void **state)
{
    open_world("GASNET_AM_CREDITS_PP=2");
    spend(2);
    for (unsigned i = 0; i < 3; i++)
        assert_false(goes(i));
    answers(1);
    assert_int_equal(send_now(), TK_BUSY);
    assert_false(goes(2));
    assert_false(goes(1));
    assert_true(goes(0));
    answers(1);
    assert_int_equal(send_now(), TK_BUSY);
    assert_false(goes(2));
    assert_true(goes(1));
    answers(1);
    assert_true(goes(2));
    close_world();
}

/* A sleeping waiter keeps one credit, and does not block others. */
static void a_late_waiter_finds_its_credit_and_others_have_continued(void **state)
{
    open_world("GASNET_AM_CREDITS_PP=3");
    spend(3);
    assert_false(goes(0));
    assert_false(goes(1));
    answers(3);
    assert_true(goes(1));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(send_now(), TK_OK);
        answers(1);
    }
    assert_int_equal(send_now(), TK_OK);
    assert_true(goes(0));
    close_world();
}

/* It runs a long handler, while others take many turns. */
static void a_wait_that_has_missed_many_turns_is_served(void **state)
{
    open_world("GASNET_AM_CREDITS_PP=1");
    spend(1);
    assert_false(goes(0));
    conn()->served += 40000;
    answers(1);
    assert_true(goes(0));
    close_world();
}

/* The inner wait uses the outer one's place in the queue: with a single credit it would otherwise
 * wait for itself. */
static void a_wait_inside_another_one_goes_in_its_place(void **state)
{
    struct tk_wait_ticket inner = {.outer = &waits[0]};
    open_world("GASNET_AM_CREDITS_PP=1");
    spend(1);
    assert_false(goes(0));
    assert_int_equal(try_in(&inner), TK_BUSY);
    assert_int_equal(inner.queue, 0);
    assert_false(goes(1));
    answers(1);
    assert_false(goes(1));
    assert_int_equal(try_in(&inner), TK_OK);
    answers(1);
    assert_false(goes(1));
    assert_true(goes(0));
    answers(1);
    assert_true(goes(1));
    close_world();
}

/* Immediate requests do not queue, but waiters do not exclude them for ever. */
static void callers_that_cannot_wait_sometimes_get_a_kept_credit(void **state)
{
    int tries = 1;
    open_world("GASNET_AM_CREDITS_PP=1");
    spend(1);
    assert_false(goes(0));
    answers(1);
    while (send_now() != TK_OK)
        assert_in_range(++tries, 2, 8);
    assert_false(goes(0));
    answers(1);
    assert_true(goes(0));
    close_world();
}

/* A Short that has a credit but no slot. */
static void a_waiter_that_lacks_something_else_keeps_its_place(void **state)
{
    open_world("GASNET_AM_CREDITS_PP=1");
    spend(1);
    assert_false(goes(0));
    answers(1);
    tk_counter_t space = conn()->space;
    tk_counter_set(&conn()->space, -conn()->returned);
    assert_false(goes(0));
    assert_false(goes(1));
    tk_counter_set(&conn()->space, space);
    assert_false(goes(1));
    assert_true(goes(0));
    answers(1);
    assert_true(goes(1));
    close_world();
}

/* When another connection takes over, or an entry is used again. */
static void a_new_line_begins_without_those_of_the_old_one(void **state)
{
    open_world("GASNET_AM_CREDITS_PP=1");
    spend(1);
    assert_false(goes(0));
    assert_false(goes(1));
    tk_credit_queue_clear(conn());
    assert_int_equal(conn()->waiting, 0);
    tk_verbs_leave_queue(tk_peer(1), &waits[0]);
    assert_int_equal(conn()->waiting, 0);
    assert_false(goes(1));
    assert_int_equal(conn()->waiting, 1);
    assert_false(goes(0));
    answers(1);
    assert_false(goes(0));
    assert_true(goes(1));
    answers(1);
    assert_true(goes(0));
    close_world();
}

/* Any order of waits, tries, other senders and answers, and numbers that wrap. At the end the
 * waiters send one by one, each after one answer. */
static void play(struct unit_random *dice, int credits)
{
    int out = 0;
    for (int step = 0; step < 2000; step++) {
        unsigned who = unit_below(dice, waits_max);
        switch (unit_below(dice, 4)) {
        case 0:
            out += send_now() == TK_OK;
            break;
        case 1:
            if (out > 0)
                answers(1);
            out -= out > 0;
            break;
        default:
            out += goes(who);
        }
        int waiting = 0;
        for (unsigned i = 0; i < waits_max; i++)
            waiting += waits[i].queue != 0;
        assert_int_equal(conn()->waiting, waiting);
        assert_int_equal(conn()->credits + out, credits);
    }
    answers(out);
    for (unsigned i = 0; i < waits_max; i++) {
        unsigned first = 0;
        for (unsigned k = 0; k < waits_max; k++)
            if (waits[k].queue &&
                (!waits[first].queue || (int16_t)(waits[k].number - waits[first].number) < 0))
                first = k;
        if (!waits[first].queue)
            break;
        assert_true(goes(first));
        answers(1);
    }
}

static void every_rank_is_woken_in_any_order(void **state)
{
    struct unit_random dice = unit_random(22);
    for (int credits = 1; credits <= 4; credits++) {
        char setting[40];
        snprintf(setting, sizeof(setting), "GASNET_AM_CREDITS_PP=%d", credits);
        open_world(setting);
        conn()->served = UINT32_MAX - 100;
        play(&dice, credits);
        close_world();
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(waiters_go_first_and_in_order),
    cmocka_unit_test(a_late_waiter_finds_its_credit_and_others_have_continued),
    cmocka_unit_test(a_wait_that_has_missed_many_turns_is_served),
    cmocka_unit_test(a_wait_inside_another_one_goes_in_its_place),
    cmocka_unit_test(callers_that_cannot_wait_sometimes_get_a_kept_credit),
    cmocka_unit_test(a_waiter_that_lacks_something_else_keeps_its_place),
    cmocka_unit_test(a_new_line_begins_without_those_of_the_old_one),
    cmocka_unit_test(every_rank_is_woken_in_any_order),
};

UNIT_MAIN(tests)
