/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cache of pinned regions: looked up by granule number, reference counted, kept when idle, and
 * evicted oldest first when there is no space for another. Owns the table, the regions and the
 * counters, all protected by one lock, which must not be held across a registration. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/idle_table.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "firehose/firehose_private.h"
#include "memory/memory.h"
#include "settings/settings.h"
#include "stats/stats.h"

enum {
    /* A registration that serves one transfer only: registering and deregistering costs some tens
       of microseconds on hardware, as much as copying this. */
    single_min = 512 << 10,
    single_max = 64 << 20, /* bounds the bytes that a huge transfer pins at once */
    backoff_max = 1023,    /* transfers that do not try to pin after a refusal */
    /* When the cache is full, one transfer in `reluctance` evicts the oldest region; the others are
       copied. Reluctance doubles each time the evicted region is wanted again before the admitted
       one is reused, as when more memory than fits is traversed again and again; it halves in the
       opposite case. If the oldest region was not used for rounds_old rounds over all regions, one
       transfer in reluctance_old evicts it. */
    reluctance_min = 4,
    reluctance_first = 16,
    reluctance_max = 256,
    reluctance_old = 4,
    rounds_old = 8
};

/* The last trial eviction: the region evicted and the one admitted for it. Whichever of the two is
 * needed first decides whether it paid off. */
struct exchange {
    uintptr_t evicted, admitted; /* addresses; 0: decided already, or no trial is in progress */
    size_t size;                 /* of the evicted region */
    uint64_t clock;              /* tk_firehose_hits.clock at the eviction */
};

static struct {
    bool is_open, is_reported;
    struct tk_firehose_device device;
    struct tk_firehose_limits limits;
    uintptr_t mark; /* of regions for writing: write_mark or 0 */
    unsigned shift; /* log2 of a granule */
    size_t page;
    struct tk_table table;
    struct tk_pinned *regions;
    struct tk_entry *free;
    struct tk_entry *deferred; /* unpinned once the lock is released */
    struct tk_entry idle;      /* ring of unreferenced regions */
    uint32_t generation;       /* number of event batches applied */
    unsigned skip, backoff; /* transfers that still skip pinning after a refusal; how many the last
                               refusal set */
    uint64_t hits_before;   /* values of the statistics when the cache was opened */
    unsigned declined;      /* consecutive transfers that evicted nothing */
    unsigned reluctance;    /* how many do so before one evicts */
    struct exchange trial;
    struct tk_firehose_counts counts;
} cache;

static struct tk_pinned nothing;

struct tk_firehose_hits tk_firehose_hits = {.lock = TK_LOCK_INIT, .last = &nothing};

static int64_t static_bytes; /* bytes that stay registered until the process ends */

/* The library's own memory that stays mapped until the process ends. */
static struct {
    uintptr_t base;
    size_t size;
} permanent;

/* Set in the addresses of regions for writing, where these are separate: no address of a program
 * has this bit, so lookups for reading, which do not set it, never find such a region. */
static const uintptr_t write_mark = (uintptr_t)1 << (sizeof(uintptr_t) * 8 - 1);

size_t tk_firehose_granule_size;

static bool is_permanent(uintptr_t base, size_t size)
{
    return base - permanent.base < permanent.size &&
           size <= permanent.size - (base - permanent.base);
}

/* ---- table ---- */

static inline struct tk_pinned *region_of(struct tk_entry *entry)
{
    return (struct tk_pinned *)entry; /* its first member */
}

static inline struct tk_pinned *cache_find(uintptr_t at, size_t nbytes)
{
    for (struct tk_entry *e = *tk_table_bucket(&cache.table, at >> cache.shift); e; e = e->next) {
        struct tk_pinned *p = region_of(e);
        if (at - p->base < p->size && nbytes <= p->size - (at - p->base))
            return p;
    }
    return NULL;
}

static void cache_insert(struct tk_pinned *p)
{
    tk_table_insert(&cache.table, p->base >> cache.shift, &p->entry);
    p->is_cached = true;
}

/* Removes a region from the table; it is unpinned when its last reference is dropped. */
static void cache_remove(struct tk_pinned *p)
{
    tk_table_remove(&cache.table, p->base >> cache.shift, &p->entry);
    p->is_cached = false;
    if (tk_counter_read(&p->refs) > 0)
        return;
    tk_idle_remove(&p->entry);
    p->entry.next = cache.deferred;
    cache.deferred = &p->entry;
}

/* Makes the region found last an ordinary one, before anything is removed. It then counts as the
 * newest idle one, although others may have been found since on other paths. */
static void cache_forget_last(void)
{
    struct tk_pinned *p = tk_firehose_hits.last;
    if (p == &nothing)
        return;
    tk_firehose_hits.last = &nothing;
    p->used = tk_firehose_hits.clock;
    if (tk_counter_add(&p->refs, -1) == 0)
        tk_idle_add_newest(&cache.idle, &p->entry);
}

static void cache_invalidate_in(struct tk_entry *first, uintptr_t from, uintptr_t to)
{
    for (struct tk_entry *e = first, *next; e; e = next) {
        struct tk_pinned *p = region_of(e);
        next = e->next;
        if (p->base < to && from < p->base + p->size) {
            cache_remove(p);
            cache.counts.invalidations++;
            tk_count_rare(tk_counter_regions_invalidated);
        }
    }
}

/* A large range has more granules than the table has buckets: then all buckets are walked. */
static void cache_invalidate(uintptr_t from, uintptr_t to)
{
    uintptr_t first = from >> cache.shift, count = ((to - 1) >> cache.shift) - first + 1;
    if (count <= cache.table.mask)
        for (uintptr_t i = 0; i < count; i++)
            cache_invalidate_in(*tk_table_bucket(&cache.table, first + i), from, to);
    else
        for (size_t i = 0; i <= cache.table.mask; i++)
            cache_invalidate_in(cache.table.buckets[i], from, to);
}

static void cache_apply_events(void)
{
    cache.generation++;
    tk_monitor_collect(cache_invalidate);
}

/* ---- the lock, and work deferred until it is released ---- */

static void cache_enter(void)
{
    tk_lock(&tk_firehose_hits.lock);
    cache_forget_last();
    if (tk_monitor_has_events())
        cache_apply_events();
}

static void cache_slot_free(struct tk_pinned *p)
{
    p->entry.next = cache.free;
    cache.free = &p->entry;
    cache.counts.pinned -= p->size;
}

/* Without the lock: unpinning frees memory of the device's library and may unmap it, and munmap()
 * waits for the monitor's thread, which must not wait for this lock. */
static void cache_unpin_list(struct tk_entry *list)
{
    for (struct tk_entry *e = list; e; e = e->next)
        cache.device.unpin(region_of(e)->handle);
    tk_lock(&tk_firehose_hits.lock);
    while (list) {
        struct tk_pinned *p = region_of(list);
        list = list->next;
        cache_slot_free(p);
    }
    tk_unlock(&tk_firehose_hits.lock);
}

static void cache_leave(void)
{
    struct tk_entry *deferred = cache.deferred;
    cache.deferred = NULL;
    tk_unlock(&tk_firehose_hits.lock);
    tk_if_unlikely(deferred) cache_unpin_list(deferred);
}

/* ---- eviction ---- */

static uint64_t bytes_max(void)
{
    int64_t fixed = __atomic_load_n(&static_bytes, __ATOMIC_RELAXED);
    uint64_t max = cache.limits.bytes;
    if (!cache.limits.counts_static || fixed <= 0)
        return max;
    return max > (uint64_t)fixed ? max - (uint64_t)fixed : 0;
}

static bool evict_one(void)
{
    struct tk_entry *oldest = tk_idle_oldest(&cache.idle);
    if (!oldest)
        return false;
    cache_remove(region_of(oldest));
    cache.counts.evictions++;
    tk_count_rare(tk_counter_regions_evicted);
    return true;
}

static void evict(uint64_t bytes)
{
    uint64_t freed = 0;
    struct tk_entry *oldest;
    while (freed < bytes && (oldest = tk_idle_oldest(&cache.idle)) != NULL) {
        freed += region_of(oldest)->size;
        evict_one();
    }
}

static bool has_space(size_t size)
{
    return cache.free && cache.counts.pinned + size <= bytes_max();
}

static void make_space(size_t size)
{
    uint64_t max = bytes_max();
    cache_enter();
    if (!cache.free)
        evict_one();
    if (size <= max && cache.counts.pinned + size > max)
        evict(cache.counts.pinned + size - max);
    cache_leave();
}

static struct tk_pinned *cache_slot_alloc(uintptr_t base, size_t size)
{
    struct tk_pinned *p = NULL;
    tk_lock(&tk_firehose_hits.lock);
    if (has_space(size)) {
        p = region_of(cache.free);
        cache.free = cache.free->next;
        *p = (struct tk_pinned){.base = base,
                                .size = size,
                                .end = (base & ~write_mark) + size,
                                .refs = 1,
                                .generation = cache.generation,
                                .used = tk_firehose_hits.clock};
        cache.counts.pinned += size;
        cache.counts.pinned_max = tk_max(cache.counts.pinned_max, cache.counts.pinned);
    }
    tk_unlock(&tk_firehose_hits.lock);
    return p;
}

/* ---- registration ---- */

/* False: nothing is left to evict. */
static bool evict_some(size_t size)
{
    tk_lock(&tk_firehose_hits.lock);
    cache_forget_last();
    bool any = tk_idle_oldest(&cache.idle) != NULL;
    evict(size);
    cache_leave();
    return any;
}

/* A refusal that eviction does not cure would also hit the next transfer. So the next transfers do
 * not try to pin, twice as many after each further refusal. EFAULT concerns this memory only
 * (read-only, or not mapped) and says nothing about other memory. */
static void pin_refused(struct tk_pinned *p, int error)
{
    size_t size = p->size;
    bool is_general = error != EFAULT;
    tk_lock(&tk_firehose_hits.lock);
    cache_slot_free(p);
    cache.counts.refusals++;
    if (is_general)
        cache.skip = cache.backoff = (unsigned)tk_min(2 * cache.backoff + 1, backoff_max);
    bool is_first = is_general && !cache.is_reported;
    cache.is_reported |= is_first;
    tk_unlock(&tk_firehose_hits.lock);
    if (is_first && cache.device.explain)
        cache.device.explain(size, error);
}

static bool region_pin(struct tk_pinned *p)
{
    bool is_source = cache.mark && !(p->base & cache.mark);
    for (;;) {
        p->handle = cache.device.pin((void *)(p->base & ~write_mark), p->size, is_source, &p->key);
        if (p->handle)
            return true;
        int error = errno;
        if (error == EFAULT || error == EINVAL || !evict_some(p->size)) {
            pin_refused(p, error);
            return false;
        }
    }
}

/* A region that is paged on demand follows the page tables at the time of a transfer, so it needs
 * no watch. Those that other ranks request are for reading and writing: they are watched
 * nevertheless, because new memory at their addresses may have other rights. */
static bool needs_no_watch(uintptr_t base, size_t size)
{
    return cache.mark || is_permanent(base, size);
}

/* The region may have been invalidated while it was being pinned: then it is not inserted and
 * serves its current user only. */
static void cache_keep(struct tk_pinned *p, bool is_watched)
{
    bool may_stay =
        needs_no_watch(p->base, p->size) || (is_watched && tk_monitor_is_private(p->base, p->size));
    cache_enter();
    cache.counts.misses++;
    tk_count_rare(tk_counter_regions_registered);
    cache.backoff = 0;
    if (may_stay && p->generation == cache.generation)
        cache_insert(p);
    cache_leave();
}

static struct tk_pinned *cache_count_refusal(void)
{
    tk_lock(&tk_firehose_hits.lock);
    cache.counts.refusals++;
    tk_unlock(&tk_firehose_hits.lock);
    return NULL;
}

static struct tk_pinned *cache_add(uintptr_t at, size_t nbytes, size_t in_granule)
{
    uintptr_t base = at & ~(uintptr_t)(cache.page - 1);
    size_t size = tk_align_up(at + in_granule, cache.page) - base;
    bool is_watched = needs_no_watch(base, size) || tk_monitor_watch(base, size);
    if (!is_watched && nbytes < single_min)
        return cache_count_refusal();
    if (!is_watched)
        size = tk_align_up(at + tk_min(nbytes, single_max), cache.page) - base;
    make_space(size);
    struct tk_pinned *p = cache_slot_alloc(base, size);
    if (!p)
        return cache_count_refusal();
    if (!region_pin(p))
        return NULL;
    cache_keep(p, is_watched);
    return p;
}

/* ---- for transports ---- */

static bool may_try(void)
{
    if (cache.skip > 0) {
        cache.skip--;
        cache.counts.refusals++;
        return false;
    }
    tk_monitor_start();
    return true;
}

/* At the end of a trial: was the admitted region used again? */
static bool was_good(void)
{
    const struct tk_pinned *admitted = cache_find(cache.trial.admitted, 1);
    return admitted && admitted->used != cache.trial.clock;
}

/* A lookup of `at` missed: if it is the region that was evicted last, the eviction was premature
 * unless the admitted region was reused meanwhile. */
static void judge_trial(uintptr_t at)
{
    if (cache.trial.evicted && at - cache.trial.evicted < cache.trial.size) {
        cache.reluctance = was_good() ? tk_max(cache.reluctance / 2, reluctance_min)
                                      : tk_min(cache.reluctance * 2, reluctance_max);
        cache.trial.evicted = 0;
    }
}

static void begin_trial(const struct tk_pinned *oldest, uintptr_t at)
{
    if (cache.trial.evicted && was_good())
        cache.reluctance = tk_max(cache.reluctance / 2, reluctance_min);
    cache.trial = (struct exchange){.evicted = oldest->base,
                                    .size = oldest->size,
                                    .admitted = at,
                                    .clock = tk_firehose_hits.clock};
}

/* Called with the lock held. */
static bool is_worth_space(uintptr_t at)
{
    struct tk_entry *first = tk_idle_oldest(&cache.idle);
    uint64_t max = tk_min(cache.limits.regions, bytes_max() / cache.limits.granule);
    if (!first || has_space(cache.limits.granule))
        return true;
    const struct tk_pinned *oldest = region_of(first);
    judge_trial(at);
    bool is_old = tk_firehose_hits.clock - oldest->used > rounds_old * max;
    if (++cache.declined >= (is_old ? reluctance_old : cache.reluctance)) {
        cache.declined = 0;
        begin_trial(oldest, at);
        return true;
    }
    cache.counts.refusals++;
    return false;
}

static inline void region_ref(struct tk_pinned *p)
{
    if (tk_counter_add(&p->refs, 1) == 1)
        tk_idle_remove(&p->entry);
    p->used = ++tk_firehose_hits.clock;
    tk_count_locked(tk_counter_regions_found);
}

static struct tk_pinned *__attribute__((noinline))
cache_get(uintptr_t at, size_t nbytes, size_t in_granule, bool is_forced)
{
    bool is_try = false;
    cache_enter();
    struct tk_pinned *p = cache_find(at, in_granule);
    if (p) {
        region_ref(p);
    } else {
        tk_firehose_hits.clock++;
        is_try = (is_forced || is_worth_space(at)) && may_try();
    }
    cache_leave();
    return is_try ? cache_add(at, nbytes, in_granule) : p;
}

bool tk_firehose_may_get(const void *address, size_t nbytes)
{
    tk_if_likely((tk_is_on_demand && is_permanent((uintptr_t)address, nbytes)) ||
                 tk_monitor_is_quiet()) return true;
    cache_count_refusal();
    return false;
}

struct tk_pinned *tk_firehose_get(const void *address, size_t nbytes)
{
    return cache_get((uintptr_t)address, nbytes, tk_firehose_piece(address, nbytes), true);
}

/* Fast path: the region is cached, no events are pending and the lock is free. The slow path, which
 * may wait for the lock, is out of line: inlined here it would make every call save registers. */
static inline struct tk_pinned *cache_get_fast(uintptr_t at, size_t nbytes, size_t in_granule)
{
    struct tk_pinned *p = NULL;
    tk_if_unlikely(!tk_trylock_free(&tk_firehose_hits.lock)) return cache_get(at, nbytes,
                                                                              in_granule, false);
    tk_if_likely(!tk_monitor_has_events() && (p = cache_find(at, in_granule)) != NULL)
        region_ref(p);
    tk_unlock(&tk_firehose_hits.lock);
    tk_if_likely(p) return p;
    return cache_get(at, nbytes, in_granule, false);
}

struct tk_pinned *tk_firehose_get_if_worth(const void *address, size_t nbytes, size_t in_granule)
{
    return cache_get_fast((uintptr_t)address, nbytes, in_granule);
}

struct tk_pinned *tk_firehose_get_for_writing(void *address, size_t nbytes, size_t in_granule)
{
    return cache_get_fast((uintptr_t)address | cache.mark, nbytes, in_granule);
}

static void cache_find_last(struct tk_pinned *p)
{
    region_ref(p);
    if (p == tk_firehose_hits.last)
        return;
    cache_forget_last();
    tk_counter_add(&p->refs, 1);
    tk_firehose_hits.last = p;
}

struct tk_pinned *tk_firehose_find(const void *address, size_t nbytes)
{
    struct tk_pinned *p = NULL;
    if (!tk_monitor_is_quiet_unasked() || !tk_trylock_free(&tk_firehose_hits.lock))
        return NULL;
    if (!tk_monitor_has_events() && (p = cache_find((uintptr_t)address, nbytes)) != NULL)
        cache_find_last(p);
    tk_unlock(&tk_firehose_hits.lock);
    return p;
}

static void __attribute__((noinline)) cache_defer_unpin(struct tk_pinned *p)
{
    p->entry.next = cache.deferred;
    cache.deferred = &p->entry;
    cache_leave();
}

/* Called with the lock held; releases it. */
static inline void cache_put(struct tk_pinned *p)
{
    if (tk_counter_add(&p->refs, -1) == 0) {
        tk_if_unlikely(!p->is_cached)
        {
            cache_defer_unpin(p);
            return;
        }
        tk_idle_add_newest(&cache.idle, &p->entry);
    }
    tk_unlock(&tk_firehose_hits.lock);
}

static void __attribute__((noinline)) cache_put_slow(struct tk_pinned *p)
{
    tk_lock(&tk_firehose_hits.lock);
    cache_put(p);
}

void tk_firehose_put(struct tk_pinned *p)
{
    tk_if_likely(tk_trylock_free(&tk_firehose_hits.lock)) cache_put(p);
    else cache_put_slow(p);
}

void tk_firehose_account_static(int64_t bytes)
{
    __atomic_add_fetch(&static_bytes, bytes, __ATOMIC_RELAXED);
}

void tk_firehose_set_permanent(const void *base, size_t size)
{
    permanent.base = (uintptr_t)base;
    permanent.size = size;
}

size_t tk_firehose_granule(void)
{
    return tk_firehose_granule_size;
}

uint64_t tk_firehose_exported(void)
{
    return cache.limits.exported;
}

/* ---- start and end ---- */

static enum tk_status open_table(void)
{
    cache.regions = calloc(1, tk_firehose_regions_bytes(&cache.limits));
    if (!tk_table_open(&cache.table, cache.limits.buckets) || !cache.regions) {
        tk_log_error("out of memory for a table of %" PRIu64 " regions; lower "
                     "GASNET_FIREHOSE_MAXVICTIM_R",
                     cache.limits.regions);
        return TK_FAIL;
    }
    for (uint64_t i = cache.limits.regions; i-- > 0;) {
        cache.regions[i].entry.next = cache.free;
        cache.free = &cache.regions[i].entry;
    }
    tk_idle_open(&cache.idle);
    cache.reluctance = reluctance_first;
    cache.trial.evicted = 0;
    return TK_OK;
}

enum tk_status tk_firehose_open(const struct tk_firehose_device *device)
{
    cache.device = *device;
    if (!tk_settings.use_firehose && tk_is_on_demand) {
        tk_log_error(
            "GASNET_USE_FIREHOSE=0, but this library registers memory of other ranks on the "
            "fly or not at all; leave it at 1, or configure with --enable-segment-fast");
        return TK_FAIL;
    }
    if (!tk_settings.use_firehose)
        return TK_OK;
    if (tk_firehose_find_limits(&cache.limits, tk_host_memory(), device->regions_max,
                                device->sharers, tk_is_on_demand) != TK_OK)
        return TK_FAIL;
    if (device->is_first)
        tk_firehose_warn_of_limits(&cache.limits);
    cache.page = tk_page_size();
    cache.shift = (unsigned)__builtin_ctzll(cache.limits.granule);
    tk_firehose_granule_size = cache.limits.granule;
    cache.mark = device->is_paged && !tk_is_on_demand ? write_mark : 0;
    if (open_table() != TK_OK ||
        (!cache.mark && tk_monitor_open(tk_settings.firehose_monitor) != TK_OK)) {
        tk_firehose_close();
        return TK_FAIL;
    }
    cache.is_open = true;
    return TK_OK;
}

/* Since the process began. */
static uint64_t hits(void)
{
    return tk_stats_only.stats.counts[tk_counter_regions_found];
}

static void unpin_idle(void)
{
    tk_lock(&tk_firehose_hits.lock);
    cache_forget_last();
    while (evict_one())
        continue;
    cache_leave();
}

void tk_firehose_close(void)
{
    if (cache.is_open)
        unpin_idle();
    tk_monitor_close();
    tk_table_close(&cache.table);
    free(cache.regions);
    cache.regions = NULL;
    cache.free = NULL;
    cache.is_open = cache.is_reported = false;
    cache.skip = cache.backoff = 0;
    cache.counts = (struct tk_firehose_counts){.hits = 0};
    tk_firehose_hits.clock = 0;
    cache.hits_before = hits();
}

bool tk_firehose_is_open(void)
{
    return cache.is_open;
}

/* ---- diagnostics ---- */

struct tk_firehose_counts tk_firehose_count(void)
{
    tk_lock(&tk_firehose_hits.lock);
    struct tk_firehose_counts counts = cache.counts;
    counts.hits = hits() - cache.hits_before;
    counts.queries = tk_monitor_queries();
    tk_unlock(&tk_firehose_hits.lock);
    return counts;
}

static const char *mode_text(void)
{
    if (cache.mark)
        return "paged on demand, so that nothing is pinned and nothing need be watched";
    switch (tk_monitor_mode()) {
    case TK_MONITOR_USERFAULTFD:
        return tk_is_alone() ? "watched by userfaultfd, which is queried before each transfer once "
                               "the client has two threads"
                             : "watched by userfaultfd, which is queried before each transfer";
    case TK_MONITOR_OFF:
        return "NOT watched: memory that is unmapped while it is pinned gives wrong data";
    default:
        return "no registration outlives its transfer: ";
    }
}

void tk_firehose_describe(char *text, size_t size)
{
    if (!cache.is_open)
        snprintf(text, size, "off: transfers from outside of the segment are copied");
    else
        snprintf(text, size,
                 "from %" PRIu64 " bytes on; at most %" PRIu64 " regions of %zu bytes, %" PRIu64
                 " bytes in all; %s%s",
                 tk_settings.firehose_min, cache.limits.regions, cache.limits.granule, bytes_max(),
                 mode_text(), cache.mark ? "" : tk_monitor_reason());
}

void tk_firehose_log_counts(void)
{
    if (!cache.is_open || !tk_settings.firehose_verbose)
        return;
    struct tk_firehose_counts c = tk_firehose_count();
    tk_log_info("firehose: %" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64 " evictions, %" PRIu64
                " invalidations, %" PRIu64 " refusals, %" PRIu64 " bytes pinned, at most %" PRIu64
                ", %" PRIu64 " queries to the kernel",
                c.hits, c.misses, c.evictions, c.invalidations, c.refusals, c.pinned, c.pinned_max,
                c.queries);
}
