/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters, pools, locks, free lists of operations. Compiled for PAR as well as for SEQ; with
 * threads the same promises hold for concurrent calls. */
#include "config.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "common/clock.h"
#include "base/copy.h"
#include "base/lock.h"
#include "base/pool.h"
#include "op/op.h"
#include "unit.h"

enum { workers = TK_THREADED ? 4 : 1, rounds = 20000 };

static void run_workers(void *(*work)(void *))
{
    pthread_t threads[workers];
    for (int i = 0; i < workers; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < workers; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void rounding_goes_up_to_the_unit(void **state)
{
    assert_int_equal(tk_align_up(0, 8), 0);
    assert_int_equal(tk_align_up(1, 8), 8);
    assert_int_equal(tk_align_up(8, 8), 8);
    assert_int_equal(tk_align_up(4097, 4096), 8192);
    assert_int_equal(tk_min(3, 4), 3);
    assert_int_equal(tk_max(3, 4), 4);
}

static void a_copy_has_all_bytes_and_no_more(void **state)
{
    enum { most = 200, margin = 8 };
    char from[most], to[most + 2 * margin];
    for (int i = 0; i < most; i++)
        from[i] = (char)(i + 1);
    for (size_t n = 0; n <= most; n++) {
        memset(to, 0, sizeof(to));
        tk_copy(to + margin, from, n);
        assert_memory_equal(to + margin, from, n);
        for (size_t i = 0; i < margin; i++)
            assert_true(to[i] == 0 && to[margin + n + i] == 0);
    }
}

/* Copied in pieces or at once, depending on the page offset between destination and source. */
static void a_large_copy_has_all_bytes_and_no_more(void **state)
{
    enum { page = 4096, most = 3 * page, margin = 8 };
    static _Alignas(page) char from[most], to[2 * page + most];
    static const size_t sizes[] = {0, 1, 255, 256, 257, 511, 512, 513, 4095, most};
    for (int i = 0; i < most; i++)
        from[i] = (char)(i * 7 + i / 256 + 1);
    for (size_t behind = margin; behind < 700; behind += 56)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            size_t n = sizes[i];
            memset(to, 0x55, sizeof(to));
            tk_copy_large(to + behind, from, n);
            assert_memory_equal(to + behind, from, n);
            assert_true(to[behind - 1] == 0x55 && to[behind + n] == 0x55);
        }
}

static void the_clock_never_goes_back(void **state)
{
    uint64_t before = tk_now();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = tk_now();
        assert_true(now >= before);
        before = now;
    }
}

static void a_counter_gives_no_more_than_it_has(void **state)
{
    tk_counter_t counter;
    tk_counter_set(&counter, 2);
    assert_true(tk_counter_take(&counter));
    assert_true(tk_counter_take(&counter));
    assert_false(tk_counter_take(&counter));
    assert_int_equal(tk_counter_read(&counter), 0);
    assert_int_equal(tk_counter_add(&counter, 5), 5);
    assert_int_equal(tk_counter_add(&counter, -6), -1);
    assert_false(tk_counter_take(&counter));
    assert_int_equal(tk_counter_read(&counter), -1);
}

static tk_counter_t shared, taken;

static void *take_until_empty(void *unused)
{
    while (tk_counter_take(&shared))
        tk_counter_add(&taken, 1);
    return NULL;
}

static void takers_of_a_counter_share_it_exactly(void **state)
{
    tk_counter_set(&shared, rounds);
    tk_counter_set(&taken, 0);
    run_workers(take_until_empty);
    assert_int_equal(tk_counter_read(&taken), rounds);
    assert_int_equal(tk_counter_read(&shared), 0);
}

static tk_lock_t lock = TK_LOCK_INIT;
static long guarded;

static void *count_under_lock(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        tk_lock(&lock);
        guarded++;
        tk_unlock(&lock);
    }
    return NULL;
}

static void a_lock_excludes(void **state)
{
    guarded = 0;
    run_workers(count_under_lock);
    assert_int_equal(guarded, (long)workers * rounds);
}

static void trying_a_held_lock_fails_where_threads_exist(void **state)
{
    tk_lock(&lock);
    assert_int_equal(tk_trylock(&lock), !TK_THREADED);
    tk_unlock(&lock);
    assert_true(tk_trylock(&lock));
    tk_unlock(&lock);
}

struct thing {
    struct tk_pool_item item;
    int value;
};

static void a_pool_gives_the_last_first_and_then_nothing(void **state)
{
    struct tk_pool pool;
    struct thing things[3];
    tk_pool_init(&pool);
    assert_null(tk_pool_take(&pool));
    for (int i = 0; i < 3; i++)
        tk_pool_give(&pool, &things[i]);
    for (int i = 3; i-- > 0;)
        assert_ptr_equal(tk_pool_take(&pool), &things[i]);
    assert_null(tk_pool_take(&pool));
}

static struct tk_pool common;
static tk_counter_t collisions;

static void *borrow(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        struct thing *thing = tk_pool_take(&common);
        if (!thing)
            continue;
        if (__atomic_add_fetch(&thing->value, 1, __ATOMIC_RELAXED) != 1)
            tk_counter_add(&collisions, 1);
        __atomic_sub_fetch(&thing->value, 1, __ATOMIC_RELAXED);
        tk_pool_give(&common, thing);
    }
    return NULL;
}

static void no_two_threads_hold_one_item(void **state)
{
    static struct thing things[3];
    int left = 0;
    tk_pool_init(&common);
    for (int i = 0; i < 3; i++)
        tk_pool_give(&common, &things[i]);
    run_workers(borrow);
    assert_int_equal(tk_counter_read(&collisions), 0);
    while (tk_pool_take(&common))
        left++;
    assert_int_equal(left, 3);
}

static void a_new_operation_is_done(void **state)
{
    struct tk_op *op = tk_op_take();
    tk_counter_set(&op->pending, 3);
    tk_counter_set(&op->sources, 2);
    assert_false(tk_op_done(op) || tk_op_source_free(op));
    tk_op_give(op);
    struct tk_op *again = tk_op_take_with(1);
    while (again != op) {
        assert_true(tk_op_source_free(again) && !tk_op_done(again));
        tk_op_give(again);
        again = tk_op_take_with(1);
    }
    assert_true(tk_op_source_free(op) && !tk_op_done(op));
    tk_op_give(op);
    again = tk_op_take();
    assert_true(tk_op_source_free(again) && tk_op_done(again));
    tk_op_give(again);
}

/* A client with many operations in flight: each is found once, regardless of which are freed
 * meanwhile, and the search for free ones does not become slower. */
static void operations_in_flight_are_never_found_again(void **state)
{
    enum { most = 20000 };
    static struct tk_op *held[most];
    uint64_t chance = 1, began = tk_now();
    for (int turn = 0; turn < 10 * most; turn++) {
        chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        struct tk_op **place = &held[(chance >> 33) % most];
        if (*place) {
            assert_int_equal(tk_counter_read(&(*place)->pending), place - held + 1);
            tk_op_give(*place);
        }
        *place = tk_op_take_with((int32_t)(place - held) + 1);
    }
    assert_true(tk_now() - began < 5 * TK_SECOND);
    for (int i = 0; i < most; i++)
        if (held[i])
            tk_op_give(held[i]);
}

/* The thread that synchronises an operation releases it; the thread that allocated it finds it
 * again. */
static void *free_all_ops(void *ops)
{
    for (struct tk_op **op = ops; *op; op++)
        tk_op_give(*op);
    return NULL;
}

static void another_thread_may_give_an_operation_back(void **state)
{
    struct tk_op *ops[2] = {NULL}, *first;
    pthread_t thread;
    ops[0] = first = tk_op_take();
    pthread_create(&thread, NULL, free_all_ops, ops);
    pthread_join(thread, NULL);
    for (int i = 0; i < 100000 && (ops[0] = tk_op_take()) != first; i++)
        tk_op_give(ops[0]);
    assert_ptr_equal(ops[0], first);
    tk_op_give(first);
}

/* Events are addresses in which a bit is free. */
static void operations_are_distinct_and_aligned(void **state)
{
    struct tk_op *ops[200];
    for (int i = 0; i < 200; i++) {
        ops[i] = tk_op_take();
        assert_int_equal((uintptr_t)ops[i] % 8, 0);
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(ops[i], ops[j]);
    }
    for (int i = 0; i < 200; i++)
        tk_op_give(ops[i]);
}

static struct tk_op *from_thread;

static void *take_one_and_end(void *unused)
{
    from_thread = tk_op_take();
    tk_op_give(from_thread);
    return NULL;
}

static void *find_it_again(void *found)
{
    struct tk_op *ops[64];
    for (int i = 0; i < 64; i++) {
        ops[i] = tk_op_take();
        *(bool *)found |= ops[i] == from_thread;
    }
    for (int i = 0; i < 64; i++)
        tk_op_give(ops[i]);
    return NULL;
}

/* A client that starts a thread for each piece of work must not leak a slab with each. */
static void what_an_ended_thread_had_is_used_again(void **state)
{
    pthread_t thread;
    bool found = false;
    if (!TK_THREADED)
        skip();
    pthread_create(&thread, NULL, take_one_and_end, NULL);
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, find_it_again, &found);
    pthread_join(thread, NULL);
    assert_true(found);
}

/* The same when several live at once: each inherits from one, so none has to make a slab. */
enum { at_once = 4 };
static pthread_barrier_t together;

static void *take_one_together(void *taken)
{
    *(struct tk_op **)taken = tk_op_take();
    pthread_barrier_wait(&together);
    tk_op_give(*(struct tk_op **)taken);
    return NULL;
}

static void threads_that_end_together_leave_enough_for_as_many(void **state)
{
    struct tk_op *seen[2 * at_once] = {NULL};
    int known = 0;
    if (!TK_THREADED)
        skip();
    pthread_barrier_init(&together, NULL, at_once);
    for (int generation = 0; generation < 20; generation++) {
        struct tk_op *taken[at_once];
        pthread_t threads[at_once];
        for (int i = 0; i < at_once; i++)
            pthread_create(&threads[i], NULL, take_one_together, &taken[i]);
        for (int i = 0; i < at_once; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < at_once; i++) {
            int at = 0;
            while (at < known && seen[at] != taken[i])
                at++;
            assert_true(at < 2 * at_once);
            seen[at] = taken[i];
            known = at == known ? known + 1 : known;
        }
    }
    pthread_barrier_destroy(&together);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(rounding_goes_up_to_the_unit),
    cmocka_unit_test(a_copy_has_all_bytes_and_no_more),
    cmocka_unit_test(a_large_copy_has_all_bytes_and_no_more),
    cmocka_unit_test(the_clock_never_goes_back),
    cmocka_unit_test(a_counter_gives_no_more_than_it_has),
    cmocka_unit_test(takers_of_a_counter_share_it_exactly),
    cmocka_unit_test(a_lock_excludes),
    cmocka_unit_test(trying_a_held_lock_fails_where_threads_exist),
    cmocka_unit_test(a_pool_gives_the_last_first_and_then_nothing),
    cmocka_unit_test(no_two_threads_hold_one_item),
    cmocka_unit_test(a_new_operation_is_done),
    cmocka_unit_test(operations_are_distinct_and_aligned),
    cmocka_unit_test(operations_in_flight_are_never_found_again),
    cmocka_unit_test(another_thread_may_give_an_operation_back),
    cmocka_unit_test(what_an_ended_thread_had_is_used_again),
    cmocka_unit_test(threads_that_end_together_leave_enough_for_as_many),
};

UNIT_MAIN(tests)
