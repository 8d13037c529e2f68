/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that sleep until a device or a neighbour has something, under every interleaving that the
 * memory model of C11 allows: none misses a message or a completion, whichever thread waits for the
 * device, and when it stops. sleep.c and doorbell.c are those of the library, compiled for threads;
 * the device, the socket and poll(2) are models. Sleeps never time out here. Then the same with one
 * step removed, which must fail. */
#include "config.h"

#include "unit.h"
#include "weak_assert.h"

#include "progress/progress.h"
#include "progress/progress_private.h"
#include "transport/doorbell.h"

static struct tk_doorbell bell;
static _Atomic uint32_t said, heard; /* messages of a neighbour; those that a thread has handled */
static _Atomic uint32_t done;        /* completions of the device that a thread has handled */
static bool polls_before_arming;

static uint32_t value_of(const _Atomic uint32_t *counter)
{
    return atomic_load_explicit((_Atomic uint32_t *)counter, memory_order_acquire);
}

static bool has_come(bool requests_too)
{
    return requests_too && value_of(&said) != value_of(&heard);
}

static bool poll_device(void)
{
    bool any = false;
    while (weak_device_take()) {
        atomic_fetch_add_explicit(&done, 1, memory_order_release);
        any = true;
    }
    return any;
}

static bool poll_neighbour(void)
{
    uint32_t known = value_of(&heard);
    return value_of(&said) != known &&
           atomic_compare_exchange_weak_explicit(&heard, &known, known + 1, memory_order_acq_rel,
                                                 memory_order_relaxed);
}

static bool poll_both(void)
{
    bool any = poll_neighbour();
    any |= poll_device();
    if (any)
        tk_wake_own_threads();
    return any;
}

static bool is_open(void)
{
    return true;
}

static unsigned files(unsigned roles, struct pollfd *all, unsigned max)
{
    (void)roles, (void)max;
    all[0] = (struct pollfd){.fd = weak_device};
    return 1;
}

static bool arm(unsigned roles, bool *is_armed)
{
    bool any = polls_before_arming && poll_device();
    (void)roles;
    weak_device_arm();
    *is_armed = true;
    return any || (!polls_before_arming && poll_device());
}

static void take(unsigned roles)
{
    (void)roles;
    weak_device_take_event();
}

static const struct tk_device_events events = {
    .is_open = is_open, .files = files, .arm = arm, .take = take};

static void start(void)
{
    atomic_store_explicit(&said, 0, memory_order_relaxed);
    atomic_store_explicit(&heard, 0, memory_order_relaxed);
    atomic_store_explicit(&done, 0, memory_order_relaxed);
    tk_doorbell_prepare();
    tk_doorbell_open(&bell);
    tk_doorbell_attach(&bell);
    tk_progress_bell(&bell);
    tk_sleep_use(&events, has_come);
    tk_sleep_expect();
}

static void neighbour(void)
{
    atomic_fetch_add_explicit(&said, 1, memory_order_release);
    tk_doorbell_ring(&bell);
}

static void device(void)
{
    weak_device_completes();
}

static void device_twice(void)
{
    weak_device_completes();
    weak_device_completes();
}

/* As the loops of wait.c and backoff.c, without the spinning. */
static void wait_for(const _Atomic uint32_t *counter, uint32_t goal)
{
    int32_t seen = tk_sleep_events_seen();
    while (value_of(counter) < goal) {
        if (!poll_both())
            tk_sleep_until(TK_WAKE_BELL, seen, 1, 1);
        seen = tk_sleep_events_seen();
    }
}

static void waits_for_neighbour(void)
{
    wait_for(&heard, 1);
}

static void waits_for_device(void)
{
    wait_for(&done, 1);
}

static void waits_for_two(void)
{
    wait_for(&done, 2);
}

/* Its message has arrived when it wakes up: it does not poll again. */
static void leaves(void)
{
    weak_serves();
    tk_sleep_until(TK_WAKE_BELL, tk_sleep_events_seen(), 1, 1);
}

/* A thread of the library. */
static void serves(void)
{
    bool found;
    weak_serves();
    for (;;)
        if (!poll_both())
            tk_sleep_in_thread(TK_DEVICE_RECEIVES, 1, &found);
}

static void all_is_served(void)
{
    if (said != heard || done == 0)
        weak_fail("nobody can go on");
}

static const struct weak_program by_bell = {start, {neighbour, waits_for_neighbour}, NULL, 5};
static const struct weak_program by_device = {start, {device, waits_for_device}, NULL, 0};
static const struct weak_program both = {start, {neighbour, device, serves}, all_is_served, 3};
static const struct weak_program two_wait = {
    start, {device_twice, waits_for_device, waits_for_two}, NULL, 3};
static const struct weak_program each_waits = {
    start, {neighbour, device, waits_for_neighbour, waits_for_device}, NULL, 2};
static const struct weak_program one_leaves = {start, {leaves, waits_for_device, device}, NULL, 3};
static const struct weak_program one_leaves_early = {
    start, {leaves, waits_for_two, device_twice}, NULL, 3};
static const struct weak_program one_serves = {
    start, {device, serves, waits_for_device}, all_is_served, 3};

static void all_are_right(void)
{
    weak_assert_right(&by_bell);
    weak_assert_right(&by_device);
    weak_assert_right(&both);
    weak_assert_right(&two_wait);
    weak_assert_right(&each_waits);
    weak_assert_right(&one_serves);
    weak_assert_right(&one_leaves);
    weak_assert_right(&one_leaves_early);
}

static void no_thread_sleeps_through_a_message_or_a_completion(void **state)
{
    all_are_right();
}

static void nor_without_membarrier(void **state)
{
    weak_membarrier = weak_membarrier_refused;
    all_are_right();
}

static void without_a_look_after_arming_a_completion_is_lost(void **state)
{
    polls_before_arming = true;
    weak_assert_lost(&by_device);
}

static void without_fences_a_message_is_lost(void **state)
{
    weak_membarrier = weak_membarrier_lies;
    weak_assert_lost(&by_bell);
}

static int as_it_should_be(void **state)
{
    weak_membarrier = weak_membarrier_works;
    polls_before_arming = false;
    weak_repair();
    return 0;
}

#define PROMISE(name) cmocka_unit_test_setup(name, as_it_should_be)

static const struct CMUnitTest tests[] = {
    PROMISE(no_thread_sleeps_through_a_message_or_a_completion),
    PROMISE(nor_without_membarrier),
    PROMISE(without_a_look_after_arming_a_completion_is_lost),
    PROMISE(without_fences_a_message_is_lost),
};

UNIT_MAIN(tests)
