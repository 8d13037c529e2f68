/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks exclude, conditions wake, reader-writer locks let readers in together, keys are each
 * thread's own. In the single mode the locks do nothing, unless true ones are requested. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "gasnet_tools.h"
#include "unit.h"

GASNETT_THREADKEY_DEFINE(mine);

static void *read_key(void *arg)
{
    void *before = gasnett_threadkey_get(mine);
    gasnett_threadkey_set(mine, arg);
    return before == NULL && gasnett_threadkey_get_noinit(mine) == arg ? arg : NULL;
}

static void a_key_is_each_threads_own(void **state)
{
    int here, there;
    pthread_t t;
    void *result;
    assert_null(gasnett_threadkey_get(mine));
    gasnett_threadkey_init(mine);
    gasnett_threadkey_set_noinit(mine, &here);
    assert_int_equal(pthread_create(&t, NULL, read_key, &there), 0);
    pthread_join(t, &result);
    assert_ptr_equal(result, &there);
    assert_ptr_equal(gasnett_threadkey_get(mine), &here);
}

#if GASNETT_THREAD_SAFE || GASNETT_USE_TRUE_MUTEXES

enum { rounds = 50000 };

static gasnett_mutex_t lock = GASNETT_MUTEX_INITIALIZER;
static gasnett_cond_t cond = GASNETT_COND_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
static volatile int shared, flag;

static void *add(void *arg)
{
    for (int i = 0; i < rounds; i++) {
        gasnett_mutex_lock(&lock);
        gasnett_mutex_assertlocked(&lock);
        shared = shared + 1;
        gasnett_mutex_unlock(&lock);
    }
    return arg;
}

static void a_mutex_excludes(void **state)
{
    pthread_t t;
    shared = 0;
    assert_int_equal(pthread_create(&t, NULL, add, NULL), 0);
    add(NULL);
    pthread_join(t, NULL);
    assert_int_equal(shared, 2 * rounds);
}

static void *try_all(void *arg)
{
    int *result = arg;
    result[0] = gasnett_mutex_trylock(&lock);
    result[1] = gasnett_rwlock_tryrdlock(&rwlock);
    result[2] = gasnett_rwlock_trywrlock(&rwlock);
    if (result[1] == 0)
        gasnett_rwlock_unlock(&rwlock);
    return NULL;
}

static void other_thread_tries(int *result)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, try_all, result), 0);
    pthread_join(t, NULL);
}

static void trying_reports_a_taken_lock(void **state)
{
    int result[3];
    assert_int_equal(gasnett_mutex_trylock(&lock), 0);
    gasnett_rwlock_rdlock(&rwlock);
    gasnett_rwlock_assertrdlocked(&rwlock);
    other_thread_tries(result);
    assert_int_equal(result[0], EBUSY);
    assert_int_equal(result[1], 0); /* two readers */
    assert_int_equal(result[2], EBUSY);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_rwlock_wrlock(&rwlock);
    gasnett_rwlock_assertwrlocked(&rwlock);
    gasnett_rwlock_assertlocked(&rwlock);
    other_thread_tries(result);
    assert_int_equal(result[1], EBUSY);
    gasnett_rwlock_unlock(&rwlock);
    gasnett_rwlock_assertunlocked(&rwlock);
    gasnett_mutex_unlock(&lock);
    gasnett_mutex_assertunlocked(&lock);
}

static void *raise_flag(void *arg)
{
    gasnett_mutex_lock(&lock);
    flag = 1;
    gasnett_cond_signal(&cond);
    while (flag == 1)
        gasnett_cond_wait(&cond, &lock);
    gasnett_mutex_unlock(&lock);
    return arg;
}

static void a_condition_wakes_waiters(void **state)
{
    pthread_t t;
    gasnett_mutex_lock(&lock);
    assert_int_equal(pthread_create(&t, NULL, raise_flag, NULL), 0);
    while (!flag)
        gasnett_cond_wait(&cond, &lock);
    gasnett_mutex_assertlocked(&lock);
    flag = 2;
    gasnett_cond_broadcast(&cond);
    gasnett_mutex_unlock(&lock);
    pthread_join(t, NULL);
}

static void what_was_made_at_run_time_works_as_well(void **state)
{
    gasnett_mutex_t m;
    gasnett_cond_t c;
    gasnett_rwlock_t rw;
    memset(&m, 0xff, sizeof(m));
    memset(&rw, 0xff, sizeof(rw));
    gasnett_mutex_init(&m);
    gasnett_cond_init(&c);
    gasnett_rwlock_init(&rw);
    gasnett_mutex_lock(&m);
    gasnett_mutex_unlock(&m);
    gasnett_rwlock_wrlock(&rw);
    gasnett_rwlock_unlock(&rw);
    gasnett_rwlock_destroy(&rw);
    gasnett_cond_destroy(&c);
    gasnett_mutex_lock(&m);
    assert_int_equal(gasnett_mutex_destroy_ignoreerr(&m), EBUSY);
    gasnett_mutex_unlock(&m);
    gasnett_mutex_destroy(&m);
}

static void destroy_held(void *arg)
{
    gasnett_mutex_t *m = arg;
    gasnett_mutex_lock(m);
    gasnett_mutex_destroy(m);
    exit(0);
}

static void to_destroy_a_held_mutex_is_an_error(void **state)
{
    const char *said;
    gasnett_mutex_t m = GASNETT_MUTEX_INITIALIZER;
    assert_true(WIFSIGNALED(unit_child(destroy_held, &m, &said)));
    unit_assert_says(said, "pthread_mutex_destroy: ");
}

#    if GASNET_DEBUG

static void lock_twice(void *arg)
{
    gasnett_mutex_lock(arg);
    gasnett_mutex_lock(arg);
}

static void unlock_free(void *arg)
{
    gasnett_mutex_unlock(arg);
}

static void assert_writer(void *arg)
{
    gasnett_rwlock_rdlock(arg);
    gasnett_rwlock_assertwrlocked(arg);
}

static void assert_reader(void *arg)
{
    gasnett_rwlock_assertrdlocked(arg);
}

static void misused(void (*fn)(void *), void *arg, const char *how)
{
    const char *said;
    assert_true(WIFSIGNALED(unit_child(fn, arg, &said)));
    unit_assert_says(said, how);
}

static void a_debug_library_knows_the_owner(void **state)
{
    misused(lock_twice, &lock, "is held by the thread that must not hold it");
    misused(unlock_free, &lock, "is not held by the thread that must hold it");
    misused(assert_writer, &rwlock, "is not held by the thread that must hold it");
    misused(assert_reader, &rwlock, "is not held by the thread that must hold it");
}

#    else

static void a_debug_library_knows_the_owner(void **state)
{
    skip();
}

#    endif

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_debug_library_knows_the_owner),
    cmocka_unit_test(a_key_is_each_threads_own),
    cmocka_unit_test(a_mutex_excludes),
    cmocka_unit_test(trying_reports_a_taken_lock),
    cmocka_unit_test(a_condition_wakes_waiters),
    cmocka_unit_test(what_was_made_at_run_time_works_as_well),
    cmocka_unit_test(to_destroy_a_held_mutex_is_an_error),
};

#else

static void one_thread_has_no_locks(void **state)
{
    gasnett_mutex_t m = GASNETT_MUTEX_INITIALIZER;
    gasnett_rwlock_t rw = GASNETT_RWLOCK_INITIALIZER;
    assert_int_equal(sizeof(m) + sizeof(rw) + sizeof(gasnett_cond_t), 3);
    gasnett_mutex_lock(&m);
    assert_int_equal(gasnett_mutex_trylock(&m), 0);
    gasnett_mutex_assertunlocked(&m);
    gasnett_rwlock_wrlock(&rw);
    assert_int_equal(gasnett_rwlock_tryrdlock(&rw), 0);
    assert_int_equal(gasnett_rwlock_trywrlock(&rw), 0);
    gasnett_rwlock_assertunlocked(&rw);
    assert_int_equal(gasnett_mutex_destroy_ignoreerr(&m), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_key_is_each_threads_own),
    cmocka_unit_test(one_thread_has_no_locks),
};

#endif

UNIT_MAIN(tests)
