/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connection is closed for others. */
#include "config.h"

#include "transport/verbs/conn/evict_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_bound_of_zero_is_none(void **state)
{
    (void)state;
    assert_true(tk_evict_fits(UINT32_MAX - 1, 0));
    assert_true(tk_evict_fits(3, 4));
    assert_false(tk_evict_fits(4, 4));
}

static void a_used_or_new_connection_is_kept(void **state)
{
    (void)state;
    assert_false(tk_evict_may(false, 0, 100));
    assert_false(tk_evict_may(true, 101, 100));
    assert_true(tk_evict_may(true, 100, 100));
}

static void the_one_found_in_use_longest_ago_is_closed(void **state)
{
    (void)state;
    struct tk_evict_choice choice = {.is_made = false};
    tk_evict_consider(&choice, 7, 30);
    assert_true(choice.is_made);
    tk_evict_consider(&choice, 8, 20);
    tk_evict_consider(&choice, 9, 20);
    tk_evict_consider(&choice, 10, 25);
    assert_int_equal(choice.rank, 8); /* of equals the first */
}

/* The count of looks wraps: the numbers just before that are older than those after it. */
static void the_count_of_looks_wraps(void **state)
{
    (void)state;
    struct tk_evict_choice choice = {.is_made = false};
    tk_evict_consider(&choice, 1, 2);
    tk_evict_consider(&choice, 2, UINT32_MAX - 1);
    tk_evict_consider(&choice, 3, 1);
    assert_int_equal(choice.rank, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bound_of_zero_is_none),
        cmocka_unit_test(a_used_or_new_connection_is_kept),
        cmocka_unit_test(the_one_found_in_use_longest_ago_is_closed),
        cmocka_unit_test(the_count_of_looks_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
