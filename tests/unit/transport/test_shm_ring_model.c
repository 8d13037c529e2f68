/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ring of messages under every order of its accesses that the memory model of C11 allows (as
 * far as weak_memory.h goes): two senders and a receiver, threads that share a handle, two threads
 * that receive. The code is that of the library, for threads. Then each search must find one
 * deliberate fault. */
#include "config.h"

#include "unit.h"
#include "weak_assert.h"

#include "ring_take.h"

enum {
    slots_max = 4,
    lines = 8,
    small = 16,
    large = 4 * tk_ring_line, /* two of them fill the lines */
    senders_max = 2
};

static struct {
    struct tk_ring_shared shared;
    struct tk_ring_slot slots[slots_max];
    _Alignas(tk_ring_line) char payload[2 * lines * tk_ring_line];
} memory;

static struct tk_ring_out outs[senders_max];
static struct tk_ring_in in;

/* What the threads are to do. */
static struct plan {
    unsigned slots;
    unsigned before;             /* messages of sender 0 that are in the ring at the start */
    unsigned count[senders_max]; /* of each sender, those included */
    size_t nbytes[senders_max];
    bool one_handle;
    bool two_receivers;
    bool lines_alone; /* check only memory of payload lines */
} plan;

static unsigned next_of[senders_max];

/* Opens the receiver once: deliberate faults need its addresses. */
static int open_receiver(void **state)
{
    return tk_ring_in_open(&in, &memory.shared, memory.payload, slots_max, lines);
}

static int close_receiver(void **state)
{
    tk_ring_in_close(&in);
    return 0;
}

static void empty_receiver(void)
{
    atomic_store_explicit(&in.taken, 0, memory_order_relaxed);
    atomic_store_explicit(&in.finished, 0, memory_order_relaxed);
    atomic_store_explicit(&in.retired, 0, memory_order_relaxed);
    atomic_store_explicit(&in.behind, false, memory_order_relaxed);
    in.mask = (plan.slots - 1) * tk_ring_line;
    in.places = plan.slots - 1;
    for (uint64_t i = 0; i < plan.slots; i++)
        atomic_store_explicit(&in.done[i], i * TK_RING_SLOT, memory_order_relaxed);
    tk_poke(&in.next, (uintptr_t)memory.shared.slots);
    tk_poke(&in.seq, tk_ring_seq(0));
    tk_lock_init(&in.taking);
    tk_lock_init(&in.lock);
}

static enum tk_status say(uint32_t me, uint32_t number)
{
    uint32_t text[large / 4] = {me, number};
    return tk_ring_send(&outs[plan.one_handle ? 0 : me], text, 8, text + 2, plan.nbytes[me] - 8);
}

static void start(void)
{
    for (uint16_t i = 0; i < senders_max; i++) {
        if (!plan.one_handle)
            weak_private(&outs[i], sizeof(outs[i]));
        next_of[i] = 0;
    }
    if (!plan.two_receivers) {
        weak_private(&in, sizeof(in));
        weak_private((const void *)in.done, slots_max * sizeof(*in.done));
    }
    tk_ring_format(&memory.shared, plan.slots, 0);
    empty_receiver();
    for (uint16_t i = 0; i < senders_max; i++)
        tk_ring_out_open(&outs[i], &memory.shared, memory.payload, plan.slots, lines, i);
    for (unsigned i = 0; i < plan.slots && !plan.lines_alone; i++)
        weak_share(memory.shared.slots[i].blob, tk_ring_slot_max, tk_ring_slot_max);
    weak_share(memory.payload, sizeof(memory.payload), tk_ring_line);
    for (uint32_t n = 0; n < plan.before; n++)
        assert_int_equal(say(0, n), TK_OK);
}

static void send_all(uint32_t me)
{
    for (uint32_t n = me == 0 ? plan.before : 0; n < plan.count[me]; n++) {
        while (weak_here(n), say(me, n) == TK_BUSY)
            weak_pause();
    }
}

static void sender_0(void)
{
    send_all(0);
}

static void sender_1(void)
{
    send_all(1);
}

static void check(const struct tk_ring_item *item)
{
    uint32_t text[2] = {9, 9};
    if (!item->blob)
        weak_fail("a slot lies about its size");
    size_t rest = item->rest ? item->rest_size : 0;
    if (!plan.lines_alone)
        weak_look(item->blob, item->nbytes);
    if (rest > 0)
        weak_look(item->rest, rest);
    memcpy(text, item->blob, sizeof(text));
    if (text[0] >= senders_max || item->nbytes + rest != plan.nbytes[text[0]])
        weak_fail("a message is not what was sent");
    if (!plan.one_handle && item->from != text[0])
        weak_fail("a message is not from whom the slot says");
    if (text[1] != next_of[text[0]]++ && !plan.two_receivers)
        weak_fail("messages of one sender changed places");
}

static void receiver(void)
{
    for (;;) {
        struct tk_ring_item item;
        weak_here(next_of[0] * 16 + next_of[1]);
        if (tk_ring_ready(&in) && tk_ring_take(&in, &item)) {
            check(&item);
            tk_ring_done(&in, &item);
        } else {
            weak_idle();
        }
    }
}

/* The next look of any poll. */
static void end(void)
{
    struct tk_ring_item item;
    for (int i = 0; i < senders_max; i++)
        if (next_of[i] != plan.count[i])
            weak_fail("a message was lost or came twice");
    if (tk_ring_take(&in, &item))
        weak_fail("there is a message too many");
    if (memory.shared.head != memory.shared.tail)
        weak_fail("space is not given back");
}

static const struct weak_program two_and_one = {start, {sender_0, sender_1, receiver}, end, 0};
/* Too many executions to try all, so reorderings of one execution are limited. */
static const struct weak_program longer = {start, {sender_0, sender_1, receiver}, end, 4};
static const struct weak_program one_and_one = {start, {sender_0, receiver}, end, 0};
static const struct weak_program one_and_two = {start, {sender_0, receiver, receiver}, end, 3};
static const struct weak_program shorter = {start, {sender_0, receiver, receiver}, end, 2};

static const struct plan from_empty = {2, 0, {1, 1}, {small, small}, false, false, false};
static const struct plan from_half = {2, 1, {2, 1}, {small, small}, false, false, false};
static const struct plan from_full = {2, 2, {3, 1}, {small, small}, false, false, false};
static const struct plan small_ones = {2, 0, {2, 2}, {small, small}, false, false, false};
static const struct plan large_ones = {4, 2, {3, 1}, {large, large}, false, false, false};
static const struct plan both_sizes = {2, 1, {2, 1}, {small, large}, false, false, false};
static const struct plan shared_handle = {2, 2, {3, 1}, {small, small}, true, false, false};
static const struct plan long_one = {2, 0, {5, 0}, {small, small}, false, false, false};
static const struct plan long_large_one = {4, 0, {5, 0}, {large, large}, false, false, true};
static const struct plan receiving_threads = {2, 2, {3, 0}, {small, small}, false, true, false};
static const struct plan large_to_threads = {4, 2, {3, 0}, {large, large}, false, true, false};

/* The last message reuses the slot of a message that a thread may have finished before the one in
 * front of it. */
static const struct plan second_again = {2, 2, {4, 0}, {small, small}, false, true, false};
static const struct plan second_lines_again = {4, 2, {4, 0}, {large, large}, false, true, true};

static void assert_right(const struct weak_program *program, const struct plan *p)
{
    plan = *p;
    weak_assert_right(program);
}

static void assert_wrong(const struct weak_program *program, const struct plan *p)
{
    plan = *p;
    weak_assert_wrong(program);
    weak_repair();
}

static void two_senders_and_a_receiver(void **state)
{
    assert_right(&two_and_one, &from_empty);
    assert_right(&two_and_one, &from_half);
    assert_right(&two_and_one, &from_full);
    assert_right(&longer, &small_ones);
    assert_right(&longer, &large_ones);
    assert_right(&two_and_one, &both_sizes);
}

static void three_laps_of_one_sender(void **state)
{
    assert_right(&one_and_one, &long_one);
    assert_right(&one_and_one, &long_large_one);
}

static void threads_that_share_a_senders_handle(void **state)
{
    assert_right(&longer, &shared_handle);
}

static void two_threads_that_receive(void **state)
{
    assert_right(&one_and_two, &receiving_threads);
    assert_right(&shorter, &large_to_threads);
    assert_right(&shorter, &second_again);
}

static void publishing_must_release(void **state)
{
    weak_break(weak_no_release, memory.shared.slots, sizeof(memory.slots));
    assert_wrong(&one_and_one, &long_one);
}

static void looking_at_a_slot_must_acquire(void **state)
{
    weak_break(weak_no_acquire, memory.shared.slots, sizeof(memory.slots));
    assert_wrong(&one_and_one, &long_one);
}

static void giving_back_must_release(void **state)
{
    weak_break(weak_no_release, &memory.shared.head, sizeof(memory.shared.head));
    assert_wrong(&one_and_one, &long_one);
}

static void reading_the_head_must_acquire(void **state)
{
    weak_break(weak_no_acquire, &memory.shared.head, sizeof(memory.shared.head));
    assert_wrong(&one_and_one, &long_one);
}

static void reserving_must_be_one_step(void **state)
{
    weak_break(weak_torn_exchange, &memory.shared.tail, sizeof(memory.shared.tail));
    assert_wrong(&two_and_one, &small_ones);
}

/* A payload has no atomic word of its own: that of its slot and the head order its lines, too. */
static void the_same_orders_guard_lines_of_payload(void **state)
{
    static const enum weak_flaw flaws[] = {weak_no_release, weak_no_acquire};
    for (size_t i = 0; i < sizeof(flaws) / sizeof(flaws[0]); i++) {
        weak_break(flaws[i], memory.shared.slots, sizeof(memory.slots));
        assert_wrong(&one_and_one, &long_large_one);
        weak_break(flaws[i], &memory.shared.head, sizeof(memory.shared.head));
        assert_wrong(&one_and_one, &long_large_one);
        weak_break(flaws[i], (const void *)in.done, slots_max * sizeof(*in.done));
        assert_wrong(&shorter, &second_lines_again);
    }
}

static void start_unchecked(void)
{
    start();
    for (int i = 0; i < senders_max; i++) {
        outs[i].limit = 100 * TK_RING_SLOT;
        outs[i].lines = 100;
    }
}

static void the_head_must_be_checked(void **state)
{
    const struct weak_program unchecked = {start_unchecked, {sender_0, receiver}, end, 0};
    assert_wrong(&unchecked, &long_one);
}

static void a_head_that_another_thread_read_must_be_acquired(void **state)
{
    weak_break(weak_no_acquire, &outs[0].head, sizeof(outs[0].head));
    assert_wrong(&longer, &shared_handle);
}

static void a_thread_that_is_done_must_release(void **state)
{
    weak_break(weak_no_release, (const void *)in.done, slots_max * sizeof(*in.done));
    assert_wrong(&shorter, &second_again);
}

static void a_thread_that_gives_back_must_acquire(void **state)
{
    weak_break(weak_no_acquire, (const void *)in.done, slots_max * sizeof(*in.done));
    assert_wrong(&shorter, &second_again);
}

static void a_thread_that_is_done_in_order_must_release(void **state)
{
    weak_break(weak_no_release, &in.finished, sizeof(in.finished));
    assert_wrong(&shorter, &receiving_threads);
}

static void a_thread_that_is_done_behind_another_must_acquire(void **state)
{
    weak_break(weak_no_acquire, &in.finished, sizeof(in.finished));
    assert_wrong(&shorter, &receiving_threads);
}

static void taking_must_be_one_step(void **state)
{
    weak_break(weak_torn_exchange, &in.taking, sizeof(in.taking));
    assert_wrong(&shorter, &receiving_threads);
}

static void a_thread_that_has_taken_must_release(void **state)
{
    weak_break(weak_no_release, &in.taking, sizeof(in.taking));
    assert_wrong(&shorter, &receiving_threads);
}

static void a_thread_that_takes_must_acquire(void **state)
{
    weak_break(weak_no_acquire, &in.taking, sizeof(in.taking));
    assert_wrong(&shorter, &receiving_threads);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_senders_and_a_receiver),
    cmocka_unit_test(three_laps_of_one_sender),
    cmocka_unit_test(threads_that_share_a_senders_handle),
    cmocka_unit_test(two_threads_that_receive),
    cmocka_unit_test(publishing_must_release),
    cmocka_unit_test(looking_at_a_slot_must_acquire),
    cmocka_unit_test(giving_back_must_release),
    cmocka_unit_test(reading_the_head_must_acquire),
    cmocka_unit_test(the_same_orders_guard_lines_of_payload),
    cmocka_unit_test(reserving_must_be_one_step),
    cmocka_unit_test(the_head_must_be_checked),
    cmocka_unit_test(a_head_that_another_thread_read_must_be_acquired),
    cmocka_unit_test(a_thread_that_is_done_must_release),
    cmocka_unit_test(a_thread_that_gives_back_must_acquire),
    cmocka_unit_test(a_thread_that_is_done_in_order_must_release),
    cmocka_unit_test(a_thread_that_is_done_behind_another_must_acquire),
    cmocka_unit_test(taking_must_be_one_step),
    cmocka_unit_test(a_thread_that_has_taken_must_release),
    cmocka_unit_test(a_thread_that_takes_must_acquire),
};

int main(void)
{
    unit_deadline();
    return cmocka_run_group_tests(tests, open_receiver, close_receiver);
}
