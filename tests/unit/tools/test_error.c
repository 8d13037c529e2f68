/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fatal end of a program and what precedes it: the message, a backtrace, a wait for a debugger;
 * and signals. Each case is a process of its own. */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gasnet_tools.h"
#include "unit.h"

static int from_client(int fd)
{
    return dprintf(fd, "a frame of the client\nand another\n") < 0;
}

gasnett_backtrace_type_t gasnett_backtrace_user = {"MINE", from_client, 1};

static void die_here(void *arg)
{
    gasnett_fatalerror("%s %d", (const char *)arg, 42);
}

static void die_nowhere(void *arg)
{
    gasnett_fatalerror_nopos("%s", (const char *)arg);
}

static void assert_aborts(void (*fn)(void *), void *arg, const char **said)
{
    int status = unit_child(fn, arg, said);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

/* Of a setting: one line, and no core file. */
static void assert_refuses(void (*fn)(void *), void *arg, const char *line)
{
    const char *said;
    int status = unit_child(fn, arg, &said);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    unit_assert_says(said, line);
    assert_int_equal(unit_lines(said), 1);
}

static void a_fatal_error_says_what_and_where(void **state)
{
    const char *said;
    assert_aborts(die_here, "answer", &said);
    unit_assert_says(said, "*** FATAL ERROR: in die_here() at ");
    unit_assert_says(said, "test_error.c:");
    unit_assert_says(said, ": answer 42\n");
    unit_assert_says(said, "run with GASNET_BACKTRACE=1");
    assert_aborts(die_nowhere, "nothing else", &said);
    unit_assert_says(said, "*** FATAL ERROR: nothing else\n");
}

static void die_with_backtrace(void *type)
{
    setenv("GASNET_BACKTRACE", "1", 1);
    if (type)
        setenv("GASNET_BACKTRACE_TYPE", type, 1);
    gasnett_backtrace_init("test");
    gasnett_fatalerror_nopos("the end");
}

static void the_clients_own_backtrace_comes_first(void **state)
{
    const char *said;
    assert_aborts(die_with_backtrace, NULL, &said);
    unit_assert_says(said, "the end\na frame of the client\nand another\n");
    assert_null(strstr(said, "NOTICE"));
    assert_aborts(die_with_backtrace, "mine", &said);
    unit_assert_says(said, "a frame of the client\n");
}

static void frames_of_this_program_can_be_seen(void **state)
{
    const char *said;
    assert_aborts(die_with_backtrace, "EXECINFO", &said);
    unit_assert_says(said, "test_error");
    unit_assert_says(said, "[0x");
    assert_null(strstr(said, "a frame of the client"));
    assert_true(unit_lines(said) > 4);
}

/* gdb prints names; if it is not installed or may not attach, the next method is used. */
static void gdb_is_asked_or_passed_over(void **state)
{
    const char *said;
    assert_aborts(die_with_backtrace, "GDB,EXECINFO", &said);
    if (!strstr(said, "#0"))
        unit_assert_says(said, "[0x");
    else
        unit_assert_says(said, "die_with_backtrace");
}

static void an_unknown_path_is_refused(void **state)
{
    assert_refuses(die_with_backtrace, "GDB,PRINTF",
                   "*** ERROR: GASNET_BACKTRACE_TYPE='GDB,PRINTF' names 'PRINTF', which is not");
}

static void print_when_off(void *arg)
{
    (void)arg;
    unsetenv("GASNET_BACKTRACE");
    exit(gasnett_print_backtrace_ifenabled(STDERR_FILENO));
}

static void no_backtrace_unless_requested(void **state)
{
    const char *said;
    assert_int_equal(WEXITSTATUS(unit_child(print_when_off, NULL, &said)), 1);
    assert_string_equal(said, "");
}

static void print_by_signal(void *arg)
{
    (void)arg;
    setenv("GASNET_BACKTRACE_SIGNAL", "USR1", 1);
    gasnett_backtrace_init(NULL);
    raise(SIGUSR1);
    exit(7);
}

static void a_signal_prints_one_and_life_goes_on(void **state)
{
    const char *said;
    assert_int_equal(WEXITSTATUS(unit_child(print_by_signal, NULL, &said)), 7);
    unit_assert_says(said, "a frame of the client\n");
}

static void wait_for_flag(void *name)
{
    static volatile int flag;
    pid_t me = getpid();
    if (fork() == 0) {
        usleep(300000);
        kill(me, SIGCONT);
        _exit(0);
    }
    gasnett_freezeForDebuggerNow(&flag, name);
    exit(flag == 0 ? 9 : 1);
}

static void a_frozen_process_waits_until_told(void **state)
{
    const char *said;
    uint64_t before = gasnett_gettimeofday_us();
    assert_int_equal(WEXITSTATUS(unit_child(wait_for_flag, "my_flag", &said)), 9);
    assert_true(gasnett_gettimeofday_us() - before >= 250000);
    unit_assert_says(said, "set my_flag to 0, or send SIGCONT");
    unit_assert_says(said, gasnett_gethostname());
}

static void freeze_on_error(void *arg)
{
    (void)arg;
    pid_t me = getpid();
    setenv("GASNET_FREEZE_ON_ERROR", "1", 1);
    if (fork() == 0) {
        usleep(300000);
        kill(me, SIGCONT);
        _exit(0);
    }
    gasnett_fatalerror_nopos("frozen first");
}

static void an_error_freezes_first_if_asked_to(void **state)
{
    const char *said;
    assert_aborts(freeze_on_error, NULL, &said);
    unit_assert_says(said, "*** NOTICE: process frozen for a debugger");
    unit_assert_says(said, "set gasnet_frozen to 0");
}

static void freeze_by_signal(void *arg)
{
    (void)arg;
    pid_t me = getpid();
    setenv("GASNET_FREEZE_SIGNAL", "SIGUSR2", 1);
    gasnett_backtrace_init(NULL);
    if (fork() == 0) {
        usleep(300000);
        kill(me, SIGCONT);
        _exit(0);
    }
    raise(SIGUSR2);
    exit(11);
}

static void a_signal_freezes(void **state)
{
    const char *said;
    assert_int_equal(WEXITSTATUS(unit_child(freeze_by_signal, NULL, &said)), 11);
    unit_assert_says(said, "process frozen");
}

static void listen_for_nonsense(void *arg)
{
    setenv("GASNET_FREEZE_SIGNAL", arg, 1);
    gasnett_backtrace_init(NULL);
}

static void an_invalid_signal_is_refused(void **state)
{
    assert_refuses(listen_for_nonsense, "SIGNAL",
                   "GASNET_FREEZE_SIGNAL='SIGNAL' is not a signal: a name as SIGUSR1 or a number");
    assert_refuses(listen_for_nonsense, "SIGKILL",
                   "GASNET_FREEZE_SIGNAL='SIGKILL' can't be caught: give another signal");
}

static volatile sig_atomic_t seen;

static void on_signal(int number)
{
    seen = number;
}

static void handlers_are_handed_back(void **state)
{
    gasnett_sighandlerfn_t before = gasnett_reghandler(SIGUSR1, on_signal);
    raise(SIGUSR1);
    assert_int_equal(seen, SIGUSR1);
    assert_ptr_equal(gasnett_reghandler(SIGUSR1, before), on_signal);
}

static void signals_have_names(void **state)
{
    assert_string_equal(gasnett_signame_fromval(SIGSEGV), "SIGSEGV");
    assert_string_equal(gasnett_signame_fromval(SIGQUIT), "SIGQUIT");
    assert_null(gasnett_signame_fromval(0));
}

static char *where_am_i(void)
{
    return gasnett_current_loc;
}

static void a_place_can_be_had_as_text(void **state)
{
    char *text = where_am_i();
    unit_assert_says(text, "where_am_i() at ");
    unit_assert_says(text, "test_error.c:");
    free(text);
}

static void leave(void *arg)
{
    (void)arg;
    gasnett_killmyprocess(13);
}

static void a_process_can_end_at_once(void **state)
{
    assert_int_equal(WEXITSTATUS(unit_child(leave, NULL, NULL)), 13);
}

static int evaluated;

static int evaluate(void)
{
    return ++evaluated;
}

static void tracing_is_silent_and_free(void **state)
{
    unit_listen();
    GASNETT_TRACE_PRINTF("%d", evaluate());
    GASNETT_TRACE_PRINTF_FORCE("%d", evaluate());
    GASNETT_STATS_PRINTF("%d", evaluate());
    GASNETT_STATS_PRINTF_FORCE("%d", evaluate());
    _gasnett_trace_printf_noop("%d", 1);
    assert_string_equal(unit_heard(), "");
    assert_int_equal(evaluated, 0);
    assert_string_equal(GASNETT_TRACE_GETMASK(), "");
    assert_string_equal(GASNETT_STATS_GETMASK(), "");
    assert_int_equal(GASNETT_TRACE_ENABLED, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_fatal_error_says_what_and_where),
    cmocka_unit_test(the_clients_own_backtrace_comes_first),
    cmocka_unit_test(frames_of_this_program_can_be_seen),
    cmocka_unit_test(gdb_is_asked_or_passed_over),
    cmocka_unit_test(an_unknown_path_is_refused),
    cmocka_unit_test(no_backtrace_unless_requested),
    cmocka_unit_test(a_signal_prints_one_and_life_goes_on),
    cmocka_unit_test(a_frozen_process_waits_until_told),
    cmocka_unit_test(an_error_freezes_first_if_asked_to),
    cmocka_unit_test(a_signal_freezes),
    cmocka_unit_test(an_invalid_signal_is_refused),
    cmocka_unit_test(handlers_are_handed_back),
    cmocka_unit_test(signals_have_names),
    cmocka_unit_test(a_place_can_be_had_as_text),
    cmocka_unit_test(a_process_can_end_at_once),
    cmocka_unit_test(tracing_is_silent_and_free),
};
UNIT_MAIN(tests)
