/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The doorbell under every order of its accesses that the memory model of C11 allows: every sleeper
 * is woken, with membarrier(2) and without. Sleeps never time out here, so a lost wake-up leaves no
 * thread that can continue. Then the same with one step removed, which must fail. */
#include "config.h"

#include "unit.h"
#include "weak_assert.h"

#include "transport/doorbell.h"

static struct tk_doorbell bell;
static _Atomic uint32_t said; /* a counter, as the words of a ring's slots are */
static _Atomic uint32_t heard;
static bool refused_to_neighbour, looks;

static uint32_t words_said(void)
{
    return (uint32_t)atomic_load_explicit(&said, memory_order_acquire);
}

static bool something_to_hear(void *what)
{
    return looks && words_said() > *(const uint32_t *)what;
}

static void start(void)
{
    enum weak_membarrier as_it_is = weak_membarrier;
    atomic_store_explicit(&said, 0, memory_order_relaxed);
    atomic_store_explicit(&heard, 0, memory_order_relaxed);
    tk_doorbell_prepare();
    tk_doorbell_open(&bell);
    if (refused_to_neighbour)
        weak_membarrier = weak_membarrier_refused;
    tk_doorbell_prepare(); /* the neighbour's process */
    tk_doorbell_attach(&bell);
    weak_membarrier = as_it_is;
}

static void say(void)
{
    atomic_fetch_add_explicit(&said, 1, memory_order_release);
    tk_doorbell_ring(&bell);
}

static void says_once(void)
{
    say();
}

static void says_twice(void)
{
    say();
    say();
}

/* Sleeps without looking first, because the caller's spinning is not tested. */
static void hear(uint32_t words)
{
    for (uint32_t known = 0; known < words; known = words_said()) {
        weak_here(known + 1);
        tk_doorbell_sleep(&bell, something_to_hear, &known, 1);
    }
}

static void hears_one(void)
{
    hear(1);
}

static void hears_two(void)
{
    hear(2);
}

/* A thread that acts on what it hears, and one that waits for the act. */
static bool is_done(void *what)
{
    (void)what;
    return atomic_load_explicit(&heard, memory_order_acquire) != 0;
}

static void acts(void)
{
    hear(1);
    atomic_store_explicit(&heard, 1, memory_order_release);
    tk_doorbell_ring(&bell);
}

static void awaits_the_act(void)
{
    while (!is_done(NULL)) {
        weak_here(1);
        tk_doorbell_sleep(&bell, is_done, NULL, 1);
    }
}

static const struct weak_program one_word = {start, {says_once, hears_one}, NULL, 0};
static const struct weak_program two_words = {start, {says_twice, hears_two}, NULL, 0};
static const struct weak_program two_say = {start, {says_once, says_once, hears_two}, NULL, 4};
static const struct weak_program two_hear = {start, {says_once, hears_one, hears_one}, NULL, 4};
static const struct weak_program one_acts = {start, {says_once, acts, awaits_the_act}, NULL, 4};

static void all_are_right(void)
{
    weak_assert_right(&one_word);
    weak_assert_right(&two_words);
    weak_assert_right(&two_say);
    weak_assert_right(&two_hear);
    weak_assert_right(&one_acts);
}

static void every_sleeper_is_woken_with_membarrier(void **state)
{
    all_are_right();
    assert_int_equal(bell.word & TK_BELL_FENCED, 0);
}

static void nor_without(void **state)
{
    weak_membarrier = weak_membarrier_refused;
    all_are_right();
    assert_int_equal(bell.word & TK_BELL_FENCED, TK_BELL_FENCED);
}

static void nor_when_only_a_neighbour_has_none(void **state)
{
    refused_to_neighbour = true;
    all_are_right();
    assert_int_equal(bell.word & TK_BELL_FENCED, TK_BELL_FENCED);
}

static void without_the_second_look_a_wake_up_is_lost(void **state)
{
    looks = false;
    weak_assert_lost(&one_word);
}

static void without_fences_a_wake_up_is_lost(void **state)
{
    weak_membarrier = weak_membarrier_lies;
    weak_assert_lost(&one_word);
}

static void without_a_release_by_fencing_threads_a_wake_up_is_lost(void **state)
{
    weak_membarrier = weak_membarrier_refused;
    weak_break(weak_no_release, &bell.word, sizeof(bell.word));
    weak_assert_lost(&one_word);
}

static int as_it_should_be(void **state)
{
    weak_membarrier = weak_membarrier_works;
    refused_to_neighbour = false;
    looks = true;
    weak_repair();
    return 0;
}

#define PROMISE(name) cmocka_unit_test_setup(name, as_it_should_be)

static const struct CMUnitTest tests[] = {
    PROMISE(every_sleeper_is_woken_with_membarrier),
    PROMISE(nor_without),
    PROMISE(nor_when_only_a_neighbour_has_none),
    PROMISE(without_the_second_look_a_wake_up_is_lost),
    PROMISE(without_fences_a_wake_up_is_lost),
    PROMISE(without_a_release_by_fencing_threads_a_wake_up_is_lost),
};

UNIT_MAIN(tests)
