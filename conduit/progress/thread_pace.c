/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See thread_pace.h. No state. */
#include "config.h"

#include "base/bits.h"
#include "common/clock.h"
#include "progress/thread_pace.h"

/* Long enough to be worth a wake-up, short enough that a busy thread pauses often. / */
static const uint64_t slice = TK_SECOND / 1000;

void tk_thread_pace_open(struct tk_thread_pace *pace, uint64_t rate, uint64_t load)
{
    *pace =
        (struct tk_thread_pace){.between = rate ? TK_SECOND / rate : 0, .load = load ? load : 100};
}

void tk_thread_pace_wake(struct tk_thread_pace *pace, uint64_t now)
{
    pace->woke = now;
}

uint64_t tk_thread_pace_most(const struct tk_thread_pace *pace)
{
    return pace->load < 100 ? slice : UINT64_MAX;
}

uint64_t tk_thread_pace_rest(const struct tk_thread_pace *pace, uint64_t now, uint64_t awake)
{
    uint64_t since = now - pace->woke;
    uint64_t by_rate = since < pace->between ? pace->between - since : 0;
    uint64_t by_load = awake * (100 - pace->load) / pace->load;
    return tk_max(by_rate, by_load);
}
