/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CRC-32 by tables: a byte, or eight bytes at a time. Owns the tables, which are written once under
 * pthread_once. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "packet/crc.h"

enum { slices = 8 };

static const uint32_t polynomial = 0xedb88320; /* 0x04c11db7, reflected */
static uint32_t tables[slices][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool prepared;

static uint32_t one_byte_entry(uint32_t state)
{
    for (int bit = 0; bit < 8; bit++)
        state = state >> 1 ^ (state & 1 ? polynomial : 0);
    return state;
}

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++)
        tables[0][i] = one_byte_entry(i);
    for (unsigned s = 1; s < slices; s++)
        for (uint32_t i = 0; i < 256; i++)
            tables[s][i] = tables[s - 1][i] >> 8 ^ tables[0][tables[s - 1][i] & 255];
    atomic_store_explicit(&prepared, true, memory_order_release);
}

static inline void prepare(void)
{
    if (!atomic_load_explicit(&prepared, memory_order_acquire))
        pthread_once(&once, make_tables);
}

uint32_t roce_crc_bytes(uint32_t state, const void *data, size_t length)
{
    const uint8_t *b = data;

    prepare();
    for (; length; length--)
        state = state >> 8 ^ tables[0][(state ^ *b++) & 255];
    return state;
}

/* Little-endian whatever the CPU is; compilers make one load of it. */
static inline uint32_t load32(const uint8_t *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint32_t roce_crc_words(uint32_t state, const void *data, size_t length)
{
    const uint8_t *b = data;

    prepare();
    for (; length >= 8; length -= 8, b += 8) {
        uint32_t low = state ^ load32(b), high = load32(b + 4);

        state = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^
                tables[4][low >> 24] ^ tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^
                tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    return roce_crc_bytes(state, b, length);
}
