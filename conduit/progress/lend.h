/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A call that frees the source on return (GEX_EVENT_NOW) either copies it, or sends it in place
 * ("lends" it to the device) and waits for the completion. A copy of 4 KiB takes 0.1 us, one of 64
 * KiB a few; a device in hardware completes a send after a round trip, 2 us and more. A software
 * device may have executed the request when posting returns: then a copy only doubles the work.
 *
 * A thread finds out by lending one source after some copies: if a few polls find its completion it
 * keeps lending; otherwise it copies, twice as many each time, before the next try. Pure; no lock,
 * each thread has its own. */
#ifndef TK_LEND_H
#define TK_LEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/* Polls that together take less time than a copy; up to 16 earlier transfers may complete first in
 * each. */
enum { tk_lend_looks = 3, tk_lend_copies_min = 64, tk_lend_copies_max = 1 << 20 };

struct tk_lend {
    uint32_t copied; /* since the last try */
    uint32_t copies; /* before the next one; 0: the least */
    bool lends;      /* the last lent source was free at once */
};

/* For the next source. */
static inline bool tk_lend_next(struct tk_lend *lend)
{
    if (lend->lends)
        return true;
    if (lend->copied++ < tk_max(lend->copies, (uint32_t)tk_lend_copies_min))
        return false;
    lend->copied = 0;
    return true;
}

/* Called for a source that was lent and not free after posting. */
static inline void tk_lend_learn(struct tk_lend *lend, bool came_at_once)
{
    lend->lends = came_at_once;
    if (came_at_once)
        lend->copies = 0;
    else if (lend->copies < tk_lend_copies_max)
        lend->copies = 2 * (lend->copies ? lend->copies : (uint32_t)tk_lend_copies_min);
}

#endif
