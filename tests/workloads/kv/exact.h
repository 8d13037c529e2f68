/* SPDX-License-Identifier: BSD-3-Clause */
/* Layout of an exact store in memory, for clients that read it by RDMA while its server writes it:
 * an index of lines of 8 words, each the tag and the number of an entry, and entries of one size. A
 * word is written at once; an entry is not, so it has a version, which is odd while it is written,
 * and a checksum over all of it: a copy read during a change fails the check, and the client reads
 * again. No entry ever moves to another place of the index while its key is there. */
#ifndef KV_EXACT_H
#define KV_EXACT_H

#include "store.h"

struct kv_shape {
    uint64_t buckets, capacity; /* lines of the index; entries */
    size_t stride, entries_at, size;
};

/* Of a store with these options: `buckets` is raised until the index with all entries is at most
 * half full. */
struct kv_shape kv_shape_of(const struct kv_store_options *options);

/* The result of looking up a key in a line of the index. */
struct kv_line_look {
    unsigned count;
    uint32_t numbers[kv_index_slots]; /* of entries whose key has its tag, from 0 on */
    bool more;                        /* no place was ever free: look at the next line, too */
};
void kv_line_look(const uint64_t *line, struct kv_hash hash, struct kv_line_look *look);

/* A copy of an entry, of `stride` bytes. */
enum kv_entry_state { kv_entry_whole, kv_entry_other, kv_entry_torn };
enum kv_entry_state kv_entry_look(const void *bytes, size_t stride, const struct kv_key *key,
                                  const char **value, size_t *len);

/* For injection: the key's entry is left as if its server had died while it wrote; or one bit of
 * its value is wrong and its checksum is not. */
enum kv_damage { kv_damage_half, kv_damage_bit };
bool kv_exact_damage(struct kv_store *store, const struct kv_key *key, struct kv_hash hash,
                     enum kv_damage damage);

#endif
