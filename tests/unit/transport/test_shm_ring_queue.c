/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The queue of threads that wait for space in a ring (transport/shm/ring_queue.c), in the build for
 * threads. One thread plays all waiters: a waiter is represented by its wait. Senders that do not
 * wait are separate threads. */
#include "config.h"

#include <pthread.h>

#include "ring_memory.h"
#include "transport/transport.h"
#include "unit.h"

enum {
    slots = 128,
    lines = 64,
    turn = slots / 16,
    step = slots / 8, /* space is given back in eighths */
    small = 16,
    large = lines / 4 * tk_ring_line, /* the most that is kept */
    waits_max = 12,
    head_size = 8
};

static struct ring_memory memory;
static struct tk_ring_out out;
static struct tk_ring_in in;
static struct tk_wait_ticket waits[waits_max];
static unsigned in_ring;

/* Each ring continues at the position of the previous one, because a ticket ends at a position. */
static void open_ring(void)
{
    static uint64_t start;
    memset(waits, 0, sizeof(waits));
    in_ring = 0;
    ring_memory_open(&memory, slots, lines, start += TK_RING_SLOT << 20);
    ring_memory_out(&memory, &out, 7);
    ring_memory_in(&memory, &in);
}

static bool is_narrow(void)
{
    return tk_peek(&out.queue.kept) != 0;
}

static unsigned in_queue(void)
{
    return tk_peek(&out.queue.waiting);
}

static void close_ring(void)
{
    assert_int_equal(in_queue(), 0);
    assert_false(is_narrow());
    tk_ring_in_close(&in);
    ring_memory_close(&memory);
}

static bool send(size_t nbytes)
{
    static const char text[large];
    enum tk_status status = tk_ring_send(&out, text, head_size, text, nbytes - head_size);
    in_ring += status == TK_OK;
    return status == TK_OK;
}

static void *send_by_thread(void *nbytes)
{
    return send(*(size_t *)nbytes) ? nbytes : NULL;
}

/* One send by a thread that does not wait, as for an immediate message. */
static bool other(size_t nbytes)
{
    pthread_t thread;
    void *sent;
    assert_int_equal(pthread_create(&thread, NULL, send_by_thread, &nbytes), 0);
    pthread_join(thread, &sent);
    return sent;
}

static bool try_in(struct tk_wait_ticket *wait, size_t nbytes)
{
    tk_wait_ticket = wait;
    wait->is_up = true;
    bool sent = send(nbytes);
    wait->is_up = false;
    tk_wait_ticket = NULL;
    return sent;
}

static void leave(struct tk_wait_ticket *wait)
{
    if (wait->queue)
        tk_ring_queue_leave(wait);
    *wait = (struct tk_wait_ticket){.outer = NULL};
}

/* A waiter tries again, and stops waiting if it sent. */
static bool goes_with(unsigned number, size_t nbytes)
{
    bool sent = try_in(&waits[number], nbytes);
    if (sent)
        leave(&waits[number]);
    return sent;
}

static bool goes(unsigned number)
{
    return goes_with(number, small);
}

static void receive(unsigned count)
{
    struct tk_ring_item item = {.blob = NULL};
    for (unsigned i = 0; i < count; i++) {
        assert_true(tk_ring_take(&in, &item));
        tk_ring_done(&in, &item);
    }
    tk_ring_retire_left(&in);
    in_ring -= count;
}

static void fill(void)
{
    while (send(small))
        continue;
    assert_false(is_narrow());
}

static void stand(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_false(goes(i));
    assert_int_equal(in_queue(), count);
}

static void threads_that_wait_go_in_order_before_others(void **state)
{
    open_ring();
    fill();
    stand(4);
    receive(2 * turn);
    assert_false(other(small));
    assert_false(goes(3));
    assert_false(goes(2));
    assert_true(goes(1)); /* there is space for both waiters */
    assert_false(other(small));
    assert_true(goes(0));
    assert_true(goes(2));
    assert_true(goes(3));
    assert_false(is_narrow());
    assert_true(other(small));
    close_ring();
}

/* It may be in a long handler. */
static void a_thread_that_comes_late_finds_space_and_others_have_gone_on(void **state)
{
    open_ring();
    fill();
    stand(2);
    receive(step);
    assert_true(goes(1));
    for (int i = 0; i < 100; i++) {
        unsigned sent = 0;
        while (other(small))
            sent++;
        assert_in_range(sent, step - turn, step + turn);
        receive(step);
    }
    while (other(small))
        continue;
    assert_true(goes(0));
    close_ring();
}

static void no_more_than_half_of_the_ring_is_kept(void **state)
{
    unsigned sent = 0;
    open_ring();
    fill();
    stand(waits_max);
    receive(slots);
    while (other(small))
        sent++;
    assert_int_equal(sent, slots / 2 + 1); /* one takes what is kept */
    for (unsigned i = 0; i < waits_max; i++)
        assert_true(goes(i));
    close_ring();
}

/* The largest message finds space beside the reserved part, in an idle ring: an eighth of the lines
 * may not be given back. */
static void the_largest_message_goes_beside_all_that_is_kept(void **state)
{
    static const char text[lines / 2 * tk_ring_line];
    uint64_t ticket;
    open_ring();
    fill();
    for (unsigned i = 0; i < waits_max; i++)
        assert_false(goes_with(i, large));
    receive(slots);
    assert_true(tk_ring_reserve(&out, lines / 8, &ticket)); /* never published: not given back */
    struct tk_wait_ticket last = {.outer = NULL};
    tk_wait_ticket = &last;
    last.is_up = true;
    assert_int_equal(tk_ring_send(&out, text, head_size, text, sizeof(text) - head_size), TK_OK);
    tk_wait_ticket = NULL;
    for (unsigned i = 0; i < waits_max; i++)
        leave(&waits[i]);
    close_ring();
}

/* Lines are kept too: as many as the waiter needs. */
static void small_messages_take_no_lines_from_a_large_one_that_waits(void **state)
{
    const size_t medium = 3 * tk_ring_line;
    unsigned sent = 0;
    open_ring();
    while (send(large))
        sent++;
    assert_int_equal(sent, lines * tk_ring_line / large);
    assert_false(goes_with(0, large));
    receive(1);
    assert_false(other(medium));
    assert_false(goes_with(1, medium));
    assert_true(other(small)); /* of slots there are enough */
    assert_true(goes_with(0, large));
    receive(1);
    assert_true(goes_with(1, medium));
    close_ring();
}

/* Also lines that were free already, according to the head that others know. */
static void lines_are_kept_from_the_moment_that_a_thread_waits(void **state)
{
    const size_t medium = 3 * tk_ring_line;
    open_ring();
    for (int i = 0; i < 3; i++)
        assert_true(send(large));
    assert_true(send(medium));
    assert_false(goes_with(0, large));
    assert_false(other(medium));
    receive(1);
    assert_true(other(medium));
    assert_true(goes_with(0, large));
    close_ring();
}

/* The inner wait uses the outer one's place; otherwise a thread would wait for itself. */
static void a_wait_inside_another_one_goes_in_its_place(void **state)
{
    struct tk_wait_ticket inner = {.outer = &waits[0]};
    open_ring();
    fill();
    stand(1);
    assert_false(try_in(&inner, small));
    assert_int_equal(inner.queue, 0);
    assert_false(goes(1));
    assert_int_equal(in_queue(), 2);
    receive(step);
    assert_true(try_in(&inner, small));
    assert_int_equal(in_queue(), 2);
    assert_true(goes(0));
    assert_true(goes(1));
    close_ring();
}

/* The outer wait is for another ring: a handler replies while the thread waits to send a
 * request. */
static void a_wait_inside_one_for_another_ring_stands_there_itself(void **state)
{
    struct tk_ring_out replies;
    struct ring_memory replies_memory;
    struct tk_wait_ticket inner = {.outer = &waits[0], .is_up = true};
    char text[small] = "";
    open_ring();
    ring_memory_open(&replies_memory, slots, lines, 0);
    ring_memory_out(&replies_memory, &replies, 7);
    fill();
    stand(1);
    while (tk_ring_send(&replies, text, small, NULL, 0) == TK_OK)
        continue;
    tk_wait_ticket = &inner;
    assert_int_equal(tk_ring_send(&replies, text, small, NULL, 0), TK_BUSY);
    tk_wait_ticket = NULL;
    assert_ptr_equal(inner.at, &replies);
    assert_int_equal(tk_peek(&replies.queue.waiting), 1);
    assert_int_equal(in_queue(), 1);
    tk_ring_queue_leave(&inner);
    receive(step);
    assert_true(goes(0));
    ring_memory_close(&replies_memory);
    close_ring();
}

/* Immediate messages do not queue, but are not excluded for ever: one in a ticket's worth of
 * messages gets kept space. */
static void a_thread_that_cannot_wait_gets_kept_space_sometimes(void **state)
{
    enum { waiting = 4 };
    unsigned sent = 0;
    open_ring();
    fill();
    stand(waiting);
    receive(waiting * turn);
    assert_false(other(small));
    assert_true(goes(0));
    while (other(small)) /* as many as are not kept, then one that is */
        sent++;
    assert_int_equal(sent, turn);
    for (unsigned i = 1; i < waiting; i++)
        assert_true(goes(i));
    close_ring();
}

/* A ticket is worth a sixteenth of the ring, and its unused part is not kept. */
static void a_turn_is_several_messages(void **state)
{
    unsigned sent = 1;
    open_ring();
    fill();
    stand(3);
    receive(2 * turn);
    assert_true(goes(0));
    while (send(small))
        sent++;
    assert_int_equal(sent, turn + 1); /* one as if it were immediate */
    assert_false(goes(0));            /* in the queue again, behind the others */
    assert_true(goes(1));
    assert_true(goes(2));
    assert_true(goes(0));
    close_ring();
}

/* At a Prepare. */
static void a_look_for_space_waits_in_the_queue_too(void **state)
{
    open_ring();
    fill();
    stand(1);
    tk_wait_ticket = &waits[1];
    waits[1].is_up = true;
    assert_false(tk_ring_has_space(&out, 0));
    assert_int_equal(in_queue(), 2);
    receive(step);
    assert_true(tk_ring_has_space(&out, 0));
    tk_wait_ticket = NULL;
    leave(&waits[1]);
    assert_true(goes(0));
    close_ring();
}

static unsigned first_in_queue(void)
{
    unsigned first = waits_max;
    for (unsigned i = 0; i < waits_max; i++)
        if (waits[i].queue &&
            (first == waits_max || (int32_t)(waits[i].number - waits[first].number) < 0))
            first = i;
    return first;
}

/* Any order of waits, tries, other senders and space given back, and numbers that wrap. At the end
 * the waiters send one by one. */
static void no_wait_is_forgotten_in_any_order(void **state)
{
    struct unit_random dice = unit_random(8);
    open_ring();
    tk_poke(&out.queue.served, UINT32_MAX - 1000);
    for (int turn = 0; turn < 20000; turn++) {
        size_t nbytes = unit_below(&dice, 4) ? small : large / 2;
        switch (unit_below(&dice, 4)) {
        case 0:
            send(nbytes);
            break;
        case 1:
            if (in_ring > 0)
                receive(1 + unit_below(&dice, in_ring));
            break;
        default:
            goes_with(unit_below(&dice, waits_max), nbytes);
        }
        unsigned standing = 0;
        for (unsigned i = 0; i < waits_max; i++)
            standing += waits[i].queue != 0;
        assert_int_equal(in_queue(), standing);
        assert_int_equal(is_narrow(), standing > 0);
    }
    while (in_queue() > 0) {
        receive(in_ring);
        assert_true(goes(first_in_queue()));
    }
    close_ring();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(threads_that_wait_go_in_order_before_others),
    cmocka_unit_test(a_thread_that_comes_late_finds_space_and_others_have_gone_on),
    cmocka_unit_test(no_more_than_half_of_the_ring_is_kept),
    cmocka_unit_test(the_largest_message_goes_beside_all_that_is_kept),
    cmocka_unit_test(small_messages_take_no_lines_from_a_large_one_that_waits),
    cmocka_unit_test(lines_are_kept_from_the_moment_that_a_thread_waits),
    cmocka_unit_test(a_wait_inside_another_one_goes_in_its_place),
    cmocka_unit_test(a_wait_inside_one_for_another_ring_stands_there_itself),
    cmocka_unit_test(a_thread_that_cannot_wait_gets_kept_space_sometimes),
    cmocka_unit_test(a_turn_is_several_messages),
    cmocka_unit_test(a_look_for_space_waits_in_the_queue_too),
    cmocka_unit_test(no_wait_is_forgotten_in_any_order),
};

UNIT_MAIN(tests)
