/* SPDX-License-Identifier: BSD-3-Clause */
/* The exact store: chains of entries of one size. What was put is there until it is deleted, and
 * when all entries are taken a new key is refused. The reference for what the others do. Owns its
 * chains and entries. */
#include "config.h"

#include <stdlib.h>

#include "store_private.h"

struct entry {
    struct kv_key key;
    uint32_t len, next; /* next: number of the entry + 1; 0: none */
    char value[];
};

struct exact {
    uint32_t *heads; /* number of the entry + 1 */
    char *entries;
    size_t stride;
    uint64_t capacity, used;
    uint32_t unused; /* chain of deleted entries */
};

static struct entry *entry_at(const struct exact *own, uint64_t number)
{
    return (struct entry *)(own->entries + (number - 1) * own->stride);
}

static bool exact_open(struct kv_store *store)
{
    struct exact *own = calloc(1, sizeof(*own));
    if (!own)
        return false;
    own->stride = (sizeof(struct entry) + store->options.value_most + 7) / 8 * 8;
    own->capacity = store->options.log_bytes / own->stride;
    if (own->capacity >= UINT32_MAX)
        own->capacity = UINT32_MAX - 1;
    own->heads = calloc(store->options.buckets, sizeof(*own->heads));
    own->entries = malloc(own->capacity * own->stride + 1);
    store->own = own;
    return own->heads && own->entries;
}

static void exact_close(struct kv_store *store)
{
    struct exact *own = store->own;
    free(own->heads);
    free(own->entries);
    free(own);
}

static uint32_t *head_of(const struct kv_store *store, struct kv_hash hash)
{
    const struct exact *own = store->own;
    return &own->heads[kv_bucket_of(hash, store->options.buckets)];
}

static void exact_prefetch(struct kv_store *store, struct kv_hash hash, bool write)
{
    (void)write;
    __builtin_prefetch(head_of(store, hash), 0);
}

static void exact_look(struct kv_store *store, struct kv_hash hash, struct kv_look *look)
{
    const struct exact *own = store->own;
    look->count = 1;
    look->at[0] = *head_of(store, hash);
    if (look->at[0])
        __builtin_prefetch(entry_at(own, look->at[0]), 0);
}

static bool exact_find(struct kv_store *store, const struct kv_key *key, const struct kv_look *look,
                       const char **value, size_t *len)
{
    const struct exact *own = store->own;
    for (uint64_t number = look->at[0]; number;) {
        const struct entry *entry = entry_at(own, number);
        if (!memcmp(&entry->key, key, sizeof(*key))) {
            *value = entry->value;
            *len = entry->len;
            return true;
        }
        number = entry->next;
    }
    return false;
}

/* The link that leads to the key's entry, or the end of its chain. */
static uint32_t *link_to(const struct kv_store *store, const struct kv_key *key,
                         struct kv_hash hash)
{
    const struct exact *own = store->own;
    uint32_t *link = head_of(store, hash);
    while (*link && memcmp(&entry_at(own, *link)->key, key, sizeof(*key)))
        link = &entry_at(own, *link)->next;
    return link;
}

/* A new entry's number, 0 when there is none. */
static uint32_t take(struct exact *own)
{
    uint32_t number = own->unused;
    if (number) {
        own->unused = entry_at(own, number)->next;
        return number;
    }
    return own->used < own->capacity ? (uint32_t)++own->used : 0;
}

static enum kv_status exact_put(struct kv_store *store, const struct kv_key *key,
                                struct kv_hash hash, const void *value, size_t len)
{
    struct exact *own = store->own;
    uint32_t *link = link_to(store, key, hash);
    if (*link) {
        store->counts.puts_update++;
    } else {
        uint32_t number = take(own);
        if (!number)
            return kv_full;
        entry_at(own, number)->key = *key;
        entry_at(own, number)->next = 0;
        *link = number;
        store->counts.puts_new++;
        kv_store_note(store, key, kv_present);
    }
    entry_at(own, *link)->len = (uint32_t)len;
    memcpy(entry_at(own, *link)->value, value, len);
    return kv_ok;
}

static bool exact_remove(struct kv_store *store, const struct kv_key *key, struct kv_hash hash)
{
    struct exact *own = store->own;
    uint32_t *link = link_to(store, key, hash), number = *link;
    if (!number)
        return false;
    *link = entry_at(own, number)->next;
    /* Whoever still holds its number must not take it for the key's. */
    memset(&entry_at(own, number)->key, 0, sizeof(*key));
    entry_at(own, number)->next = own->unused;
    own->unused = number;
    return true;
}

static void exact_each(const struct kv_store *store, kv_visit *visit, void *arg)
{
    const struct exact *own = store->own;
    for (uint64_t b = 0; b < store->options.buckets; b++)
        for (uint32_t number = own->heads[b]; number; number = entry_at(own, number)->next) {
            const struct entry *entry = entry_at(own, number);
            visit(arg, &entry->key, entry->value, entry->len);
        }
}

static double exact_load(const struct kv_store *store)
{
    const struct exact *own = store->own;
    return own->capacity ? (double)kv_store_count(store).entries / (double)own->capacity : 1;
}

const struct kv_kind kv_kind_exact = {exact_open,   exact_close, exact_prefetch,
                                      exact_look,   exact_find,  exact_put,
                                      exact_remove, exact_each,  exact_load};
