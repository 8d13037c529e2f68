/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash table with rings of the entries that are not in use, in the order in which they became
 * idle: the oldest is evicted first. An entry is the first member of the user's struct. Takes no
 * lock: the user protects a table, its entries and its rings by a lock of its own. Inline, because
 * transfers look up regions in it. */
#ifndef TK_IDLE_TABLE_H
#define TK_IDLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct tk_entry {
    struct tk_entry *next; /* in its bucket; the user's own while it is in none */
    struct tk_entry *older, *newer;
};

/* ---- a ring: its head is an entry that is in no table */

static inline void tk_idle_open(struct tk_entry *ring)
{
    ring->newer = ring->older = ring;
}

/* NULL: no entry is idle. */
static inline struct tk_entry *tk_idle_oldest(const struct tk_entry *ring)
{
    return ring->newer == ring ? NULL : ring->newer;
}

static inline void tk_idle_insert_before(struct tk_entry *e, struct tk_entry *newer)
{
    e->newer = newer;
    e->older = newer->older;
    e->older->newer = e;
    newer->older = e;
}

static inline void tk_idle_add_newest(struct tk_entry *ring, struct tk_entry *e)
{
    tk_idle_insert_before(e, ring);
}

static inline void tk_idle_add_oldest(struct tk_entry *ring, struct tk_entry *e)
{
    tk_idle_insert_before(e, ring->newer);
}

static inline void tk_idle_remove(struct tk_entry *e)
{
    e->older->newer = e->newer;
    e->newer->older = e->older;
}

/* ---- buckets */

struct tk_table {
    struct tk_entry **buckets;
    size_t mask; /* of their numbers */
};

static inline size_t tk_table_bytes(size_t buckets)
{
    return buckets * sizeof(struct tk_entry *);
}

/* Makes a table with that many buckets, a power of two. False: out of memory. */
static inline bool tk_table_open(struct tk_table *table, size_t buckets)
{
    table->mask = buckets - 1;
    table->buckets = calloc(1, tk_table_bytes(buckets));
    return table->buckets != NULL;
}

static inline void tk_table_close(struct tk_table *table)
{
    free(table->buckets);
    table->buckets = NULL;
}

/* The golden ratio's fraction spreads neighbouring keys over the table. Keys that are equal in
 * their low 32 bits share a bucket in small tables. */
static inline struct tk_entry **tk_table_bucket(const struct tk_table *table, uint64_t key)
{
    return &table->buckets[((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & table->mask];
}

static inline void tk_table_insert(struct tk_table *table, uint64_t key, struct tk_entry *e)
{
    struct tk_entry **bucket = tk_table_bucket(table, key);
    e->next = *bucket;
    *bucket = e;
}

/* Inserts it under this key. */
static inline void tk_table_remove(struct tk_table *table, uint64_t key, struct tk_entry *e)
{
    struct tk_entry **at = tk_table_bucket(table, key);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
}

#endif
