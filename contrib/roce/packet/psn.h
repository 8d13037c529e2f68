/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Arithmetic of 24-bit packet sequence numbers, which wrap. Two numbers can be ordered while they
 * are less than 2^23 apart (specification 9.7.1). Owns nothing. */
#ifndef ROCE_PSN_H
#define ROCE_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define ROCE_PSN_MASK 0xffffffu

static inline uint32_t roce_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & ROCE_PSN_MASK;
}

/* How far a lies behind b (negative) or in front of it. */
static inline int32_t roce_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

/* Whether psn is one of the n numbers from first on. */
static inline bool roce_psn_within(uint32_t psn, uint32_t first, uint32_t n)
{
    return ((psn - first) & ROCE_PSN_MASK) < n;
}

#endif
