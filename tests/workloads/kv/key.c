/* SPDX-License-Identifier: BSD-3-Clause */
/* See key.h. Owns the length of keys. */
#include "config.h"

#include "key.h"

size_t kv_key_size = kv_key_usual;
bool kv_key_marked;

struct kv_key kv_key_of(uint64_t seed, uint64_t number)
{
    struct kv_key key = {{0}};
    uint64_t words[kv_key_max / 8];
    words[0] = wl_mix(number + wl_mix(seed));
    words[1] = wl_mix(words[0] ^ wl_mix(~seed));
    for (size_t i = 2; i * 8 < kv_key_size; i++)
        words[i] = wl_mix(words[i - 1] + words[0]);
    memcpy(key.bytes, words, kv_key_size);
    if (kv_key_marked && !key.bytes[kv_key_size - 1])
        key.bytes[kv_key_size - 1] = 1;
    return key;
}

/* Word by word, the last one filled up with zeros. */
struct kv_hash kv_hash_long(const void *key)
{
    uint64_t hi = WL_GOLDEN, lo = 0, word;
    for (size_t at = 0; at < kv_key_size; at += sizeof(word)) {
        size_t left = kv_key_size - at;
        word = 0;
        memcpy(&word, (const char *)key + at, left < sizeof(word) ? left : sizeof(word));
        lo = wl_mix(wl_mix(word + WL_GOLDEN) ^ lo);
        hi = wl_mix(wl_mix(word + 2 * WL_GOLDEN) ^ (hi + lo));
    }
    return (struct kv_hash){hi, lo};
}
