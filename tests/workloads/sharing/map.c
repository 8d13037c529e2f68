/* SPDX-License-Identifier: BSD-3-Clause */
/* See map.h. Owns nothing. */
#include "config.h"

#include "map.h"

/* How many of first..i-1 are on the same rail as i. */
static uint32_t before(uint32_t first, uint32_t i, uint32_t rails)
{
    return (i - first) / rails;
}

struct sharing_place sharing_map(uint32_t i, uint32_t qps, uint32_t clients, uint32_t rails)
{
    uint32_t each = sharing_each(qps, clients), client = i / each;
    return (struct sharing_place){client, i % rails, before(client * each, i, rails)};
}
