/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fatal errors. Owns the flag that the post-mortem happens once; no lock. */
#include "config.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gasnet_tools.h"
#include "tools/tools.h"

enum { exit_bad_input = 2 };

/* If the client catches the abort, this is called again. */
void tk_tools_post_mortem(void)
{
    static atomic_flag was_here = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&was_here))
        return;
    gasnett_freezeForDebuggerErr();
    gasnett_print_backtrace_ifenabled(STDERR_FILENO);
}

static void hint(void)
{
    if (!tk_tools_is_on("GASNET_BACKTRACE", false))
        tk_tools_log("NOTICE", "Before reporting bugs, run with GASNET_BACKTRACE=1 in the "
                               "environment to generate a backtrace.");
}

void trunkline_fatalerror_at(const char *function, const char *file, int line, const char *fmt, ...)
{
    char place[512];
    va_list args;
    snprintf(place, sizeof(place), "in %s() at %s:%d: ", function, file, line);
    va_start(args, fmt);
    tk_tools_vlog("FATAL ERROR", place, fmt, args);
    va_end(args);
    hint();
    tk_tools_post_mortem();
    abort();
}

void gasnett_fatalerror_nopos(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    tk_tools_vlog("FATAL ERROR", "", fmt, args);
    va_end(args);
    hint();
    tk_tools_post_mortem();
    abort();
}

/* Without exit(): the caller may be inside pthread_once(), and functions of atexit() may call it
 * again. */
void tk_tools_refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tk_tools_vlog("ERROR", "", format, args);
    va_end(args);
    fflush(NULL);
    _exit(exit_bad_input);
}

char *trunkline_current_loc(const char *function, const char *file, int line)
{
    char *text = NULL;
    if (asprintf(&text, "%s() at %s:%d", function, file, line) < 0)
        gasnett_fatalerror_nopos("out of memory for a source location");
    return text;
}

void gasnett_killmyprocess(int exitcode)
{
    _exit(exitcode);
}
