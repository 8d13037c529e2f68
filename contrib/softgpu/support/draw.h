/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers that a seed repeats (splitmix64). The caller protects the state. */
#ifndef SGPU_DRAW_H
#define SGPU_DRAW_H

#include <stdint.h>

static inline uint64_t sgpu_draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 to limit - 1 */
static inline uint64_t sgpu_draw_below(uint64_t *state, uint64_t limit)
{
    return sgpu_draw(state) % limit;
}

#endif
