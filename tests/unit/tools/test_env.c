/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Variables as values: what each kind accepts, that other values end the program with a line that
 * names the variable, the value and the legal values, and that each key is displayed once. */
#include "config.h"

#include <sys/wait.h>

#include "gasnet_tools.h"
#include "unit.h"

#define VAR "TEST_VARIABLE"

static void variables_come_and_go(void **state)
{
    gasnett_setenv(VAR, "one");
    assert_string_equal(gasnett_getenv(VAR), "one");
    assert_string_equal(gasnett_getenv_withdefault(VAR, "two"), "one");
    gasnett_unsetenv(VAR);
    assert_null(gasnett_getenv(VAR));
    assert_string_equal(gasnett_getenv_withdefault(VAR, "two"), "two");
    assert_null(gasnett_getenv_withdefault(VAR, NULL));
}

static void yes_and_no_have_three_forms_each(void **state)
{
    static const char *const yes[] = {"1", "y", "YES", "Yes"}, *const no[] = {"0", "N", "no", "nO"};
    for (int i = 0; i < 4; i++) {
        gasnett_setenv(VAR, yes[i]);
        assert_int_equal(gasnett_getenv_yesno_withdefault(VAR, 0), 1);
        gasnett_setenv(VAR, no[i]);
        assert_int_equal(gasnett_getenv_yesno_withdefault(VAR, 1), 0);
    }
    gasnett_setenv(VAR, "");
    assert_int_equal(gasnett_getenv_yesno_withdefault(VAR, 1), 1);
    gasnett_unsetenv(VAR);
    assert_int_equal(gasnett_getenv_yesno_withdefault(VAR, 5), 1);
    assert_int_equal(gasnett_getenv_yesno_withdefault(VAR, 0), 0);
}

static void sizes_need_a_multiplier(void **state)
{
    gasnett_setenv(VAR, "0x20");
    assert_true(gasnett_getenv_int_withdefault(VAR, 1, 0) == 32);
    gasnett_setenv(VAR, " 1.5 MB ");
    assert_true(gasnett_getenv_int_withdefault(VAR, 1, 1) == 1572864);
    gasnett_setenv(VAR, "3");
    assert_true(gasnett_getenv_int_withdefault(VAR, 1, 1024) == 3072);
    gasnett_unsetenv(VAR);
    assert_true(gasnett_getenv_int_withdefault(VAR, -7, 1024) == -7);
}

static void reals_may_be_fractions(void **state)
{
    gasnett_setenv(VAR, "3/4");
    assert_true(gasnett_getenv_dbl_withdefault(VAR, 1) == 0.75);
    gasnett_setenv(VAR, "-1.5e3");
    assert_true(gasnett_getenv_dbl_withdefault(VAR, 1) == -1500);
    gasnett_unsetenv(VAR);
    assert_true(gasnett_getenv_dbl_withdefault(VAR, 0.1) == 0.1);
}

static void ask_yesno(void *value)
{
    setenv(VAR, value, 1);
    gasnett_getenv_yesno_withdefault(VAR, 0);
}

static void ask_number(void *value)
{
    setenv(VAR, value, 1);
    gasnett_getenv_int_withdefault(VAR, 0, 0);
}

static void ask_size(void *value)
{
    setenv(VAR, value, 1);
    gasnett_getenv_int_withdefault(VAR, 0, 1);
}

static void ask_real(void *value)
{
    setenv(VAR, value, 1);
    gasnett_getenv_dbl_withdefault(VAR, 0);
}

static void refuses(void (*ask)(void *), const char *value, const char *legal)
{
    const char *said;
    char seen[100];
    int status = unit_child(ask, (void *)(uintptr_t)value, &said);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 2)
        fail_msg("'%s' was accepted: %s", value, legal);
    assert_int_equal(unit_lines(said), 1);
    snprintf(seen, sizeof(seen), "*** ERROR: " VAR "='%s' is not ", value);
    unit_assert_says(said, seen);
    unit_assert_says(said, legal);
}

static void everything_else_ends_the_program(void **state)
{
    refuses(ask_yesno, "maybe", "y, yes, 1, n, no, 0");
    refuses(ask_yesno, "11", "y, yes");
    refuses(ask_number, "12K", "whole number");
    refuses(ask_number, "1.5", "whole number");
    refuses(ask_number, "12 13", "whole number");
    refuses(ask_number, "0x10K", "whole number");
    refuses(ask_number, "9223372036854775808", "whole number");
    refuses(ask_size, "12Q", "B, KB, MB, GB or TB");
    refuses(ask_size, "K", "B, KB, MB, GB or TB");
    refuses(ask_real, "1/0", "3/4");
    refuses(ask_real, "half", "3/4");
}

static void display(void *verbose)
{
    setenv("GASNET_VERBOSEENV", verbose, 1);
    setenv("TEST_SIZE", "64K", 1);
    for (int i = 0; i < 3; i++) {
        gasnett_getenv_int_withdefault("TEST_SIZE", 1, 1);
        gasnett_getenv_yesno_withdefault("TEST_UNSET", 1);
        gasnett_envdbl_display("TEST_REAL", 0.5, 0);
        gasnett_envint_display("TEST_INT", -3, 1, 0);
        gasnett_envstr_display("TEST_TEXT", "a b", 0);
    }
    exit(gasnett_verboseenv() != 0);
}

static void each_key_is_displayed_once(void **state)
{
    const char *said;
    assert_int_equal(WEXITSTATUS(unit_child(display, (void *)(uintptr_t) "1", &said)), 1);
    assert_int_equal(unit_lines(said), 5);
    unit_assert_says(said, "ENV parameter: TEST_SIZE = 64 KB\n");
    unit_assert_says(said, "ENV parameter: TEST_UNSET = YES (default)\n");
    unit_assert_says(said, "ENV parameter: TEST_REAL = 0.5\n");
    unit_assert_says(said, "ENV parameter: TEST_INT = -3 (default)\n");
    unit_assert_says(said, "ENV parameter: TEST_TEXT = a b\n");
}

static void nothing_is_displayed_unless_requested(void **state)
{
    const char *said;
    assert_int_equal(WEXITSTATUS(unit_child(display, (void *)(uintptr_t) "0", &said)), 0);
    assert_string_equal(said, "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(variables_come_and_go),
    cmocka_unit_test(yes_and_no_have_three_forms_each),
    cmocka_unit_test(sizes_need_a_multiplier),
    cmocka_unit_test(reals_may_be_fractions),
    cmocka_unit_test(everything_else_ends_the_program),
    cmocka_unit_test(each_key_is_displayed_once),
    cmocka_unit_test(nothing_is_displayed_unless_requested),
};
UNIT_MAIN(tests)
