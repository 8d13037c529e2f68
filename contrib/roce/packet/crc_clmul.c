/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32 by carry-less multiplication (PCLMULQDQ): four accumulators of 128 bits are moved over 64
 * bytes at a time, folded into one, and that is reduced by the table, as if it were 16 bytes of
 * input. Owns nothing. */
#include "config.h"

#include "packet/crc.h"

#if defined(__x86_64__)
#    include <immintrin.h>

/* x^n mod P, reflected and shifted left by one, because the product of two reflected numbers of 64
 * bits is short of one bit. A fold over d bits multiplies the low half by x^(d+32) and the high one
 * by x^(d-32). The unit test compares all of it with the tables. */
static const uint64_t by_512[2] = {UINT64_C(0x154442bd4), UINT64_C(0x1c6e41596)};
static const uint64_t by_128[2] = {UINT64_C(0x1751997d0), UINT64_C(0x0ccaa009e)};

__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i a, __m128i factor,
                                                                    __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(a, factor, 0x00);
    __m128i high = _mm_clmulepi64_si128(a, factor, 0x11);

    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) static inline __m128i load(const uint8_t *b)
{
    return _mm_loadu_si128((const __m128i *)(const void *)b);
}

__attribute__((target("pclmul,sse4.1"))) static uint32_t by_clmul(uint32_t state, const void *data,
                                                                  size_t length)
{
    const __m128i wide = load((const uint8_t *)by_512), narrow = load((const uint8_t *)by_128);
    const uint8_t *b = data;
    uint8_t rest[16];
    __m128i a[4];

    if (length < 64)
        return roce_crc_words(state, data, length);
    for (int i = 0; i < 4; i++)
        a[i] = load(b + i * 16);
    a[0] = _mm_xor_si128(a[0], _mm_cvtsi32_si128((int)state));
    for (b += 64, length -= 64; length >= 64; b += 64, length -= 64)
        for (int i = 0; i < 4; i++)
            a[i] = fold(a[i], wide, load(b + i * 16));
    for (int i = 1; i < 4; i++)
        a[0] = fold(a[0], narrow, a[i]);
    for (; length >= 16; b += 16, length -= 16)
        a[0] = fold(a[0], narrow, load(b));
    _mm_storeu_si128((__m128i *)(void *)rest, a[0]);
    state = roce_crc_words(0, rest, sizeof rest);
    return roce_crc_words(state, b, length);
}

roce_crc_way *roce_crc_clmul(void)
{
    return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1") ? by_clmul : NULL;
}
#else
roce_crc_way *roce_crc_clmul(void)
{
    return NULL;
}
#endif
