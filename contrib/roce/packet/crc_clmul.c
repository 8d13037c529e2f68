/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32 by carry-less multiplication: four accumulators of 128 bits (PCLMULQDQ) or 256
 * (VPCLMULQDQ) are moved over as many bytes at a time, folded into one of 128, and that is reduced
 * by the table, as if it were 16 bytes of input. Owns nothing. */
#include "config.h"

#include <stdbool.h>

#include "packet/crc.h"

#if defined(__x86_64__)
#    include <cpuid.h>
#    include <immintrin.h>

/* x^n mod P, reflected and shifted left by one, because the product of two reflected numbers of 64
 * bits is short of one bit. A fold over d bits multiplies the low half by x^(d+32) and the high one
 * by x^(d-32). The unit test compares all of it with the tables. */
static const uint64_t by_512[2] = {UINT64_C(0x154442bd4), UINT64_C(0x1c6e41596)};
static const uint64_t by_1024[2] = {UINT64_C(0x1e88ef372), UINT64_C(0x14a7fe880)};
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

/* ---- twice as wide ---- */

#    define WIDE __attribute__((target("vpclmulqdq,pclmul,avx2")))

WIDE static inline __m256i load_wide(const uint8_t *b)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)b);
}

WIDE static inline __m256i fold_wide(__m256i a, __m256i factor, __m256i next)
{
    __m256i low = _mm256_clmulepi64_epi128(a, factor, 0x00);
    __m256i high = _mm256_clmulepi64_epi128(a, factor, 0x11);

    return _mm256_xor_si256(_mm256_xor_si256(low, high), next);
}

/* The narrow code processes the eight halves in byte order, before the rest of the data. */
WIDE static uint32_t by_wide_clmul(uint32_t state, const void *data, size_t length)
{
    const __m256i factor = _mm256_broadcastsi128_si256(load((const uint8_t *)by_1024));
    const uint8_t *b = data;
    uint8_t rest[128];
    __m256i a[4];

    if (length < 256)
        return by_clmul(state, data, length);
    for (int i = 0; i < 4; i++)
        a[i] = load_wide(b + i * 32);
    a[0] = _mm256_xor_si256(a[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)state)));
    for (b += 128, length -= 128; length >= 128; b += 128, length -= 128)
        for (int i = 0; i < 4; i++)
            a[i] = fold_wide(a[i], factor, load_wide(b + i * 32));
    for (int i = 0; i < 4; i++)
        _mm256_storeu_si256((__m256i *)(void *)(rest + i * 32), a[i]);
    return by_clmul(by_clmul(0, rest, sizeof rest), b, length);
}

/* Not __builtin_cpu_supports(): it brings a constructor that executes CPUID some twenty times in
 * each process, needed or not, and on virtual machines each one is an exit to the hypervisor. */

roce_crc_way *roce_crc_clmul(void)
{
    const unsigned needed = bit_PCLMUL | bit_SSE4_1;
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & needed) == needed ? by_clmul : NULL;
}

/* XCR0: the kernel keeps XMM and YMM registers. */
static bool keeps_ymm(void)
{
    enum { xmm_and_ymm = 6 };
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
        return false;
    __asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (a & xmm_and_ymm) == xmm_and_ymm;
}

roce_crc_way *roce_crc_wide_clmul(void)
{
    unsigned a, b, c, d;

    return roce_crc_clmul() && keeps_ymm() && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
                   (b & bit_AVX2) && (c & bit_VPCLMULQDQ)
               ? by_wide_clmul
               : NULL;
}
#else
roce_crc_way *roce_crc_clmul(void)
{
    return NULL;
}

roce_crc_way *roce_crc_wide_clmul(void)
{
    return NULL;
}
#endif
