/* SPDX-License-Identifier: BSD-3-Clause */
/* The exact store: open addressing over lines of 8 places, and entries of one size. An entry exists
 * until it is deleted, and when all entries are taken a new key is refused. The reference for the
 * other stores; see exact.h for concurrent readers. Owns its memory, unless the caller provided it.
 */
#include "config.h"

#include <stdlib.h>

#include "exact.h"
#include "save.h"
#include "store_private.h"

struct entry {
    uint64_t version; /* odd: is being written */
    uint64_t crc;     /* checksum of the following bytes and the version; only if others read */
    uint32_t next;    /* free ones: number + 1 of the next free one; else 0 */
    uint32_t len;
    char bytes[]; /* key, value */
};

/* Places of the index: valid, tag, number of the entry. An emptied place is `gone` if keys may lie
 * behind it: only a 0 place tells a reader that no key follows. */
#define VALID (UINT64_C(1) << 63)
#define GONE  (UINT64_C(1) << 62)
enum { number_bits = 32 };

struct exact {
    uint64_t *index;
    char *entries;
    struct kv_shape shape;
    uint64_t used;
    uint32_t unused; /* free ones below `used`: number + 1 */
};

/* ---- Shape */

struct kv_shape kv_shape_of(const struct kv_store_options *options)
{
    size_t stride = (sizeof(struct entry) + kv_key_size + options->value_max + 7) / 8 * 8;
    struct kv_shape shape = {
        .buckets = options->buckets, .capacity = options->log_bytes / stride, .stride = stride};
    if (shape.capacity > UINT32_MAX - 1)
        shape.capacity = UINT32_MAX - 1;
    while (shape.buckets * kv_index_slots / 2 < shape.capacity)
        shape.buckets *= 2;
    shape.entries_at = shape.buckets * kv_index_slots * sizeof(uint64_t);
    shape.size = shape.entries_at + shape.capacity * stride;
    return shape;
}

static struct entry *entry_at(const struct exact *own, uint64_t number)
{
    return (struct entry *)(own->entries + number * own->shape.stride);
}

static bool exact_open(struct kv_store *store)
{
    struct exact *own = calloc(1, sizeof(*own));
    char *memory = store->options.memory;
    if (!own)
        return false;
    store->own = own;
    own->shape = kv_shape_of(&store->options);
    if (!memory)
        memory = calloc(1, own->shape.size);
    own->index = (uint64_t *)(void *)memory;
    own->entries = memory ? memory + own->shape.entries_at : NULL;
    return memory != NULL;
}

static void exact_close(struct kv_store *store)
{
    struct exact *own = store->own;
    if (!store->options.memory)
        free(own->index);
    free(own);
}

/* ---- The index */

static uint64_t *line_at(const struct exact *own, uint64_t bucket)
{
    return own->index + (bucket & (own->shape.buckets - 1)) * kv_index_slots;
}

static uint64_t first_line(const struct exact *own, struct kv_hash hash)
{
    return kv_bucket_of(hash, own->shape.buckets);
}

void kv_line_look(const uint64_t *line, struct kv_hash hash, struct kv_line_look *look)
{
    look->count = 0;
    look->more = true;
    for (int i = 0; i < kv_index_slots; i++) {
        look->more &= line[i] != 0;
        if (line[i] & VALID && (uint16_t)(line[i] >> number_bits) == kv_tag_of(hash))
            look->numbers[look->count++] = (uint32_t)line[i];
    }
}

static bool holds(struct kv_store *store, uint64_t place, const struct kv_key *key,
                  struct kv_hash hash)
{
    if (!(place & VALID) || (uint16_t)(place >> number_bits) != kv_tag_of(hash))
        return false;
    if (kv_key_same(entry_at(store->own, (uint32_t)place)->bytes, key))
        return true;
    store->counts.twins++;
    return false;
}

/* The key's place, or NULL; then *empty, if `empty` is not NULL, is a place for it. */
static uint64_t *place_of(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                          uint64_t **empty)
{
    const struct exact *own = store->own;
    uint64_t first = first_line(own, hash);
    for (uint64_t b = 0; b < own->shape.buckets; b++) {
        uint64_t *line = line_at(own, first + b);
        bool last = false;
        for (int i = 0; i < kv_index_slots; i++) {
            if (holds(store, line[i], key, hash))
                return &line[i];
            if (!(line[i] & VALID) && empty && !*empty)
                *empty = &line[i];
            last |= line[i] == 0;
        }
        if (last)
            break;
    }
    return NULL;
}

/* Remote readers see a word whole, and an entry before the word that leads to it. */
static void set_place(uint64_t *place, uint64_t word)
{
    __atomic_store_n(place, word, __ATOMIC_RELEASE);
}

/* ---- Entries */

static uint64_t crc_of(const void *bytes, uint64_t version, size_t len)
{
    uint64_t crc = kv_crc64(0, &version, sizeof(version));
    return kv_crc64(crc, (const char *)bytes + offsetof(struct entry, len),
                    sizeof(uint32_t) + kv_key_size + len);
}

static void begin_writing(struct entry *entry)
{
    __atomic_store_n(&entry->version, entry->version | 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end_writing(const struct kv_store *store, struct entry *entry)
{
    uint64_t version = entry->version + 1;
    if (store->options.memory)
        entry->crc = crc_of(entry, version, entry->len);
    __atomic_store_n(&entry->version, version, __ATOMIC_RELEASE);
}

enum kv_entry_state kv_entry_look(const void *bytes, size_t stride, const struct kv_key *key,
                                  const char **value, size_t *len)
{
    struct entry head;
    memcpy(&head, bytes, sizeof(head));
    if (head.version & 1 || head.len > stride - sizeof(head) - kv_key_size ||
        crc_of(bytes, head.version, head.len) != head.crc)
        return kv_entry_torn;
    *value = (const char *)bytes + sizeof(head) + kv_key_size;
    *len = head.len;
    return kv_key_same((const char *)bytes + sizeof(head), key) ? kv_entry_whole : kv_entry_other;
}

bool kv_exact_damage(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                     enum kv_damage damage)
{
    uint64_t *place = place_of(store, key, hash, NULL);
    if (!place)
        return false;
    struct entry *entry = entry_at(store->own, (uint32_t)*place);
    if (damage == kv_damage_half)
        begin_writing(entry);
    else
        entry->bytes[kv_key_size] ^= 1;
    return true;
}

/* A free one's number; false when there is none. */
static bool take(struct exact *own, uint32_t *number)
{
    if (own->unused) {
        *number = own->unused - 1;
        own->unused = entry_at(own, *number)->next;
        return true;
    }
    *number = (uint32_t)own->used;
    own->used += own->used < own->shape.capacity;
    return *number < own->shape.capacity;
}

/* ---- The store */

static void exact_prefetch(struct kv_store *store, struct kv_hash hash, bool write)
{
    const struct exact *own = store->own;
    (void)write;
    __builtin_prefetch(line_at(own, first_line(own, hash)), 0);
}

static void exact_look(struct kv_store *store, struct kv_hash hash, struct kv_look *look)
{
    const struct exact *own = store->own;
    struct kv_line_look line;
    look->count = 1;
    look->hash = hash;
    kv_line_look(line_at(own, first_line(own, hash)), hash, &line);
    for (unsigned i = 0; i < line.count; i++)
        __builtin_prefetch(entry_at(own, line.numbers[i]), 0);
}

static bool exact_find(struct kv_store *store, const struct kv_key *key, const struct kv_look *look,
                       const char **value, size_t *len)
{
    uint64_t *place = place_of(store, key, look->hash, NULL);
    if (!place)
        return false;
    struct entry *entry = entry_at(store->own, (uint32_t)*place);
    *value = entry->bytes + kv_key_size;
    *len = entry->len;
    return true;
}

static enum kv_status exact_put(struct kv_store *store, const struct kv_key *key,
                                struct kv_hash hash, const void *value, size_t len)
{
    struct exact *own = store->own;
    uint64_t *empty = NULL, *place = place_of(store, key, hash, &empty);
    uint32_t number = place ? (uint32_t)*place : 0;
    if (!place && (!empty || !take(own, &number)))
        return kv_full;
    struct entry *entry = entry_at(own, number);
    begin_writing(entry);
    memcpy(entry->bytes, key, kv_key_size);
    memcpy(entry->bytes + kv_key_size, value, len);
    entry->len = (uint32_t)len;
    end_writing(store, entry);
    if (place) {
        store->counts.puts_update++;
        return kv_ok;
    }
    set_place(empty, VALID | (uint64_t)kv_tag_of(hash) << number_bits | number);
    store->counts.puts_new++;
    kv_store_note(store, key, kv_present);
    return kv_ok;
}

/* Keys may lie behind a line that was full, so that its place is not simply free again. */
static bool was_full(const struct exact *own, const uint64_t *place)
{
    const uint64_t *line = own->index + (place - own->index) / kv_index_slots * kv_index_slots;
    bool full = true;
    for (int i = 0; i < kv_index_slots; i++)
        full &= line[i] != 0;
    return full;
}

static bool exact_remove(struct kv_store *store, const struct kv_key *key, struct kv_hash hash)
{
    struct exact *own = store->own;
    uint64_t *place = place_of(store, key, hash, NULL);
    if (!place)
        return false;
    uint32_t number = (uint32_t)*place;
    struct entry *entry = entry_at(own, number);
    set_place(place, was_full(own, place) ? GONE : 0);
    /* A reader that still holds its index must not take it for the key's entry. */
    begin_writing(entry);
    memset(entry->bytes, 0, kv_key_size);
    entry->len = 0;
    entry->next = own->unused;
    end_writing(store, entry);
    own->unused = number + 1;
    return true;
}

static void exact_each(const struct kv_store *store, kv_visit *visit, void *arg)
{
    const struct exact *own = store->own;
    for (uint64_t i = 0; i < own->shape.buckets * kv_index_slots; i++)
        if (own->index[i] & VALID) {
            const struct entry *entry = entry_at(own, (uint32_t)own->index[i]);
            struct kv_key key = kv_key_at(entry->bytes);
            visit(arg, &key, entry->bytes + kv_key_size, entry->len);
        }
}

static double exact_load(const struct kv_store *store)
{
    const struct exact *own = store->own;
    uint64_t capacity = own->shape.capacity;
    return capacity ? (double)kv_store_count(store).entries / (double)capacity : 1;
}

const struct kv_kind kv_kind_exact = {exact_open,   exact_close, exact_prefetch,
                                      exact_look,   exact_find,  exact_put,
                                      exact_remove, exact_each,  exact_load};
