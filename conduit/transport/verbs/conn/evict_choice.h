/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which connection is closed for others (qp_evict.h), and how long a rank waits for that, as
 * functions of plain values; --simulate of the launcher calls them too. No state. */
#ifndef TK_VERBS_EVICT_CHOICE_H
#define TK_VERBS_EVICT_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

/* ns */
enum {
    tk_evict_spared = 20000000,       /* a new connection is kept so long, so that it is used */
    tk_evict_request_waits = 2000000, /* a request of another rank waits so long for space here */
    tk_evict_denied = 100000          /* first repeat after a denial */
};

/* Is there space for one more? Without a bound, `max` is 0. */
static inline bool tk_evict_fits(uint32_t count, uint32_t max)
{
    return max == 0 || count < max;
}

/* May the connection be closed: was it not used since it has been watched, and is it not spared? */
static inline bool tk_evict_may(bool is_watched, uint64_t spared, uint64_t now)
{
    return is_watched && spared <= now;
}

/* The one found in use longest ago: give each connection that may be closed to tk_evict_consider();
 * `looks` count up, and wrap. */
struct tk_evict_choice {
    bool is_made;
    uint32_t rank, look;
};

static inline void tk_evict_consider(struct tk_evict_choice *choice, uint32_t rank, uint32_t look)
{
    if (!choice->is_made || (int32_t)(look - choice->look) < 0)
        *choice = (struct tk_evict_choice){.is_made = true, .rank = rank, .look = look};
}

#endif
