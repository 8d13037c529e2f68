/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of memory on the fly: a cache of the regions outside of the segment that the device
 * knows at present, so that large transfers go from and to where the client's memory lies. Nothing
 * here knows verbs: whoever opens the cache says how a region is pinned. A region covers the pages
 * that one transfer named, never more, and lies in one granule (GASNET_FIREHOSE_MAXREGION_SIZE), by
 * whose number it is found.
 *
 * Locks: one for the cache, free of cost in SEQ. It is held across no registration, and no other
 * lock is taken under it. */
#ifndef TK_FIREHOSE_H
#define TK_FIREHOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/status.h"

/* A region that the device knows; valid while held. */
struct tk_pinned {
    struct tk_pinned *next; /* in its bucket, in a pool or in a list */
    struct tk_pinned *older, *newer;
    uintptr_t base;
    size_t size;
    void *handle;
    uint32_t key; /* for local use */
    uint32_t refs;
    uint32_t generation;
    uint64_t used;  /* the hold, counted over all regions, that was its last */
    bool is_cached; /* false: to be unpinned when nobody holds it any more */
};

/* The device that memory is registered with. */
struct tk_firehose_device {
    void *(*pin)(void *base, size_t size, uint32_t *key); /* NULL: refused, errno tells why */
    void (*unpin)(void *handle);
    void (*explain)(size_t size, int error); /* tells people of a refusal; called once */
    uint64_t regions_max;                    /* that the device can have */
    unsigned sharers;                        /* processes of this host that share it and memory */
    bool is_first;                           /* of these: who warns */
};

/* GASNET_PHYSMEM_MAX: what all ranks of a host may pin together. TK_FAIL: has complained of it. */
enum tk_status tk_firehose_physmem(uint64_t host_memory, uint64_t *bytes);

/* By the settings. TK_FAIL: has complained of one of them. Whether memory can be watched is found
 * out here; the thread that watches starts with the first region. */
enum tk_status tk_firehose_open(const struct tk_firehose_device *device);
void tk_firehose_close(void);
bool tk_firehose_is_open(void);

/* Memory that is registered for good, which counts against GASNET_PHYSMEM_MAX as well. May be
 * called before the cache is opened. */
void tk_firehose_account_static(int64_t bytes);

/* Asked before regions are held for a transfer that has begun, once for all that is held until the
 * caller's memory may go away again. False: another thread may just be unmapping memory that the
 * cache still has, so none of it may be held. Thread-safe; a system call where the client has
 * several threads. */
bool tk_firehose_may_get(const void *address, size_t nbytes);

/* A region that begins at or before `address` and reaches to the end of its granule or of `nbytes`,
 * whichever comes first, or further. NULL: the caller goes another way. Thread-safe. */
struct tk_pinned *tk_firehose_get(const void *address, size_t nbytes);
void tk_firehose_put(struct tk_pinned *region);

/* A power of two. */
size_t tk_firehose_granule(void);

/* How much of [address, +nbytes) lies in the granule of `address`. */
extern TK_HIDDEN size_t tk_firehose_granule_size;
static inline size_t tk_firehose_piece(const void *address, size_t nbytes)
{
    size_t granule = tk_firehose_granule_size;
    return tk_min(nbytes, granule - ((uintptr_t)address & (granule - 1)));
}

/* As tk_firehose_get() for who knows how much of it lies in one granule, and would rather copy
 * than take room from a region that is likely to be used again before this one is: registering
 * costs as much as some copies. */
struct tk_pinned *tk_firehose_get_if_worth(const void *address, size_t nbytes, size_t in_granule);

/* Regions that other ranks may ask for. */
uint64_t tk_firehose_exported(void);

/* Memory that is there until the process ends: it need not be watched. One piece; before anybody
 * uses it. */
void tk_firehose_set_permanent(const void *base, size_t size);

struct tk_firehose_counts {
    uint64_t hits, misses; /* transfers that found a region, and that made one */
    uint64_t evictions, invalidations;
    uint64_t refusals;           /* transfers that had to go another way */
    uint64_t pinned, pinned_max; /* bytes */
    uint64_t queries;            /* to the kernel, whether memory is being unmapped */
};
struct tk_firehose_counts tk_firehose_count(void);

/* For the start record. */
void tk_firehose_describe(char *text, size_t size);

/* GASNET_FIREHOSE_VERBOSE: the counts. */
void tk_firehose_log_counts(void);

#endif
