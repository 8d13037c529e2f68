/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the two kinds of store: the table of their functions, and the ledger that knows why a
 * key misses. */
#ifndef KV_STORE_PRIVATE_H
#define KV_STORE_PRIVATE_H

#include "store.h"

struct kv_kind {
    bool (*open)(struct kv_store *store);
    void (*close)(struct kv_store *store);
    void (*prefetch)(struct kv_store *store, struct kv_hash hash, bool write);
    void (*look)(struct kv_store *store, struct kv_hash hash, struct kv_look *look);
    bool (*find)(struct kv_store *store, const struct kv_key *key, const struct kv_look *look,
                 const char **value, size_t *len);
    enum kv_status (*put)(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                          const void *value, size_t len);
    bool (*remove)(struct kv_store *store, const struct kv_key *key, struct kv_hash hash);
    void (*each)(const struct kv_store *store, kv_visit *visit, void *arg);
    double (*load)(const struct kv_store *store);
};
extern const struct kv_kind kv_kind_lossy, kv_kind_exact;

enum kv_fate { kv_never, kv_present, kv_evicted };

struct kv_ledger_line {
    struct kv_key key;
    uint32_t fate, used;
};

/* Every key that was ever put, and what became of it last. */
struct kv_ledger {
    struct kv_ledger_line *lines;
    uint64_t room, count; /* room: power of 2 */
};

bool kv_ledger_open(struct kv_ledger *ledger);
void kv_ledger_close(struct kv_ledger *ledger);
void kv_ledger_set(struct kv_ledger *ledger, const struct kv_key *key, enum kv_fate fate);
enum kv_fate kv_ledger_get(const struct kv_ledger *ledger, const struct kv_key *key);

struct kv_store {
    const struct kv_kind *kind;
    struct kv_store_options options;
    struct kv_counts counts;
    struct kv_ledger ledger;
    void *own; /* the kind's */
};

static inline void kv_store_note(struct kv_store *store, const struct kv_key *key,
                                 enum kv_fate fate)
{
    if (store->options.ledger)
        kv_ledger_set(&store->ledger, key, fate);
}

#endif
