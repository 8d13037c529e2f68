/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tree of neighbours: for each size parents and children agree, and all ranks are in it. */
#include "config.h"

#include "topology/tree.h"
#include "unit.h"

static void each_rank_but_the_root_is_below_the_one_above_it_once(void **state)
{
    enum { sizes = 200 };
    for (uint32_t size = 1; size <= sizes; size++) {
        unsigned parents[sizes] = {0};
        for (uint32_t rank = 0; rank < size; rank++) {
            const struct tk_tree_place place = tk_tree_place(rank, size);
            assert_true(place.below_count <= tk_tree_fan);
            for (uint32_t i = place.below; i < place.below + place.below_count; i++) {
                assert_in_range(i, 1, size - 1);
                assert_int_equal(tk_tree_place(i, size).above, rank);
                parents[i]++;
            }
        }
        for (uint32_t rank = 0; rank < size; rank++)
            assert_int_equal(parents[rank], rank > 0);
    }
}

/* The promises of its comment about mappings and steps. */
static void ranks_of_one_host_are_two_steps_from_the_root(void **state)
{
    for (uint32_t rank = 1; rank < 64; rank++) {
        uint32_t above = tk_tree_place(rank, 64).above;
        assert_int_equal(tk_tree_place(above, 64).above, 0);
    }
    assert_int_equal(tk_tree_place(0, 64).below_count, tk_tree_fan);
}

static void the_last_of_very_many_has_none_below(void **state)
{
    const struct tk_tree_place place = tk_tree_place(UINT32_MAX - 1, UINT32_MAX);
    assert_int_equal(place.above, (UINT32_MAX - 2) / tk_tree_fan);
    assert_int_equal(place.below_count, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_rank_but_the_root_is_below_the_one_above_it_once),
    cmocka_unit_test(ranks_of_one_host_are_two_steps_from_the_root),
    cmocka_unit_test(the_last_of_very_many_has_none_below),
};

UNIT_MAIN(tests)
