/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fatal errors. Owns only that the post-mortem happens once; no lock. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/public.h"
#include "tools/tools.h"

enum { text_max = 2048 };

/* All of it in one write, so that lines of processes do not mix. */
static void log_line(const char *name, const char *place, const char *format, va_list args)
{
    char text[text_max], proc[40] = "";
    if (tk_tools_in_job() && tk_tools_rank() >= 0)
        snprintf(proc, sizeof(proc), " (proc %lld)", (long long)tk_tools_rank());
    int head = snprintf(text, sizeof(text), "*** %s%s: %s", name, proc, place);
    size_t length = head < text_max / 2 ? (size_t)head : text_max / 2;
    int body = vsnprintf(text + length, sizeof(text) - length - 1, format, args);
    length += body > 0 ? (size_t)body : 0;
    if (length > sizeof(text) - 2)
        length = sizeof(text) - 2;
    text[length++] = '\n';
    for (size_t done = 0; done < length;) {
        ssize_t n = write(STDERR_FILENO, text + done, length - done);
        if (n <= 0 && errno != EINTR)
            return;
        done += n > 0 ? (size_t)n : 0;
    }
}

void tk_tools_log(const char *name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_line(name, "", format, args);
    va_end(args);
}

/* An abort that is caught comes here again. */
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
    log_line("FATAL ERROR", place, fmt, args);
    va_end(args);
    hint();
    tk_tools_post_mortem();
    abort();
}

void gasnett_fatalerror_nopos(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    log_line("FATAL ERROR", "", fmt, args);
    va_end(args);
    hint();
    tk_tools_post_mortem();
    abort();
}

char *trunkline_current_loc(const char *function, const char *file, int line)
{
    char *text = NULL;
    if (asprintf(&text, "%s() at %s:%d", function, file, line) < 0)
        gasnett_fatalerror_nopos("out of memory for the text of a place");
    return text;
}

void gasnett_killmyprocess(int exitcode)
{
    _exit(exitcode);
}
