/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers in packets: big-endian (the ICRC alone is little-endian), at any address. Owns nothing.
 */
#ifndef ROCE_BYTES_H
#define ROCE_BYTES_H

#include <stdint.h>

static inline uint16_t roce_get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t roce_get24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t roce_get32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | roce_get24(p + 1);
}

static inline uint64_t roce_get64(const uint8_t *p)
{
    return (uint64_t)roce_get32(p) << 32 | roce_get32(p + 4);
}

static inline void roce_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void roce_put24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)v;
}

static inline void roce_put32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    roce_put24(p + 1, v);
}

static inline void roce_put64(uint8_t *p, uint64_t v)
{
    roce_put32(p, (uint32_t)(v >> 32));
    roce_put32(p + 4, (uint32_t)v);
}

static inline uint32_t roce_get_icrc(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline void roce_put_icrc(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

#endif
