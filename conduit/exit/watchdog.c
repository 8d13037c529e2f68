/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The watchdog: SIGALRM ends a process that has left RUNNING and does not end in time, wherever it
 * hangs. Its handler only reads the state, writes one line and calls _exit(). */
#include "config.h"

#include <signal.h>
#include <unistd.h>

#include "base/report.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "peer/peer.h"
#include "transport/neighbour.h"

/* What PMIx and flushing may take on top of the deadline before the watchdog strikes, in whole
 * seconds. */
enum { watchdog_margin = 3 };

double tk_exit_timeout(void)
{
    return tk_exit_timeout_of(tk_peers.size);
}

static void watchdog_set(void)
{
    alarm((unsigned)tk_exit_timeout() + watchdog_margin);
}

/* The cause of the delay, which explains the status to the user. */
static const char *watchdog_reason(void)
{
    if (tk_state_phase(&tk_exit_state) == TK_EXIT_TO_CLIENT)
        return "functions registered with atexit(), or destructors, did not end within "
               "GASNET_EXITTIMEOUT and 3 s: its watchdog ends it";
    return "did not leave within the time for it, GASNET_EXITTIMEOUT and 3 s (3 s in all after a "
           "signal): its watchdog ends it";
}

/* There is no failure to report once the launcher knows the code, or if the launcher itself asked
 * for the end. */
static void on_alarm(int signal)
{
    (void)signal;
    if (!tk_state_is_code_known(&tk_exit_state) && !tk_state_is_asked(&tk_exit_state))
        tk_log_error_signal_safe(watchdog_reason());
    _exit(tk_state_late_code(&tk_exit_state));
}

void tk_take_alarm(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void tk_start_watchdog(void)
{
    struct sigaction action = {.sa_handler = on_alarm};
    tk_liveness_set(TK_LIVENESS_LEAVING);
    sigaction(SIGALRM, &action, NULL);
    tk_take_alarm();
    watchdog_set();
}

/* The client's exit functions get the full time of an exit. */
void tk_restart_watchdog(void)
{
    watchdog_set();
}
