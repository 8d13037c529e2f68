/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Polling and waiting: what runs when, what never nests, and when the CPU is yielded. sched_yield()
 * and the doorbell are fakes, so that the back-off can be counted. */
#include "config.h"

#include <unistd.h>

#include "fake_job.h"
#include "op/op_type.h"
#include "progress/lend.h"
#include "progress/progress.h"
#include "topology/topology.h"
#include "transport/device_events.h"
#include "transport/doorbell.h"
#include "unit.h"

static unsigned yields;

int sched_yield(void)
{
    yields++;
    return 0;
}

static unsigned sleeps;
static uint64_t longest_sleep, shortest_sleep;
static bool was_over; /* what look() said last */
static int32_t expected_asleep;

void tk_doorbell_look(struct tk_doorbell *bell)
{
    (void)bell;
}

bool tk_doorbell_sleep(struct tk_doorbell *own, bool (*look)(void *what), void *what, uint64_t nsec)
{
    (void)own;
    sleeps++;
    expected_asleep = tk_counter_read(&tk_sleeps_expected);
    was_over = look(what);
    longest_sleep = nsec > longest_sleep ? nsec : longest_sleep;
    shortest_sleep = nsec < shortest_sleep ? nsec : shortest_sleep;
    return true;
}

static bool has_socket;

bool tk_doorbell_open_socket(struct tk_doorbell *own)
{
    (void)own;
    return has_socket;
}

bool tk_doorbell_has_socket(struct tk_doorbell *own)
{
    (void)own;
    return has_socket;
}

static unsigned sleeps_by_files;

bool tk_doorbell_sleep_on(struct tk_doorbell *own, bool (*look)(void *what), void *what,
                          struct pollfd *files, unsigned count, uint64_t nsec)
{
    (void)files;
    if (count > 1)
        sleeps_by_files++;
    return tk_doorbell_sleep(own, look, what, nsec);
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

static bool got_on;

static bool work(void)
{
    works_done++;
    deepest = ++depth > deepest ? depth : deepest;
    if (depth < 5)
        tk_poll();
    depth--;
    return got_on;
}

static void poll_with_work(void *unused)
{
    fake_job_open(2);
    tk_progress_add(work);
    tk_poll();
    expect(works_done == 0); /* not requested */
    tk_counter_add(&tk_deferred_work_wanted, 1);
    tk_poll();
    expect(works_done == 1 && deepest == 1);
    expect(fake_job.polls == 3); /* the nested poll still served the network */
    tk_poll();
    expect(works_done == 2);
    got_on = true; /* a caller that waits for it must not sleep */
    expect(tk_poll());
    got_on = false;
    expect(!tk_poll());
    works_done = 2;
    tk_reap();
    expect(works_done == 2);
    tk_counter_add(&tk_deferred_work_wanted, -1);
    tk_poll();
    expect(works_done == 2);
}

static void work_that_is_wanted_follows_each_poll_but_not_those_within_it(void **state)
{
    in_child(poll_with_work);
}

static void too_much_work(void *unused)
{
    for (int i = 0; i < 100; i++)
        tk_progress_add(work);
}

static void kinds_of_work_are_few(void **state)
{
    unit_assert_panic(too_much_work, NULL, "kinds of work after polls");
}

static void poll_alone(void *unused)
{
    expect(!tk_poll() && !tk_reap());
}

static void a_job_of_one_has_nothing_to_poll(void **state)
{
    in_child(poll_alone);
}

static void inside_a_handler_waiting_reaps_only(void **state)
{
    unsigned empty = 0;
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
    yields = sleeps = 0;
    longest_sleep = 0;
    shortest_sleep = UINT64_MAX;
    for (unsigned i = 0; i < steps; i++)
        tk_wait_step(&empty);
    return yields;
}

static void open_job(bool crowded)
{
    fake_job_open(2);
    tk_topology.oversubscribed = crowded;
}

static void close_job(void)
{
    tk_wait_mode(TK_WAIT_BY_LOAD);
    tk_topology.oversubscribed = false;
    fake_job_close();
}

/* Spin for as long as a healthy round trip may take, then let others run. */
static void with_cpus_for_all_we_spin_first(void **state)
{
    open_job(false);
    assert_int_equal(empty_steps(10000), 0);
    assert_int_equal(empty_steps(30000), 10000);
    assert_int_equal(sleeps, 0);
    close_job();
}

static void with_more_ranks_than_cpus_we_soon_give_ours_away_and_then_sleep(void **state)
{
    open_job(true);
    assert_in_range(empty_steps(100), 2, 8);
    assert_in_range(sleeps, 20, 99 - yields);
    close_job();
}

static void a_client_that_says_spin_is_never_put_to_sleep(void **state)
{
    open_job(false);
    tk_wait_mode(TK_WAIT_SPIN);
    assert_int_equal(empty_steps(30000), 0);
    tk_topology.oversubscribed = true;
    assert_in_range(empty_steps(100), 50, 99);
    assert_int_equal(sleeps, 0);
    close_job();
}

static void a_client_that_says_block_never_spins(void **state)
{
    open_job(false);
    tk_wait_mode(TK_WAIT_BLOCK);
    empty_steps(10);
    assert_int_equal(sleeps, 10);
    close_job();
}

static void one_that_says_spinblock_does_both(void **state)
{
    open_job(false);
    tk_wait_mode(TK_WAIT_SPINBLOCK);
    assert_int_equal(empty_steps(500), 0);
    assert_int_equal(sleeps, 0);
    empty_steps(5000);
    assert_in_range(sleeps, 2000, 4999);
    close_job();
}

static bool has_come_result, asked_for_requests;

static bool has_come(bool requests_too)
{
    asked_for_requests = requests_too;
    return has_come_result;
}

static bool nothing(void)
{
    return false;
}

static const struct tk_transport ringing = {
    .poll = nothing, .reap = nothing, .reap_in_handler = nothing, .has_come = has_come};
static const struct tk_transport silent = {
    .poll = nothing, .reap = nothing, .reap_in_handler = nothing};

/* A caller may sleep for long only if its doorbell is certain to be rung. */
static void sleep_is_short_and_grows_where_nothing_rings(void **state)
{
    static const struct tk_transport *const both[] = {&ringing, &silent};
    unsigned empty = 0;
    tk_wait_mode(TK_WAIT_BLOCK);
    tk_progress_use(&ringing);
    empty_steps(3);
    assert_in_range(shortest_sleep, 10000000, 50000000);
    longest_sleep = 0;
    tk_wait_step_silent(&empty);
    assert_in_range(longest_sleep, 10000, 100000);
    for (int i = 0; i < 20; i++)
        tk_wait_step_silent(&empty);
    assert_in_range(longest_sleep, 500000, 1000000);
    tk_progress_use(&silent);
    empty_steps(20);
    assert_in_range(longest_sleep, 500000, 1000000);
    tk_progress_use_all(both, 2);
    empty_steps(20);
    assert_in_range(longest_sleep, 500000, 1000000);
    tk_wait_mode(TK_WAIT_BY_LOAD);
}

static bool events_open, events_armed, events_found;
static unsigned arms;

static bool events_are_open(void)
{
    return events_open;
}

static unsigned files(unsigned roles, struct pollfd *all, unsigned max)
{
    (void)roles, (void)all, (void)max;
    return 1;
}

static bool arm(unsigned roles, bool *is_armed)
{
    (void)roles;
    arms++;
    *is_armed = events_armed;
    return events_found;
}

static void take_events(unsigned roles)
{
    (void)roles;
}

static const struct tk_device_events events = {
    .is_open = events_are_open, .files = files, .arm = arm, .take = take_events};
static const struct tk_transport reporting = {
    .poll = nothing, .reap = nothing, .reap_in_handler = nothing, .events = &events};

static void sleep_by(bool socket, bool open, bool armed, bool found)
{
    static const struct tk_transport *const both[] = {&ringing, &reporting};
    has_socket = socket;
    events_open = open;
    events_armed = armed;
    events_found = found;
    sleeps_by_files = arms = 0;
    tk_progress_use_all(both, 2);
    empty_steps(10);
}

/* A device wakes the sleeper: it sleeps for long, but only where that is sure. */
static void where_a_device_reports_sleep_is_long(void **state)
{
    unsigned empty = 0;
    tk_wait_mode(TK_WAIT_BLOCK);
    sleep_by(true, true, true, false);
    assert_int_equal(sleeps_by_files, 10);
    assert_in_range(shortest_sleep, 10000000, 50000000);
    sleep_by(true, true, true, true); /* something came while the queues were armed */
    assert_int_equal(arms, 10);
    assert_int_equal(sleeps, 0);
    sleep_by(true, true, false, false);
    assert_int_equal(sleeps_by_files, 0);
    assert_in_range(longest_sleep, 500000, 1000000);
    sleep_by(true, false, true, false);
    assert_in_range(longest_sleep, 500000, 1000000);
    sleep_by(false, true, true, false);
    assert_in_range(longest_sleep, 500000, 1000000);
    sleep_by(true, true, true, false);
    arms = 0;
    tk_in_handler = 1; /* requests are not served there */
    tk_wait_step(&empty);
    tk_in_handler = 0;
    assert_int_equal(arms, 0);
    tk_wait_mode(TK_WAIT_BY_LOAD);
    tk_progress_use(&ringing);
}

static bool elsewhere_result;

static bool look_elsewhere(void)
{
    return elsewhere_result;
}

/* Messages that arrived before the doorbell was armed must keep us awake, except those that this
 * wait does not serve. */
static void the_last_look_sees_what_would_be_served(void **state)
{
    unsigned empty = 0;
    tk_wait_mode(TK_WAIT_BLOCK);
    tk_progress_use(&ringing);
    tk_wait_step(&empty);
    assert_false(was_over);
    has_come_result = true;
    tk_wait_step(&empty);
    assert_true(was_over && asked_for_requests);
    tk_in_handler = 1;
    tk_wait_step(&empty);
    tk_in_handler = 0;
    assert_true(was_over && !asked_for_requests);
    has_come_result = false;
    tk_progress_look(look_elsewhere);
    elsewhere_result = true;
    tk_wait_step(&empty);
    assert_true(was_over);
    elsewhere_result = false;
    tk_wait_mode(TK_WAIT_BY_LOAD);
}

/* A message that a poll does not find: its taker has no CPU. One that came just now is found by the
 * next poll, which should not be late. */
static void what_is_there_but_not_found_gives_the_cpu_away(void **state)
{
    tk_wait_mode(TK_WAIT_BLOCK);
    tk_progress_use(&ringing);
    assert_int_equal(empty_steps(10), 0);
    has_come_result = true;
    assert_int_equal(empty_steps(1), 0);
    assert_int_equal(empty_steps(10), 9);
    has_come_result = false;
    tk_wait_mode(TK_WAIT_BY_LOAD);
}

/* A message that arrives between a poll and the following sleep, in a wait that has slept before.
 */
static void what_has_just_come_does_not_give_the_cpu_away(void **state)
{
    unsigned empty = 0;
    tk_wait_mode(TK_WAIT_BLOCK);
    tk_progress_use(&ringing);
    empty_steps(10);
    for (int i = 0; i < 20; i++) {
        has_come_result = i % 2 != 0;
        tk_wait_step(&empty);
    }
    assert_int_equal(yields, 0);
    has_come_result = false;
    tk_wait_mode(TK_WAIT_BY_LOAD);
}

/* Clients that wait in loops of their own. */
static void where_ranks_outnumber_cpus_empty_polls_yield_the_cpu(void **state)
{
    fake_job_open(2);
    tk_progress_crowded();
    yields = 0;
    for (int i = 0; i < 100; i++)
        tk_poll();
    assert_in_range(yields, 50, 99);
    assert_int_equal(fake_job.polls, 100);
    fake_job_close();
}

static void expect_sleeps(void *unused)
{
    unsigned turn = 0;
    fake_job_open(2);
    tk_wait_asleep(&turn);
    expect(sleeps == 1 && expected_asleep != 0);
    tk_poll_asleep();
    expect(sleeps == 2 && expected_asleep != 0);
    expect(tk_counter_read(&tk_sleeps_expected) == 0);
    tk_wait_mode(TK_WAIT_SPIN);
    expect(tk_counter_read(&tk_sleeps_expected) == 0);
    tk_wait_mode(TK_WAIT_BLOCK);
    expect(tk_counter_read(&tk_sleeps_expected) != 0);
}

/* As long as no sleeper is expected, polls that find something wake nobody: in PAR a wake-up costs
 * two locked instructions each time. Each job waits asleep when it starts. */
static void waits_of_the_start_leave_no_sleep_to_be_expected(void **state)
{
    in_child(expect_sleeps);
}

static void anything_that_happens_starts_the_count_again(void **state)
{
    unsigned empty = 77;
    struct tk_message_head head = {.handler = 0};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    fake_job_open(2);
    fake_job.hold = true;
    fake_transport.am.send(tk_peer(1), &m);
    tk_wait_step(&empty);
    assert_int_equal(empty, 0);
    tk_wait_step(&empty);
    assert_int_equal(empty, 1);
    fake_job_close();
}

static void now_and_then_stalls_are_looked_for(void **state)
{
    fake_job_open(2);
    empty_steps(4000);
    assert_in_range(fake_job.stalls_reported, 0, 1);
    empty_steps(20000);
    assert_in_range(fake_job.stalls_reported, 1, 20);
    fake_job_close();
    fake_job_open(2);
    for (int i = 0; i < 100; i++) /* short waits are waits, too */
        empty_steps(400);
    assert_in_range(fake_job.stalls_reported, 1, 40);
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

/* Sources are lent to a device that is found done with them after at most `looks` polls. A slower
 * device is tried only occasionally, at growing intervals. Returns how many of `n` are lent. */
static unsigned looks, looked;

static bool finish_after_looks(void)
{
    if (++looked >= looks)
        tk_counter_set(&waited.pending, 0);
    return true;
}

static unsigned lent(unsigned n)
{
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!tk_source_lend())
            continue;
        count++;
        looked = 0;
        tk_counter_set(&waited.pending, 1);
        tk_source_look(&waited.pending);
    }
    return count;
}

static void sources_are_lent_to_a_device_that_completes_at_once(void **state)
{
    static const struct tk_transport device = {.reap = finish_after_looks};
    tk_progress_use(&device);
    looks = 1;
    assert_int_equal(lent(tk_lend_copies_min), 0); /* a program that sends little never tries */
    assert_int_equal(lent(100), 100);
    looks = tk_lend_looks; /* a completion may be late by chance */
    assert_int_equal(lent(100), 100);
    looks++;
    assert_int_equal(lent(1 + 2 * tk_lend_copies_min), 1);
    assert_int_equal(lent(1 + 4 * tk_lend_copies_min), 1);
    looks = 1;
    assert_int_equal(lent(50), 50);
}

/* Nor does a source that was copied after all and is complete before the first poll. */
static void only_lent_sources_teach(void **state)
{
    static const struct tk_transport device = {.reap = finish_after_looks};
    tk_progress_use(&device);
    looks = tk_lend_looks + 1;
    while (lent(1) == 0)
        continue;
    for (int i = 0; i < 1000; i++)
        if (tk_source_lend()) {
            tk_counter_set(&waited.pending, 0);
            looked = 0;
            tk_source_look(&waited.pending);
            assert_int_equal(looked, 0);
        }
    assert_true(lent(2 * tk_lend_copies_min) <= 1);
}

static void tries_become_rare_but_do_not_end(void **state)
{
    struct tk_lend lend = {.lends = false};
    unsigned tries = 0;
    for (uint32_t i = 0; i < 4 * tk_lend_copies_max; i++)
        if (tk_lend_next(&lend)) {
            tries++;
            tk_lend_learn(&lend, false);
        }
    assert_in_range(tries, 10, 20);
    assert_true(lend.copies <= tk_lend_copies_max);
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

/* The interface: a caller that waits makes progress for others. Operations that finish with their
 * first completion do so occasionally, or a client that only puts would never answer a request. */
static void a_row_of_short_waits_serves_others_too(void **state)
{
    static const struct tk_transport quick = {
        .poll = finish_and_serve, .reap = finish_by_reaping, .reap_in_handler = finish_by_reaping};
    tk_progress_use(&quick);
    served = 0;
    for (int i = 0; i < 64; i++) {
        tk_counter_set(&waited.pending, 1);
        tk_wait_done(&waited);
    }
    assert_in_range(served, 1, 64);
}

static const struct CMUnitTest tests[] = {
    /* first: others expect sleeps, for good */
    cmocka_unit_test(waits_of_the_start_leave_no_sleep_to_be_expected),
    cmocka_unit_test(a_job_of_one_has_nothing_to_poll),
    cmocka_unit_test(work_that_is_wanted_follows_each_poll_but_not_those_within_it),
    cmocka_unit_test(kinds_of_work_are_few),
    cmocka_unit_test(sources_are_lent_to_a_device_that_completes_at_once),
    cmocka_unit_test(only_lent_sources_teach),
    cmocka_unit_test(tries_become_rare_but_do_not_end),
    cmocka_unit_test(inside_a_handler_waiting_reaps_only),
    cmocka_unit_test(with_cpus_for_all_we_spin_first),
    cmocka_unit_test(with_more_ranks_than_cpus_we_soon_give_ours_away_and_then_sleep),
    cmocka_unit_test(a_client_that_says_spin_is_never_put_to_sleep),
    cmocka_unit_test(a_client_that_says_block_never_spins),
    cmocka_unit_test(one_that_says_spinblock_does_both),
    cmocka_unit_test(sleep_is_short_and_grows_where_nothing_rings),
    cmocka_unit_test(where_a_device_reports_sleep_is_long),
    cmocka_unit_test(the_last_look_sees_what_would_be_served),
    cmocka_unit_test(what_is_there_but_not_found_gives_the_cpu_away),
    cmocka_unit_test(what_has_just_come_does_not_give_the_cpu_away),
    cmocka_unit_test(where_ranks_outnumber_cpus_empty_polls_yield_the_cpu),
    cmocka_unit_test(anything_that_happens_starts_the_count_again),
    cmocka_unit_test(now_and_then_stalls_are_looked_for),
    cmocka_unit_test(waiting_ends_with_the_operation),
    cmocka_unit_test(a_row_of_short_waits_serves_others_too),
};

UNIT_MAIN(tests)
