/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How long each step of start-up took, for GASNET_VERBOSEENV. Owns the list of steps, which are
 * string constants. No lock: start-up is single-threaded. */
#include "config.h"

#include <stdio.h>

#include "base/bits.h"
#include "bootstrap/bootstrap.h"
#include "common/clock.h"
#include "start/start_private.h"

enum { phases_max = 12 };

/* Nanoseconds, and how many of them this process, libpmix's thread included, had a CPU. */
struct times {
    uint64_t wall, cpu;
};

static struct {
    const char *name;
    struct times took;
} phases[phases_max];
static unsigned phase_count;
static struct times began, last;

static struct times read_times(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (struct times){.wall = tk_now(),
                          .cpu = (uint64_t)t.tv_sec * TK_SECOND + (uint64_t)t.tv_nsec};
}

static struct times between(struct times from, struct times to)
{
    return (struct times){.wall = to.wall - from.wall, .cpu = to.cpu - from.cpu};
}

void tk_phases_begin(void)
{
    began = last = read_times();
    phase_count = 0;
}

/* Rank 0 reports its own times. The kernel adds up those of all threads at each call, so the other
 * ranks, on CPUs that they may share, do not ask. */
void tk_phase_over(const char *name)
{
    if (tk_bootstrap.rank != 0)
        return;
    struct times now = read_times();
    if (phase_count < phases_max) {
        phases[phase_count].name = name;
        phases[phase_count++].took = between(last, now);
    }
    last = now;
}

static size_t describe_times(char *text, size_t size, const char *name, struct times took)
{
    int used = snprintf(text, size, "%s %.1f (%.1f)", name, (double)took.wall * 1e-6,
                        (double)took.cpu * 1e-6);
    return tk_min((size_t)used, size);
}

void tk_phases_describe(char *text, size_t size)
{
    size_t used = 0;
    for (unsigned i = 0; i < phase_count && used + 3 < size; i++) {
        used += describe_times(text + used, size - used, phases[i].name, phases[i].took);
        used += (size_t)snprintf(text + used, size - used, ", ");
    }
    describe_times(text + used, size - used, "all", between(began, last));
}
