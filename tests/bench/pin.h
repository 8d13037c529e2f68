/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Gives each of two processes a CPU of its own, so that the scheduler does not decide what is
 * measured. Included by programs of Open MPI too, which have no configuration of ours. */
#ifndef BENCH_PIN_H
#define BENCH_PIN_H

#include <sched.h>

/* Pins the caller to the `index`-th CPU that we may use; does nothing if there is only one. */
static inline void bench_pin_to(int index)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof(all), &all) || CPU_COUNT(&all) < 2)
        return;
    int seen = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && seen++ == index) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
}

#endif
