/* SPDX-License-Identifier: BSD-3-Clause */
/* Another monotonic clock for the ranks of the virtual host SHIFTED_HOST, as on another machine:
 * SHIFTED_BY seconds ahead, and faster by the part SHIFTED_RATE (since the machine started: one
 * clock for all ranks of the host). Replaces the C library's function in a program that is linked
 * with this file. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

static long long shift; /* ns */
static double rate;

static long long real_clock(void)
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * (long long)SECOND + t.tv_nsec;
}

__attribute__((constructor)) static void shifted_clock_open(void)
{
    const char *host = getenv("SHIFTED_HOST"), *here = getenv("TRUNKLINE_HOST");
    const char *by = getenv("SHIFTED_BY"), *faster = getenv("SHIFTED_RATE");

    if (!host || !here || strcmp(host, here) != 0)
        return;
    rate = faster ? atof(faster) : 0;
    shift = by ? atoll(by) * SECOND : 0;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, t);
    long long now = real_clock();
    now += shift + (long long)(rate * (double)now);
    t->tv_sec = (time_t)(now / SECOND);
    t->tv_nsec = (long)(now % SECOND);
    return 0;
}
