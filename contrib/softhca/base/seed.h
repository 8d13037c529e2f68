/* SPDX-License-Identifier: BSD-3-Clause */
/* The generator behind everything that softhca chooses at random: a counter and a mixing function
 * (splitmix64), one of them for each place that chooses, all from SOFTHCA_SEED, so that the same
 * calls in the same order meet the same choices. The owner of the generator locks. */
#ifndef SHCA_SEED_H
#define SHCA_SEED_H

#include <stdint.h>

struct shca_random {
    uint64_t state;
};

static inline uint64_t shca_random(struct shca_random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* place tells apart those who choose. */
static inline void shca_random_start(struct shca_random *r, uint64_t seed, uint64_t place)
{
    r->state = place;
    r->state = seed ^ shca_random(r);
}

/* A number below n, n > 0. The bias of a 32-bit multiplication does not matter here. */
static inline uint32_t shca_random_below(struct shca_random *r, uint32_t n)
{
    return (uint32_t)(((shca_random(r) >> 32) * n) >> 32);
}

#endif
