/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranks with a CPU each whose threads outnumber CPUs: threads that wait soon yield, and sleep if
 * others took the CPU meanwhile; threads that have ended do not count. sched_yield() and the
 * doorbell are fakes, so that the back-off can be counted. */
#include "config.h"

#include <pthread.h>

#include "common/clock.h"
#include "fake_job.h"
#include "progress/progress.h"
#include "topology/topology.h"
#include "transport/doorbell.h"
#include "unit.h"

enum {
    others_max = 3,
    few = 1000 /* empty polls, less than a thread with a CPU of its own spins */
};

static _Thread_local unsigned yields;
static unsigned sleeps;
static bool is_taken; /* each yield takes as long as if another thread ran */

int sched_yield(void)
{
    uint64_t end = tk_now() + TK_SECOND / 100000;
    yields++;
    while (is_taken && tk_now() < end)
        continue;
    return 0;
}

void tk_doorbell_look(struct tk_doorbell *bell)
{
    (void)bell;
}

bool tk_doorbell_sleep(struct tk_doorbell *own, bool (*look)(void *what), void *what, uint64_t nsec)
{
    (void)own, (void)nsec;
    look(what);
    sleeps++;
    return false;
}

bool tk_doorbell_open_socket(struct tk_doorbell *own)
{
    return own && false;
}

bool tk_doorbell_has_socket(struct tk_doorbell *own)
{
    return own && false;
}

bool tk_doorbell_sleep_on(struct tk_doorbell *own, bool (*look)(void *what), void *what,
                          struct pollfd *files, unsigned count, uint64_t nsec)
{
    (void)files, (void)count;
    return tk_doorbell_sleep(own, look, what, nsec);
}

static unsigned yields_of(unsigned steps)
{
    unsigned empty = 0;
    yields = sleeps = 0;
    for (unsigned i = 0; i < steps; i++)
        tk_wait_step(&empty);
    return yields;
}

static pthread_t others[others_max];
static pthread_barrier_t waited, over;

static void *other(void *unused)
{
    yields_of(1);
    pthread_barrier_wait(&waited);
    pthread_barrier_wait(&over);
    return unused;
}

/* That have waited once, and live until end_others(). */
static void begin_others(unsigned count)
{
    pthread_barrier_init(&waited, NULL, count + 1);
    pthread_barrier_init(&over, NULL, count + 1);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&others[i], NULL, other, NULL), 0);
    pthread_barrier_wait(&waited);
}

static void end_others(unsigned count)
{
    pthread_barrier_wait(&over);
    for (unsigned i = 0; i < count; i++)
        pthread_join(others[i], NULL);
    pthread_barrier_destroy(&waited);
    pthread_barrier_destroy(&over);
}

static int open_job(void **state)
{
    (void)state;
    fake_job_open(2);
    tk_topology.local_size = 2;
    tk_topology.cpus = 4;
    return 0;
}

static int close_job(void **state)
{
    (void)state;
    tk_wait_mode(TK_WAIT_BY_LOAD);
    tk_topology.local_size = tk_topology.cpus = 1;
    fake_job_close();
    return 0;
}

static void threads_with_a_cpu_each_spin(void **state)
{
    (void)state;
    begin_others(1);
    assert_int_equal(yields_of(few), 0);
    end_others(1);
}

static void threads_that_outnumber_cpus_yield(void **state)
{
    (void)state;
    begin_others(2);
    assert_in_range(yields_of(few), few / 2, few - 1);
    end_others(2);
}

static void on_a_cpu_that_others_use_they_sleep(void **state)
{
    (void)state;
    begin_others(2);
    is_taken = true;
    assert_in_range(yields_of(few), 5, 50);
    assert_in_range(sleeps, few / 2, few - 1);
    is_taken = false;
    yields_of(few);
    assert_in_range(sleeps, 0, few / 4); /* time slices of others may be in between */
    end_others(2);
}

static void threads_that_have_ended_do_not_count(void **state)
{
    (void)state;
    begin_others(3);
    assert_in_range(yields_of(few), few / 2, few - 1);
    end_others(3);
    assert_int_equal(yields_of(few), 0);
}

static void a_client_that_says_spin_yields_and_never_sleeps(void **state)
{
    (void)state;
    tk_wait_mode(TK_WAIT_SPIN);
    assert_int_equal(yields_of(few), 0);
    begin_others(2);
    is_taken = true;
    assert_in_range(yields_of(few), few / 2, few - 1);
    assert_int_equal(sleeps, 0);
    is_taken = false;
    end_others(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_with_a_cpu_each_spin, open_job, close_job),
        cmocka_unit_test_setup_teardown(threads_that_outnumber_cpus_yield, open_job, close_job),
        cmocka_unit_test_setup_teardown(on_a_cpu_that_others_use_they_sleep, open_job, close_job),
        cmocka_unit_test_setup_teardown(threads_that_have_ended_do_not_count, open_job, close_job),
        cmocka_unit_test_setup_teardown(a_client_that_says_spin_yields_and_never_sleeps, open_job,
                                        close_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
