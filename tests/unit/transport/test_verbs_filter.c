/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNET_IBV_PORTS: device[:port,port]+device... */
#include "config.h"

#include "transport/verbs/verbs.h"
#include "unit.h"

static void an_empty_filter_admits_all(void **state)
{
    (void)state;
    assert_int_equal(tk_port_filter_check("GASNET_IBV_PORTS", ""), TK_OK);
    assert_true(tk_port_filter_admits("", "mlx5_0", 1));
    assert_true(tk_port_filter_admits("", "x", 200));
}

static void a_device_alone_admits_all_its_ports(void **state)
{
    (void)state;
    assert_int_equal(tk_port_filter_check("GASNET_IBV_PORTS", "mlx5_0"), TK_OK);
    assert_true(tk_port_filter_admits("mlx5_0", "mlx5_0", 1));
    assert_true(tk_port_filter_admits("mlx5_0", "mlx5_0", 2));
    assert_false(tk_port_filter_admits("mlx5_0", "mlx5_1", 1));
}

static void a_name_matches_wholly(void **state)
{
    (void)state;
    assert_false(tk_port_filter_admits("mlx5_1", "mlx5_10", 1));
    assert_false(tk_port_filter_admits("mlx5_10", "mlx5_1", 1));
    assert_false(tk_port_filter_admits("mlx5_1:1", "mlx5_10", 1));
}

static void a_list_admits_its_ports_only(void **state)
{
    (void)state;
    assert_int_equal(tk_port_filter_check("GASNET_IBV_PORTS", "a:1,3"), TK_OK);
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
    (void)state;
    assert_int_equal(tk_port_filter_check("GASNET_IBV_PORTS", filter), TK_OK);
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
    (void)state;
    for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++) {
        assert_int_equal(tk_port_filter_check("GASNET_IBV_PORTS", filters[i]), TK_OK);
        assert_true(tk_port_filter_admits(filters[i], "a", 1));
        assert_false(tk_port_filter_admits(filters[i], "a", 3));
    }
}

static void what_is_no_filter_is_told_with_the_entry(void **state)
{
    static const char *const bad[][2] = {
        {":1", "':1'"},       {"a:", "'a:'"},       {"a:1,", "'a:1,'"},      {"a:,1", "'a:,1'"},
        {"a:x", "'a:x'"},     {"a:1-2", "'a:1-2'"}, {"ok+a:1:2", "'a:1:2'"}, {"a:1,,2", "'a:1,,2'"},
        {"a:1 +b", "'a:1 '"}, {"a:-1", "'a:-1'"}};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        unit_listen();
        enum tk_status status = tk_port_filter_check("GASNET_IBV_PORTS", bad[i][0]);
        const char *said = unit_heard();
        if (status == TK_OK)
            fail_msg("'%s' was accepted", bad[i][0]);
        unit_assert_says(said, "GASNET_IBV_PORTS='");
        unit_assert_says(said, bad[i][1]);
        unit_assert_says(said, "is not device or device:port,port");
        assert_int_equal(unit_lines(said), 1);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_empty_filter_admits_all),
    cmocka_unit_test(a_device_alone_admits_all_its_ports),
    cmocka_unit_test(a_name_matches_wholly),
    cmocka_unit_test(a_list_admits_its_ports_only),
    cmocka_unit_test(entries_are_separate),
    cmocka_unit_test(order_duplicates_and_empty_entries_are_harmless),
    cmocka_unit_test(what_is_no_filter_is_told_with_the_entry),
};

UNIT_MAIN(tests)
