/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and the values derived from them. A key's 128-bit hash is cut into parts that share no bit:
 * the server from the high half, bucket and tag from the two ends of the low half; otherwise the
 * keys of one server would share few buckets, or the keys of one bucket share their tag. All keys
 * of a run have one length; the rest of a struct kv_key is zero, and only that many bytes are sent
 * or stored. */
#ifndef KV_KEY_H
#define KV_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "random.h"

enum { kv_key_min = 8, kv_key_max = 64, kv_key_usual = 16, kv_tag_bits = 16 };

struct kv_key {
    unsigned char bytes[kv_key_max];
};

struct kv_hash {
    uint64_t hi, lo;
};

extern size_t kv_key_size; /* of this run: see kv_layout_set() */

/* The last byte of a key must not be 0, because the server polls it (--compat). */
extern bool kv_key_marked;

/* The key of a number: both halves differ, and two numbers never have the same first half. */
struct kv_key kv_key_of(uint64_t seed, uint64_t number);

/* Of kv_key_size bytes that lie anywhere. */
static inline struct kv_key kv_key_at(const void *bytes)
{
    struct kv_key key = {{0}};
    memcpy(key.bytes, bytes, kv_key_size);
    return key;
}

/* The usual length first: comparing two words is faster than comparing a variable number of bytes.
 */
static inline bool kv_key_same(const void *a, const void *b)
{
    return kv_key_size == kv_key_usual ? !memcmp(a, b, kv_key_usual) : !memcmp(a, b, kv_key_size);
}

struct kv_hash kv_hash_long(const void *key);

static inline struct kv_hash kv_hash_of(const void *key)
{
    uint64_t a, b;
    if (kv_key_size != kv_key_usual)
        return kv_hash_long(key);
    memcpy(&a, key, 8);
    memcpy(&b, (const char *)key + 8, 8);
    uint64_t lo = wl_mix(wl_mix(a + WL_GOLDEN) ^ b);
    return (struct kv_hash){wl_mix(wl_mix(b + 2 * WL_GOLDEN) ^ (a + lo)), lo};
}

static inline uint32_t kv_server_of(struct kv_hash hash, uint32_t servers)
{
    return (uint32_t)(hash.hi % servers);
}

/* `buckets` is a power of 2, at most 2^32. */
static inline uint64_t kv_bucket_of(struct kv_hash hash, uint64_t buckets)
{
    return hash.lo & (buckets - 1) & UINT32_MAX;
}

static inline uint16_t kv_tag_of(struct kv_hash hash)
{
    return (uint16_t)(hash.lo >> (64 - kv_tag_bits));
}

#endif
