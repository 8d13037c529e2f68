/* SPDX-License-Identifier: BSD-3-Clause */
/* See passive.h. Owns nothing. */
#include "config.h"

#include "clock.h"
#include "job.h"
#include "passive.h"

/* Uses a CPU for twice the allowed time; even a machine with fifty busy programs grants that. */
static void stay_awake(void)
{
    uint64_t began = wl_now(), cpu = wl_cpu();
    while (wl_now() - began < WL_SECOND / 2 ||
           (wl_cpu() - cpu) * 100 < 2 * rma_passive_max_percent * (wl_now() - began))
        continue;
}

double rma_be_passive(bool is_awake)
{
    uint64_t now = wl_now(), cpu = wl_clock(CLOCK_PROCESS_CPUTIME_ID);
    if (is_awake)
        stay_awake();
    wl_job_barrier_asleep();
    cpu = wl_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    now = wl_now() - now;
    return now > WL_SECOND / 2 ? 100 * (double)cpu / (double)now : 0;
}
