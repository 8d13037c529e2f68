/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See check.h. Owns each client thread's note of its last call; no lock. Linked into programs only
 * where something checks. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "base/client_mode.h"
#include "base/report.h"
#include "trunkline_line.h"

static TK_PER_CLIENT_THREAD struct tk_call call_now;

void trunkline_at(const char *call, const char *file, unsigned line)
{
    call_now = (struct tk_call){.name = call, .file = file, .line = line};
}

struct tk_call tk_call_last(void)
{
    return call_now;
}

void tk_call_resume(const struct tk_call *call)
{
    call_now = *call;
}

enum { text_max = 1024 };

void tk_check_refused(const char *format, ...)
{
    char text[text_max];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (call_now.file)
        tk_verbose_error("%s; called at %s:%u", text, call_now.file, call_now.line);
    else
        tk_verbose_error("%s", text);
}

void tk_check_failed(const char *format, ...)
{
    char text[text_max];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!call_now.file)
        tk_panic("%s", text);
    tk_panic("%s; called at %s:%u", text, call_now.file, call_now.line);
}
