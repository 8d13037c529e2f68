/* SPDX-License-Identifier: BSD-3-Clause */
/* See store.h: the part common to both kinds, which is the counting. Owns the store. */
#include "config.h"

#include <stdlib.h>

#include "store_private.h"

struct kv_store *kv_store_open(const struct kv_store_options *options)
{
    struct kv_store *store = calloc(1, sizeof(*store));
    if (!store)
        return NULL;
    store->options = *options;
    store->kind = options->kind == kv_lossy ? &kv_kind_lossy : &kv_kind_exact;
    if (options->ledger && !kv_ledger_open(&store->ledger)) {
        free(store);
        return NULL;
    }
    if (store->kind->open(store))
        return store;
    kv_ledger_close(&store->ledger);
    free(store);
    return NULL;
}

void kv_store_close(struct kv_store *store)
{
    store->kind->close(store);
    kv_ledger_close(&store->ledger);
    free(store);
}

void kv_store_prefetch(struct kv_store *store, struct kv_hash hash, bool write)
{
    store->kind->prefetch(store, hash, write);
}

void kv_store_look(struct kv_store *store, struct kv_hash hash, struct kv_look *look)
{
    store->kind->look(store, hash, look);
}

static void count_miss(struct kv_store *store, const struct kv_key *key)
{
    if (!store->options.ledger) {
        store->counts.miss_unknown++;
        return;
    }
    switch (kv_ledger_get(&store->ledger, key)) {
    case kv_never:
        store->counts.miss_never++;
        break;
    case kv_evicted:
        store->counts.miss_index++;
        break;
    default: /* put, not evicted, and not there: the log went over it */
        store->counts.miss_log++;
    }
}

enum kv_status kv_store_find(struct kv_store *store, const struct kv_key *key,
                             const struct kv_look *look, const char **value, size_t *len)
{
    store->counts.gets++;
    if (store->kind->find(store, key, look, value, len)) {
        store->counts.hits++;
        return kv_ok;
    }
    count_miss(store, key);
    return kv_missing;
}

enum kv_status kv_store_get(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                            const char **value, size_t *len)
{
    struct kv_look look;
    kv_store_look(store, hash, &look);
    return kv_store_find(store, key, &look, value, len);
}

enum kv_status kv_store_put(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                            const void *value, size_t len)
{
    enum kv_status status =
        len > store->options.value_max ? kv_full : store->kind->put(store, key, hash, value, len);
    if (status == kv_full)
        store->counts.puts_refused++;
    return status;
}

enum kv_status kv_store_delete(struct kv_store *store, const struct kv_key *key,
                               struct kv_hash hash)
{
    bool was = store->kind->remove(store, key, hash);
    store->counts.deletes++;
    store->counts.delete_misses += !was;
    kv_store_note(store, key, kv_never);
    return was ? kv_ok : kv_missing;
}

void kv_store_each(const struct kv_store *store, kv_visit *visit, void *arg)
{
    store->kind->each(store, visit, arg);
}

static void add_digest(void *arg, const struct kv_key *key, const char *value, size_t len)
{
    uint64_t word = 0, digest = kv_hash_of(key).lo ^ wl_mix(len);
    for (size_t i = 0; i < len; i += sizeof(word)) {
        word = 0;
        memcpy(&word, value + i, len - i < sizeof(word) ? len - i : sizeof(word));
        digest = wl_mix(digest + word);
    }
    *(uint64_t *)arg += digest;
}

uint64_t kv_store_digest(const struct kv_store *store)
{
    uint64_t digest = 0;
    kv_store_each(store, add_digest, &digest);
    return digest;
}

static void add_entry(void *arg, const struct kv_key *key, const char *value, size_t len)
{
    (void)key, (void)value, (void)len;
    ++*(uint64_t *)arg;
}

struct kv_counts kv_store_count(const struct kv_store *store)
{
    struct kv_counts counts = store->counts;
    kv_store_each(store, add_entry, &counts.entries);
    return counts;
}

double kv_store_load_factor(const struct kv_store *store)
{
    return store->kind->load(store);
}
