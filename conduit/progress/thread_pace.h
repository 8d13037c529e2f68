/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Limits how often a thread of the library wakes up, and which share of the time it is awake. Pure:
 * times are parameters, so that the rules have unit tests. */
#ifndef TK_PROGRESS_THREAD_PACE_H
#define TK_PROGRESS_THREAD_PACE_H

#include <stdint.h>

struct tk_thread_pace {
    uint64_t between; /* minimum ns from one wake-up to the next; 0: any */
    uint64_t load;    /* maximum per cent of the time; 100: all */
    uint64_t woke;    /* when it woke up last */
};

/* rate: wake-ups a second, load: per cent; 0: no limit. */
void tk_thread_pace_open(struct tk_thread_pace *pace, uint64_t rate, uint64_t load);

void tk_thread_pace_wake(struct tk_thread_pace *pace, uint64_t now);

/* How long it may serve without a pause although there is more to do. */
uint64_t tk_thread_pace_most(const struct tk_thread_pace *pace);

/* After `awake` ns of work since it woke up: how long it must pause before it may wake up again.
 * / */
uint64_t tk_thread_pace_rest(const struct tk_thread_pace *pace, uint64_t now, uint64_t awake);

#endif
