/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The clock of all waits and time stamps. Owns nothing. */
#include "config.h"

#include <time.h>

#include "support.h"

uint64_t shca_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
