/* SPDX-License-Identifier: BSD-3-Clause */
/* The workloads' random numbers: splitmix64, the same stream for the same seed on every machine,
 * and one stream for each rank and purpose that does not overlap the others. No state but the
 * caller's.
 */
#ifndef WL_RANDOM_H
#define WL_RANDOM_H

#include <stdint.h>

struct wl_random {
    uint64_t state;
};

/* The finaliser of splitmix64: a bijection of 64-bit numbers in which each bit of the input decides
 * about half of the output's. */
static inline uint64_t wl_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* 2^64 divided by the golden ratio: multiples of it lie far apart. */
#define WL_GOLDEN UINT64_C(0x9e3779b97f4a7c15)

/* Streams begin at places that a hash chose, not at neighbouring ones: a fixed distance would make
 * stream n + 1 the tail of stream n. */
static inline struct wl_random wl_random(uint64_t seed, uint64_t stream)
{
    return (struct wl_random){wl_mix(wl_mix(seed + WL_GOLDEN) ^ wl_mix(~stream))};
}

static inline uint64_t wl_next(struct wl_random *r)
{
    return wl_mix(r->state += WL_GOLDEN);
}

/* 0 <= result < limit: the high half of a product, whose bias for limits below 2^32 is less than
 * one in 2^32. limit > 0 */
static inline uint64_t wl_below(struct wl_random *r, uint64_t limit)
{
    return (uint64_t)(((unsigned __int128)wl_next(r) * limit) >> 64);
}

/* 0 <= result < 1 */
static inline double wl_unit(struct wl_random *r)
{
    return (double)(wl_next(r) >> 11) * 0x1p-53;
}

#endif
