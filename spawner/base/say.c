/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's voice; see say.h. Owns the verbosity, written once before any child exists. No
 * lock. */
#include "config.h"

#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int verbosity;

void say_set_verbosity(int level)
{
    verbosity = level;
}

int say_verbosity(void)
{
    return verbosity;
}

static void vsay(const char *format, va_list args)
{
    static const char prefix[] = "gasnetrun_ibv: ";
    char line[2048];
    size_t used = sizeof(prefix) - 1;

    memcpy(line, prefix, used);
    int n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
    if (n < 0)
        return;
    used += (size_t)n;
    if (used > sizeof(line) - 2)
        used = sizeof(line) - 2;
    line[used++] = '\n';
    /* Nobody is left to tell when stderr itself is broken. */
    if (write(STDERR_FILENO, line, used) < 0)
        return;
}

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsay(format, args);
    va_end(args);
}

void say_verbose(int level, const char *format, ...)
{
    if (verbosity < level)
        return;
    va_list args;
    va_start(args, format);
    vsay(format, args);
    va_end(args);
}
