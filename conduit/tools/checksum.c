/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checksums and zeros. No state. */
#include "config.h"

#include <string.h>

#include "gasnet_tools.h"

/* FNV-1a, 64 bits: simple, the same on every host, and sensitive to each byte and their order. */
uint64_t gasnett_checksum(const void *p, int numbytes)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    const unsigned char *at = p;
    for (int i = 0; i < numbytes; i++)
        sum = (sum ^ at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

size_t gasnett_count0s(const void *src, size_t len)
{
    const unsigned char *at = src, *end = at + len;
    size_t zeros = 0;
    for (; (size_t)(end - at) >= sizeof(uint64_t); at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        zeros += (size_t)gasnett_count0s_uint64_t(word);
    }
    for (; at < end; at++)
        zeros += *at == 0;
    return zeros;
}

size_t gasnett_count0s_copy(void *restrict dst, const void *restrict src, size_t len)
{
    memcpy(dst, src, len);
    return gasnett_count0s(dst, len);
}
