/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cache of pinned regions: found by the number of their granule, held by transfers, kept when
 * nobody holds them, given up oldest first when there is no room for another. Owns the table, the
 * regions and the counts; all of that is under one lock, which is held across no registration. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/mode.h"
#include "base/report.h"
#include "firehose/firehose_private.h"
#include "memory/memory.h"
#include "settings/settings.h"

enum {
    /* What is registered for one transfer only: to register and deregister costs some tens of
     * microseconds on hardware, as much as to copy this. */
    single_min = 512 << 10,
    single_max = 64 << 20, /* bounds what a transfer of many gigabytes pins at once */
    patience_max = 1023,   /* transfers that do not ask again after a refusal */
    /* Of the transfers that find no room, one in so many takes it from the oldest region: fewer
     * each time that one was wanted again before the one that it made room for, as where more
     * memory is gone round and round through than there is room for; more each time that it was
     * the other way. And one in so many when the oldest was not used for so many rounds through
     * all regions. */
    reluctance_min = 4,
    reluctance_first = 16,
    reluctance_max = 256,
    reluctance_old = 4,
    rounds_old = 8
};

/* The last region that was given up for one that might not be worth it, and that one: which of the
 * two is wanted first tells. */
struct exchange {
    uintptr_t lost, won; /* addresses; 0: it has told, or there was none */
    size_t size;         /* of the first */
    uint64_t clock;      /* when */
};

static struct {
    tk_lock_t lock;
    bool is_open, is_told;
    struct tk_firehose_device device;
    struct tk_firehose_limits limits;
    unsigned shift; /* log2 of a granule */
    size_t page;
    size_t mask; /* of bucket numbers */
    struct tk_pinned **buckets, *regions, *free;
    struct tk_pinned *doomed; /* to be unpinned by whoever lets go of the lock */
    struct tk_pinned idle;    /* ring of those that nobody holds; idle.newer is the oldest */
    uint32_t generation;      /* counts the times that something was forgotten */
    unsigned wait, patience;  /* transfers that go without a try; most of them in a row */
    uint64_t clock;           /* counts holds, */
    uint64_t absent;          /* and those that found nothing */
    unsigned declined;        /* transfers in a row that took no room from others */
    unsigned reluctance;      /* how many do so before one does not */
    struct exchange trial;
    struct tk_firehose_counts counts;
} cache = {.lock = TK_LOCK_INIT};

static int64_t others; /* bytes registered for good */

/* Memory of the library's own that stays. */
static struct {
    uintptr_t base;
    size_t size;
} lasting;

size_t tk_firehose_granule_size;

static bool is_lasting(uintptr_t base, size_t size)
{
    return base - lasting.base < lasting.size && size <= lasting.size - (base - lasting.base);
}

/* ---- ring of idle regions ---- */

static void make_idle(struct tk_pinned *p)
{
    p->newer = &cache.idle;
    p->older = cache.idle.older;
    p->older->newer = p;
    cache.idle.older = p;
}

static void make_busy(struct tk_pinned *p)
{
    p->older->newer = p->newer;
    p->newer->older = p->older;
}

/* ---- table ---- */

/* The golden ratio's fraction spreads neighbouring granules over the table. */
static struct tk_pinned **bucket_of(uintptr_t granule)
{
    uint64_t hash = (uint64_t)granule * UINT64_C(0x9e3779b97f4a7c15);
    return &cache.buckets[(hash >> 32) & cache.mask];
}

static inline struct tk_pinned *find(uintptr_t at, size_t nbytes)
{
    for (struct tk_pinned *p = *bucket_of(at >> cache.shift); p; p = p->next)
        if (at - p->base < p->size && nbytes <= p->size - (at - p->base))
            return p;
    return NULL;
}

static void insert(struct tk_pinned *p)
{
    struct tk_pinned **bucket = bucket_of(p->base >> cache.shift);
    p->next = *bucket;
    *bucket = p;
    p->is_cached = true;
}

/* It is never found again, and unpinned when nobody holds it. */
static void drop(struct tk_pinned *p)
{
    struct tk_pinned **at = bucket_of(p->base >> cache.shift);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    p->is_cached = false;
    if (p->holders > 0)
        return;
    make_busy(p);
    p->next = cache.doomed;
    cache.doomed = p;
}

static void forget_in(struct tk_pinned *first, uintptr_t from, uintptr_t to)
{
    for (struct tk_pinned *p = first, *next; p; p = next) {
        next = p->next;
        if (p->base < to && from < p->base + p->size) {
            drop(p);
            cache.counts.invalidations++;
        }
    }
}

/* A large range has more granules than the table has buckets. */
static void forget(uintptr_t from, uintptr_t to)
{
    uintptr_t first = from >> cache.shift, count = ((to - 1) >> cache.shift) - first + 1;
    if (count <= cache.mask)
        for (uintptr_t i = 0; i < count; i++)
            forget_in(*bucket_of(first + i), from, to);
    else
        for (size_t i = 0; i <= cache.mask; i++)
            forget_in(cache.buckets[i], from, to);
}

static void learn(void)
{
    cache.generation++;
    tk_monitor_collect(forget);
}

/* ---- the lock, and what is put off until it is free ---- */

static void enter(void)
{
    tk_lock(&cache.lock);
    if (tk_monitor_has_news())
        learn();
}

static void give_slot(struct tk_pinned *p)
{
    p->next = cache.free;
    cache.free = p;
    cache.counts.pinned -= p->size;
}

/* Unpinning frees memory of the device's library, and with it the memory may be unmapped: the
 * monitor's thread must then not have to wait for us. */
static void unpin_all(struct tk_pinned *list)
{
    for (struct tk_pinned *p = list; p; p = p->next)
        cache.device.unpin(p->handle);
    tk_lock(&cache.lock);
    while (list) {
        struct tk_pinned *p = list;
        list = p->next;
        give_slot(p);
    }
    tk_unlock(&cache.lock);
}

static void leave(void)
{
    struct tk_pinned *doomed = cache.doomed;
    cache.doomed = NULL;
    tk_unlock(&cache.lock);
    tk_if_unlikely(doomed) unpin_all(doomed);
}

/* ---- room ---- */

static uint64_t bytes_max(void)
{
    int64_t taken = __atomic_load_n(&others, __ATOMIC_RELAXED);
    uint64_t most = cache.limits.bytes;
    if (!cache.limits.has_others || taken <= 0)
        return most;
    return most > (uint64_t)taken ? most - (uint64_t)taken : 0;
}

static bool evict_one(void)
{
    struct tk_pinned *oldest = cache.idle.newer;
    if (oldest == &cache.idle)
        return false;
    drop(oldest);
    cache.counts.evictions++;
    return true;
}

static void evict(uint64_t bytes)
{
    uint64_t freed = 0;
    while (freed < bytes && cache.idle.newer != &cache.idle) {
        freed += cache.idle.newer->size;
        evict_one();
    }
}

static bool has_room(size_t size)
{
    return cache.free && cache.counts.pinned + size <= bytes_max();
}

static void make_room(size_t size)
{
    uint64_t most = bytes_max();
    enter();
    if (!cache.free)
        evict_one();
    if (size <= most && cache.counts.pinned + size > most)
        evict(cache.counts.pinned + size - most);
    leave();
}

static struct tk_pinned *take_slot(uintptr_t base, size_t size)
{
    struct tk_pinned *p = NULL;
    tk_lock(&cache.lock);
    if (has_room(size)) {
        p = cache.free;
        cache.free = p->next;
        *p = (struct tk_pinned){.base = base,
                                .size = size,
                                .holders = 1,
                                .generation = cache.generation,
                                .used = cache.clock};
        cache.counts.pinned += size;
        cache.counts.pinned_max = tk_max(cache.counts.pinned_max, cache.counts.pinned);
    }
    tk_unlock(&cache.lock);
    return p;
}

/* ---- registration ---- */

/* False: nothing is left that could be given up. */
static bool give_up_some(size_t size)
{
    tk_lock(&cache.lock);
    bool any = cache.idle.newer != &cache.idle;
    evict(size);
    leave();
    return any;
}

/* A refusal that no eviction helps against would be one for the next transfer too: it does not ask,
 * and twice as many after the next refusal. EFAULT is about this memory (read-only, or not there)
 * and tells nothing about other. */
static void refused(struct tk_pinned *p, int error)
{
    size_t size = p->size;
    bool is_general = error != EFAULT;
    tk_lock(&cache.lock);
    give_slot(p);
    cache.counts.refusals++;
    if (is_general)
        cache.wait = cache.patience = (unsigned)tk_min(2 * cache.patience + 1, patience_max);
    bool is_news = is_general && !cache.is_told;
    cache.is_told |= is_news;
    tk_unlock(&cache.lock);
    if (is_news && cache.device.explain)
        cache.device.explain(size, error);
}

static bool pin(struct tk_pinned *p)
{
    for (;;) {
        p->handle = cache.device.pin((void *)p->base, p->size, &p->key);
        if (p->handle)
            return true;
        int error = errno;
        if (error == EFAULT || error == EINVAL || !give_up_some(p->size)) {
            refused(p, error);
            return false;
        }
    }
}

/* What was forgotten while it was being pinned may have been this. */
static void keep(struct tk_pinned *p, bool is_watched)
{
    bool may_stay =
        is_lasting(p->base, p->size) || (is_watched && tk_monitor_is_private(p->base, p->size));
    enter();
    cache.counts.misses++;
    cache.patience = 0;
    if (may_stay && p->generation == cache.generation)
        insert(p);
    leave();
}

static struct tk_pinned *none(void)
{
    tk_lock(&cache.lock);
    cache.counts.refusals++;
    tk_unlock(&cache.lock);
    return NULL;
}

static struct tk_pinned *add(uintptr_t at, size_t nbytes, size_t in_granule)
{
    uintptr_t base = at & ~(uintptr_t)(cache.page - 1);
    size_t size = tk_align_up(at + in_granule, cache.page) - base;
    bool is_watched = is_lasting(base, size) || tk_monitor_watch(base, size);
    if (!is_watched && nbytes < single_min)
        return none();
    if (!is_watched)
        size = tk_align_up(at + tk_min(nbytes, single_max), cache.page) - base;
    make_room(size);
    struct tk_pinned *p = take_slot(base, size);
    if (!p)
        return none();
    if (!pin(p))
        return NULL;
    keep(p, is_watched);
    return p;
}

/* ---- for transports ---- */

static bool may_try(void)
{
    if (cache.wait > 0) {
        cache.wait--;
        cache.counts.refusals++;
        return false;
    }
    tk_monitor_start();
    return true;
}

/* The trial is over, or wanted for another: was what it brought used since? */
static bool was_good(void)
{
    const struct tk_pinned *won = find(cache.trial.won, 1);
    return won && won->used != cache.trial.clock;
}

/* A transfer at `at` found nothing: was it what was given up last? */
static void judge_trial(uintptr_t at)
{
    if (cache.trial.lost && at - cache.trial.lost < cache.trial.size) {
        cache.reluctance = was_good() ? tk_max(cache.reluctance / 2, reluctance_min)
                                      : tk_min(cache.reluctance * 2, reluctance_max);
        cache.trial.lost = 0;
    }
}

static void begin_trial(const struct tk_pinned *oldest, uintptr_t at)
{
    if (cache.trial.lost && was_good())
        cache.reluctance = tk_max(cache.reluctance / 2, reluctance_min);
    cache.trial = (struct exchange){
        .lost = oldest->base, .size = oldest->size, .won = at, .clock = cache.clock};
}

/* With the lock held. */
static bool is_worth_room(uintptr_t at)
{
    const struct tk_pinned *oldest = cache.idle.newer;
    uint64_t most = tk_min(cache.limits.regions, bytes_max() / cache.limits.granule);
    if (oldest == &cache.idle || has_room(cache.limits.granule))
        return true;
    judge_trial(at);
    bool is_old = cache.clock - oldest->used > rounds_old * most;
    if (++cache.declined >= (is_old ? reluctance_old : cache.reluctance)) {
        cache.declined = 0;
        begin_trial(oldest, at);
        return true;
    }
    cache.counts.refusals++;
    return false;
}

static inline void use(struct tk_pinned *p)
{
    if (p->holders++ == 0)
        make_busy(p);
    p->used = ++cache.clock;
}

static struct tk_pinned *__attribute__((noinline))
hold(const void *address, size_t nbytes, size_t in_granule, bool at_any_price)
{
    uintptr_t at = (uintptr_t)address;
    bool is_try = false;
    enter();
    struct tk_pinned *p = find(at, in_granule);
    if (p) {
        use(p);
    } else {
        cache.clock++;
        cache.absent++;
        is_try = (at_any_price || is_worth_room(at)) && may_try();
    }
    leave();
    return is_try ? add(at, nbytes, in_granule) : p;
}

bool tk_firehose_may_hold(const void *address, size_t nbytes)
{
    tk_if_likely((tk_is_on_demand && is_lasting((uintptr_t)address, nbytes)) ||
                 tk_monitor_is_quiet()) return true;
    none();
    return false;
}

struct tk_pinned *tk_firehose_hold(const void *address, size_t nbytes)
{
    return hold(address, nbytes, tk_firehose_piece(address, nbytes), true);
}

/* The usual way: it is there, nothing was unmapped since the last look, and nobody else is at it.
 * Who waits for the lock does so elsewhere: here it would cost everybody the saving of registers.
 */
struct tk_pinned *tk_firehose_hold_if_worth(const void *address, size_t nbytes, size_t in_granule)
{
    struct tk_pinned *p = NULL;
    tk_if_unlikely(!tk_trylock_free(&cache.lock)) return hold(address, nbytes, in_granule, false);
    tk_if_likely(!tk_monitor_has_news() && (p = find((uintptr_t)address, in_granule)) != NULL)
        use(p);
    tk_unlock(&cache.lock);
    tk_if_likely(p) return p;
    return hold(address, nbytes, in_granule, false);
}

static void __attribute__((noinline)) doom(struct tk_pinned *p)
{
    p->next = cache.doomed;
    cache.doomed = p;
    leave();
}

/* With the lock held, which it gives back. */
static inline void let_go(struct tk_pinned *p)
{
    if (--p->holders == 0) {
        tk_if_unlikely(!p->is_cached)
        {
            doom(p);
            return;
        }
        make_idle(p);
    }
    tk_unlock(&cache.lock);
}

static void __attribute__((noinline)) wait_and_let_go(struct tk_pinned *p)
{
    tk_lock(&cache.lock);
    let_go(p);
}

void tk_firehose_release(struct tk_pinned *p)
{
    tk_if_likely(tk_trylock_free(&cache.lock)) let_go(p);
    else wait_and_let_go(p);
}

void tk_firehose_others(int64_t bytes)
{
    __atomic_add_fetch(&others, bytes, __ATOMIC_RELAXED);
}

void tk_firehose_lasts(const void *base, size_t size)
{
    lasting.base = (uintptr_t)base;
    lasting.size = size;
}

size_t tk_firehose_granule(void)
{
    return tk_firehose_granule_size;
}

uint64_t tk_firehose_lent(void)
{
    return cache.limits.lent;
}

/* ---- start and end ---- */

static enum tk_status open_table(void)
{
    cache.buckets = calloc(cache.limits.buckets, sizeof(*cache.buckets));
    cache.regions = calloc(cache.limits.regions, sizeof(*cache.regions));
    if (!cache.buckets || !cache.regions) {
        tk_log_error("out of memory for a table of %" PRIu64 " regions; lower "
                     "GASNET_FIREHOSE_MAXVICTIM_R",
                     cache.limits.regions);
        return TK_FAIL;
    }
    for (uint64_t i = cache.limits.regions; i-- > 0;) {
        cache.regions[i].next = cache.free;
        cache.free = &cache.regions[i];
    }
    cache.idle.newer = cache.idle.older = &cache.idle;
    cache.reluctance = reluctance_first;
    cache.trial.lost = 0;
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
    cache.mask = cache.limits.buckets - 1;
    cache.shift = (unsigned)__builtin_ctzll(cache.limits.granule);
    tk_firehose_granule_size = cache.limits.granule;
    if (open_table() != TK_OK || tk_monitor_open(tk_settings.firehose_monitor) != TK_OK) {
        tk_firehose_close();
        return TK_FAIL;
    }
    cache.is_open = true;
    return TK_OK;
}

static void unpin_idle(void)
{
    tk_lock(&cache.lock);
    while (evict_one())
        continue;
    leave();
}

void tk_firehose_close(void)
{
    if (cache.is_open)
        unpin_idle();
    tk_monitor_close();
    free(cache.buckets);
    free(cache.regions);
    cache.buckets = NULL;
    cache.regions = cache.free = NULL;
    cache.is_open = cache.is_told = false;
    cache.wait = cache.patience = 0;
    cache.counts = (struct tk_firehose_counts){.hits = 0};
    cache.clock = cache.absent = 0;
}

bool tk_firehose_is_open(void)
{
    return cache.is_open;
}

/* ---- for people ---- */

struct tk_firehose_counts tk_firehose_count(void)
{
    tk_lock(&cache.lock);
    struct tk_firehose_counts counts = cache.counts;
    counts.hits = cache.clock - cache.absent;
    counts.questions = tk_monitor_asked();
    tk_unlock(&cache.lock);
    return counts;
}

static const char *way_text(void)
{
    switch (tk_monitor_way()) {
    case TK_WATCH_USERFAULTFD:
        return tk_is_alone() ? "watched by userfaultfd, which is asked before each transfer once "
                               "the client has two threads"
                             : "watched by userfaultfd, which is asked before each transfer";
    case TK_WATCH_NOTHING:
        return "NOT watched: memory that is unmapped while it is pinned gives wrong data";
    default:
        return "none outlives its transfer: ";
    }
}

void tk_firehose_describe(char *text, size_t size)
{
    if (!cache.is_open)
        snprintf(text, size, "off, transfers from outside the segment are copied");
    else
        snprintf(text, size,
                 "from %" PRIu64 " bytes on; at most %" PRIu64 " regions of %zu bytes, %" PRIu64
                 " bytes in all; %s%s",
                 tk_settings.firehose_min, cache.limits.regions, cache.limits.granule, bytes_max(),
                 way_text(), tk_monitor_why());
}

void tk_firehose_tell(void)
{
    if (!cache.is_open || !tk_settings.firehose_verbose)
        return;
    struct tk_firehose_counts c = tk_firehose_count();
    tk_log_info("firehose: %" PRIu64 " hits, %" PRIu64 " misses, %" PRIu64 " evictions, %" PRIu64
                " invalidations, %" PRIu64 " refusals, %" PRIu64 " bytes pinned, at most %" PRIu64
                ", %" PRIu64 " questions to the kernel",
                c.hits, c.misses, c.evictions, c.invalidations, c.refusals, c.pinned, c.pinned_max,
                c.questions);
}
