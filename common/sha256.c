/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 and HMAC; see sha256.h. */
#include "config.h"

#include "common/sha256.h"

#include <string.h>

/* FIPS 180-4, 4.2.2: fractions of the cube roots of the first 64 primes. */
static const uint32_t sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned by)
{
    return x >> by | x << (32 - by);
}

static void expand(const uint8_t *block, uint32_t w[64])
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | (uint32_t)block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        uint32_t s0 = rotate(a, 7) ^ rotate(a, 18) ^ a >> 3;
        uint32_t s1 = rotate(b, 17) ^ rotate(b, 19) ^ b >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64], v[8];

    expand(block, w);
    memcpy(v, state, sizeof(v));
    for (int i = 0; i < 64; i++) {
        uint32_t a = v[0], e = v[4];
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t t1 = v[7] + s1 + ((e & v[5]) ^ (~e & v[6])) + sha256_k[i] + w[i];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t t2 = s0 + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof(*v));
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void tk_sha256_begin(struct sha256 *s)
{
    /* FIPS 180-4, 5.3.3: fractions of the square roots of the first 8 primes. */
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, first, sizeof(first));
    s->length = 0;
}

void tk_sha256_add(struct sha256 *s, const void *data, size_t length)
{
    const uint8_t *from = data;

    while (length) {
        size_t used = s->length % SHA256_BLOCK, n = SHA256_BLOCK - used;
        if (n > length)
            n = length;
        memcpy(s->block + used, from, n);
        s->length += n;
        from += n;
        length -= n;
        if (used + n == SHA256_BLOCK)
            compress(s->state, s->block);
    }
}

void tk_sha256_end(struct sha256 *s, uint8_t digest[SHA256_SIZE])
{
    static const uint8_t padding[SHA256_BLOCK] = {0x80};
    uint64_t bits = s->length * 8;
    size_t used = s->length % SHA256_BLOCK;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    tk_sha256_add(s, padding, used < 56 ? 56 - used : 56 + SHA256_BLOCK - used);
    tk_sha256_add(s, length, sizeof(length));
    for (int i = 0; i < SHA256_SIZE; i++)
        digest[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
}

void tk_sha256_hmac(const void *key, size_t key_length, const void *data, size_t length,
                    uint8_t code[SHA256_SIZE])
{
    uint8_t inner[SHA256_BLOCK] = {0}, outer[SHA256_BLOCK];
    struct sha256 s;

    tk_sha256_begin(&s);
    if (key_length > SHA256_BLOCK) {
        tk_sha256_add(&s, key, key_length);
        tk_sha256_end(&s, inner);
        tk_sha256_begin(&s);
    } else if (key_length) {
        memcpy(inner, key, key_length);
    }
    for (int i = 0; i < SHA256_BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    tk_sha256_add(&s, inner, sizeof(inner));
    tk_sha256_add(&s, data, length);
    tk_sha256_end(&s, code);
    tk_sha256_begin(&s);
    tk_sha256_add(&s, outer, sizeof(outer));
    tk_sha256_add(&s, code, SHA256_SIZE);
    tk_sha256_end(&s, code);
}

bool tk_sha256_equal(const uint8_t a[SHA256_SIZE], const uint8_t b[SHA256_SIZE])
{
    volatile uint8_t differs = 0;
    for (int i = 0; i < SHA256_SIZE; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}
