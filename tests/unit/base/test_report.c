/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines for people: the rank is in front, a line is one write so that lines of ranks never mix,
 * and quiet silences warnings but never errors. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "base/report.h"
#include "unit.h"

static void before_start_up_the_program_is_named(void **state)
{
    unit_listen();
    tk_log_error("no %s", "luck");
    assert_string_equal(unit_heard(), "trunkline: no luck\n");
}

static void speak_as_rank_3(void *unused)
{
    tk_report_identity(3, 8, "node7");
    tk_log_error("a%d", 1);
    tk_log_warn("b");
    tk_log_info("c");
    tk_verbose_error("d");
    tk_log_error_signal_safe("e");
}

static void afterwards_rank_and_host_are(void **state)
{
    const char *said;
    assert_int_equal(unit_child(speak_as_rank_3, NULL, &said), 0);
    assert_string_equal(said, "trunkline[3@node7]: a1\ntrunkline[3@node7]: b\n"
                              "trunkline[3@node7]: c\ntrunkline[3@node7]: d\n"
                              "trunkline[3@node7]: e\n");
}

static void speak_alone(void *unused)
{
    tk_report_identity(0, 1, "node7");
    tk_log_error("a");
}

static void a_job_of_one_needs_no_rank(void **state)
{
    const char *said;
    assert_int_equal(unit_child(speak_alone, NULL, &said), 0);
    assert_string_equal(said, "trunkline: a\n");
}

static void quiet_is_for_warnings_only(void **state)
{
    unit_listen();
    tk_report_quiet(true);
    tk_log_warn("warning");
    tk_log_error("error");
    tk_log_info("fact");
    tk_report_quiet(false);
    assert_string_equal(unit_heard(), "trunkline: error\ntrunkline: fact\n");
}

static void verbose_errors_can_be_switched_off(void **state)
{
    unit_listen();
    tk_verbose_errors = false;
    tk_verbose_error("why");
    tk_verbose_errors = true;
    assert_string_equal(unit_heard(), "");
}

static void a_line_that_is_too_long_is_cut_and_still_ends(void **state)
{
    static char longer[5000];
    memset(longer, 'x', sizeof(longer) - 1);
    unit_listen();
    tk_log_error("%s", longer);
    tk_log_error("next");
    const char *said = unit_heard();
    const char *end = strchr(said, '\n');
    assert_non_null(end);
    assert_true(end - said > 1500 && end - said < 2048);
    assert_string_equal(end + 1, "trunkline: next\n");
}

static void no_text_from_a_signal_overruns(void **state)
{
    static char longer[5000];
    memset(longer, 'x', sizeof(longer) - 1);
    unit_listen();
    tk_log_error_signal_safe(longer);
    const char *said = unit_heard();
    assert_int_equal(strlen(said), strlen("trunkline: ") + 500 + 1);
    assert_int_equal(unit_lines(said), 1);
}

/* A datagram socket keeps writes apart: one receive gives back one write. */
static void a_line_is_one_write(void **state)
{
    int pair[2], saved = dup(STDERR_FILENO);
    char text[4096];
    assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    dup2(pair[0], STDERR_FILENO);
    tk_log_error("first %d", 1);
    tk_log_warn("second");
    dup2(saved, STDERR_FILENO);
    ssize_t n = recv(pair[1], text, sizeof(text), MSG_DONTWAIT);
    assert_int_equal(n, strlen("trunkline: first 1\n"));
    n = recv(pair[1], text, sizeof(text), MSG_DONTWAIT);
    assert_int_equal(n, strlen("trunkline: second\n"));
    assert_int_equal(recv(pair[1], text, sizeof(text), MSG_DONTWAIT), -1);
    close(saved);
    close(pair[0]);
    close(pair[1]);
}

static void say_to_nobody(void *unused)
{
    signal(SIGPIPE, SIG_IGN);
    close(STDERR_FILENO);
    tk_log_error("nobody listens");
}

static void a_closed_standard_error_is_no_trouble(void **state)
{
    unit_assert_exit(say_to_nobody, NULL, 0);
}

static void panic(void *unused)
{
    tk_panic("broken promise %d", 7);
}

static void a_panic_prints_and_aborts(void **state)
{
    unit_assert_panic(panic, NULL, "trunkline: broken promise 7\n");
}

static uint64_t time_of_complaint(uint32_t rank)
{
    tk_report_identity(rank, 8, "node");
    tk_report_starting(true);
    uint64_t start = tk_now();
    tk_log_error("one cause for all ranks");
    return tk_now() - start;
}

static void starting_as_rank_0(void *unused)
{
    _exit(time_of_complaint(0) > TK_SECOND / 5);
}

static void starting_as_rank_5(void *unused)
{
    _exit(time_of_complaint(5) < TK_SECOND / 5);
}

static void at_start_up_others_let_rank_0_speak_first(void **state)
{
    unit_assert_exit(starting_as_rank_0, NULL, 0);
    unit_assert_exit(starting_as_rank_5, NULL, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(before_start_up_the_program_is_named),
    cmocka_unit_test(afterwards_rank_and_host_are),
    cmocka_unit_test(a_job_of_one_needs_no_rank),
    cmocka_unit_test(quiet_is_for_warnings_only),
    cmocka_unit_test(verbose_errors_can_be_switched_off),
    cmocka_unit_test(a_line_that_is_too_long_is_cut_and_still_ends),
    cmocka_unit_test(no_text_from_a_signal_overruns),
    cmocka_unit_test(a_line_is_one_write),
    cmocka_unit_test(a_closed_standard_error_is_no_trouble),
    cmocka_unit_test(a_panic_prints_and_aborts),
    cmocka_unit_test(at_start_up_others_let_rank_0_speak_first),
};

UNIT_MAIN(tests)
