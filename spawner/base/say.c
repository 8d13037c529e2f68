/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's voice; see say.h. Owns the verbosity, written once before any child exists. No
 * lock. */
#include "config.h"

#include "say.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A full pipe behind stderr must not hold up what ends the job. */
enum { ROOM_MS = 1000 };

static int verbosity;

void say_set_verbosity(int level)
{
    verbosity = level;
}

int say_verbosity(void)
{
    return verbosity;
}

size_t say_format(char line[SAY_LONGEST], const char *format, va_list args)
{
    static const char prefix[] = "gasnetrun_ibv: ";
    size_t used = sizeof(prefix) - 1;

    memcpy(line, prefix, used);
    int n = vsnprintf(line + used, SAY_LONGEST - used - 1, format, args);
    if (n < 0)
        return 0;
    used += (size_t)n;
    if (used > SAY_LONGEST - 2)
        used = SAY_LONGEST - 2;
    line[used++] = '\n';
    return used;
}

static void vsay(const char *format, va_list args)
{
    char line[SAY_LONGEST];
    size_t length = say_format(line, format, args);
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

    /* Nobody is left to tell when stderr itself is broken. */
    if (poll(&room, 1, ROOM_MS) > 0 && write(STDERR_FILENO, line, length) < 0)
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
