/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The settings of this process, and its lines on stderr. Owns shca_config; fabric/load.c writes it
 * once, and it is read-only afterwards. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "support.h"

struct shca_config shca_config;

void shca_log(const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n = snprintf(line, sizeof line, "softhca: ");

    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    /* One write, so that lines of several processes do not mix. */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

const char *shca_remedy(int error)
{
    switch (error) {
    case ENOMEM:
        return "a device, and each peer, takes 256 MiB of address space: look at ulimit -v";
    case EMFILE:
        return "raise ulimit -n";
    case ENFILE:
        return "the whole host is out of open files";
    case EAGAIN:
        return "look at ulimit -u";
    case ENOENT:
        return "mount /proc";
    default:
        return "the kernel, or a container, forbids it";
    }
}
