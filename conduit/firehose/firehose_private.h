/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations shared by the files of firehose/ only. */
#ifndef TK_FIREHOSE_PRIVATE_H
#define TK_FIREHOSE_PRIVATE_H

#include "firehose/firehose.h"

/* limits.c */

struct tk_firehose_limits {
    size_t granule;     /* a power of two */
    uint64_t bytes;     /* pinned at once */
    bool counts_static; /* `bytes` includes memory that stays registered */
    uint64_t regions;   /* pinned at once */
    uint64_t exported;  /* of these, regions that other ranks may request */
    size_t buckets;     /* a power of two */

    /* This rank's share of what can be pinned; the settings may ask for more. */
    uint64_t pinnable_bytes, pinnable_regions;
};

/* `exports`: other ranks request regions too. */
enum tk_status tk_firehose_find_limits(struct tk_firehose_limits *limits, uint64_t host_memory,
                                       uint64_t device_regions, unsigned sharers, bool exports);

static inline size_t tk_firehose_regions_bytes(const struct tk_firehose_limits *limits)
{
    return limits->regions * sizeof(struct tk_pinned);
}

/* Warns where the settings ask for more than can be pinned, as the manual promises. */
void tk_firehose_warn_of_limits(const struct tk_firehose_limits *limits);

/* monitor.c */

enum tk_monitor_mode {
    TK_MONITOR_USERFAULTFD,
    TK_MONITOR_OFF,        /* regions are cached without being watched: for tests and experts */
    TK_MONITOR_UNAVAILABLE /* memory can't be watched, so no region outlives its transfer */
};

/* `choice` is a value of GASNET_FIREHOSE_MONITOR. TK_FAIL: the failure was reported. */
enum tk_status tk_monitor_open(const char *choice);
void tk_monitor_close(void);
enum tk_monitor_mode tk_monitor_mode(void);
const char *tk_monitor_reason(void); /* why memory can't be watched; "" if it can */

/* Starts the thread; called with the cache's lock held, before the first tk_monitor_watch(). If the
 * thread can't be started, nothing is cached from then on. */
void tk_monitor_start(void);

/* Watches a range: from now on its unmapping is reported as an event. False: it can't be watched.
 * / */
bool tk_monitor_watch(uintptr_t base, size_t size);

/* Whether only this process, by its own system calls, can unmap this memory. For pages that the
 * device has pinned. */
bool tk_monitor_is_private(uintptr_t base, size_t size);

/* Asks the kernel whether no unmapping is in progress; and the number of such queries. */
bool tk_monitor_query(void);
uint64_t tk_monitor_queries(void);

/* Like tk_monitor_is_quiet_unasked(), but asks the kernel. */
static inline bool tk_monitor_is_quiet(void)
{
    tk_if_likely(tk_monitor_is_quiet_unasked()) return true;
    return (atomic_load_explicit(&tk_monitor_events.is_apart, memory_order_relaxed) &&
            tk_is_alone()) ||
           tk_monitor_query();
}

/* With the cache's lock held: calls invalidate() for each range of the events. */
void tk_monitor_collect(void (*invalidate)(uintptr_t from, uintptr_t to));

/* mapping.c */

/* Widens a range to the mapping that contains it, to adjacent anonymous mappings with equal access
 * rights, and to the gap behind (before) them: a mapping that another thread creates there
 * meanwhile merges with them. False: the range is not mapped like that. */
bool tk_mappings_around(uintptr_t *from, uintptr_t *to);

#endif
