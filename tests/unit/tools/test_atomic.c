/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomics: the result of each operation, that arithmetic wraps, the fixed widths, and that no
 * concurrent update is lost (in the single mode: of the strong ones). */
#include "config.h"

#include <float.h>
#include <pthread.h>

#include "gasnet_tools.h"
#include "unit.h"

enum { rounds = 100000, handovers = 2000, threads = 4, enough = 10000, patience_us = 5000000 };

/* The same checks for each family of names. */
#define PROMISES(family, unsigned_t)                                                               \
    static void family##_keeps_its_promises(void **state)                                          \
    {                                                                                              \
        static gasnett_##family##_t a = gasnett_##family##_init(5);                                \
        const unsigned_t top = (unsigned_t)-1;                                                     \
        assert_true(gasnett_##family##_read(&a, 0) == 5);                                          \
        gasnett_##family##_set(&a, 7, GASNETT_ATOMIC_REL);                                         \
        assert_true(gasnett_##family##_read(&a, GASNETT_ATOMIC_ACQ) == 7);                         \
        gasnett_##family##_increment(&a, 0);                                                       \
        gasnett_##family##_increment(&a, GASNETT_ATOMIC_MB_PRE | GASNETT_ATOMIC_MB_POST);          \
        gasnett_##family##_decrement(&a, 0);                                                       \
        assert_true(gasnett_##family##_read(&a, GASNETT_ATOMIC_MB_PRE) == 8);                      \
        assert_true(gasnett_##family##_add(&a, 10, 0) == 18);                                      \
        assert_true(gasnett_##family##_subtract(&a, 16, GASNETT_ATOMIC_MB_POST) == 2);             \
        assert_false(gasnett_##family##_decrement_and_test(&a, GASNETT_ATOMIC_ACQ_IF_FALSE));      \
        assert_true(gasnett_##family##_decrement_and_test(&a, GASNETT_ATOMIC_ACQ_IF_TRUE));        \
        assert_false(gasnett_##family##_decrement_and_test(&a, 0));                                \
        assert_true(gasnett_##family##_read(&a, 0) == top);                                        \
        assert_true(gasnett_##family##_add(&a, 1, 0) == 0);                                        \
        assert_true(gasnett_##family##_subtract(&a, 1, 0) == top);                                 \
        assert_false(gasnett_##family##_compare_and_swap(&a, 3, 9, GASNETT_ATOMIC_ACQ_IF_FALSE));  \
        assert_true(gasnett_##family##_read(&a, 0) == top);                                        \
        assert_true(gasnett_##family##_compare_and_swap(&a, top, 9, GASNETT_ATOMIC_ACQ_IF_TRUE));  \
        assert_true(gasnett_##family##_swap(&a, 11, GASNETT_ATOMIC_REL) == 9);                     \
        assert_true(gasnett_##family##_read(&a, 0) == 11);                                         \
    }

/* clang-format off: these are definitions, not calls */
PROMISES(atomic, gasnett_atomic_val_t)
PROMISES(atomic32, uint32_t)
PROMISES(atomic64, uint64_t)
PROMISES(strongatomic, gasnett_atomic_val_t)
PROMISES(strongatomic32, uint32_t)
PROMISES(strongatomic64, uint64_t)
/* clang-format on */

static void signed_values_survive(void **state)
{
    gasnett_atomic_t a = gasnett_atomic_init(0);
    gasnett_atomic_decrement(&a, 0);
    assert_int_equal(gasnett_atomic_signed(gasnett_atomic_read(&a, 0)), -1);
    assert_true(gasnett_atomic_signed((gasnett_atomic_val_t)GASNETT_ATOMIC_SIGNED_MIN) ==
                GASNETT_ATOMIC_SIGNED_MIN);
    assert_true((gasnett_atomic_val_t)GASNETT_ATOMIC_SIGNED_MAX + (GASNETT_ATOMIC_MAX >> 1) ==
                GASNETT_ATOMIC_MAX - 1);
}

static void fixed_widths_lie_over_any_cell(void **state)
{
    float f = 1.5f;
    double d = 2.5;
    int32_t i = -3;
    assert_int_equal(sizeof(gasnett_atomic32_t), 4);
    assert_int_equal(sizeof(gasnett_atomic64_t), 8);
    assert_int_equal(sizeof(gasnett_strongatomic32_t), 4);
    assert_int_equal(sizeof(gasnett_strongatomic64_t), 8);
    assert_true(gasnett_atomic32_read((gasnett_atomic32_t *)&f, 0) == 0x3fc00000);
    gasnett_atomic32_set((gasnett_atomic32_t *)&f, 0x40200000, 0);
    assert_true(f == 2.5f);
    gasnett_strongatomic64_swap((gasnett_strongatomic64_t *)&d, UINT64_C(0x3ff8000000000000), 0);
    assert_true(d == 1.5);
    assert_true(gasnett_strongatomic32_add((gasnett_strongatomic32_t *)&i, 1, 0) == (uint32_t)-2);
    assert_int_equal(i, -2);
}

#if GASNETT_THREAD_SAFE
#    define SHARED(name) gasnett_atomic_##name
typedef gasnett_atomic_t shared_t;
#else
#    define SHARED(name) gasnett_strongatomic_##name
typedef gasnett_strongatomic_t shared_t;
#endif

static shared_t counter = {0}, turn = {0};
static unsigned payload;

static pthread_barrier_t start;
static gasnett_strongatomic_t meetings, all_rounds;

/* Threads that do not run at the same time prove nothing. A failed swap shows that another thread
 * interfered; on a busy machine it may take a while until enough swaps have failed. */
static void *count(void *arg)
{
    uint64_t began = gasnett_gettimeofday_us();
    pthread_barrier_wait(&start);
    do {
        for (int i = 0; i < rounds; i++) {
            gasnett_atomic_val_t seen;
            SHARED(increment)(&counter, 0);
            SHARED(add)(&counter, 2, 0);
            while (seen = SHARED(read)(&counter, 0),
                   !SHARED(compare_and_swap)(&counter, seen, seen - 1, 0))
                gasnett_strongatomic_increment(&meetings, 0);
        }
        gasnett_strongatomic_add(&all_rounds, rounds, 0);
    } while (gasnett_strongatomic_read(&meetings, 0) < enough &&
             gasnett_gettimeofday_us() - began < patience_us);
    return arg;
}

static void no_update_is_lost(void **state)
{
    pthread_t t[threads];
    pthread_barrier_init(&start, NULL, threads);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&t[i], NULL, count, NULL), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(SHARED(read)(&counter, 0),
                     (gasnett_atomic_val_t)(gasnett_strongatomic_read(&all_rounds, 0) * 2));
}

/* Plain data behind a flag: release before, acquire after. */
static void *answer(void *arg)
{
    for (unsigned i = 1; i < handovers; i += 2) {
        while (SHARED(read)(&turn, GASNETT_ATOMIC_ACQ) != i)
            gasnett_sched_yield();
        if (payload != i)
            return arg;
        payload = i + 1;
        SHARED(set)(&turn, i + 1, GASNETT_ATOMIC_REL);
    }
    return NULL;
}

static void fences_carry_plain_data_along(void **state)
{
    pthread_t t;
    void *failed;
    assert_int_equal(pthread_create(&t, NULL, answer, &payload), 0);
    for (unsigned i = 1; i < handovers; i += 2) {
        payload = i;
        SHARED(set)(&turn, i, GASNETT_ATOMIC_REL);
        while (SHARED(read)(&turn, GASNETT_ATOMIC_ACQ) != i + 1)
            gasnett_sched_yield();
        assert_int_equal(payload, i + 1);
    }
    pthread_join(t, &failed);
    assert_null(failed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(atomic_keeps_its_promises),
    cmocka_unit_test(atomic32_keeps_its_promises),
    cmocka_unit_test(atomic64_keeps_its_promises),
    cmocka_unit_test(strongatomic_keeps_its_promises),
    cmocka_unit_test(strongatomic32_keeps_its_promises),
    cmocka_unit_test(strongatomic64_keeps_its_promises),
    cmocka_unit_test(signed_values_survive),
    cmocka_unit_test(fixed_widths_lie_over_any_cell),
    cmocka_unit_test(no_update_is_lost),
    cmocka_unit_test(fences_carry_plain_data_along),
};
UNIT_MAIN(tests)
