/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers as text and back. */
#include "config.h"

#include <locale.h>

#include "common/number.h"
#include "gasnet_tools.h"
#include "unit.h"

static const char *text_of(int64_t value, int is_mem)
{
    static char text[64];
    assert_ptr_equal(gasnett_format_number(value, text, sizeof(text), is_mem), text);
    return text;
}

static void plain_numbers_turn_hexadecimal_at_2_to_the_50th(void **state)
{
    assert_string_equal(text_of(0, 0), "0");
    assert_string_equal(text_of(-42, 0), "-42");
    assert_string_equal(text_of(((int64_t)1 << 50) - 1, 0), "1125899906842623");
    assert_string_equal(text_of((int64_t)1 << 50, 0), "0x4000000000000");
    assert_string_equal(text_of(INT64_MAX, 0), "0x7fffffffffffffff");
    assert_string_equal(text_of(INT64_MIN, 0), "-9223372036854775808");
}

static void sizes_take_the_largest_unit_that_fits(void **state)
{
    assert_string_equal(text_of(0, 1), "0 B");
    assert_string_equal(text_of(1023, 1), "1023 B");
    assert_string_equal(text_of(1024, 1), "1 KB");
    assert_string_equal(text_of(5000, 1), "5000 B"); /* 4 KB would be a fifth less */
    assert_string_equal(text_of(10241, 1), "10 KB");
    assert_string_equal(text_of(3 * 1048576, 1), "3 MB");
    assert_string_equal(text_of(3 * 1048576 + 1024, 1), "3073 KB");
    assert_string_equal(text_of((int64_t)7 << 30, 1), "7 GB");
    assert_string_equal(text_of((int64_t)2 << 40, 1), "2 TB");
    assert_string_equal(text_of(-2048, 1), "-2 KB");
}

static void a_short_buffer_is_not_overrun(void **state)
{
    char text[4] = "abc";
    gasnett_format_number(123456, text, 3, 0);
    assert_string_equal(text, "12");
}

static void what_was_a_number_is_one_again(void **state)
{
    struct unit_random r = unit_random(1);
    for (int i = 0; i < 20000; i++) {
        int64_t value = 0;
        for (int part = 0; part < 4; part++)
            value = (int64_t)((uint64_t)value << 16 | unit_below(&r, 65536));
        value >>= unit_below(&r, 64);
        assert_true(gasnett_parse_int(text_of(value, 0), 0) == value);
        /* Below ten of the next unit, nothing is rounded. */
        int64_t small = value % 10000, multiple = small * ((int64_t)1 << 10 * unit_below(&r, 5));
        assert_true(gasnett_parse_int(text_of(multiple, 1), 0) == multiple);
    }
}

static void all_forms_are_understood(void **state)
{
    assert_true(gasnett_parse_int(NULL, 0) == 0);
    assert_true(gasnett_parse_int("", 1024) == 0);
    assert_true(gasnett_parse_int("none", 0) == 0);
    assert_true(gasnett_parse_int(" +17", 0) == 17);
    assert_true(gasnett_parse_int("-0x10", 0) == -16);
    assert_true(gasnett_parse_int("0xffffffffffffffff", 0) == -1);
    assert_true(gasnett_parse_int("12", 1024) == 12288);
    assert_true(gasnett_parse_int("12B", 1024) == 12);
    assert_true(gasnett_parse_int("2.5M", 0) == 2621440);
    assert_true(gasnett_parse_int(".5 kb", 0) == 512);
    assert_true(gasnett_parse_int("1GiB", 0) == 1 << 30);
    assert_true(gasnett_parse_int("3t", 0) == (int64_t)3 << 40);
    assert_true(gasnett_parse_int("99999999999999999999", 0) == INT64_MAX);
    assert_true(gasnett_parse_int("-9223372036854775808", 0) == INT64_MIN);
    assert_true(gasnett_parse_int("16777216T", 0) == INT64_MAX);
}

/* As strtol() does: what follows is of no importance, nor is a sign or a prefix without digits. */
static void the_longest_begin_that_is_a_number_counts(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"12abc", 12},    {"12,5", 12},        {"1.2.3K", 1},   {"1e3", 1},      {"0x", 0},
        {"0xg", 0},       {"0x1fz", 31},       {"5KBps", 5120}, {"5KiBx", 5120}, {"5 K", 5120},
        {"5 x", 5},       {"7.", 7},           {".", 0},        {"-", 0},        {"+-1", 0},
        {"--1", 0},       {"- 1", 0},          {"\t8\n", 8},    {"1.5", 1},      {"1.9999K", 2047},
        {"2K3M", 2048},   {"010", 10},         {"0b1", 0},      {"9 9", 9},      {"-1.5K", -1536},
        {"0x10K", 16384}, {"00000000012", 12},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (gasnett_parse_int(cases[i].text, 0) != cases[i].value)
            fail_msg("'%s' is %lld, not %lld", cases[i].text,
                     (long long)gasnett_parse_int(cases[i].text, 0), (long long)cases[i].value);
}

static void a_comma_is_no_decimal_sign_anywhere(void **state)
{
    setlocale(LC_ALL, "de_DE.UTF-8");
    assert_true(gasnett_parse_int("1.5K", 0) == 1536);
    setenv("TEST_DOUBLE", "0.25", 1);
    assert_true(gasnett_getenv_dbl_withdefault("TEST_DOUBLE", 1) == 0.25);
    setlocale(LC_ALL, "C");
}

/* For options: digits only, within bounds, and no number left in the result of a refusal. */
static void digits_are_parsed_whole_and_within_bounds(void **state)
{
    static const char *const refused[] = {"",
                                          "+8",
                                          "-8",
                                          " 8",
                                          "8 ",
                                          "0x8",
                                          "8K",
                                          "8,",
                                          "4",
                                          "101",
                                          "8.",
                                          "abc",
                                          "18446744073709551624"};
    uint64_t value = 7;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (tk_number_digits(refused[i], 5, 100, &value) || value != 7)
            fail_msg("'%s' is accepted or changes the result to %llu", refused[i],
                     (unsigned long long)value);
    assert_true(tk_number_digits("5", 5, 100, &value) && value == 5);
    assert_true(tk_number_digits("0100", 5, 100, &value) && value == 100);
    assert_true(tk_number_digits("18446744073709551615", 0, UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    assert_false(tk_number_digits("18446744073709551616", 0, UINT64_MAX, &value));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plain_numbers_turn_hexadecimal_at_2_to_the_50th),
    cmocka_unit_test(sizes_take_the_largest_unit_that_fits),
    cmocka_unit_test(a_short_buffer_is_not_overrun),
    cmocka_unit_test(what_was_a_number_is_one_again),
    cmocka_unit_test(all_forms_are_understood),
    cmocka_unit_test(the_longest_begin_that_is_a_number_counts),
    cmocka_unit_test(a_comma_is_no_decimal_sign_anywhere),
    cmocka_unit_test(digits_are_parsed_whole_and_within_bounds),
};
UNIT_MAIN(tests)
