/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into the rank under callgrind: valgrind 3.19 does not know pidfd_open(), without which
 * softhca takes every peer for dead. The substitute descriptor is never readable, so the peer seems
 * to live for ever, which is long enough to count instructions. Owns nothing, locks nothing. */
#include "config.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

enum { most_arguments = 6 };

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long a[most_arguments];
    va_list args;
    if (number == SYS_pidfd_open)
        return eventfd(0, EFD_CLOEXEC);
    if (!real)
        real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    va_start(args, number);
    for (int i = 0; i < most_arguments; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
