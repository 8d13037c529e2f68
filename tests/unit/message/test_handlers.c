/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registration of handlers: which index each gets, exactly, and what is refused. */
#include "config.h"

#include <unistd.h>

#include "base/report.h"
#include "message/message.h"
#include "unit.h"

static void one(void)
{
}

static void two(void)
{
}

#define FLAGS (GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP)

static gex_AM_Entry_t entry(unsigned index, void (*fn)(void))
{
    return (gex_AM_Entry_t){.gex_index = (gex_AM_Index_t)index,
                            .gex_fnptr = (gex_AM_Fn_t)fn,
                            .gex_flags = FLAGS,
                            .gex_nargs = 2,
                            .gex_cdata = &one,
                            .gex_name = "test"};
}

/* The table of handlers lives as long as the process: each promise gets a process of its own. */
static void in_child(void (*test)(void *))
{
    unit_assert_exit(test, NULL, 0);
}

static void expect(bool condition)
{
    if (!condition)
        _exit(1);
}

static void fixed_indices(void *unused)
{
    gex_AM_Entry_t table[] = {entry(255, one), entry(128, two)};
    expect(tk_handlers_register(0, table, 2) == GASNET_OK);
    const gex_AM_Entry_t *found = tk_handler_entry(0, 128);
    expect(found && found->gex_fnptr == (gex_AM_Fn_t)two);
    expect(found->gex_index == 128 && found->gex_nargs == 2 && found->gex_flags == FLAGS);
    expect(found->gex_cdata == &one && !strcmp(found->gex_name, "test"));
    expect(tk_handler_entry(0, 255)->gex_fnptr == (gex_AM_Fn_t)one);
    expect(!tk_handler_entry(0, 129) && !tk_handler_entry(0, 0) && !tk_handler_entry(0, 127));
}

static void a_fixed_index_is_kept(void **state)
{
    in_child(fixed_indices);
}

static void automatic_indices(void *unused)
{
    gex_AM_Entry_t table[] = {entry(0, one), entry(254, two), entry(0, one), entry(0, two)};
    gex_AM_Entry_t more[] = {entry(0, one)};
    expect(tk_handlers_register(0, table, 4) == GASNET_OK);
    expect(table[0].gex_index == 255);
    expect(table[2].gex_index == 253);
    expect(table[3].gex_index == 252);
    expect(tk_handlers_register(0, more, 1) == GASNET_OK);
    expect(more[0].gex_index == 251);
}

/* gasnetex.h: "the highest free ones, from 255 down, in table order", after the fixed ones. */
static void index_0_gets_the_highest_free_one_after_fixed_ones(void **state)
{
    in_child(automatic_indices);
}

static void all_indices(void *unused)
{
    gex_AM_Entry_t table[128], more = entry(0, one);
    for (int i = 0; i < 128; i++)
        table[i] = entry(0, one);
    expect(tk_handlers_register(0, table, 128) == GASNET_OK);
    expect(table[127].gex_index == 128);
    expect(tk_handlers_register(0, &more, 1) == GASNET_ERR_RESOURCE);
    expect(more.gex_index == 0);
}

static void there_are_128_and_no_more(void **state)
{
    const char *said;
    assert_int_equal(unit_child(all_indices, NULL, &said), 0);
    unit_assert_says(said, "all 128 indices are taken");
}

static void refused_indices(void *unused)
{
    gex_AM_Entry_t taken = entry(200, one), again = entry(200, two), low = entry(127, one);
    gex_AM_Entry_t both[] = {entry(150, one), entry(150, two)};
    expect(tk_handlers_register(0, &taken, 1) == GASNET_OK);
    expect(tk_handlers_register(0, &again, 1) == GASNET_ERR_RESOURCE);
    expect(tk_handler_entry(0, 200)->gex_fnptr == (gex_AM_Fn_t)one);
    expect(tk_handlers_register(0, &low, 1) == GASNET_ERR_RESOURCE);
    expect(tk_handlers_register(0, both, 2) == GASNET_ERR_RESOURCE);
}

static void taken_and_library_indices_are_refused_and_reported(void **state)
{
    const char *said;
    assert_int_equal(unit_child(refused_indices, NULL, &said), 0);
    assert_int_equal(unit_lines(said), 3);
    unit_assert_says(said, "index 200 is taken; clients have 128..255");
    unit_assert_says(said, "index 127 belongs to the library");
    unit_assert_says(said, "index 150 is taken");
}

static void refused_silently(void *unused)
{
    gex_AM_Entry_t low = entry(1, one);
    tk_verbose_errors = false;
    expect(tk_handlers_register(0, &low, 1) == GASNET_ERR_RESOURCE);
}

static void a_client_may_switch_reports_off(void **state)
{
    const char *said;
    assert_int_equal(unit_child(refused_silently, NULL, &said), 0);
    assert_string_equal(said, "");
}

static void nothing(void *unused)
{
    expect(tk_handlers_register(0, NULL, 0) == GASNET_OK);
}

static void an_empty_table_is_fine(void **state)
{
    in_child(nothing);
}

static void register_one(void *table)
{
    tk_handlers_register(0, table, 1);
}

static void misuse_ends_the_program_with_the_handlers_name(void **state)
{
    gex_AM_Entry_t bad = entry(0, NULL);
    unit_assert_panic(register_one, &bad, "handler 'test' has no function");
    bad = entry(0, one);
    bad.gex_flags = GEX_FLAG_AM_REQREP;
    unit_assert_panic(register_one, &bad, "'test': gex_flags 0x18 must name one category");
    bad.gex_flags = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST;
    unit_assert_panic(register_one, &bad, "must name one category");
    bad.gex_flags = GEX_FLAG_AM_SHORT;
    unit_assert_panic(register_one, &bad, "must include REQUEST, REPLY or REQREP");
    bad = entry(0, one);
    bad.gex_nargs = 17;
    unit_assert_panic(register_one, &bad, "gex_nargs 17 is above 16");
    bad = entry(0, NULL);
    bad.gex_name = NULL;
    unit_assert_panic(register_one, &bad, "handler '(unnamed)'");
}

static void register_medlong(void *unused)
{
    gex_AM_Entry_t table = entry(0, one);
    table.gex_flags = GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST;
    expect(tk_handlers_register(0, &table, 1) == GASNET_OK);
}

static void medium_and_long_may_share_a_handler(void **state)
{
    in_child(register_medlong);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_fixed_index_is_kept),
    cmocka_unit_test(index_0_gets_the_highest_free_one_after_fixed_ones),
    cmocka_unit_test(there_are_128_and_no_more),
    cmocka_unit_test(taken_and_library_indices_are_refused_and_reported),
    cmocka_unit_test(a_client_may_switch_reports_off),
    cmocka_unit_test(an_empty_table_is_fine),
    cmocka_unit_test(misuse_ends_the_program_with_the_handlers_name),
    cmocka_unit_test(medium_and_long_may_share_a_handler),
};

UNIT_MAIN(tests)
