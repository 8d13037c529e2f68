/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tables that move a change of a CRC over a payload, for frequent lengths. Owns the tables, which
 * the caller may share between switches of one thread. */
#include "config.h"

#include <string.h>

#include "core/private.h"
#include "packet/crc.h"

enum {
    slots = 8,
    worth = 64, /* uses in a row before a table is made, which costs as much */
};

struct mcsw_cache {
    struct {
        size_t bytes, wanted;
        unsigned times;
        bool ready;
        struct roce_shift shift;
    } slot[slots];
};

size_t mcsw_cache_bytes(void)
{
    return sizeof(struct mcsw_cache);
}

struct mcsw_cache *mcsw_cache_open(void *memory)
{
    memset(memory, 0, sizeof(struct mcsw_cache));
    return memory;
}

uint32_t mcsw_shift(struct mcsw_cache *c, uint32_t change, size_t behind)
{
    unsigned i = (unsigned)(behind ^ behind >> 3 ^ behind >> 9) % slots;

    if (behind == 0)
        return change;
    if (!c)
        return roce_crc_shift(change, behind);
    if (c->slot[i].ready && c->slot[i].bytes == behind)
        return roce_shift_apply(&c->slot[i].shift, change);
    if (c->slot[i].wanted != behind) {
        c->slot[i].wanted = behind;
        c->slot[i].times = 0;
    }
    if (++c->slot[i].times >= worth) {
        c->slot[i].bytes = behind;
        c->slot[i].ready = true;
        c->slot[i].times = 0;
        roce_shift_prepare(&c->slot[i].shift, behind);
    }
    return roce_crc_shift(change, behind);
}
