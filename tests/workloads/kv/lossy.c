/* SPDX-License-Identifier: BSD-3-Clause */
/* The lossy store, after MICA: an index of buckets, one cache line each, whose slots point into a
 * circular log. Offsets are virtual, 47 bits, and only their low bits are a place: an offset whose
 * distance from the head exceeds the log has been written over and is dead. A full bucket forgets
 * its oldest entry, a full log its oldest bytes; nothing is refused. Owns index and log; behind the
 * log lies an inaccessible page, so that a write past its end cannot go unnoticed. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "store_private.h"

enum { offset_bits = 47, entry_unit = 8, page = 4096 };
#define OFFSET_MASK ((UINT64_C(1) << offset_bits) - 1)
#define VALID       (UINT64_C(1) << 63)

struct entry {
    uint32_t len;
    uint32_t place; /* the low bits of its virtual offset: the entry there must identify itself */
    char bytes[];   /* key, value */
};

struct bucket {
    uint64_t slot[kv_index_slots]; /* valid 1, tag 16, offset 47 */
};

struct lossy {
    struct bucket *index;
    char *log;
    uint64_t size, head;
};

static void *reserve(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool lossy_open(struct kv_store *store)
{
    struct lossy *own = calloc(1, sizeof(*own));
    if (!own)
        return false;
    own->size = store->options.log_bytes;
    own->head = store->options.first_offset;
    own->index = reserve(store->options.buckets * sizeof(struct bucket));
    own->log = reserve(own->size + page);
    store->own = own;
    return own->index && own->log && !mprotect(own->log + own->size, page, PROT_NONE);
}

static void lossy_close(struct kv_store *store)
{
    struct lossy *own = store->own;
    munmap(own->index, store->options.buckets * sizeof(struct bucket));
    munmap(own->log, own->size + page);
    free(own);
}

/* ---- The log */

/* The distance behind the head; the 47 bits may have wrapped. */
static uint64_t age_of(const struct lossy *own, uint64_t offset)
{
    return (own->head - offset) & OFFSET_MASK;
}

/* Bytes from `offset` on are written over when the head passes offset + size, not before. */
static bool alive(const struct lossy *own, uint64_t offset)
{
    return age_of(own, offset) <= own->size;
}

static struct entry *entry_at(const struct lossy *own, uint64_t offset)
{
    return (struct entry *)(own->log + (offset & (own->size - 1)));
}

static bool holds(struct kv_store *store, const struct lossy *own, uint64_t offset,
                  const struct kv_key *key)
{
    const struct entry *entry = entry_at(own, offset);
    if (entry->place == (uint32_t)offset && kv_key_same(entry->bytes, key))
        return true;
    store->counts.twins++;
    return false;
}

/* The place of the entry matters, not the virtual head, which never wraps. */
static uint64_t append(struct kv_store *store, const struct kv_key *key, const void *value,
                       size_t len)
{
    struct lossy *own = store->own;
    uint64_t need =
        (sizeof(struct entry) + kv_key_size + len + entry_unit - 1) / entry_unit * entry_unit;
    uint64_t left = own->size - (own->head & (own->size - 1));
    uint64_t offset = own->head + (need > left ? left : 0);
    struct entry *entry = entry_at(own, offset);
    entry->len = (uint32_t)len;
    entry->place = (uint32_t)offset;
    memcpy(entry->bytes, key, kv_key_size);
    memcpy(entry->bytes + kv_key_size, value, len);
    own->head = offset + need;
    store->counts.laps = (own->head - store->options.first_offset) / own->size;
    return offset & OFFSET_MASK;
}

/* ---- The index */

static struct bucket *bucket_of(const struct kv_store *store, struct kv_hash hash)
{
    const struct lossy *own = store->own;
    return &own->index[kv_bucket_of(hash, store->options.buckets)];
}

static bool has_tag(uint64_t slot, struct kv_hash hash)
{
    return slot & VALID && (uint16_t)(slot >> offset_bits) == kv_tag_of(hash);
}

static void lossy_prefetch(struct kv_store *store, struct kv_hash hash, bool write)
{
    if (write)
        __builtin_prefetch(bucket_of(store, hash), 1);
    else
        __builtin_prefetch(bucket_of(store, hash), 0);
}

/* All slots with the tag: another key may have it, too. */
static void lossy_look(struct kv_store *store, struct kv_hash hash, struct kv_look *look)
{
    const struct lossy *own = store->own;
    const struct bucket *bucket = bucket_of(store, hash);
    look->count = 0;
    for (int i = 0; i < kv_index_slots; i++) {
        uint64_t offset = bucket->slot[i] & OFFSET_MASK;
        if (!has_tag(bucket->slot[i], hash) || !alive(own, offset))
            continue;
        __builtin_prefetch(entry_at(own, offset), 0);
        look->at[look->count++] = offset;
    }
}

static bool lossy_find(struct kv_store *store, const struct kv_key *key, const struct kv_look *look,
                       const char **value, size_t *len)
{
    const struct lossy *own = store->own;
    for (unsigned i = 0; i < look->count; i++)
        if (holds(store, own, look->at[i], key)) {
            *value = entry_at(own, look->at[i])->bytes + kv_key_size;
            *len = entry_at(own, look->at[i])->len;
            return true;
        }
    return false;
}

/* The key's slot, or NULL. Dead slots on the way are emptied. */
static uint64_t *slot_of(struct kv_store *store, const struct kv_key *key, struct kv_hash hash)
{
    struct lossy *own = store->own;
    struct bucket *bucket = bucket_of(store, hash);
    uint64_t *found = NULL;
    for (int i = 0; i < kv_index_slots; i++) {
        uint64_t *slot = &bucket->slot[i];
        if (!alive(own, *slot & OFFSET_MASK))
            *slot = 0;
        if (!found && has_tag(*slot, hash) && holds(store, own, *slot & OFFSET_MASK, key))
            found = slot;
    }
    return found;
}

/* A slot for a key without one: an empty slot, else the slot of the oldest entry, which is dropped.
 */
static uint64_t *free_slot(struct kv_store *store, struct kv_hash hash)
{
    struct lossy *own = store->own;
    struct bucket *bucket = bucket_of(store, hash);
    uint64_t *oldest = &bucket->slot[0];
    for (int i = 0; i < kv_index_slots; i++) {
        uint64_t *slot = &bucket->slot[i];
        if (!(*slot & VALID))
            return slot;
        if (age_of(own, *slot & OFFSET_MASK) > age_of(own, *oldest & OFFSET_MASK))
            oldest = slot;
    }
    store->counts.evictions++;
    struct kv_key key = kv_key_at(entry_at(own, *oldest & OFFSET_MASK)->bytes);
    kv_store_note(store, &key, kv_evicted);
    return oldest;
}

static enum kv_status lossy_put(struct kv_store *store, const struct kv_key *key,
                                struct kv_hash hash, const void *value, size_t len)
{
    struct lossy *own = store->own;
    uint64_t *slot = slot_of(store, key, hash);
    if (slot) {
        struct entry *entry = entry_at(own, *slot & OFFSET_MASK);
        store->counts.puts_update++;
        if (store->options.inplace && entry->len == len) {
            memcpy(entry->bytes + kv_key_size, value, len);
            return kv_ok;
        }
    } else {
        slot = free_slot(store, hash);
        store->counts.puts_new++;
        kv_store_note(store, key, kv_present);
    }
    *slot = VALID | (uint64_t)kv_tag_of(hash) << offset_bits | append(store, key, value, len);
    return kv_ok;
}

static bool lossy_remove(struct kv_store *store, const struct kv_key *key, struct kv_hash hash)
{
    uint64_t *slot = slot_of(store, key, hash);
    if (slot)
        *slot = 0;
    return slot != NULL;
}

static void lossy_each(const struct kv_store *store, kv_visit *visit, void *arg)
{
    const struct lossy *own = store->own;
    for (uint64_t b = 0; b < store->options.buckets; b++)
        for (int i = 0; i < kv_index_slots; i++) {
            uint64_t slot = own->index[b].slot[i], offset = slot & OFFSET_MASK;
            if (!(slot & VALID) || !alive(own, offset))
                continue;
            const struct entry *entry = entry_at(own, offset);
            struct kv_key key = kv_key_at(entry->bytes);
            visit(arg, &key, entry->bytes + kv_key_size, entry->len);
        }
}

static double lossy_load(const struct kv_store *store)
{
    return (double)kv_store_count(store).entries /
           ((double)store->options.buckets * kv_index_slots);
}

const struct kv_kind kv_kind_lossy = {lossy_open,   lossy_close, lossy_prefetch,
                                      lossy_look,   lossy_find,  lossy_put,
                                      lossy_remove, lossy_each,  lossy_load};
