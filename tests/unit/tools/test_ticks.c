/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ticks of each source agree with the clock, and a given rate is accepted only if the clock agrees.
 * Each rate is tested in a process of its own, because it is determined once. */
#include "config.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "gasnet_tools.h"
#include "unit.h"

static uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The ratio of both over a moment; a machine that is busy may stop us between two readings. */
static double ratio(void)
{
    double best = 0;
    for (int i = 0; i < 5; i++) {
        uint64_t ns = clock_ns();
        gasnett_tick_t ticks = gasnett_ticks_now();
        gasnett_nsleep(20000000);
        ticks = gasnett_ticks_now() - ticks;
        ns = clock_ns() - ns;
        double now = (double)gasnett_ticks_to_ns(ticks) / (double)ns;
        if (i == 0 || (now > best && now <= 1) || (best > 1 && now < best))
            best = now;
    }
    return best;
}

static void ticks_run_as_the_clock_does(void **state)
{
    assert_in_range((uint64_t)(ratio() * 10000), 9950, 10050);
}

struct moment {
    uint64_t ns, slack;
    gasnett_tick_t ticks;
};

/* Both at one time, as far as the shortest of many tries shows. */
static struct moment read_moment(void)
{
    struct moment best = {.slack = UINT64_MAX};
    for (int i = 0; i < 200; i++) {
        struct timespec t;
        gasnett_tick_t before = gasnett_ticks_now();
        clock_gettime(CLOCK_MONOTONIC_RAW, &t);
        gasnett_tick_t after = gasnett_ticks_now();
        if (after - before < best.slack)
            best = (struct moment){(uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec,
                                   after - before, before + (after - before) / 2};
    }
    return best;
}

/* The rate is measured against the monotonic clock, which may be slewed by 500 millionths against
 * the raw one (adjtimex), for 10 ms between readings that are some 100 ns apart: 20 millionths.
 * The distance between this test's own readings comes on top. */
static void the_error_of_the_rate_is_bounded(void **state)
{
    gasnett_ticks_to_ns(1);
    struct moment from = read_moment();
    gasnett_nsleep(200000000);
    struct moment to = read_moment();
    double real = (double)(to.ns - from.ns);
    double told = (double)gasnett_ticks_to_ns(to.ticks - from.ticks);
    double slack = (double)gasnett_ticks_to_ns(from.slack + to.slack);
    double error = told > real ? told - real : real - told;
    if (error > real * 520e-6 + slack)
        fail_msg("ticks say %.0f ns, the raw clock %.0f: %.1f millionths apart", told, real,
                 error / real * 1e6);
}

static void ticks_never_go_back(void **state)
{
    gasnett_tick_t last = gasnett_ticks_now();
    for (int i = 0; i < 100000; i++) {
        gasnett_tick_t now = gasnett_ticks_now();
        assert_true(now >= last);
        last = now;
    }
    assert_true(last != GASNETT_TICK_MIN && last != GASNETT_TICK_MAX);
}

static void long_times_do_not_overflow(void **state)
{
    gasnett_tick_t year = 1;
    while (gasnett_ticks_to_ns(year) < UINT64_C(30000000000000000))
        year *= 2;
    double one = (double)gasnett_ticks_to_ns(year), two = (double)gasnett_ticks_to_ns(year * 2);
    assert_in_range((uint64_t)(two / one * 1000000), 1999999, 2000001);
    assert_int_equal(gasnett_ticks_to_us(year), gasnett_ticks_to_ns(year) / 1000);
}

static void the_timer_knows_itself(void **state)
{
    assert_true(gasnett_tick_granularityus() > 0 && gasnett_tick_granularityus() < 100);
    assert_true(gasnett_tick_overheadus() > 0 && gasnett_tick_overheadus() < 100);
}

static void the_wall_clock_is_in_microseconds(void **state)
{
    uint64_t us = gasnett_gettimeofday_us(), s = (uint64_t)time(NULL);
    assert_in_range(us / 1000000, s - 1, s + 1);
}

static void a_sleep_lasts_as_long_as_asked_for(void **state)
{
    uint64_t before = clock_ns();
    assert_int_equal(gasnett_nsleep(30000000), 0);
    assert_true(clock_ns() - before >= 30000000);
}

static void on_alarm(int number)
{
    (void)number;
}

static void a_signal_ends_a_sleep_and_is_reported(void **state)
{
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    struct sigaction act = {.sa_handler = on_alarm}, before;
    sigaction(SIGALRM, &act, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    uint64_t start = clock_ns();
    assert_int_not_equal(gasnett_nsleep(UINT64_C(5000000000)), 0);
    assert_true(clock_ns() - start < UINT64_C(4000000000));
    sigaction(SIGALRM, &before, NULL);
    unit_deadline();
}

static void convert(void *arg)
{
    const char *const *env = arg;
    for (; *env; env += 2)
        setenv(env[0], env[1], 1);
    gasnett_ticks_to_ns(gasnett_ticks_now());
    exit(0);
}

static int converting(const char *const *env, const char **said)
{
    return unit_child(convert, (void *)env, said);
}

static void a_rate_that_is_wrong_ends_the_process(void **state)
{
    const char *said, *const env[] = {"GASNET_TSC_RATE", "2000000", NULL};
    if (!gasnett_ticks_now() || !trunkline_ticks_by_counter)
        skip();
    assert_int_equal(WEXITSTATUS(converting(env, &said)), 2);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "GASNET_TSC_RATE=2000000 gives 2000000 Hz, but ");
}

static void tolerances_say_how_wrong_a_rate_may_be(void **state)
{
    const char *said, *const soft[] = {"GASNET_TSC_RATE", "2000000",
                                       "GASNET_TSC_RATE_HARD_TOLERANCE", "0", NULL};
    const char *const none[] = {"GASNET_TSC_RATE",
                                "2000000",
                                "GASNET_TSC_RATE_HARD_TOLERANCE",
                                "0",
                                "GASNET_TSC_RATE_TOLERANCE",
                                "0",
                                NULL};
    gasnett_ticks_now();
    if (!trunkline_ticks_by_counter)
        skip();
    assert_int_equal(converting(soft, &said), 0);
    unit_assert_says(said, "differ by more than GASNET_TSC_RATE_TOLERANCE=0.0005");
    assert_int_equal(converting(none, &said), 0);
    assert_string_equal(said, "");
}

static void an_invalid_rate_is_refused(void **state)
{
    const char *said, *const env[] = {"GASNET_TSC_RATE", "fast", NULL};
    assert_int_equal(WEXITSTATUS(converting(env, &said)), 2);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "GASNET_TSC_RATE='fast' is not walltime, cpuinfo or a rate");
}

static void the_rate_is_printed_on_request(void **state)
{
    const char *said, *const env[] = {"GASNET_TSC_VERBOSE", "1", NULL};
    assert_int_equal(converting(env, &said), 0);
    unit_assert_says(said, "ticks: the ");
    assert_int_equal(unit_lines(said), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_rate_that_is_wrong_ends_the_process),
    cmocka_unit_test(tolerances_say_how_wrong_a_rate_may_be),
    cmocka_unit_test(an_invalid_rate_is_refused),
    cmocka_unit_test(the_rate_is_printed_on_request),
    cmocka_unit_test(ticks_run_as_the_clock_does),
    cmocka_unit_test(the_error_of_the_rate_is_bounded),
    cmocka_unit_test(ticks_never_go_back),
    cmocka_unit_test(long_times_do_not_overflow),
    cmocka_unit_test(the_timer_knows_itself),
    cmocka_unit_test(the_wall_clock_is_in_microseconds),
    cmocka_unit_test(a_sleep_lasts_as_long_as_asked_for),
    cmocka_unit_test(a_signal_ends_a_sleep_and_is_reported),
};
UNIT_MAIN(tests)
