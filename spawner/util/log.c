/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the launcher; see log.h. Owns the verbosity, which is written once before any child
 * exists. No lock. */
#include "config.h"

#include "log.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A full pipe behind standard error must not delay the end of a job. */
enum { WRITABLE_MS = 1000 };

static int verbosity;

void log_set_verbosity(int level)
{
    verbosity = level;
}

int log_verbosity(void)
{
    return verbosity;
}

size_t log_format(char line[LOG_LINE_MAX], const char *format, va_list args)
{
    static const char prefix[] = "gasnetrun_ibv: ";
    size_t used = sizeof(prefix) - 1;

    memcpy(line, prefix, used);
    int n = vsnprintf(line + used, LOG_LINE_MAX - used - 1, format, args);
    if (n < 0)
        return 0;
    used += (size_t)n;
    if (used > LOG_LINE_MAX - 2)
        used = LOG_LINE_MAX - 2;
    line[used++] = '\n';
    return used;
}

static void log_write(const char *format, va_list args)
{
    char line[LOG_LINE_MAX];
    size_t length = log_format(line, format, args);
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    /* An error of standard error itself cannot be reported anywhere. */
    if (poll(&p, 1, WRITABLE_MS) > 0 && write(STDERR_FILENO, line, length) < 0)
        return;
}

void log_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_write(format, args);
    va_end(args);
}

void log_info(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    log_write(format, args);
    va_end(args);
}

void log_verbose(int level, const char *format, ...)
{
    if (verbosity < level)
        return;
    va_list args;
    va_start(args, format);
    log_write(format, args);
    va_end(args);
}
