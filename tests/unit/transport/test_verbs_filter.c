/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNET_IBV_PORTS: device[:port,port]+device... */
#include "config.h"

#include "transport/verbs/verbs.h"
#include "unit.h"

static void an_empty_filter_admits_all(void **state)
{
    assert_true(tk_port_filter_admits("", "mlx5_0", 1));
    assert_true(tk_port_filter_admits("", "x", 200));
}

static void a_device_alone_admits_all_its_ports(void **state)
{
    assert_true(tk_port_filter_admits("mlx5_0", "mlx5_0", 1));
    assert_true(tk_port_filter_admits("mlx5_0", "mlx5_0", 2));
    assert_false(tk_port_filter_admits("mlx5_0", "mlx5_1", 1));
}

static void a_name_matches_wholly(void **state)
{
    assert_false(tk_port_filter_admits("mlx5_1", "mlx5_10", 1));
    assert_false(tk_port_filter_admits("mlx5_10", "mlx5_1", 1));
    assert_false(tk_port_filter_admits("mlx5_1:1", "mlx5_10", 1));
}

static void a_list_admits_its_ports_only(void **state)
{
    assert_true(tk_port_filter_admits("a:1,3", "a", 1));
    assert_false(tk_port_filter_admits("a:1,3", "a", 2));
    assert_true(tk_port_filter_admits("a:1,3", "a", 3));
    assert_false(tk_port_filter_admits("a:1,3", "a", 13));
    assert_false(tk_port_filter_admits("a:12", "a", 1));
    assert_true(tk_port_filter_admits("a:12", "a", 12));
}

/* The last port of one entry must not run into the next entry. */
static void entries_are_separate(void **state)
{
    static const char *const filter = "a:1+b:2,3+c";
    assert_true(tk_port_filter_admits(filter, "a", 1));
    assert_false(tk_port_filter_admits(filter, "a", 2));
    assert_false(tk_port_filter_admits(filter, "b", 1));
    assert_true(tk_port_filter_admits(filter, "b", 3));
    assert_true(tk_port_filter_admits(filter, "c", 9));
    assert_false(tk_port_filter_admits(filter, "d", 1));
}

static void order_duplicates_and_empty_entries_are_harmless(void **state)
{
    static const char *const filters[] = {"b+a:1", "a:1+a:1", "a:2+a:1", "+a:1", "a:1+", "x++a:1"};
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        assert_true(tk_port_filter_admits(filters[i], "a", 1));
        assert_false(tk_port_filter_admits(filters[i], "a", 3));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_empty_filter_admits_all),
    cmocka_unit_test(a_device_alone_admits_all_its_ports),
    cmocka_unit_test(a_name_matches_wholly),
    cmocka_unit_test(a_list_admits_its_ports_only),
    cmocka_unit_test(entries_are_separate),
    cmocka_unit_test(order_duplicates_and_empty_entries_are_harmless),
};

UNIT_MAIN(tests)
