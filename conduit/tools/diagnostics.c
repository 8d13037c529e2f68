/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that a conduit's library has and the stand-alone tools do not: self-tests, on this machine
 * and in this build, of the locks, atomics, timers and heap that the tools offer to clients, and a
 * mapping of pages. One run at a time; in a threaded library the tests create threads of their own.
 */
#include "config.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include "base/client_mode.h"
#include "base/mode.h"
#include "gasnetex.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

enum { threads_max = 64, nap_ns = 2 * 1000 * 1000 };

/* Shared by the threads of one run. */
static struct {
    gasnett_mutex_t mutex;
    gasnett_rwlock_t rwlock;
    gasnett_atomic32_t added32, owner32;
    gasnett_atomic64_t added64;
    uint64_t under_mutex, under_rwlock, under_owner; /* each written with that lock held */
    int rounds;
} shared = {.mutex = GASNETT_MUTEX_INITIALIZER, .rwlock = GASNETT_RWLOCK_INITIALIZER};

static gasnett_atomic32_t errors = gasnett_atomic32_init(0);

static void __attribute__((format(printf, 2, 3))) expect(bool is_so, const char *format, ...)
{
    va_list arguments;
    if (is_so)
        return;
    gasnett_atomic32_increment(&errors, 0);
    va_start(arguments, format);
    tk_tools_vlog("ERROR", "diagnostics: ", format, arguments);
    va_end(arguments);
}

/* Runs body() in `count` threads at once, the caller among them, or in fewer if no more threads can
 * be created. Returns the number of threads. */
static int in_threads(int count, void *(*body)(void *))
{
    pthread_t others[threads_max];
    int made = 0;
    while (made < count - 1 && pthread_create(&others[made], NULL, body, NULL) == 0)
        made++;
    body(NULL);
    for (int i = 0; i < made; i++)
        pthread_join(others[i], NULL);
    return made + 1;
}

/* Increments without atomicity and often yields in the middle, so that two threads at once lose an
 * increment even on one CPU. */
static void increment(volatile uint64_t *counter, int round)
{
    enum { often = 16 };
    uint64_t seen = *counter;
    if (round % often == 0)
        gasnett_sched_yield();
    *counter = seen + 1;
}

/* ---- Locks ---- */

static void *count_under_locks(void *unused)
{
    for (int i = 0; i < shared.rounds; i++) {
        gasnett_mutex_lock(&shared.mutex);
        increment(&shared.under_mutex, i);
        gasnett_mutex_unlock(&shared.mutex);
        gasnett_rwlock_wrlock(&shared.rwlock);
        increment(&shared.under_rwlock, i);
        gasnett_rwlock_unlock(&shared.rwlock);
        gasnett_rwlock_rdlock(&shared.rwlock);
        gasnett_rwlock_unlock(&shared.rwlock);
    }
    return unused;
}

static void test_locks(int threads)
{
    shared.under_mutex = shared.under_rwlock = 0;
    uint64_t expected = (uint64_t)in_threads(threads, count_under_locks) * (uint64_t)shared.rounds;
    expect(shared.under_mutex == expected, "a mutex let %llu of %llu increments be lost",
           (unsigned long long)(expected - shared.under_mutex), (unsigned long long)expected);
    expect(shared.under_rwlock == expected,
           "a reader-writer lock let %llu of %llu increments be lost",
           (unsigned long long)(expected - shared.under_rwlock), (unsigned long long)expected);
    expect(gasnett_mutex_trylock(&shared.mutex) == 0, "a free mutex can't be taken at once");
    gasnett_mutex_unlock(&shared.mutex);
    expect(gasnett_rwlock_trywrlock(&shared.rwlock) == 0, "a free lock can't be taken for writing");
    gasnett_rwlock_unlock(&shared.rwlock);
}

/* ---- Atomics ---- */

/* A lock built on compare-and-swap is free of data races only if the acquire and release orders are
 * implemented correctly. */
static void count_as_owner(int round)
{
    while (!gasnett_atomic32_compare_and_swap(&shared.owner32, 0, 1, GASNETT_ATOMIC_ACQ))
        gasnett_sched_yield();
    increment(&shared.under_owner, round);
    gasnett_atomic32_set(&shared.owner32, 0, GASNETT_ATOMIC_REL);
}

static void *count_by_atomics(void *unused)
{
    for (int i = 0; i < shared.rounds; i++) {
        gasnett_atomic32_increment(&shared.added32, 0);
        gasnett_atomic64_add(&shared.added64, UINT64_C(1) << 32, 0);
        count_as_owner(i);
    }
    return unused;
}

static void test_atomics(int threads)
{
    gasnett_atomic32_set(&shared.added32, 0, 0);
    gasnett_atomic32_set(&shared.owner32, 0, 0);
    gasnett_atomic64_set(&shared.added64, 0, 0);
    shared.under_owner = 0;
    uint64_t expected = (uint64_t)in_threads(threads, count_by_atomics) * (uint64_t)shared.rounds;
    expect(gasnett_atomic32_read(&shared.added32, 0) == (uint32_t)expected,
           "increments of 32 bits were lost");
    expect(gasnett_atomic64_read(&shared.added64, 0) == expected << 32,
           "additions of 64 bits were lost");
    expect(shared.under_owner == expected, "compare-and-swap made two owners at once");
    expect(gasnett_atomic32_swap(&shared.added32, 1, 0) == (uint32_t)expected,
           "swap returned another value than the last");
    expect(gasnett_atomic32_decrement_and_test(&shared.added32, 0),
           "a counter of 1 was not 0 when it was decremented");
}

/* ---- Timers ---- */

static void test_timers(int rounds)
{
    uint64_t before_us = gasnett_gettimeofday_us();
    gasnett_tick_t begin = gasnett_ticks_now(), last = begin;
    for (int i = 0; i < rounds; i++) {
        gasnett_tick_t now = gasnett_ticks_now();
        expect(now >= last, "the ticks went back");
        last = now;
    }
    int error = gasnett_nsleep(nap_ns);
    uint64_t ticks_ns = gasnett_ticks_to_ns(gasnett_ticks_now() - begin);
    uint64_t wall_us = gasnett_gettimeofday_us() - before_us;
    expect(error || ticks_ns >= nap_ns - nap_ns / 10, "ticks counted %llu ns in a sleep of %d ns",
           (unsigned long long)ticks_ns, (int)nap_ns);
    /* The wall clock may be set during the test, so only a factor of two counts as a wrong rate. */
    expect(ticks_ns / 2 <= 1000 * wall_us + nap_ns,
           "%llu ns by ticks are %llu us by the wall clock", (unsigned long long)ticks_ns,
           (unsigned long long)wall_us);
}

/* ---- Heap ---- */

static void test_heap(int rounds)
{
    enum { blocks = 16, step = 37 };
    unsigned char *at[blocks];
    for (int round = 0; round < rounds && round < blocks; round++) {
        for (int i = 0; i < blocks; i++) {
            size_t size = (size_t)(1 + i * step);
            at[i] = gasnett_debug_malloc(size);
            memset(at[i], i, size);
        }
        gasnett_debug_memcheck_all();
        for (int i = 0; i < blocks; i++) {
            at[i] = gasnett_debug_realloc(at[i], (size_t)(2 + 2 * i * step));
            expect(at[i][0] == i && at[i][i * step] == i, "realloc lost what a block had");
            gasnett_debug_free(at[i]);
        }
    }
    gasnett_debug_memcheck_all();
}

/* ---- The interface ---- */

static bool is_chosen(const char *sections, char letter)
{
    return !sections || !*sections || strchr(sections, letter);
}

/* `testsections`: letters of A atomics, H heap, L locks, T timers; NULL or "": all. Returns the
 * number of errors, each of which was logged. Needs no peer and no segment. */
int gasnett_run_diagnostics(int iters, int threadcnt, const char *testsections, gex_TM_t myteam,
                            void *myseg, gex_Rank_t peer, void *peerseg)
{
    GASNETT_UNUSED_ARGS4(myteam, myseg, peer, peerseg);
    int threads = TK_THREADED ? threadcnt : 1;
    threads = threads > threads_max ? threads_max : threads;
    shared.rounds = iters;
    gasnett_atomic32_set(&errors, 0, 0);
    if (is_chosen(testsections, 'A'))
        test_atomics(threads);
    if (is_chosen(testsections, 'L'))
        test_locks(threads);
    if (is_chosen(testsections, 'T'))
        test_timers(iters);
    if (is_chosen(testsections, 'H'))
        test_heap(iters);
    return (int)gasnett_atomic32_read(&errors, 0);
}

void gasnett_diagnostic_gethandlers(gex_AM_Entry_t **htable, int *htable_cnt)
{
    static gex_AM_Entry_t none;
    *htable = &none;
    *htable_cnt = 0;
}

void *gasnett_mmap(uintptr_t segsize)
{
    return mmap(NULL, segsize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
