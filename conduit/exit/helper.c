/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The library's helper thread and the functions that wake it. A signal may interrupt a thread that
 * holds any lock, malloc's included, so signal handlers, the client's included, only wake the
 * helper, which ends the job for them. The helper also detects when a neighbour dies (watch.c). */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/report.h"
#include "process/thread.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "gasnet_tools.h"
#include "stats/write.h"
#include "trace/trace.h"

static bool helper_runs;

/* The launcher did not see the death, or ignores it. A leaving rank learns from the fence that not
 * all ranks arrived. This thread takes no signals, as tk_state_fail() requires. */
static void end_for_dead(const struct tk_peer *dead, enum tk_rank_liveness how)
{
    if (!tk_state_fail(&tk_exit_state, ""))
        return;
    tk_start_watchdog();
    if (how != TK_LIVENESS_REPORTED)
        tk_log_error("neighbour rank %u (%s, pid %d) died: %s; ending the job", dead->rank,
                     dead->host, dead->pid,
                     how == TK_LIVENESS_LEAVING
                         ? "it left before the others were ready to"
                         : "it was killed (kill -9, or for lack of memory: see dmesg) or called "
                           "_exit()");
    gasnett_flush_streams();
    tk_abort_job(1, "");
}

/* SIGTERM. A code that the client chose is kept; else the process dies of the signal itself, so
 * that every launcher can name it. */
static _Noreturn void end_as_asked_for(void)
{
    sigset_t set;
    int code = tk_state_code(&tk_exit_state);
    tk_stats_write("ended by SIGTERM", false);
    tk_trace_close("ended by SIGTERM");
    if (code && code != tk_code_of_signal(SIGTERM))
        _exit(code);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    signal(SIGTERM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGTERM);
    _exit(tk_code_of_signal(SIGTERM));
}

static void *helper(void *unused)
{
    const struct tk_peer *dead;
    enum tk_rank_liveness how;
    char why[32];
    (void)unused;
    while ((dead = tk_watch_wait(&how)))
        end_for_dead(dead, how);
    tk_take_alarm(); /* the interrupted thread blocks it again when its handler returns */
    tk_state_take_over(&tk_exit_state);
    if (tk_state_phase(&tk_exit_state) == TK_EXIT_HANDED_OVER)
        tk_leave_without_network();
    gasnett_flush_streams();
    if (tk_state_is_asked(&tk_exit_state))
        end_as_asked_for();
    snprintf(why, sizeof(why), "ended by %s", tk_signal_name(tk_exit_state.signal));
    tk_abort_job(tk_state_code(&tk_exit_state), why);
}

void tk_helper_open(void)
{
    helper_runs =
        tk_watch_open() == TK_OK && tk_thread_start(helper, tk_settings.thread_stack_min,
                                                    tk_settings.thread_stack_pad) == TK_OK;
}

void tk_helper_watch_neighbours(void)
{
    if (helper_runs)
        tk_watch_neighbours();
}

void tk_helper_watchdog(void)
{
    alarm(tk_aside_watchdog);
}

bool tk_helper_hand_over(void)
{
    if (!helper_runs)
        return false;
    tk_state_hand_over(&tk_exit_state);
    tk_watch_call();
    return true;
}

void tk_exit_by_signal(int code, int number)
{
    struct timespec while_ending = {.tv_nsec = 300000000};
    if (tk_state_end_by_signal(&tk_exit_state, code, number)) {
        tk_start_watchdog();
        tk_helper_watchdog();
    } else if (!tk_state_is_asked(&tk_exit_state)) {
        return;
    }
    tk_watch_call();
    /* The client's thread should stop here, but it must continue after a while in case it holds a
     * lock that the helper needs. */
    nanosleep(&while_ending, NULL);
}
