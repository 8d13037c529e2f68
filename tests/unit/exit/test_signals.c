/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Signals: which are caught, which are left alone (GASNET_NO_CATCH_SIGNAL, clients' own handlers),
 * and the effect of catching. tk_exit_by_signal() is a fake of this test. */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ranges.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "memory/memory.h"
#include "settings/settings.h"
#include "unit.h"

static const int all[] = {SIGINT,  SIGTERM, SIGHUP, SIGPIPE, SIGQUIT,
                          SIGSEGV, SIGBUS,  SIGFPE, SIGILL,  SIGABRT};
enum { all_count = sizeof(all) / sizeof(all[0]) };

/* 10 and the signal, 50 more if it was asked for; 99: the code is not that of the signal. */
void tk_exit_by_signal(int code, int number)
{
    _exit(code == 128 + number ? 10 + number + (tk_state_is_asked(&tk_exit_state) ? 50 : 0) : 99);
}

/* No ranks share memory here. */
void tk_liveness_set(enum tk_rank_liveness liveness)
{
    (void)liveness;
}

static uint32_t shown; /* to the launcher, as the signal for stacks */

void tk_bootstrap_show_stacks(uint32_t signal)
{
    shown = signal;
}

int tk_bootstrap_stack_file(void)
{
    return -1;
}

static void catch_signals(void)
{
    tk_state_open(&tk_exit_state, getpid());
    tk_signals_open();
}

static void reset(void)
{
    for (int i = 0; i < all_count; i++)
        signal(all[i], SIG_DFL);
}

static bool is_caught(int number)
{
    struct sigaction now;
    sigaction(number, NULL, &now);
    return now.sa_handler != SIG_DFL;
}

static const char *setting;
static int expected[all_count + 1]; /* 0-terminated: signals left alone */

static void open_and_compare(void *unused)
{
    reset();
    unit_settings(setting, NULL);
    catch_signals();
    for (int i = 0; i < all_count; i++) {
        bool left_alone = false;
        for (int e = 0; expected[e]; e++)
            left_alone |= expected[e] == all[i];
        if (is_caught(all[i]) == left_alone)
            _exit(all[i]);
    }
}

static void assert_left_alone(const char *text, int first, int second)
{
    setting = text;
    memset(expected, 0, sizeof(expected));
    expected[0] = first;
    expected[1] = second;
    int status = unit_child(open_and_compare, NULL, NULL);
    if (status != 0)
        fail_msg("%s: wrong about signal %d", text ? text : "default", WEXITSTATUS(status));
}

static void all_of_them_are_caught(void **state)
{
    assert_left_alone(NULL, 0, 0);
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=", 0, 0);
}

static void names_and_numbers_exclude(void **state)
{
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=SIGINT", SIGINT, 0);
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=SEGV", SIGSEGV, 0);
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=11", SIGSEGV, 0);
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=SIGINT,TERM", SIGINT, SIGTERM);
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=3,SIGABRT", SIGQUIT, SIGABRT);
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=INT, HUP", SIGINT, SIGHUP);
}

static void other_numbers_and_empty_words_do_not(void **state)
{
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=USR1,64", 0, 0);
    assert_left_alone("GASNET_NO_CATCH_SIGNAL=,,INT,,", SIGINT, 0);
}

static void a_star_excludes_all(void **state)
{
    setting = "GASNET_NO_CATCH_SIGNAL=*";
    memcpy(expected, all, sizeof(all));
    assert_int_equal(unit_child(open_and_compare, NULL, NULL), 0);
}

static void clients_handler(int number)
{
    _exit(number);
}

static void open_over_clients(void *unused)
{
    reset();
    signal(SIGTERM, clients_handler);
    signal(SIGPIPE, SIG_IGN);
    unit_settings(NULL, NULL);
    catch_signals();
    raise(SIGPIPE);
    raise(SIGTERM);
}

static void a_clients_handlers_stay(void **state)
{
    unit_assert_exit(open_over_clients, NULL, SIGTERM);
}

static void raise_one(void *number)
{
    reset();
    unit_settings(NULL, NULL);
    catch_signals();
    raise(*(int *)number);
}

static void terminating_signals_end_the_job(void **state)
{
    static int numbers[] = {SIGINT, SIGHUP, SIGPIPE, SIGQUIT, SIGTERM};
    for (int i = 0; i < 4; i++)
        unit_assert_exit(raise_one, &numbers[i], 10 + numbers[i]);
    unit_assert_exit(raise_one, &numbers[4], 60 + SIGTERM); /* the launcher's own request */
}

static void raise_with_clients_quit(void *unused)
{
    reset();
    unit_settings(NULL, NULL);
    catch_signals();
    signal(SIGQUIT, clients_handler);
    raise(SIGINT);
}

/* The interface promises that clients may handle SIGQUIT as the notice of an exit. */
static void they_come_as_sigquit(void **state)
{
    unit_assert_exit(raise_with_clients_quit, NULL, SIGQUIT);
}

static void just_return(int number)
{
    (void)number;
}

static void raise_with_quit_that_returns(void *unused)
{
    reset();
    unit_settings(NULL, NULL);
    catch_signals();
    signal(SIGQUIT, just_return);
    raise(SIGINT);
}

/* A client that only takes note of its end must not survive its launcher's signal. */
static void a_quit_handler_that_returns_does_not_save_the_rank(void **state)
{
    unit_assert_exit(raise_with_quit_that_returns, NULL, 10 + SIGINT);
}

static void fatal_signals_are_reported_and_stay_fatal(void **state)
{
    static const struct {
        int number;
        const char *text;
    } fatal[] = {{SIGSEGV, "died of SIGSEGV (bad memory access)"},
                 {SIGBUS, "died of SIGBUS"},
                 {SIGFPE, "died of SIGFPE"},
                 {SIGILL, "died of SIGILL"},
                 {SIGABRT, "died of SIGABRT (abort)"}};
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        const char *said;
        int status = unit_child(raise_one, (void *)&fatal[i].number, &said);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), fatal[i].number);
        unit_assert_says(said, fatal[i].text);
        assert_int_equal(unit_lines(said), 1);
    }
}

/* One page of a file that was truncated since; the library's own if it says so. */
static char *missing_page(bool is_librarys)
{
    static struct tk_area area;
    if (tk_area_open(&area, "test", tk_page_size(), false) != TK_OK || ftruncate(area.fd, 0) != 0)
        _exit(99);
    if (!is_librarys)
        tk_range_drop(area.base);
    return area.base;
}

static void on_bus(int number, siginfo_t *info, void *context)
{
    (void)context;
    _exit(info->si_signo == number && info->si_addr ? 40 : 41);
}

struct fault {
    bool is_librarys, has_info, has_client;
};

static void touch_missing(void *arg)
{
    const struct fault *fault = arg;
    struct sigaction client = {.sa_handler = clients_handler};
    reset();
    if (fault->has_info)
        client = (struct sigaction){.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    if (fault->has_client)
        sigaction(SIGBUS, &client, NULL);
    unit_settings(NULL, NULL);
    catch_signals();
    *(volatile char *)missing_page(fault->is_librarys) = 1;
}

/* Whatever handler there was before. */
static void missing_memory_of_the_library_is_named(void **state)
{
    static struct fault faults[] = {{true, false, false}, {true, false, true}, {true, true, true}};
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const char *said;
        int status = unit_child(touch_missing, &faults[i], &said);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGBUS);
        unit_assert_says(said, "died of SIGBUS at byte 0 of its test (");
        assert_int_equal(unit_lines(said), 1);
    }
}

static void other_missing_memory_is_the_clients(void **state)
{
    static struct fault plain = {false, false, true}, info = {false, true, true}, none;
    const char *said;
    unit_assert_exit(touch_missing, &plain, SIGBUS);
    unit_assert_exit(touch_missing, &info, 40);
    int status = unit_child(touch_missing, &none, &said);
    assert_true(WIFSIGNALED(status));
    unit_assert_says(said, "died of SIGBUS (memory that is not there)");
}

static void fork_and_signal(void *unused)
{
    int status;
    reset();
    unit_settings(NULL, NULL);
    catch_signals();
    for (int i = 0; i < 5; i++) { /* the terminating ones and SIGQUIT */
        pid_t child = fork();
        if (child == 0) {
            raise(all[i]);
            _exit(99);
        }
        waitpid(child, &status, 0);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != all[i])
            _exit(all[i]);
    }
}

/* A forked child has no thread to end the job, and its death must not end the job. */
static void a_child_that_was_forked_just_dies(void **state)
{
    unit_assert_exit(fork_and_signal, NULL, 0);
}

static void notify(void *clients)
{
    reset();
    unit_settings(NULL, NULL);
    catch_signals();
    if (clients)
        signal(SIGQUIT, clients_handler);
    tk_signal_quit();
}

static void only_a_clients_handler_is_notified(void **state)
{
    static int yes;
    unit_assert_exit(notify, NULL, 0);
    unit_assert_exit(notify, &yes, SIGQUIT);
}

static void open_for_stacks(void *what)
{
    unit_settings(what, NULL);
    catch_signals();
    if (shown && (shown != (uint32_t)SIGRTMAX - 2 || !is_caught(SIGRTMAX - 2)))
        _exit(100);
    _exit(shown ? 1 : 0);
}

static void open_beside_client(void *unused)
{
    signal(SIGRTMAX - 2, clients_handler);
    open_for_stacks(NULL);
}

/* The signal would reach a process that uses it for something else. */
static void the_signal_for_stacks_is_shown_only_where_it_is_ours(void **state)
{
    static char by_number[] = "GASNET_NO_CATCH_SIGNAL=62",
                all_signals[] = "GASNET_NO_CATCH_SIGNAL=*";
    unit_assert_exit(open_for_stacks, NULL, 1);
    unit_assert_exit(open_for_stacks, by_number, 0);
    unit_assert_exit(open_for_stacks, all_signals, 0);
    unit_assert_exit(open_beside_client, NULL, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_of_them_are_caught),
    cmocka_unit_test(names_and_numbers_exclude),
    cmocka_unit_test(other_numbers_and_empty_words_do_not),
    cmocka_unit_test(a_star_excludes_all),
    cmocka_unit_test(a_clients_handlers_stay),
    cmocka_unit_test(terminating_signals_end_the_job),
    cmocka_unit_test(they_come_as_sigquit),
    cmocka_unit_test(a_quit_handler_that_returns_does_not_save_the_rank),
    cmocka_unit_test(fatal_signals_are_reported_and_stay_fatal),
    cmocka_unit_test(missing_memory_of_the_library_is_named),
    cmocka_unit_test(other_missing_memory_is_the_clients),
    cmocka_unit_test(a_child_that_was_forked_just_dies),
    cmocka_unit_test(only_a_clients_handler_is_notified),
    cmocka_unit_test(the_signal_for_stacks_is_shown_only_where_it_is_ours),
};

UNIT_MAIN(tests)
