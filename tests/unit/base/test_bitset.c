/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets of small numbers, compared with an array of flags. */
#include "config.h"

#include "base/bitset.h"
#include "unit.h"

static void assert_same(const struct tk_bitset *set, const bool is_in[tk_bitset_size])
{
    unsigned count = 0, seen = 0;
    for (unsigned i = 0; i < tk_bitset_size; i++) {
        assert_int_equal(tk_bitset_has(set, i), is_in[i]);
        count += is_in[i];
    }
    TK_BITSET_EACH (i, set) {
        assert_true(is_in[i]);
        seen++;
    }
    assert_int_equal(seen, count);
    assert_int_equal(tk_bitset_is_empty(set), count == 0);
    for (unsigned from = 0; from < tk_bitset_size; from += 32)
        for (unsigned i = 0; i < 32; i++)
            assert_int_equal(tk_bitset_part(set, from) >> i & 1, is_in[from + i]);
}

static void a_set_is_what_was_added_and_not_removed(void **state)
{
    struct tk_bitset set = {{0}};
    bool is_in[tk_bitset_size] = {false};
    struct unit_random r = unit_random(19);
    for (unsigned step = 0; step < 1000; step++) {
        unsigned i = unit_below(&r, tk_bitset_size);
        is_in[i] = unit_below(&r, 2);
        (is_in[i] ? tk_bitset_add : tk_bitset_remove)(&set, i);
        if (step % 10 == 0)
            assert_same(&set, is_in);
    }
}

static void below_a_number_are_all_that_are_less(void **state)
{
    bool is_in[tk_bitset_size] = {false};
    for (unsigned n = 0; n <= tk_bitset_size; n++) {
        struct tk_bitset set = tk_bitset_below(n);
        assert_same(&set, is_in);
        if (n < tk_bitset_size)
            is_in[n] = true;
    }
}

static void what_one_set_has_and_another_lacks(void **state)
{
    for (unsigned n = 0; n < tk_bitset_size; n++) {
        struct tk_bitset more = tk_bitset_below(n + 1), less = tk_bitset_below(n);
        assert_false(tk_bitset_equal(&more, &less));
        struct tk_bitset last = tk_bitset_minus(&more, &less);
        assert_int_equal(tk_bitset_next(&last, 0), n);
        assert_int_equal(tk_bitset_next(&last, n), n);
        assert_int_equal(tk_bitset_next(&last, n + 1), tk_bitset_size);
        tk_bitset_remove(&more, n);
        assert_true(tk_bitset_equal(&more, &less));
    }
}

static void members_may_be_removed_while_they_are_gone_through(void **state)
{
    struct tk_bitset set = tk_bitset_below(200);
    TK_BITSET_EACH (i, &set)
        tk_bitset_remove(&set, i);
    assert_true(tk_bitset_is_empty(&set));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_set_is_what_was_added_and_not_removed),
    cmocka_unit_test(below_a_number_are_all_that_are_less),
    cmocka_unit_test(what_one_set_has_and_another_lacks),
    cmocka_unit_test(members_may_be_removed_while_they_are_gone_through),
};

UNIT_MAIN(tests)
