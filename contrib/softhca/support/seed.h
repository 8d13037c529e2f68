/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The random number generator of softhca: a counter and a mixing function (splitmix64). Each place
 * that needs random choices has a generator of its own, all seeded from SOFTHCA_SEED, so that the
 * same calls in the same order see the same choices. The lock of the generator's owner
 * protects it. */
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

/* place selects the random stream of one user. */
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
