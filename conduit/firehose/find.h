/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fast path of firehose.h, inline: memory that is read, in the region that was found last.
 * Takes the lock of the cache, if it is free. */
#ifndef TK_FIREHOSE_FIND_H
#define TK_FIREHOSE_FIND_H

#include "base/atomic.h"
#include "base/lock.h"
#include "firehose/firehose.h"
#include "stats/stats.h"

/* A region that contains all of this memory, if it is the one found last. Also does what
 * tk_firehose_may_get() does. NULL: nothing was done. */
static inline struct tk_pinned *tk_firehose_find_last(const void *address, size_t nbytes)
{
    const uintptr_t at = (uintptr_t)address;
    tk_if_unlikely(!tk_monitor_is_quiet_unasked() ||
                   !tk_trylock_free(&tk_firehose_hits.lock)) return NULL;
    struct tk_pinned *p = tk_firehose_hits.last;
    tk_if_likely(at >= p->base && at + nbytes <= p->end && !tk_monitor_has_events())
    {
        tk_counter_add(&p->refs, 1);
        tk_firehose_hits.clock++;
        tk_count_locked(tk_counter_regions_found);
    }
    else p = NULL;
    tk_unlock(&tk_firehose_hits.lock);
    return p;
}

/* As tk_firehose_put(), unless it is the last reference: false, and nothing was done. No lock. */
static inline bool tk_firehose_put_found(struct tk_pinned *region)
{
    return tk_counter_take_above(&region->refs, 1);
}

#endif
