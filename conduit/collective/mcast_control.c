/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The payload of control packets to the switch (doc/multicast.md). Sequence numbers are left
 * unchecked: the device assigns them. Owns nothing. */
#include "config.h"

#include "collective/mcast_private.h"

enum {
    control_magic = 0x4d43,
    control_version = 1,
    flag_acquire = 1,
    flag_topology = 2,
    flag_release = 8,
    flag_bitmap = 16,
    flag_sections = 32,
};

uint32_t tk_mcast_control_bytes(uint32_t leaves)
{
    return (1 + leaves) * tk_mcast_control_head + leaves * tk_mcast_control_entry;
}

static void put_header(struct tk_mcsw_frame *f, const struct tk_mcsw_place *place, uint32_t group,
                       unsigned flags, unsigned entries, uint32_t ranks)
{
    tk_mcsw_put(f, control_magic, 2);
    tk_mcsw_put(f, control_version, 1);
    tk_mcsw_put(f, flags, 1);
    tk_mcsw_put(f, group, 4);
    tk_mcsw_put(f, place->key, 8);
    tk_mcsw_put(f, UINT32_MAX, 4);
    tk_mcsw_put(f, UINT32_MAX, 4);
    tk_mcsw_put(f, 0, 2);
    tk_mcsw_put(f, entries, 2);
    tk_mcsw_put(f, ranks, 4);
}

/* An entry for each leaf that has receivers, which names the place of the leaf's own control. */
static size_t write_sections(uint8_t *at, const struct tk_mcsw_place *place,
                             const struct tk_bitset *receivers)
{
    struct tk_mcsw_frame f = {at, at + tk_mcast_control_max};
    unsigned sections = 0;
    for (uint32_t leaf = 0; leaf < place->leaves; leaf++)
        sections += tk_bitset_part(receivers, leaf * TK_MCSW_LEAF) != 0;
    uint64_t offset = tk_mcast_control_head + (uint64_t)sections * tk_mcast_control_entry;
    put_header(&f, place, place->group, flag_acquire | flag_topology | flag_sections, sections, 0);
    for (uint32_t leaf = 0; leaf < place->leaves; leaf++) {
        if (!tk_bitset_part(receivers, leaf * TK_MCSW_LEAF))
            continue;
        tk_mcsw_put(&f, place->group << 8 | leaf, 4);
        tk_mcsw_put(&f, tk_mcast_control_head, 4);
        tk_mcsw_put(&f, offset, 8);
        offset += tk_mcast_control_head;
    }
    for (uint32_t leaf = 0; leaf < place->leaves; leaf++) {
        uint32_t ranks = tk_bitset_part(receivers, leaf * TK_MCSW_LEAF);
        if (ranks)
            put_header(&f, place, place->leaf_group + leaf, flag_topology | flag_bitmap, 0, ranks);
    }
    return (size_t)(f.at - at);
}

size_t tk_mcast_control_acquire(uint8_t *at, const struct tk_mcsw_place *place,
                                const struct tk_bitset *receivers)
{
    if (place->leaves)
        return write_sections(at, place, receivers);
    struct tk_mcsw_frame f = {at, at + tk_mcast_control_max};
    put_header(&f, place, place->group, flag_acquire | flag_topology | flag_bitmap, 0,
               tk_bitset_part(receivers, 0));
    return (size_t)(f.at - at);
}

size_t tk_mcast_control_release(uint8_t *at, const struct tk_mcsw_place *place)
{
    struct tk_mcsw_frame f = {at, at + tk_mcast_control_max};
    put_header(&f, place, place->group, flag_release, 0, 0);
    return (size_t)(f.at - at);
}
