/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Polling and waiting: what runs when, what never runs inside what, and when the CPU is given away.
 * sched_yield() is ours here, so that the back-off can be counted. */
#include "config.h"

#include <unistd.h>

#include "fake_job.h"
#include "progress/progress.h"
#include "topology/topology.h"
#include "unit.h"

static unsigned yields;

int sched_yield(void)
{
    yields++;
    return 0;
}

static void expect(bool condition)
{
    if (!condition)
        _exit(1);
}

/* Work is registered for good, so each promise gets a process of its own. */
static void in_child(void (*test)(void *))
{
    unit_assert_exit(test, NULL, 0);
}

static unsigned works_done, depth, deepest;

static void work(void)
{
    works_done++;
    deepest = ++depth > deepest ? depth : deepest;
    if (depth < 5)
        tk_poll();
    depth--;
}

static void poll_with_work(void *unused)
{
    (void)unused;
    fake_job_open(2);
    tk_progress_add(work);
    tk_poll();
    expect(works_done == 0); /* nobody wants it */
    tk_counter_add(&tk_work_wanted, 1);
    tk_poll();
    expect(works_done == 1 && deepest == 1);
    expect(fake_job.polls == 3); /* the nested poll served the network all the same */
    tk_poll();
    expect(works_done == 2);
    tk_reap();
    expect(works_done == 2);
    tk_counter_add(&tk_work_wanted, -1);
    tk_poll();
    expect(works_done == 2);
}

static void work_that_is_wanted_follows_each_poll_but_not_those_within_it(void **state)
{
    (void)state;
    in_child(poll_with_work);
}

static void too_much_work(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        tk_progress_add(work);
}

static void kinds_of_work_are_few(void **state)
{
    (void)state;
    unit_assert_panic(too_much_work, NULL, "kinds of work after polls");
}

static void poll_alone(void *unused)
{
    (void)unused;
    expect(!tk_poll() && !tk_reap());
}

static void a_job_of_one_has_nothing_to_poll(void **state)
{
    (void)state;
    in_child(poll_alone);
}

static void inside_a_handler_waiting_reaps_only(void **state)
{
    unsigned empty = 0;
    (void)state;
    fake_job_open(2);
    tk_in_handler = 1;
    tk_wait_step(&empty);
    tk_in_handler = 0;
    assert_int_equal(fake_job.polls, 0);
    assert_int_equal(fake_job.reaps, 1);
    tk_wait_step(&empty);
    assert_int_equal(fake_job.polls, 1);
    fake_job_close();
}

static unsigned empty_steps(unsigned steps)
{
    unsigned empty = 0;
    yields = 0;
    for (unsigned i = 0; i < steps; i++)
        tk_wait_step(&empty);
    return yields;
}

/* Spin for as long as a healthy round trip may take, then let others run. */
static void with_cpus_for_all_we_spin_first(void **state)
{
    (void)state;
    fake_job_open(2);
    tk_topology.oversubscribed = false;
    assert_int_equal(empty_steps(10000), 0);
    assert_int_equal(empty_steps(30000), 10000);
    fake_job_close();
}

static void with_more_ranks_than_cpus_we_soon_give_ours_away(void **state)
{
    (void)state;
    fake_job_open(2);
    tk_topology.oversubscribed = true;
    assert_in_range(empty_steps(100), 50, 99);
    tk_topology.oversubscribed = false;
    fake_job_close();
}

static void a_client_that_says_block_never_spins(void **state)
{
    (void)state;
    fake_job_open(2);
    tk_wait_mode(false);
    assert_int_equal(empty_steps(10), 10);
    tk_wait_mode(true);
    assert_int_equal(empty_steps(10), 0);
    fake_job_close();
}

static void anything_that_happens_starts_the_count_again(void **state)
{
    unsigned empty = 77;
    struct tk_message_head head = {.handler = 0};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    (void)state;
    fake_job_open(2);
    fake_job.hold = true;
    fake_transport.send(tk_peer(1), &m);
    tk_wait_step(&empty);
    assert_int_equal(empty, 0);
    tk_wait_step(&empty);
    assert_int_equal(empty, 1);
    fake_job_close();
}

static void now_and_then_stalls_are_looked_for(void **state)
{
    (void)state;
    fake_job_open(2);
    empty_steps(4000);
    assert_int_equal(fake_job.stalls_told, 0);
    empty_steps(20000);
    assert_in_range(fake_job.stalls_told, 1, 20);
    fake_job_close();
}

static struct tk_op waited;
static unsigned polls_until_done;

static bool poll_finishes(void)
{
    if (--polls_until_done == 0)
        tk_counter_set(&waited.pending, 0);
    if (polls_until_done == 5)
        tk_counter_set(&waited.sources, 0);
    return false;
}

static void waiting_ends_with_the_operation(void **state)
{
    static const struct tk_transport finishing = {
        .poll = poll_finishes, .reap = poll_finishes, .reap_in_handler = poll_finishes};
    (void)state;
    tk_progress_use(&finishing);
    polls_until_done = 10;
    tk_counter_set(&waited.pending, 1);
    tk_counter_set(&waited.sources, 1);
    tk_wait_source_free(&waited);
    assert_int_equal(polls_until_done, 5);
    tk_wait_done(&waited);
    assert_int_equal(polls_until_done, 0);
    tk_wait_done(&waited); /* done already: no poll, or the count would wrap */
    assert_int_equal(polls_until_done, 0);
}

static unsigned served;

static bool finish_by_reaping(void)
{
    tk_counter_set(&waited.pending, 0);
    return true;
}

static bool finish_and_serve(void)
{
    served++;
    return finish_by_reaping();
}

/* The interface: whoever waits serves others. Operations that are over with their first completion
 * do so now and then, or a client that only puts would never answer anybody. */
static void a_row_of_short_waits_serves_others_too(void **state)
{
    static const struct tk_transport quick = {
        .poll = finish_and_serve, .reap = finish_by_reaping, .reap_in_handler = finish_by_reaping};
    (void)state;
    tk_progress_use(&quick);
    served = 0;
    for (int i = 0; i < 64; i++) {
        tk_counter_set(&waited.pending, 1);
        tk_wait_done(&waited);
    }
    assert_in_range(served, 1, 64);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_of_one_has_nothing_to_poll),
    cmocka_unit_test(work_that_is_wanted_follows_each_poll_but_not_those_within_it),
    cmocka_unit_test(kinds_of_work_are_few),
    cmocka_unit_test(inside_a_handler_waiting_reaps_only),
    cmocka_unit_test(with_cpus_for_all_we_spin_first),
    cmocka_unit_test(with_more_ranks_than_cpus_we_soon_give_ours_away),
    cmocka_unit_test(a_client_that_says_block_never_spins),
    cmocka_unit_test(anything_that_happens_starts_the_count_again),
    cmocka_unit_test(now_and_then_stalls_are_looked_for),
    cmocka_unit_test(waiting_ends_with_the_operation),
    cmocka_unit_test(a_row_of_short_waits_serves_others_too),
};

UNIT_MAIN(tests)
