/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names and exit codes of signals, and the report of a fatal one. All of it runs in signal
 * handlers: it calls only what is async-signal-safe. */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "stats/write.h"
#include "tools/tools.h"
#include "trace/trace.h"
#include "transport/neighbour.h"

int tk_code_of_signal(int number)
{
    return 128 + number;
}

const char *tk_signal_name(int number)
{
    switch (number) {
    case SIGINT:
        return "SIGINT";
    case SIGTERM:
        return "SIGTERM";
    case SIGHUP:
        return "SIGHUP";
    case SIGPIPE:
        return "SIGPIPE";
    case SIGQUIT:
        return "SIGQUIT";
    default:
        return "a signal";
    }
}

/* Without snprintf(). */
void tk_report_death(const char *what)
{
    char text[500] = "pid ", digits[20];
    size_t length = strlen(text), count = 0;
    for (unsigned pid = (unsigned)getpid(); pid > 0 && count < sizeof(digits); pid /= 10)
        digits[count++] = (char)('0' + pid % 10);
    while (count > 0)
        text[length++] = digits[--count];
    for (; *what && length + 1 < sizeof(text); what++)
        text[length++] = *what;
    tk_log_error_signal_safe(text);
}

void tk_die_of(int number)
{
    if (getpid() == tk_exit_state.pid) {
        tk_liveness_set(TK_LIVENESS_REPORTED);
        tk_stats_write("a fatal signal", false);
        tk_trace_close("a fatal signal");
        tk_tools_post_mortem();
    }
    signal(number, SIG_DFL);
    raise(number);
}
