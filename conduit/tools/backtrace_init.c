/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Preparation of backtraces: checks the settings and installs the handlers of the signals that ask
 * for a backtrace or a debugger. No state. */
#include "config.h"

#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include "common/signal_name.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

static void on_backtrace_signal(int number)
{
    (void)number;
    gasnett_print_backtrace(STDERR_FILENO);
}

static void on_freeze_signal(int number)
{
    (void)number;
    gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
}

static void listen_for(const char *variable, gasnett_sighandlerfn_t handler)
{
    const char *text = tk_tools_lookup(variable);
    if (!text || !*text)
        return;
    int number = tk_signal_number(text);
    if (!number)
        tk_tools_refuse("%s='%s' is not a signal: a name as SIGUSR1 or a number", variable, text);
    if (number == SIGKILL || number == SIGSTOP)
        tk_tools_refuse("%s='%s' can't be caught: give another signal, as SIGUSR1", variable, text);
    gasnett_reghandler(number, handler);
}

void gasnett_backtrace_init(const char *exename)
{
    void *frame;
    char why[256];
    (void)exename; /* /proc knows it better */
    if (tk_tools_backtrace_is_wrong(why, sizeof(why)))
        tk_tools_refuse("%s", why);
    listen_for("GASNET_BACKTRACE_SIGNAL", on_backtrace_signal);
    listen_for("GASNET_FREEZE_SIGNAL", on_freeze_signal);
    /* The first call loads a library, which must not happen in a signal handler. */
    if (tk_tools_backtrace_is_wanted())
        backtrace(&frame, 1);
}
