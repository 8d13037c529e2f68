/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Monotonic time in nanoseconds. Thread-safe, async-signal-safe. */
#ifndef TK_CLOCK_H
#define TK_CLOCK_H

#include <stdint.h>
#include <time.h>

#define TK_SECOND UINT64_C(1000000000)

static inline uint64_t tk_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * TK_SECOND + (uint64_t)t.tv_nsec;
}

#endif
