/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways out of RUNNING, as drawn in exit.h. The first thread that leaves it does the work
 * (leave.c); others that call stop for good. A signal may have interrupted a thread that holds any
 * lock, malloc's too, so signal handlers, the client's as well, only wake a thread of our own that
 * ends the job; that thread also learns when a neighbour dies (watch.c). */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "exit/exit.h"
#include "exit/exit_private.h"
#include "peer/peer.h"
#include "process/thread.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "tools/public.h"
#include "transport/transport.h"

/* For streams that an interrupted thread may have kept for itself, when nothing else is left to
 * do, in whole seconds. */
enum { last_flush = 1 };

/* The watchdog of an exit in a signal handler, in seconds: libpmix's lock may be what the
 * interrupted thread holds, and the helper waits for it. It has given up waiting for others long
 * before. */
enum { interrupted_max = 3 };

static atomic_int leaving;
static pthread_t leaver;
static volatile sig_atomic_t was_asked_for;
static pid_t my_pid;
static bool helper_runs, is_handed_over;
static volatile sig_atomic_t ending_signal; /* 0: none began the end */

/* The code of an exit that another rank began and whose notice this rank has answered; -1: none. */
static atomic_int heard_code = -1;

/* By the thread that found a failure, once it has claimed the end: what the launcher is told. */
static bool is_failing;
static char failure[32];
static volatile bool ends_with_another_code;

/* A client's signal handler that calls exit() would find this thread in the middle of it. What ends
 * or explains a process that is stuck still gets through. */
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

/* Whoever is second. The same thread again (a function of atexit()) must not wait for itself: it
 * goes on with what it is in the middle of, unless that was interrupted just anywhere. */
static _Noreturn void too_late(bool is_interrupted)
{
    if (pthread_equal(leaver, pthread_self())) {
        if (is_failing) /* from the client's SIGQUIT handler: it is no end that we chose */
            tk_abort_job(tk_final_code, failure);
        if (!is_interrupted)
            tk_leave_rest();
        _exit(tk_final_code);
    }
    for (;;)
        pause();
}

static bool claim(int code)
{
    int running = 0;
    if (!atomic_compare_exchange_strong(&leaving, &running, 1))
        return false;
    tk_final_code = code;
    return true;
}

/* By the thread that will do the work. A signal handler that ran between these lines and left too
 * would find a leaver that is not known yet, and stop this thread for good, before any watchdog. */
static bool claim_to_leave(int code)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool is_first = claim(code);
    if (is_first)
        leaver = pthread_self();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_first;
}

/* A stream that this thread was interrupted in lets it in again, but nobody else. */
static void flush_own(FILE *stream)
{
    if (ftrylockfile(stream) != 0)
        return;
    fflush_unlocked(stream);
    funlockfile(stream);
}

/* What the interrupted thread holds, it holds for ever, so the helper does what is to be done, and
 * without the network: others hear of the end from the launcher. */
static _Noreturn void exit_interrupted(int code)
{
    if (!claim_to_leave(code))
        too_late(true);
    tk_leave_begin();
    alarm(interrupted_max);
    flush_own(stdout);
    flush_own(stderr);
    if (!helper_runs)
        _exit(code);
    is_handed_over = true;
    tk_watch_call();
    for (;;)
        pause();
}

/* The SIGQUIT handler of the client's that a terminating signal of ours came with. */
static _Noreturn void exit_in_signal(int code)
{
    tk_exit_by_signal(code & 0xff, tk_in_signal);
    for (;;)
        pause();
}

/* What a rank leaves with after it was told of another's exit it gives only because of that exit
 * (by its SIGQUIT handler, or a thread that looks at what the handler wrote): the code of the exit
 * that began it stands. */
static int code_that_counts(int code)
{
    int heard = atomic_load(&heard_code);
    return heard >= 0 ? heard : code & 0xff;
}

void tk_exit(int code)
{
    sigset_t before;
    if (tk_in_signal)
        exit_in_signal(code);
    if (tk_is_interrupted())
        exit_interrupted(code_that_counts(code));
    if (!claim_to_leave(code_that_counts(code)))
        too_late(false);
    hold_signals(&before);
    tk_leave();
    _exit(tk_final_code);
}

/* After claim_to_leave(1) */
static _Noreturn void fail(void)
{
    is_failing = true;
    tk_start_watchdog();
    if (tk_network_is_ready())
        tk_signal_quit();
    gasnett_flush_streams();
    tk_abort_job(1, failure);
}

void tk_exit_failed(void)
{
    if (!claim_to_leave(1))
        too_late(false);
    fail();
}

static _Noreturn void flush_at_last(void)
{
    tk_code_is_known();
    alarm(last_flush);
    gasnett_flush_streams();
    _exit(tk_final_code);
}

/* SIGTERM has come: the verdict over the job stands. */
static void look_for_verdict(void)
{
    if (was_asked_for)
        flush_at_last();
}

/* The launcher did not see it, or does not care. Whoever is leaving knows by the fence that not all
 * came. */
static void end_for_dead(const struct tk_peer *dead, enum tk_rank_liveness how)
{
    if (!claim(1))
        return;
    leaver = pthread_self();
    tk_start_watchdog();
    tk_take_alarm();
    if (how != TK_FATE_TOLD)
        tk_log_error("neighbour rank %u (%s, pid %d) died: %s; ending the job", dead->rank,
                     dead->host, dead->pid,
                     how == TK_FATE_LEAVING
                         ? "it left before the others were ready to"
                         : "it was killed (kill -9, or for lack of memory: see dmesg) or called "
                           "_exit()");
    gasnett_flush_streams();
    tk_abort_job(1, "");
}

/* SIGTERM. A code that the client chose stands; else the process dies of the signal itself, so that
 * every launcher can name it. */
static _Noreturn void end_as_asked_for(void)
{
    sigset_t set;
    if (tk_final_code && tk_final_code != tk_code_of_signal(SIGTERM))
        _exit(tk_final_code);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    signal(SIGTERM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGTERM);
    _exit(tk_code_of_signal(SIGTERM));
}

/* The library's own thread. */
static void *end_from_aside(void *unused)
{
    const struct tk_peer *dead;
    enum tk_rank_liveness how;
    char why[32];
    (void)unused;
    while ((dead = tk_watch_wait(&how)))
        end_for_dead(dead, how);
    tk_take_alarm(); /* what the signal's handler unblocked is blocked again when it returns */
    leaver = pthread_self();
    if (is_handed_over) {
        tk_leave_without_network(look_for_verdict);
        flush_at_last();
    }
    gasnett_flush_streams();
    if (was_asked_for)
        end_as_asked_for();
    snprintf(why, sizeof(why), "ended by %s", tk_signal_name(ending_signal));
    tk_abort_job(tk_final_code, why);
}

static void start_helper(void)
{
    helper_runs =
        tk_watch_open() == TK_OK && tk_thread_start(end_from_aside, tk_settings.thread_stack_min,
                                                    tk_settings.thread_stack_pad) == TK_OK;
}

void tk_exit_was_asked_for(void)
{
    was_asked_for = 1;
}

bool tk_exit_is_asked_for(void)
{
    return was_asked_for;
}

void tk_exit_by_signal(int code, int number)
{
    struct timespec while_ending = {.tv_nsec = 300000000};
    if (claim(code)) {
        ending_signal = number;
        tk_start_watchdog();
        alarm(interrupted_max);
    } else if (!was_asked_for) {
        return;
    }
    tk_watch_call();
    /* The client should not go on as if nothing had happened; but it must after a while, if it
     * holds a lock that our helper wants. */
    nanosleep(&while_ending, NULL);
}

/* The launcher knows these words (spawner/head/policy.c): the end of the peer explains this one,
 * and may be seen later. */
static void lost_peer(uint32_t peer)
{
    if (!claim_to_leave(1))
        too_late(false);
    if (peer != tk_no_peer)
        snprintf(failure, sizeof(failure), "peer %u unreachable", (unsigned)peer);
    fail();
}

/* What may not be done in handlers. By one thread: a client's SIGQUIT handler runs once. */
static bool attend(void)
{
    static atomic_flag answered = ATOMIC_FLAG_INIT;
    tk_elect_serve();
    int requested = tk_elect_requested();
    if (requested < 0 || atomic_load(&leaving) || atomic_flag_test_and_set(&answered))
        return false;
    atomic_store(&heard_code, requested);
    tk_signal_quit();
    tk_exit(requested);
}

/* GASNET_CATCH_EXIT=0: the others go on. The launcher must hear that this was meant, or it takes a
 * rank that is gone for one that failed. */
static void leave_alone(void)
{
    if (atomic_load(&leaving) || tk_is_interrupted())
        return;
    tk_liveness_set(TK_FATE_LEFT);
    tk_bootstrap_close_early();
}

/* The job's end when the client leaves by exit() or from main. glibc's on_exit() knows the code,
 * atexit() does not. */
static void process_ends(int code, void *unused)
{
    sigset_t before;
    (void)unused;
    if (getpid() != my_pid) /* a forked child's exit() is its own affair */
        return;
    if (!tk_settings.catch_exit) {
        leave_alone();
        return;
    }
    if (tk_in_signal || tk_is_interrupted())
        tk_exit(code);
    if (!claim_to_leave(code_that_counts(code)))
        too_late(false);
    hold_signals(&before);
    tk_leave();
    ends_with_another_code = tk_final_code != (code & 0xff);
    tk_leave_to_client();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* What was registered before start-up, destructors of C++ among it, has its turn now. */
}

/* exit() goes on with the code that it was given, which is not that of the job when another rank
 * had a larger one. This comes after what was registered with atexit(). */
__attribute__((destructor)) static void end_with_the_code_of_all(void)
{
    if (!ends_with_another_code || getpid() != my_pid)
        return;
    gasnett_flush_streams();
    _exit(tk_final_code);
}

void tk_exit_network_ready(void)
{
    tk_leave_connect();
    if (helper_runs)
        tk_watch_neighbours();
}

void tk_exit_open(void)
{
    tk_leave_open();
    tk_progress_add(attend);
    tk_lost_peer = lost_peer;
    my_pid = getpid();
    start_helper();
    tk_signals_open();
    on_exit(process_ends, NULL);
}
