/* SPDX-License-Identifier: BSD-3-Clause
 *
 * On-demand registration of memory: a cache of registered regions outside of the segment, so that
 * large transfers use the client's memory in place. Knows no verbs: its opener supplies the
 * functions that pin and unpin a region. A region covers the pages named by one transfer, never
 * more, and lies in one granule (GASNET_FIREHOSE_MAXREGION_SIZE), whose number is its key.
 *
 * Locks: one for the cache, free of cost in SEQ. It is not held across a registration, and no other
 * lock is taken under it. */
#ifndef TK_FIREHOSE_H
#define TK_FIREHOSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/counter.h"
#include "base/footprint.h"
#include "base/idle_table.h"
#include "base/status.h"
#include "process/alone.h"

/* A registered region; valid while referenced. */
struct tk_pinned {
    struct tk_entry entry; /* in the table, by granule; or in a list, free or to be unpinned */
    uintptr_t base;        /* marked in a region for writing, see tk_firehose_get_for_writing() */
    size_t size;
    uintptr_t end;
    void *handle;
    uint32_t key;      /* local key */
    tk_counter_t refs; /* one may be dropped without the lock, unless it is the last */
    uint32_t generation;
    uint64_t used;  /* cache clock at the last get */
    bool is_cached; /* false: unpinned when the last reference is dropped */
};

/* The device that memory is registered with. */
struct tk_firehose_device {
    /* NULL: refused, with errno set; is_source: only read by the device. */
    void *(*pin)(void *base, size_t size, bool is_source, uint32_t *key);
    void (*unpin)(void *handle);
    void (*explain)(size_t size, int error); /* reports a refusal; called once */
    uint64_t regions_max;                    /* limit of the device */
    unsigned sharers; /* processes of this host that share the device and memory */
    bool is_first;    /* first of these processes: prints the warnings */
    bool is_paged;    /* on demand: a region follows the page tables and pins nothing */
};

/* The resources of the cache in a job of that shape; TK_FAIL: a bad setting, which was reported. */
enum tk_status tk_firehose_footprint(struct tk_footprint *total, const struct tk_job_shape *shape);

/* GASNET_PHYSMEM_MAX: bytes that all ranks of a host may pin together. TK_FAIL: the value is bad
 * and was reported. */
enum tk_status tk_firehose_physmem(uint64_t host_memory, uint64_t *bytes);

/* Opens the cache with the limits that the settings give. TK_FAIL: a setting is bad and was
 * reported. Also checks whether memory can be watched; the monitor's thread starts with the first
 * region. */
enum tk_status tk_firehose_open(const struct tk_firehose_device *device);
void tk_firehose_close(void);
bool tk_firehose_is_open(void);

/* Accounts for memory that stays registered, which counts against GASNET_PHYSMEM_MAX as well. May
 * be called before the cache is opened. */
void tk_firehose_account_static(int64_t bytes);

/* Call it before getting regions for a transfer that has begun, once for all regions that are got
 * before the client may unmap memory again. False: another thread may be unmapping memory that is
 * still cached, so no region may be used. Thread-safe; one system call if the client has several
 * threads. */
bool tk_firehose_may_get(const void *address, size_t nbytes);

/* References a region that begins at or before `address` and reaches to the end of its granule or
 * of `nbytes`, whichever comes first, or further. NULL: nothing can be registered; the caller
 * copies instead. Thread-safe. */
struct tk_pinned *tk_firehose_get(const void *address, size_t nbytes);
void tk_firehose_put(struct tk_pinned *region);

/* Size of a granule, a power of two. */
size_t tk_firehose_granule(void);

/* How much of [address, +nbytes) lies in the granule of `address`. */
extern TK_HIDDEN size_t tk_firehose_granule_size;
static inline size_t tk_firehose_piece(const void *address, size_t nbytes)
{
    size_t granule = tk_firehose_granule_size;
    return tk_min(nbytes, granule - ((uintptr_t)address & (granule - 1)));
}

/* As tk_firehose_get() for a caller that knows how many bytes lie in one granule and prefers a copy
 * over evicting a region that is likely to be used again before this one: registering costs as much
 * as several copies. */
struct tk_pinned *tk_firehose_get_if_worth(const void *address, size_t nbytes, size_t in_granule);

/* As tk_firehose_get_if_worth() for memory that the transfer writes. With on-demand paging, regions
 * for reading are not writable: the device would require write access to each page, so read-only
 * memory could not be a source. Elsewhere a region serves both. */
struct tk_pinned *tk_firehose_get_for_writing(void *address, size_t nbytes, size_t in_granule);

/* Whether all of this memory is mapped and writable. */
bool tk_mapping_is_writable(const void *address, size_t nbytes);

/* ---- fast path: memory that is read, in one region that was registered before: find.h ---- */

/* State of the cache, declared here for inlining. */
struct tk_firehose_hits {
    tk_lock_t lock;         /* the cache's */
    struct tk_pinned *last; /* the region found last by the functions below: the cache has a
                               reference of its own to it, so that a hit does not change the ring of
                               idle regions. Never NULL: an empty region if there is none */
    uint64_t clock;         /* lookups */
};
extern TK_HIDDEN struct tk_firehose_hits tk_firehose_hits;

/* Of the monitor, see firehose_private.h. */
struct tk_monitor_events {
    _Atomic uint32_t begun, ended; /* batches of events */
    uint32_t seen;                 /* last batch applied by the cache */
    atomic_bool runs;
    atomic_bool is_apart; /* the thread has a descriptor table of its own */
};
extern TK_HIDDEN struct tk_monitor_events tk_monitor_events;

/* True: no unmapping is under way whose event is not queued yet; to be checked before relying on
 * the next one, see monitor.c. False: the kernel has to be asked. */
static inline bool tk_monitor_is_quiet_unasked(void)
{
    tk_if_likely(!atomic_load_explicit(&tk_monitor_events.runs, memory_order_relaxed)) return true;
    return atomic_load_explicit(&tk_monitor_events.is_apart, memory_order_relaxed) &&
           tk_was_alone();
}

/* With the cache's lock held: whether there are events to apply. */
static inline bool tk_monitor_has_events(void)
{
    return atomic_load_explicit(&tk_monitor_events.begun, memory_order_acquire) !=
           tk_monitor_events.seen;
}

/* Like tk_firehose_find_last() in find.h, but with a lookup; the region becomes the one found last.
 * NULL: no region, or the caller would have to wait for the lock, the monitor or the kernel. */
struct tk_pinned *tk_firehose_find(const void *address, size_t nbytes);

/* ---- diagnostics, and facts for other rooms ---- */

/* Number of regions that other ranks may request. */
uint64_t tk_firehose_exported(void);

/* Declares memory that stays mapped until the process ends and need not be watched. One range; to
 * be called before the cache is used. */
void tk_firehose_set_permanent(const void *base, size_t size);

struct tk_firehose_counts {
    uint64_t hits, misses; /* transfers that found a region, and that registered one */
    uint64_t evictions, invalidations;
    uint64_t refusals;           /* transfers that were copied instead */
    uint64_t pinned, pinned_max; /* bytes */
    uint64_t queries;            /* queries to the kernel whether an unmapping is in progress */
};
struct tk_firehose_counts tk_firehose_count(void);

/* One line for the start-up report. */
void tk_firehose_describe(char *text, size_t size);

/* GASNET_FIREHOSE_VERBOSE: logs the counters. */
void tk_firehose_log_counts(void);

#endif
