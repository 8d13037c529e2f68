/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Known segments of all ranks, and the exchange that makes them known. Owns the rows of records for
 * endpoints other than 0 (one row per rank that has any), the keys of all segments, and the
 * mappings of neighbours' segments. A lock guards the allocation of rows and tables; their contents
 * need none (see peer.h). */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/lock.h"
#include "base/ranges.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "bootstrap/gather.h"
#include "kind/kind_class.h"
#include "peer/peer.h"

enum { row_length = tk_endpoints_known - 1 };

struct record {
    struct tk_bound bound; /* the record owns the keys and the kind */
    uintptr_t offset;
    size_t mapped;
};

typedef _Atomic(struct record *) row_t;

static _Atomic(row_t *) rows; /* by rank */
static tk_lock_t rows_lock = TK_LOCK_INIT;
static size_t *mapped_here; /* by neighbour: bytes of the segment of endpoint 0 mapped here */
static _Atomic uint64_t published[tk_endpoints_known]; /* inodes of ours, by endpoint; 0: none */

struct tk_staging tk_staging;

/* Records of a rank's endpoints, from endpoint 1 on; NULL: none known. */
static struct record *row_of(uint32_t rank)
{
    row_t *all = atomic_load_explicit(&rows, memory_order_acquire);
    return all ? atomic_load_explicit(&all[rank], memory_order_acquire) : NULL;
}

static void *zeros(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        tk_panic("out of memory for a table of segments (%zu bytes)", count * size);
    return memory;
}

static struct record *make_row(uint32_t rank)
{
    tk_lock(&rows_lock);
    row_t *all = atomic_load_explicit(&rows, memory_order_relaxed);
    if (!all) {
        all = zeros(tk_peers.size, sizeof(*all));
        atomic_store_explicit(&rows, all, memory_order_release);
    }
    struct record *row = atomic_load_explicit(&all[rank], memory_order_relaxed);
    if (!row) {
        row = zeros(row_length, sizeof(*row));
        for (int i = 0; i < row_length; i++)
            row[i].offset = tk_unmapped;
        atomic_store_explicit(&all[rank], row, memory_order_release);
    }
    tk_unlock(&rows_lock);
    return row;
}

struct tk_bound tk_bound_of(uint32_t rank, uint32_t endpoint)
{
    const struct tk_peer *peer = tk_peer(rank);
    if (endpoint == 0)
        return (struct tk_bound){.base = peer->segment_base,
                                 .size = peer->segment_size,
                                 .keys = tk_peers.keys[rank],
                                 .fd = peer->segment_fd,
                                 .inode = peer->segment_inode};
    const struct record *row = endpoint < tk_endpoints_known ? row_of(rank) : NULL;
    return row ? row[endpoint - 1].bound : (struct tk_bound){.endpoint = endpoint, .fd = -1};
}

/* An endpoint may have another segment by now. */
static bool is_published(const struct tk_bound *bound, uint32_t endpoint)
{
    uint64_t inode = atomic_load_explicit(&published[endpoint], memory_order_acquire);
    return bound->size > 0 && inode != 0 && inode == bound->inode;
}

bool tk_bound_find_published(uintptr_t address, size_t nbytes, struct tk_bound *bound)
{
    for (uint32_t e = 0; e < tk_endpoints_max; e++) {
        *bound = tk_bound_of(tk_peers.me, e);
        bound->endpoint = e;
        if (is_published(bound, e) && tk_bound_has(bound, address, nbytes))
            return true;
    }
    return false;
}

/* Only segments of neighbours are mapped, so that the table need not be by rank of the job. */
static size_t *mapped_at(uint32_t rank)
{
    uint32_t low = 0, high = tk_topology.nbrhd_size;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tk_topology.nbrhd_ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == tk_topology.nbrhd_size || tk_topology.nbrhd_ranks[low] != rank)
        return NULL;
    tk_lock(&rows_lock);
    if (!mapped_here)
        mapped_here = zeros(1, tk_peers_mapped_bytes(tk_topology.nbrhd_size));
    tk_unlock(&rows_lock);
    return &mapped_here[low];
}

/* The recorded offset of a mapping, and its size; NULL: the endpoint has no record. */
static uintptr_t *offset_at(uint32_t rank, uint32_t endpoint, size_t **mapped)
{
    if (endpoint == 0) {
        *mapped = mapped_at(rank);
        return *mapped ? &tk_peers.offsets[rank] : NULL;
    }
    struct record *row = endpoint < tk_endpoints_known ? row_of(rank) : NULL;
    if (!row)
        return NULL;
    *mapped = &row[endpoint - 1].mapped;
    return &row[endpoint - 1].offset;
}

uintptr_t tk_bound_addr_offset(uint32_t rank, uint32_t endpoint)
{
    size_t *mapped;
    if (endpoint == 0)
        return tk_segment_addr_offset(rank);
    const uintptr_t *offset = offset_at(rank, endpoint, &mapped);
    return offset ? __atomic_load_n(offset, __ATOMIC_ACQUIRE) : tk_unmapped;
}

void tk_bound_mapped(uint32_t rank, uint32_t endpoint, uintptr_t offset, size_t mapped)
{
    size_t *place;
    uintptr_t *at = offset_at(rank, endpoint, &place);
    if (!at)
        return;
    *place = mapped;
    __atomic_store_n(at, offset, __ATOMIC_RELEASE);
}

/* Safe without a lock: no thread may use a segment while it is being replaced. */
static void unmap(uint32_t rank, const struct tk_bound *old)
{
    size_t *mapped;
    if (old->endpoint == 0 && tk_segment_addr_offset(rank) == tk_unmapped)
        return;
    uintptr_t *offset = offset_at(rank, old->endpoint, &mapped);
    if (!offset || *mapped == 0)
        return;
    tk_range_drop((void *)(old->base + *offset));
    munmap((void *)(old->base + *offset), *mapped);
    *mapped = 0;
    __atomic_store_n(offset, tk_unmapped, __ATOMIC_RELEASE);
}

/* Copies one key per rail. The old keys can be freed: they belong to a segment that is no longer in
 * use. */
static void set_keys(uint32_t **place, const uint32_t *keys)
{
    uint32_t *copy = keys ? zeros(tk_peers.rails, sizeof(*copy)) : NULL;
    if (keys)
        memcpy(copy, keys, tk_peers.rails * sizeof(*copy));
    free(*place);
    *place = copy;
}

/* Two threads may learn of the first segments at once. */
static uint32_t *make_key_table(void)
{
    tk_lock(&rows_lock);
    uint32_t *table = __atomic_load_n(&tk_peers.key_table, __ATOMIC_RELAXED);
    if (!table) {
        table = zeros(1, tk_peers_keys_bytes(tk_peers.size, tk_peers.rails));
        __atomic_store_n(&tk_peers.key_table, table, __ATOMIC_RELEASE);
    }
    tk_unlock(&rows_lock);
    return table;
}

/* Of the segment of endpoint 0, which each rank has: one table for all of them. */
static void set_first_keys(uint32_t rank, const uint32_t *keys)
{
    uint32_t *row = NULL;
    if (keys) {
        uint32_t *table = __atomic_load_n(&tk_peers.key_table, __ATOMIC_ACQUIRE);
        row = (table ? table : make_key_table()) + (size_t)rank * tk_peers.rails;
        memmove(row, keys, tk_peers.rails * sizeof(*keys));
    }
    tk_peers.keys[rank] = row;
}

static void set_kind(struct tk_bound_kind **place, const struct tk_bound_kind *kind)
{
    struct tk_bound_kind *copy = kind ? zeros(1, sizeof(*copy)) : NULL;
    if (kind)
        *copy = *kind;
    free(*place);
    *place = copy;
}

/* Memory that is not registered has no keys, or keys of 0. */
static bool has_a_key(const uint32_t *keys)
{
    for (uint32_t i = 0; keys && i < tk_peers.rails; i++)
        if (keys[i] != 0)
            return true;
    return false;
}

static bool is_same_part(const void *a, const void *b, size_t size)
{
    return a && b ? memcmp(a, b, size) == 0 : a == b;
}

static bool is_same_record(const struct tk_bound *a, const struct tk_bound *b)
{
    return a->base == b->base && a->size == b->size && a->inode == b->inode &&
           a->endpoint == b->endpoint && a->fd == b->fd &&
           is_same_part(a->keys, b->keys, tk_peers.rails * sizeof(*a->keys)) &&
           is_same_part(a->kind, b->kind, sizeof(*a->kind));
}

/* The staging buffers are published with each device segment, while transfers to other segments
 * pass through them. So records in use are not written. */
static void set_record(struct tk_bound *record, const struct tk_bound *bound)
{
    struct tk_bound next = *bound;
    struct tk_bound_kind learnt;
    if (bound->kind) {
        learnt = *bound->kind;
        learnt.is_registered = has_a_key(bound->keys);
        next.kind = &learnt;
    }
    if (is_same_record(record, &next))
        return;
    uint32_t *keys = (uint32_t *)record->keys;
    struct tk_bound_kind *kind = (struct tk_bound_kind *)record->kind;
    set_keys(&keys, next.keys);
    set_kind(&kind, next.kind);
    *record = next;
    record->keys = keys;
    record->kind = kind;
}

void tk_bound_set(uint32_t rank, const struct tk_bound *bound)
{
    struct tk_peer *peer = tk_peer(rank);
    if (tk_is_everything && bound->endpoint == 0)
        return; /* all memory is its segment already */
    const struct tk_bound old = tk_bound_of(rank, bound->endpoint);
    if (old.base != bound->base || old.size != bound->size || old.inode != bound->inode)
        unmap(rank, &old);
    if (bound->endpoint > 0) {
        struct record *row = row_of(rank);
        set_record(&(row ? row : make_row(rank))[bound->endpoint - 1].bound, bound);
        return;
    }
    peer->segment_base = bound->base;
    peer->segment_size = bound->size;
    set_first_keys(rank, bound->keys);
    peer->segment_key = bound->keys ? bound->keys[tk_peers.rail_to[rank]] : 0;
    peer->segment_fd = bound->fd;
    peer->segment_inode = bound->inode;
}

/* ---- the exchange ---- */

/* What a rank publishes: this header, `count` records, descriptions of the `kinds` of them that are
 * in device memory, in order, then the keys of each record. */
struct offer {
    uint32_t count;
    uint32_t unable;
    uint32_t rails;
    uint32_t kinds;
};

struct wire {
    uint64_t base, size, inode;
    uint32_t endpoint;
    int32_t fd;
};

struct wire_kind {
    uint32_t record;
    uint32_t reserved;
    struct tk_bound_kind kind;
};

static size_t size_of(uint32_t count, uint32_t kinds)
{
    return sizeof(struct offer) + kinds * sizeof(struct wire_kind) +
           count * (sizeof(struct wire) + tk_peers.rails * sizeof(uint32_t));
}

static struct wire_kind *kinds_in(const struct offer *offer)
{
    const struct wire *records = (const struct wire *)(offer + 1);
    return (struct wire_kind *)(records + offer->count);
}

static uint32_t *keys_in(const struct offer *offer, uint32_t record)
{
    return (uint32_t *)(kinds_in(offer) + offer->kinds) + (size_t)record * tk_peers.rails;
}

static uint32_t count_kinds(const struct tk_bound *mine, uint32_t count)
{
    uint32_t kinds = 0;
    for (uint32_t i = 0; i < count; i++)
        kinds += mine[i].kind != NULL;
    return kinds;
}

static struct offer *make_offer(const struct tk_bound *mine, uint32_t count)
{
    uint32_t kinds = count_kinds(mine, count);
    struct offer *offer = zeros(1, size_of(count, kinds));
    struct wire *records = (struct wire *)(offer + 1);
    *offer = (struct offer){
        .count = count, .unable = mine == NULL, .rails = tk_peers.rails, .kinds = kinds};
    struct wire_kind *kind = kinds_in(offer);
    for (uint32_t i = 0; i < count; i++) {
        records[i] = (struct wire){.base = mine[i].base,
                                   .size = mine[i].size,
                                   .inode = mine[i].inode,
                                   .endpoint = mine[i].endpoint,
                                   .fd = mine[i].fd};
        if (mine[i].kind)
            *kind++ = (struct wire_kind){.record = i, .kind = *mine[i].kind};
        if (mine[i].keys)
            memcpy(keys_in(offer, i), mine[i].keys, tk_peers.rails * sizeof(uint32_t));
    }
    return offer;
}

/* Device memory is not a file, is not bound to endpoint 0, and is not its own staging buffer. */
static bool is_sound_kind(const struct wire *record, const struct tk_bound_kind *kind)
{
    return record->fd < 0 && record->endpoint != 0 && record->endpoint != tk_endpoint_staging &&
           kind->gex_class > TK_KIND_HOST && kind->gex_class < TK_KIND_NUMBERS &&
           kind->has_ipc <= 1 && kind->needs_flush <= 1;
}

/* From another process: nothing in it is trusted before it is checked. */
static bool is_sound(const struct offer *offer, size_t size)
{
    const struct wire *records = (const struct wire *)(offer + 1);
    if (size < sizeof(*offer) || offer->count > tk_endpoints_known ||
        offer->rails != tk_peers.rails || size != size_of(offer->count, offer->kinds))
        return false;
    for (uint32_t i = 0; i < offer->count; i++)
        if (records[i].endpoint >= tk_endpoints_known)
            return false;
    const struct wire_kind *kinds = kinds_in(offer);
    for (uint32_t i = 0; i < offer->kinds; i++)
        if (kinds[i].record >= offer->count || (i > 0 && kinds[i].record <= kinds[i - 1].record) ||
            !is_sound_kind(&records[kinds[i].record], &kinds[i].kind))
            return false;
    return true;
}

static bool must_be_sound(uint32_t rank, const struct offer *offer, size_t size)
{
    if (is_sound(offer, size))
        return true;
    tk_log_error("rank %u sent %zu bytes of invalid segment records: does it run another "
                 "version?",
                 rank, size);
    return false;
}

/* NULL: the data was not an offer. */
static const struct offer *offer_of(uint32_t rank)
{
    size_t size;
    const struct offer *offer = tk_gathered(rank, &size);
    return offer && must_be_sound(rank, offer, size) ? offer : NULL;
}

static void bound_learn(uint32_t rank, const struct offer *offer)
{
    const struct wire *records = (const struct wire *)(offer + 1);
    const struct wire_kind *kind = kinds_in(offer), *end = kind + offer->kinds;
    for (uint32_t i = 0; i < offer->count; i++) {
        bool is_device = kind < end && kind->record == i;
        const struct tk_bound bound = {.base = (uintptr_t)records[i].base,
                                       .size = (uintptr_t)records[i].size,
                                       .keys = tk_peers.rails ? keys_in(offer, i) : NULL,
                                       .endpoint = records[i].endpoint,
                                       .inode = records[i].inode,
                                       .fd = records[i].fd,
                                       .kind = is_device ? &kind->kind : NULL};
        tk_bound_set(rank, &bound);
        kind += is_device;
    }
}

/* All offers are checked first, because any of them may report failure, and then none is
 * applied. */
static enum tk_status bound_learn_all(uint32_t *unable)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct offer *offer = offer_of(r);
        if (!offer)
            return TK_FAIL;
        if (offer->unable && *unable == tk_nobody)
            *unable = r;
    }
    for (uint32_t r = 0; *unable == tk_nobody && r < tk_peers.size; r++)
        bound_learn(r, offer_of(r));
    return TK_OK;
}

static void set_published(const struct tk_bound *mine, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        atomic_store_explicit(&published[mine[i].endpoint], mine[i].fd < 0 ? 0 : mine[i].inode,
                              memory_order_release);
}

static char exchanged[32]; /* the key of the last exchange */

enum tk_status tk_segments_exchange(const struct tk_bound *mine, uint32_t count, void (*poll)(void),
                                    uint32_t *unable)
{
    /* A bootstrap may cache the value of a key on the way, so each exchange uses a new key. */
    static unsigned times;
    snprintf(exchanged, sizeof(exchanged), "tk.segments.%u", times++);
    *unable = tk_nobody;
    struct offer *own = make_offer(mine, count);
    enum tk_status status = tk_gather(exchanged, own, tk_bound_offer_size(mine, count), poll);
    if (status == TK_OK)
        status = bound_learn_all(unable);
    if (status == TK_OK && *unable == tk_nobody)
        set_published(mine, count);
    tk_gather_drop();
    free(own);
    return status;
}

void tk_segments_withdraw(void)
{
    tk_gather_withdraw(exchanged);
}

/* ---- the same for a team, which exchanges offers itself ---- */

size_t tk_bound_offer_size(const struct tk_bound *mine, uint32_t count)
{
    return size_of(count, count_kinds(mine, count));
}

void *tk_bound_offer(const struct tk_bound *mine, uint32_t count)
{
    return make_offer(mine, count);
}

enum tk_status tk_bound_accept(uint32_t rank, const void *offer, size_t size)
{
    if (!must_be_sound(rank, offer, size))
        return TK_FAIL;
    bound_learn(rank, offer);
    return TK_OK;
}
