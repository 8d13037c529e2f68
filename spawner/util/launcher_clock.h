/* SPDX-License-Identifier: BSD-3-Clause */
/* Monotonic time in milliseconds, and deadlines made of it. Owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_LAUNCHER_CLOCK_H
#define TRUNKLINE_SPAWNER_LAUNCHER_CLOCK_H

#include <stdint.h>

#include "common/clock.h"

/* A deadline that never comes. */
#define CLOCK_NEVER INT64_MAX

static inline int64_t clock_ms(void)
{
    return (int64_t)(tk_now() / 1000000);
}

static inline int64_t clock_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The timeout for poll(2) until `deadline`; -1 for CLOCK_NEVER, at most one minute otherwise. */
static inline int clock_poll_timeout(int64_t deadline)
{
    if (deadline == CLOCK_NEVER)
        return -1;
    int64_t left = deadline - clock_ms();
    if (left < 0)
        return 0;
    return left > 60000 ? 60000 : (int)left;
}

#endif
