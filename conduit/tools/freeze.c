/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Waiting for a debugger. Owns gasnet_frozen and the flag that SIGCONT clears. Made for one waiting
 * thread at a time; if several wait, SIGCONT clears the flag of the last one. No lock. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "gasnet_tools.h"
#include "tools/tools.h"

enum {
    look_ns = 100 * 1000000 /* short enough for a debugger's user, and costs almost no CPU time */
};

volatile int gasnet_frozen;
static volatile int *volatile waits_for;

static void on_continue(int number)
{
    volatile int *flag = waits_for;
    (void)number;
    if (flag)
        *flag = 0;
}

void gasnett_freezeForDebuggerNow(volatile int *flag, const char *flagsymname)
{
    int error = errno;
    const struct timespec look = {.tv_nsec = look_ns};
    struct sigaction before, go_on = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
    *flag = 1;
    waits_for = flag;
    sigaction(SIGCONT, &go_on, &before);
    tk_tools_log("NOTICE",
                 "process frozen for a debugger: host %s, pid %d; to go on, attach one and set %s "
                 "to 0, or send SIGCONT",
                 gasnett_gethostname(), (int)getpid(), flagsymname);
    while (*flag)
        nanosleep(&look, NULL);
    sigaction(SIGCONT, &before, NULL);
    errno = error;
}

void gasnett_freezeForDebuggerErr(void)
{
    if (tk_tools_is_on("GASNET_FREEZE_ON_ERROR", false))
        gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
}
