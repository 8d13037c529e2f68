/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys and what is made of them. A key's 128-bit hash is cut into parts that share no bit: the
 * server from the high half, bucket and tag from the two ends of the low half; else the keys of one
 * server would crowd in few buckets, or the keys of one bucket share their tag. */
#ifndef KV_KEY_H
#define KV_KEY_H

#include <stdint.h>
#include <string.h>

#include "random.h"

enum { kv_key_size = 16, kv_tag_bits = 16, kv_bucket_bits = 32 };

struct kv_key {
    unsigned char bytes[kv_key_size];
};

struct kv_hash {
    uint64_t hi, lo;
};

/* The key of a number: both halves differ, and two numbers never have the same first half. */
static inline struct kv_key kv_key_of(uint64_t seed, uint64_t number)
{
    uint64_t halves[2];
    struct kv_key key;
    halves[0] = wl_mix(number + wl_mix(seed));
    halves[1] = wl_mix(halves[0] ^ wl_mix(~seed));
    memcpy(key.bytes, halves, sizeof(halves));
    return key;
}

static inline struct kv_hash kv_hash_of(const void *key)
{
    uint64_t a, b;
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
