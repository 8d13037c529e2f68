/* SPDX-License-Identifier: BSD-3-Clause */
/* The shape of the tree of guards, which each process computes by itself. A process that has the
 * hosts first .. end - 1 below it cuts them into at most `degree` blocks of nearly one size, and
 * starts the guard of the first host of each block; that guard has the rest of the block below it.
 * Host 0 is thus always a child of the head. Pure; no lock. */
#ifndef TRUNKLINE_SPAWNER_SHAPE_H
#define TRUNKLINE_SPAWNER_SHAPE_H

#include <stdint.h>

/* How many blocks; a degree of 0 has no limit. */
static inline uint32_t shape_blocks(uint32_t first, uint32_t end, uint32_t degree)
{
    uint32_t count = end - first;
    return degree && degree < count ? degree : count;
}

/* Where block `i` begins, and block `i` - 1 ends. */
static inline uint32_t shape_begin(uint32_t first, uint32_t end, uint32_t degree, uint32_t i)
{
    uint64_t count = end - first;
    return first + (uint32_t)(count * i / shape_blocks(first, end, degree));
}

/* The end of the block that begins with `host`, of a job of `hosts` hosts. */
static inline uint32_t shape_end(uint32_t hosts, uint32_t degree, uint32_t host)
{
    uint32_t first = 0, end = hosts;
    while (first <= host && first < end) {
        uint32_t i = 0;
        while (shape_begin(first, end, degree, i + 1) <= host)
            i++;
        uint32_t begin = shape_begin(first, end, degree, i);
        end = shape_begin(first, end, degree, i + 1);
        if (begin == host)
            return end;
        first = begin + 1;
    }
    return host + 1;
}

#endif
