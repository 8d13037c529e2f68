/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of the tools on standard error, with the rank where there is one. No state, no lock: a line
 * is one write(2). */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/tools.h"

enum { text_max = 2048 };

/* One write for the whole line, so that lines of several processes do not mix. */
void tk_tools_vlog(const char *name, const char *place, const char *format, va_list args)
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
    tk_tools_vlog(name, "", format, args);
    va_end(args);
}
