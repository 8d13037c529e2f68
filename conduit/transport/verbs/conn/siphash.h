/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SipHash-2-4 of 16 bytes (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). Who
 * lacks the key can't tell its values from random ones. It takes a fiftieth of the time of an HMAC
 * with SHA-256, and a first message waits for it at both ends; Linux chooses the first sequence
 * numbers of TCP with it for the same reasons. No state. */
#ifndef TK_VERBS_SIPHASH_H
#define TK_VERBS_SIPHASH_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#include "base/first_use.h"

enum { tk_siphash_key_size = 16, tk_siphash_text_size = 16 };

static inline uint64_t tk_siphash_word(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

static inline uint64_t tk_siphash_turn(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

static inline void tk_siphash_rounds(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = tk_siphash_turn(v[1], 13) ^ v[0];
        v[3] = tk_siphash_turn(v[3], 16) ^ v[2];
        v[0] = tk_siphash_turn(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = tk_siphash_turn(v[3], 21) ^ v[0];
        v[1] = tk_siphash_turn(v[1], 17) ^ v[2];
        v[2] = tk_siphash_turn(v[2], 32);
    }
}

/* The last word of the text is padding and its length (2.2 of the paper). */
TK_FIRST_USE static inline uint64_t tk_siphash(const uint8_t key[tk_siphash_key_size],
                                               const uint8_t text[tk_siphash_text_size])
{
    const uint64_t k[2] = {tk_siphash_word(key), tk_siphash_word(key + 8)};
    const uint64_t m[3] = {tk_siphash_word(text), tk_siphash_word(text + 8),
                           (uint64_t)tk_siphash_text_size << 56};
    uint64_t v[4] = {k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d,
                     k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573};
    for (int i = 0; i < 3; i++) {
        v[3] ^= m[i];
        tk_siphash_rounds(v, 2);
        v[0] ^= m[i];
    }
    v[2] ^= 0xff;
    tk_siphash_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
