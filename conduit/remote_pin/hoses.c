/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of remote firehoses, found by rank and number of granule. For each rank the unused ones
 * are in a ring, oldest first, from which the next one to be moved is taken; an empty one counts as
 * the oldest. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/report.h"
#include "remote_pin/hoses.h"

enum { refusal_uses = 8 /* transfers that do not request it again after a refusal */ };

/* The firehoses that one rank lends to us. */
struct lender {
    struct tk_entry idle; /* ring */
    uint32_t count, most;
};

static struct {
    tk_lock_t lock;
    struct tk_table by_region;
    struct tk_hose *hoses;
    struct tk_entry *free;
    struct lender *lenders;
    uint32_t *keys; /* by number of firehose, one for each rail */
    uint32_t rails, ranks;
    size_t most;
    unsigned shift;
    struct tk_hose_counts counts;
} table = {.lock = TK_LOCK_INIT};

/* ---- rings ---- */

static struct tk_hose *hose_of(struct tk_entry *entry)
{
    return (struct tk_hose *)entry; /* its first member */
}

static void make_newest(struct tk_hose *h)
{
    tk_idle_add_newest(&table.lenders[h->rank].idle, &h->entry);
}

static void make_oldest(struct tk_hose *h)
{
    tk_idle_add_oldest(&table.lenders[h->rank].idle, &h->entry);
}

static void make_busy(struct tk_hose *h)
{
    tk_idle_remove(&h->entry);
}

/* ---- buckets ---- */

/* Ranks often have their segments at the same addresses: so the rank changes the low bits too. */
static uint64_t key_of(uint32_t rank, uintptr_t at)
{
    return (uint64_t)(at >> table.shift) ^ rank * UINT64_C(0x632be5ab);
}

static struct tk_hose *hose_find(uint32_t rank, uintptr_t at, const void *owner)
{
    struct tk_entry *e = *tk_table_bucket(&table.by_region, key_of(rank, at));
    for (; e; e = e->next) {
        struct tk_hose *h = hose_of(e);
        if (h->rank == rank && at - h->base < h->size && h->owner == owner)
            return h;
    }
    return NULL;
}

/* ---- reuse for another region ---- */

static void hose_empty(struct tk_hose *h)
{
    tk_table_remove(&table.by_region, key_of(h->rank, h->base), &h->entry);
    h->state = TK_HOSE_EMPTY;
}

static struct tk_hose *take_fresh(struct lender *lender)
{
    if (!table.free || lender->count >= lender->most)
        return NULL;
    struct tk_hose *h = hose_of(table.free);
    table.free = table.free->next;
    lender->count++;
    table.counts.here++;
    h->handle = 0;
    return h;
}

static struct tk_hose *take_oldest(struct lender *lender)
{
    struct tk_entry *oldest = tk_idle_oldest(&lender->idle);
    if (!oldest)
        return NULL;
    struct tk_hose *h = hose_of(oldest);
    make_busy(h);
    if (h->state != TK_HOSE_EMPTY)
        hose_empty(h);
    table.counts.moves += h->handle != 0;
    return h;
}

static struct tk_hose *hose_take(uint32_t rank, const void *owner, uintptr_t from, uintptr_t to)
{
    struct lender *lender = &table.lenders[rank];
    struct tk_entry *oldest = tk_idle_oldest(&lender->idle);
    bool is_any_empty = oldest && hose_of(oldest)->state == TK_HOSE_EMPTY;
    struct tk_hose *h = is_any_empty ? take_oldest(lender) : NULL;
    if (!h && !(h = take_fresh(lender)) && !(h = take_oldest(lender)))
        return NULL;
    h->rank = rank;
    h->owner = owner;
    h->base = from;
    h->size = to - from;
    h->users = 0;
    h->state = TK_HOSE_MOVING;
    tk_table_insert(&table.by_region, key_of(rank, from), &h->entry);
    table.counts.misses++;
    return h;
}

/* ---- for remote/ ---- */

static void hose_use(struct tk_hose *h)
{
    table.counts.hits++;
    if (h->users++ == 0)
        make_busy(h);
}

static void use_refusal(struct tk_hose *h)
{
    if (--h->uses_left > 0)
        return;
    make_busy(h);
    hose_empty(h);
    make_oldest(h);
}

struct tk_hose *tk_hose_seek(uint32_t rank, uintptr_t at, const void *owner, uintptr_t from,
                             uintptr_t to, enum tk_hose_state *state, bool *is_new)
{
    tk_lock(&table.lock);
    struct tk_hose *h = hose_find(rank, at, owner);
    *is_new = !h && (h = hose_take(rank, owner, from, to));
    *state = table.lenders[rank].count > 0 ? TK_HOSE_MOVING : TK_HOSE_REFUSED;
    if (h) {
        *state = (enum tk_hose_state)h->state;
        if (h->state == TK_HOSE_READY)
            hose_use(h);
        else if (h->state == TK_HOSE_REFUSED)
            use_refusal(h);
    }
    tk_unlock(&table.lock);
    return h;
}

struct tk_hose *tk_hose_seek_ahead(uint32_t rank, uintptr_t at, const void *owner, uintptr_t from,
                                   uintptr_t to)
{
    tk_lock(&table.lock);
    struct tk_hose *h = hose_find(rank, at, owner) ? NULL : hose_take(rank, owner, from, to);
    tk_unlock(&table.lock);
    return h;
}

/* In EVERYTHING mode the next transfer can't use the region of this one. */
void tk_hose_leave(struct tk_hose *h, bool is_used)
{
    tk_lock(&table.lock);
    if (--h->users == 0) {
        if (h->owner && is_used) {
            hose_empty(h);
            make_oldest(h);
        } else {
            make_newest(h);
        }
    }
    tk_unlock(&table.lock);
}

uint32_t tk_hoses_lent(uint32_t rank)
{
    tk_lock(&table.lock);
    uint32_t most = table.lenders[rank].most;
    tk_unlock(&table.lock);
    return most;
}

void tk_hose_cancel(struct tk_hose *h)
{
    tk_lock(&table.lock);
    hose_empty(h);
    make_oldest(h);
    table.counts.misses--;
    table.counts.moves -= h->handle != 0;
    tk_unlock(&table.lock);
}

/* The region registered there may be larger than the requested one. The table finds it by one
 * granule only, the granule of the request. */
static void hose_settle(struct tk_hose *h, uintptr_t base, size_t size, uint32_t handle)
{
    h->handle = handle;
    h->state = handle ? TK_HOSE_READY : TK_HOSE_REFUSED;
    h->uses_left = refusal_uses;
    if (handle) {
        uintptr_t from = tk_max(h->base, base), to = tk_min(h->base + h->size, base + size);
        h->base = from;
        h->size = to - from;
    } else {
        table.counts.refusals++;
    }
    make_newest(h);
}

bool tk_hose_arrive(uint32_t rank, uint32_t number, uintptr_t base, size_t size, uint32_t handle,
                    const uint32_t *keys, uint32_t lent)
{
    bool is_known = false;
    if (number == 0 || number > table.most)
        return false;
    struct tk_hose *h = &table.hoses[number - 1];
    tk_lock(&table.lock);
    if (h->state == TK_HOSE_MOVING && h->rank == rank &&
        (handle == 0 || (base < h->base + h->size && h->base < base + size))) {
        if (handle)
            memcpy(&table.keys[(number - 1) * table.rails], keys, table.rails * sizeof(*keys));
        table.lenders[rank].most = tk_max(lent, 1);
        hose_settle(h, base, size, handle);
        is_known = true;
    }
    tk_unlock(&table.lock);
    return is_known;
}

const uint32_t *tk_hose_keys(const struct tk_hose *h)
{
    return &table.keys[(h->number - 1) * table.rails];
}

void tk_hoses_disown(uint32_t rank, const void *owner)
{
    tk_lock(&table.lock);
    const struct tk_entry *end = &table.lenders[rank].idle;
    for (struct tk_entry *e = end->newer, *next; e != end; e = next) {
        struct tk_hose *h = hose_of(e);
        next = e->newer;
        if (h->state == TK_HOSE_EMPTY || h->owner != owner)
            continue;
        make_busy(h);
        hose_empty(h);
        make_oldest(h);
    }
    tk_unlock(&table.lock);
}

struct tk_hose_counts tk_hoses_count(void)
{
    tk_lock(&table.lock);
    struct tk_hose_counts counts = table.counts;
    tk_unlock(&table.lock);
    return counts;
}

/* ---- start and end ---- */

static void hoses_set_up(void)
{
    for (size_t i = table.most; i-- > 0;) {
        table.hoses[i].number = (uint32_t)i + 1;
        table.hoses[i].entry.next = table.free;
        table.free = &table.hoses[i].entry;
    }
    for (uint32_t r = 0; r < table.ranks; r++) {
        struct lender *lender = &table.lenders[r];
        lender->most = 1; /* until that rank has sent the number */
        tk_idle_open(&lender->idle);
    }
}

enum tk_status tk_hoses_open(uint32_t ranks, uint32_t rails, size_t granule, size_t most)
{
    size_t buckets = 2;
    table.most = tk_max(most, ranks);
    while (buckets < table.most)
        buckets *= 2;
    table.shift = (unsigned)__builtin_ctzll(granule);
    table.ranks = ranks;
    table.rails = rails;
    table.counts = (struct tk_hose_counts){.hits = 0};
    table.free = NULL;
    table.hoses = calloc(table.most, sizeof(*table.hoses));
    table.lenders = calloc(ranks, sizeof(*table.lenders));
    table.keys = calloc(table.most * rails, sizeof(*table.keys));
    if (!tk_table_open(&table.by_region, buckets) || !table.hoses || !table.lenders ||
        !table.keys) {
        tk_hoses_close();
        tk_log_error("out of memory for a table of %zu remote regions; lower GASNET_FIREHOSE_R",
                     table.most);
        return TK_FAIL;
    }
    hoses_set_up();
    return TK_OK;
}

void tk_hoses_close(void)
{
    free(table.hoses);
    tk_table_close(&table.by_region);
    free(table.lenders);
    free(table.keys);
    table.hoses = NULL;
    table.lenders = NULL;
    table.keys = NULL;
}
