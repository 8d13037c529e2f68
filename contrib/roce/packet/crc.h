/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32 as Ethernet has it, on its bare state: no start value, no final complement. Because it is
 * linear, states can be added (xor) and moved over bytes that are zero. Owns tables that are
 * computed once, by the first caller of any thread. */
#ifndef ROCE_CRC_H
#define ROCE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The state after these bytes, by the fastest implementation for this CPU. */
uint32_t roce_crc(uint32_t state, const void *data, size_t length);

/* Use tables from now on, as on CPUs without better instructions: to measure the cost. */
void roce_crc_by_tables(void);

/* The implementations one by one, for tests and measurements. */
uint32_t roce_crc_bytes(uint32_t state, const void *data, size_t length);
uint32_t roce_crc_words(uint32_t state, const void *data, size_t length);
typedef uint32_t roce_crc_way(uint32_t state, const void *data, size_t length);
/* By carry-less multiplication, of 128 and of 256 bits; NULL where the CPU has none. */
roce_crc_way *roce_crc_clmul(void);
roce_crc_way *roce_crc_wide_clmul(void);

/* The state behind `bytes` zero bytes, and the state in front of them. */
uint32_t roce_crc_shift(uint32_t state, size_t bytes);
uint32_t roce_crc_unshift(uint32_t state, size_t bytes);

/* The same shift for many states: four tables, for callers that rewrite packets of few lengths. */
struct roce_shift {
    uint32_t table[4][256];
};
void roce_shift_prepare(struct roce_shift *shift, size_t bytes);

static inline uint32_t roce_shift_apply(const struct roce_shift *shift, uint32_t state)
{
    return shift->table[0][state & 255] ^ shift->table[1][state >> 8 & 255] ^
           shift->table[2][state >> 16 & 255] ^ shift->table[3][state >> 24];
}

#endif
