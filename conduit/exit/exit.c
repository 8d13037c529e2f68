/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The transitions out of RUNNING, as drawn in exit.h. The first thread that leaves it does the work
 * (leave.c); other threads that call stop and never return. For signal handlers, the client's too,
 * the helper thread does the work (helper.c). */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "bootstrap/bootstrap.h"
#include "exit/exit.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "exit/thread.h"
#include "op/unsynced.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "gasnet_tools.h"
#include "stats/write.h"
#include "trace/trace.h"
#include "transport/transport.h"

/* A client's signal handler that calls exit() would interrupt this thread in the middle of it.
 * Signals that end or diagnose a stuck process still get through. */
static void hold_signals(sigset_t *before)
{
    static const int let_through[] = {SIGALRM, SIGTERM, SIGSEGV, SIGBUS, SIGFPE,
                                      SIGILL,  SIGABRT, SIGTRAP, SIGCONT};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof(let_through) / sizeof(let_through[0]); i++)
        sigdelset(&held, let_through[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

/* For every caller but the first. The first thread itself (in a function of atexit()) must not wait
 * for itself: it resumes its own exit, unless a signal interrupted that. */
static _Noreturn void too_late(bool is_interrupted)
{
    struct tk_exit_state *s = &tk_exit_state;
    if (tk_state_is_leaver(s)) {
        /* Called from the client's SIGQUIT handler, which does not choose how the job ends. Another
         * signal may have interrupted the abort itself. */
        if (!is_interrupted && tk_state_phase(s) == TK_EXIT_ABORT) {
            gasnett_flush_streams();
            tk_abort_job(tk_state_code(s), s->reason);
        }
        if (!is_interrupted)
            tk_leave_rest();
        _exit(tk_state_code(s));
    }
    for (;;)
        pause();
}

/* tk_state_leave(), or tk_state_fail() if there is a reason, as they ask for. */
static bool leave_running(int code, const char *reason)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool is_first =
        reason ? tk_state_fail(&tk_exit_state, reason) : tk_state_leave(&tk_exit_state, code);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_first;
}

/* A stream lock that the interrupted code holds is recursive for this thread; another thread's is
 * not waited for. */
static void flush_own(FILE *stream)
{
    if (ftrylockfile(stream) != 0)
        return;
    fflush_unlocked(stream);
    funlockfile(stream);
}

/* Locks that the interrupted thread holds are never released, so the helper does the rest, and
 * without the network: other ranks learn of the end from the launcher. */
static _Noreturn void exit_interrupted(int code)
{
    if (!leave_running(code, NULL))
        too_late(true);
    tk_leave_begin();
    tk_helper_watchdog();
    flush_own(stdout);
    flush_own(stderr);
    if (!tk_helper_hand_over())
        _exit(code);
    for (;;)
        pause();
}

/* In the client's SIGQUIT handler, which the library raised for a terminating signal. */
static _Noreturn void exit_in_signal(int code)
{
    tk_exit_by_signal(code & 0xff, tk_exit_thread.signal);
    for (;;)
        pause();
}

/* Not called if the job failed: it may then end in the middle of any call. */
static void check_unsynced(int code)
{
    if (TK_IS_DEBUG && code == 0)
        tk_unsynced_report();
}

static int code_that_counts(int code)
{
    return tk_state_code_of_exit(&tk_exit_state, code);
}

/* Settings, tables and the launcher's server do not exist yet, so there is no job to leave: the
 * launcher sees the code. */
static _Noreturn void exit_before_start(int code)
{
    flush_own(stdout);
    flush_own(stderr);
    _exit(code & 0xff);
}

void tk_exit(int code)
{
    sigset_t before;
    if (!tk_exit_state.pid)
        exit_before_start(code);
    if (tk_exit_thread.signal)
        exit_in_signal(code);
    if (tk_is_interrupted())
        exit_interrupted(code_that_counts(code));
    if (!leave_running(code_that_counts(code), NULL))
        too_late(false);
    hold_signals(&before);
    check_unsynced(code);
    tk_leave();
    _exit(tk_state_code(&tk_exit_state));
}

/* Ends the job with code 1, unless another thread has begun to end it. */
static _Noreturn void fail(const char *reason)
{
    if (!leave_running(1, reason))
        too_late(false);
    tk_start_watchdog();
    if (tk_state_has_network(&tk_exit_state))
        tk_signal_quit();
    gasnett_flush_streams();
    tk_abort_job(1, reason);
}

void tk_exit_failed(void)
{
    fail("");
}

/* The launcher parses this text (spawner/head/policy.c): the end of the peer explains this one, and
 * the launcher may see it later. */
static void lost_peer(uint32_t peer)
{
    char reason[32] = "";
    if (peer != tk_no_peer)
        snprintf(reason, sizeof(reason), "peer %u unreachable", (unsigned)peer);
    fail(reason);
}

/* Work that message handlers may not do. tk_state_answer() lets one thread through, so that a
 * client's SIGQUIT handler runs once. */
static bool attend(void)
{
    tk_elect_serve();
    int requested = tk_elect_requested();
    if (requested < 0 || !tk_state_answer(&tk_exit_state, requested))
        return false;
    tk_signal_quit();
    tk_exit(requested);
}

/* GASNET_CATCH_EXIT=0: the others go on. The launcher must learn that this was intended, or it
 * treats the missing rank as failed. */
static void leave_alone(void)
{
    if (!tk_state_is_running(&tk_exit_state) || tk_is_interrupted())
        return;
    tk_stats_write("exit", true);
    tk_trace_close("exit");
    tk_liveness_set(TK_LIVENESS_LEFT);
    tk_bootstrap_close_early();
}

/* The job's end when the client leaves by exit() or from main. glibc's on_exit() knows the code,
 * atexit() does not. */
static void process_ends(int code, void *unused)
{
    sigset_t before;
    (void)unused;
    if (getpid() != tk_exit_state.pid) /* a forked child: not the end of the rank */
        return;
    if (!tk_settings.catch_exit) {
        leave_alone();
        return;
    }
    if (tk_exit_thread.signal || tk_is_interrupted())
        tk_exit(code);
    if (!leave_running(code_that_counts(code), NULL))
        too_late(false);
    hold_signals(&before);
    check_unsynced(code);
    tk_leave();
    tk_state_to_client(&tk_exit_state, code);
    tk_restart_watchdog();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* Functions registered before start-up, C++ destructors among them, run now. */
}

/* exit() ends with the code that it was given, which differs from the job's code if another rank
 * had a larger one. Destructors run after functions of atexit(). */
__attribute__((destructor)) static void end_with_the_code_of_all(void)
{
    if (getpid() != tk_exit_state.pid)
        return;
    if (tk_state_phase(&tk_exit_state) == TK_EXIT_TO_CLIENT)
        tk_leave_count_lost_output(); /* of functions of atexit() */
    if (!tk_state_exits_with_another(&tk_exit_state))
        return;
    gasnett_flush_streams();
    _exit(tk_state_code(&tk_exit_state));
}

void tk_exit_add(bool (*give_back)(bool all))
{
    tk_leave_add(give_back);
}

void tk_exit_network_ready(void)
{
    tk_leave_connect();
    tk_helper_watch_neighbours();
}

void tk_exit_open(void)
{
    tk_state_open(&tk_exit_state, getpid());
    tk_leave_open();
    tk_progress_add(attend);
    tk_lost_peer = lost_peer;
    tk_helper_open();
    tk_signals_open();
    on_exit(process_ends, NULL);
}
