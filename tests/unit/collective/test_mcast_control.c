/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control packets to a multicast switch, byte by byte, of one level and of two. */
#include "config.h"

#include "collective/mcast_private.h"
#include "unit.h"

static const struct tk_mcsw_place small = {
    .group = 0x1234, .members = 32, .key = 0x1122334455667788};
static const struct tk_mcsw_place wide = {
    .group = 7, .members = 100, .key = 0x1122334455667788, .leaves = 4, .leaf_group = 0x203};

#define KEY    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88
#define FREELY 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff

static void assert_bytes(const uint8_t *got, size_t nbytes, const uint8_t *want, size_t size)
{
    assert_int_equal(nbytes, size);
    assert_memory_equal(got, want, size);
}

static void one_level_names_receivers_by_bits(void **state)
{
    static const uint8_t want[] = {0x4d,   0x43, 1, 19, 0, 0,    0x12, 0x34, KEY,
                                   FREELY, 0,    0, 0,  0, 0x80, 0,    0,    5};
    struct tk_bitset set = {{0x80000005}};
    uint8_t got[tk_mcast_control_max];
    assert_bytes(got, tk_mcast_control_acquire(got, &small, &set), want, sizeof(want));
}

static void a_release_stands_alone(void **state)
{
    static const uint8_t want[] = {0x4d,   0x43, 1, 8, 0, 0, 0, 7, KEY,
                                   FREELY, 0,    0, 0, 0, 0, 0, 0, 0};
    uint8_t got[tk_mcast_control_max];
    assert_bytes(got, tk_mcast_control_release(got, &wide), want, sizeof(want));
}

/* The second of four leaves has no members. */
static void two_levels_have_a_section_for_each_leaf_with_receivers(void **state)
{
    static const uint8_t want[] = {
        0x4d, 0x43, 1, 35, 0, 0, 0,   7,  KEY, FREELY, 0, 0, 0, 3, 0,    0,   0, 0, /* list */
        0,    0,    7, 0,  0, 0, 0,   32, 0,   0,      0, 0, 0, 0, 0,    80,        /* leaf 0 */
        0,    0,    7, 2,  0, 0, 0,   32, 0,   0,      0, 0, 0, 0, 0,    112,       /* leaf 2 */
        0,    0,    7, 3,  0, 0, 0,   32, 0,   0,      0, 0, 0, 0, 0,    144,       /* leaf 3 */
        0x4d, 0x43, 1, 18, 0, 0, 0x2, 3,  KEY, FREELY, 0, 0, 0, 0, 0,    0,   0, 1, /* rank 0 */
        0x4d, 0x43, 1, 18, 0, 0, 0x2, 5,  KEY, FREELY, 0, 0, 0, 0, 0x80, 0,   0, 0, /* 95 */
        0x4d, 0x43, 1, 18, 0, 0, 0x2, 6,  KEY, FREELY, 0, 0, 0, 0, 0,    0,   0, 9, /* 96, 99 */
    };
    struct tk_bitset set = {{1, UINT64_C(1) << 31 | UINT64_C(9) << 32}};
    uint8_t got[tk_mcast_control_max];
    assert_bytes(got, tk_mcast_control_acquire(got, &wide, &set), want, sizeof(want));
}

/* As long as the size that the path MTU was checked against, and not longer than its memory. */
static void all_members_of_the_largest_group_fit(void **state)
{
    const struct tk_mcsw_place place = {
        .group = 1, .members = tk_mcast_members, .leaves = tk_mcast_leaves, .leaf_group = 2};
    struct tk_bitset all = tk_bitset_below(tk_mcast_members);
    uint8_t got[tk_mcast_control_max];
    assert_int_equal(tk_mcast_control_acquire(got, &place, &all), sizeof(got));
    assert_int_equal(tk_mcast_control_bytes(tk_mcast_leaves), sizeof(got));
    assert_int_equal(tk_mcast_control_bytes(0), tk_mcast_control_head);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_level_names_receivers_by_bits),
    cmocka_unit_test(a_release_stands_alone),
    cmocka_unit_test(two_levels_have_a_section_for_each_leaf_with_receivers),
    cmocka_unit_test(all_members_of_the_largest_group_fit),
};

UNIT_MAIN(tests)
