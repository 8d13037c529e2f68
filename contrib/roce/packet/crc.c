/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The choice of the implementation of a CRC, and multiplication of states by powers of x modulo the
 * polynomial. Bit 31 of a state is the coefficient of x^0, as the reflected algorithm has it. Owns
 * the choice; all threads make the same one. */
#include "config.h"

#include <stdatomic.h>

#include "packet/crc.h"

enum { clmul_least = 64 }; /* for fewer bytes tables are as fast */

static const uint32_t polynomial = 0xedb88320; /* 0x04c11db7, reflected */

static _Atomic(roce_crc_way *) chosen;

static roce_crc_way *choose(void)
{
    roce_crc_way *way = roce_crc_wide_clmul();

    way = way ? way : roce_crc_clmul();
    way = way ? way : roce_crc_words;
    atomic_store_explicit(&chosen, way, memory_order_relaxed);
    return way;
}

uint32_t roce_crc(uint32_t state, const void *data, size_t length)
{
    roce_crc_way *way;

    if (length < clmul_least)
        return roce_crc_words(state, data, length);
    way = atomic_load_explicit(&chosen, memory_order_relaxed);
    return (way ? way : choose())(state, data, length);
}

void roce_crc_by_tables(void)
{
    atomic_store_explicit(&chosen, roce_crc_words, memory_order_relaxed);
}

/* ---- powers of x ---- */

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (int bit = 31; bit >= 0; bit--) {
        product ^= a >> bit & 1 ? b : 0;
        b = b >> 1 ^ (b & 1 ? polynomial : 0);
    }
    return product;
}

/* state * factor^n */
static uint32_t multiply_power(uint32_t state, uint32_t factor, size_t n)
{
    for (; n; n >>= 1) {
        if (n & 1)
            state = multiply(state, factor);
        factor = multiply(factor, factor);
    }
    return state;
}

uint32_t roce_crc_shift(uint32_t state, size_t bytes)
{
    return multiply_power(state, UINT32_C(1) << (31 - 8), bytes);
}

uint32_t roce_crc_unshift(uint32_t state, size_t bytes)
{
    /* 1/x: (P(x) - 1) / x, as P(0) = 1. Its 8th power divides by a byte. */
    uint32_t inverse = polynomial << 1 | 1;

    return multiply_power(state, inverse, bytes * 8);
}

void roce_shift_prepare(struct roce_shift *shift, size_t bytes)
{
    uint32_t power = roce_crc_shift(UINT32_C(1) << 31, bytes);

    for (unsigned t = 0; t < 4; t++)
        for (uint32_t i = 0; i < 256; i++)
            shift->table[t][i] = multiply(i << (8 * t), power);
}
