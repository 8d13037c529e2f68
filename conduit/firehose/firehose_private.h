/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of firehose/ only. */
#ifndef TK_FIREHOSE_PRIVATE_H
#define TK_FIREHOSE_PRIVATE_H

#include <stdatomic.h>

#include "firehose/firehose.h"
#include "process/alone.h"

/* limits.c */

struct tk_firehose_limits {
    size_t granule;     /* a power of two */
    uint64_t bytes;     /* pinned at once */
    bool counts_static; /* `bytes` is for all registered memory of this process */
    uint64_t regions;   /* pinned at once */
    uint64_t exported;  /* regions of these that other ranks may ask for */
    size_t buckets;     /* a power of two */

    /* Our share of what can be pinned; the settings may ask for more. */
    uint64_t pinnable_bytes, pinnable_regions;
};

/* `lends`: other ranks ask for regions too. */
enum tk_status tk_firehose_find_limits(struct tk_firehose_limits *limits, uint64_t host_memory,
                                       uint64_t device_regions, unsigned sharers, bool exports);

/* Warns where the settings ask for more than can be pinned, as the manual promises. */
void tk_firehose_warn_of_limits(const struct tk_firehose_limits *limits);

/* monitor.c */

enum tk_monitor_mode {
    TK_MONITOR_USERFAULTFD,
    TK_MONITOR_OFF,        /* regions are kept all the same: for tests and experts */
    TK_MONITOR_UNAVAILABLE /* nothing can be watched, so no region outlives its transfer */
};

/* `choice` is a word of GASNET_FIREHOSE_MONITOR. TK_FAIL: has complained. */
enum tk_status tk_monitor_open(const char *choice);
void tk_monitor_close(void);
enum tk_monitor_mode tk_monitor_mode(void);
const char *tk_monitor_reason(void); /* nothing can be watched; "" when it can */

/* With the cache's lock held, before the first tk_monitor_watch(). Without a thread nothing is kept
 * from then on. */
void tk_monitor_start(void);

/* From now on the range's end comes as news. False: it can't be watched. */
bool tk_monitor_watch(uintptr_t base, size_t size);

/* Is it memory that nobody but this process and its system calls can take away? For pages that the
 * device has pinned. */
bool tk_monitor_is_private(uintptr_t base, size_t size);

/* monitor.c's own, here for those that pass often. */
struct tk_monitor_events {
    _Atomic uint32_t begun, ended; /* batches of events */
    uint32_t seen;                 /* by the cache */
    atomic_bool runs;
    atomic_bool is_apart; /* the thread has descriptors of its own */
};
extern TK_HIDDEN struct tk_monitor_events tk_monitor_events;

/* Asks the kernel; and how often that was done. */
bool tk_monitor_query(void);
uint64_t tk_monitor_queries(void);

/* No unmapping is under way of which there is no news yet. Before what tk_monitor_has_events() says
 * is relied upon: see monitor.c. */
static inline bool tk_monitor_is_quiet(void)
{
    if (!atomic_load_explicit(&tk_monitor_events.runs, memory_order_relaxed))
        return true;
    tk_if_likely(atomic_load_explicit(&tk_monitor_events.is_apart, memory_order_relaxed) &&
                 tk_is_alone()) return true;
    return tk_monitor_query();
}

/* With the cache's lock held: calls forget() for all that is news. */
static inline bool tk_monitor_has_events(void)
{
    return atomic_load_explicit(&tk_monitor_events.begun, memory_order_acquire) !=
           tk_monitor_events.seen;
}
void tk_monitor_collect(void (*invalidate)(uintptr_t from, uintptr_t to));

/* mapping.c */

/* Widens a range to the mapping that it lies in and to those of memory of no file that touch it
 * without a gap and allow the same, and to the gap behind (before) them: what another thread maps
 * there meanwhile is one with them. False: it is not mapped so. */
bool tk_mappings_around(uintptr_t *from, uintptr_t *to);

#endif
