/* SPDX-License-Identifier: BSD-3-Clause */
/* One server's store, touched by one thread. Two kinds behind one interface: lossy (an index of
 * lines over a circular log; evicts, never refuses) and exact (refuses when full, never evicts). A
 * lookup has two stages, so that the memory of the second may be fetched while others are served:
 * kv_store_look() finds where the key may be, kv_store_find() compares. Between the two stages of
 * one key no PUT or DELETE may come. */
#ifndef KV_STORE_H
#define KV_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "key.h"

enum kv_store_kind { kv_lossy, kv_exact };
enum kv_status { kv_ok, kv_missing, kv_full };

enum { kv_index_slots = 8 };

struct kv_store_options {
    enum kv_store_kind kind;
    uint64_t buckets;   /* power of 2; exact: at least as many as its entries need */
    uint64_t log_bytes; /* power of 2 for lossy; exact: space for that many bytes of entries */
    void *memory;       /* exact: its memory, zeroed (exact.h says how large); NULL: its own */
    size_t value_max;
    bool inplace; /* lossy: a value of the same length replaces the old one where it lies */
    bool ledger;  /* count misses by cause; else they count as unknown */
    uint64_t first_offset; /* lossy: where the virtual log begins; for tests */
};

struct kv_counts {
    uint64_t gets, hits;
    uint64_t miss_never, miss_index, miss_log, miss_unknown;
    uint64_t puts_new, puts_update, puts_refused;
    uint64_t deletes, delete_misses;
    uint64_t evictions;     /* live entries that lost their place in the index */
    uint64_t twins;         /* entries looked at that had the tag of another key */
    uint64_t laps, entries; /* entries: live ones, as of kv_store_count() */
};

struct kv_look {
    struct kv_hash hash;
    unsigned count;
    uint64_t at[kv_index_slots];
};

struct kv_store;

/* NULL when there is no memory. */
struct kv_store *kv_store_open(const struct kv_store_options *options);
void kv_store_close(struct kv_store *store);

void kv_store_prefetch(struct kv_store *store, struct kv_hash hash, bool write);
void kv_store_look(struct kv_store *store, struct kv_hash hash, struct kv_look *look);

/* kv_ok: *value and *len are valid until the next PUT or DELETE. kv_missing: counted by cause. */
enum kv_status kv_store_find(struct kv_store *store, const struct kv_key *key,
                             const struct kv_look *look, const char **value, size_t *len);

enum kv_status kv_store_put(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                            const void *value, size_t len);
enum kv_status kv_store_delete(struct kv_store *store, const struct kv_key *key,
                               struct kv_hash hash);

/* Both stages at once. */
enum kv_status kv_store_get(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                            const char **value, size_t *len);

/* All live entries, in arbitrary order. */
typedef void kv_visit(void *arg, const struct kv_key *key, const char *value, size_t len);
void kv_store_each(const struct kv_store *store, kv_visit *visit, void *arg);

/* Equal for stores with the same entries, in whichever order they were added. */
uint64_t kv_store_digest(const struct kv_store *store);

struct kv_counts kv_store_count(const struct kv_store *store);

/* Fill ratio of the index (lossy) or of all entries (exact), 0..1. */
double kv_store_load_factor(const struct kv_store *store);

#endif
