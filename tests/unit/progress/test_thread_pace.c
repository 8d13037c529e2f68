/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How often a thread of the library wakes up and for how long it works, with a fake clock: the
 * limits hold however much there is to do. And that the client's thread takes locks from the time
 * at which there may be such a thread. */
#include "config.h"

#include <unistd.h>

#include "common/clock.h"
#include "process/alone.h"
#include "progress/thread_pace.h"
#include "progress/threads.h"
#include "settings/settings.h"
#include "transport/transport.h"
#include "unit.h"

/* A thread that always finds something to do, `work` ns each time; wake-ups in a second, and how
 * much of it was work. */
static uint64_t busy_second(struct tk_thread_pace *pace, uint64_t work, uint64_t *worked)
{
    uint64_t now = 12345, wakes = 0;
    *worked = 0;
    while (now < 12345 + TK_SECOND) {
        tk_thread_pace_wake(pace, now);
        wakes++;
        uint64_t most = tk_thread_pace_most(pace);
        uint64_t did = work < most ? work : most;
        *worked += did;
        now += did;
        now += tk_thread_pace_rest(pace, now, did);
    }
    return wakes;
}

static void without_limits_it_never_rests(void **state)
{
    struct tk_thread_pace pace;
    uint64_t worked;
    tk_thread_pace_open(&pace, 0, 0);
    assert_int_equal(tk_thread_pace_most(&pace), UINT64_MAX);
    assert_in_range(busy_second(&pace, 1000, &worked), 999999, 1000001);
    tk_thread_pace_open(&pace, 0, 100);
    assert_in_range(busy_second(&pace, 1000, &worked), 999999, 1000001);
}

static void it_wakes_up_no_more_often_than_the_rate(void **state)
{
    struct tk_thread_pace pace;
    uint64_t worked;
    for (uint64_t rate = 1; rate <= 10000; rate *= 10) {
        tk_thread_pace_open(&pace, rate, 0);
        assert_in_range(busy_second(&pace, 2000, &worked), rate - rate / 100, rate + 1);
    }
    tk_thread_pace_open(&pace, 10, 0); /* slower than its rate by itself */
    assert_int_equal(busy_second(&pace, TK_SECOND / 5, &worked), 5);
}

static void it_works_no_longer_than_the_load(void **state)
{
    struct tk_thread_pace pace;
    uint64_t worked;
    for (uint64_t load = 1; load < 100; load += 7) {
        tk_thread_pace_open(&pace, 0, load);
        busy_second(&pace, 10 * TK_SECOND, &worked); /* a flood that never ends */
        assert_in_range(worked, TK_SECOND / 100 * load / 2, TK_SECOND / 100 * (load + 2));
    }
}

static void of_both_limits_the_stricter_counts(void **state)
{
    struct tk_thread_pace pace;
    uint64_t worked;
    tk_thread_pace_open(&pace, 100, 50);
    assert_in_range(busy_second(&pace, 2000, &worked), 99, 101);
    tk_thread_pace_open(&pace, 1000000, 10);
    busy_second(&pace, TK_SECOND / 10000, &worked);
    assert_in_range(worked, TK_SECOND / 20, TK_SECOND / 8);
}

static void open_threads(void *unused)
{
    static const struct tk_transport shm = {.name = "shm"};
    (void)unused;
    tk_alone_open();
    tk_alone_accept();
    if (!tk_is_only_inside())
        _exit(unit_cannot);
    tk_transports.at[0] = &shm;
    tk_transports.count = 1;
    tk_progress_threads_open();
    if (tk_progress_threads_count() != 0 || !tk_is_only_inside())
        _exit(1);
    tk_settings.rcv_thread = true;
    tk_progress_threads_open();
    _exit(tk_progress_threads_count() != 1 || tk_is_only_inside() ? 2 : 0);
}

static void with_a_thread_of_the_library_no_other_is_the_only_one(void **state)
{
    unit_assert_exit_or_skip(open_threads, NULL, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(without_limits_it_never_rests),
    cmocka_unit_test(it_wakes_up_no_more_often_than_the_rate),
    cmocka_unit_test(it_works_no_longer_than_the_load),
    cmocka_unit_test(of_both_limits_the_stricter_counts),
    cmocka_unit_test(with_a_thread_of_the_library_no_other_is_the_only_one),
};

UNIT_MAIN(tests)
