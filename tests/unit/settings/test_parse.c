/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Settings, from text to value: what each type accepts, and that everything else is refused with a
 * line that names the variable, the value and the legal values. */
#include "config.h"

#include <locale.h>

#include "settings/settings.h"
#include "unit.h"

static const struct tk_setting *setting(const char *name)
{
    for (size_t i = 0; i < tk_setting_count; i++)
        if (!strcmp(tk_setting_table[i].name, name))
            return &tk_setting_table[i];
    fail_msg("no setting %s", name);
    return NULL;
}

static struct tk_settings values;
static char why[512];

static enum tk_status parse(const char *name, const char *text)
{
    memset(&values, 0, sizeof(values));
    why[0] = 0;
    return tk_setting_parse(setting(name), text, &values, why, sizeof(why));
}

static void assert_parses(const char *name, const char *text)
{
    if (parse(name, text) != TK_OK)
        fail_msg("%s=%s: %s", name, text, why);
}

static void assert_refused(const char *name, const char *text, const char *because)
{
    char seen[300];
    if (parse(name, text) == TK_OK)
        fail_msg("%s=%s was accepted", name, text);
    snprintf(seen, sizeof(seen), "%s='%s' is not ", name, text);
    unit_assert_says(why, seen);
    unit_assert_says(why, because);
    assert_null(strchr(why, '\n'));
}

static void a_size_without_suffix_is_in_its_unit(void **state)
{
    double bytes;
    assert_int_equal(tk_parse_size("12", "B", &bytes), TK_OK);
    assert_true(bytes == 12);
    assert_int_equal(tk_parse_size("12", "MB", &bytes), TK_OK);
    assert_true(bytes == 12.0 * 1048576);
    assert_int_equal(tk_parse_size("12B", "MB", &bytes), TK_OK);
    assert_true(bytes == 12);
}

static void suffixes_are_powers_of_1024_in_any_spelling(void **state)
{
    static const char *const spellings[] = {"%c", "%cB", "%ciB", " %cB"};
    static const char letters[] = "KMGTkmgt";
    for (int l = 0; l < 8; l++)
        for (int s = 0; s < 4; s++) {
            char text[16] = "1.5", format[16];
            double bytes, factor = 1;
            for (int i = 0; i <= l % 4; i++)
                factor *= 1024;
            snprintf(format, sizeof(format), "1.5%s", spellings[s]);
            snprintf(text, sizeof(text), format, letters[l]);
            assert_int_equal(tk_parse_size(text, "B", &bytes), TK_OK);
            assert_true(bytes == 1.5 * factor);
        }
    assert_parses("GASNET_PACKEDLONG_LIMIT", "2kb");
    assert_int_equal(values.packedlong_limit, 2048);
}

static void what_is_not_wholly_a_size_is_refused(void **state)
{
    static const char *const bad[] = {"",     "K",   "1X",  "1KK",   "1KiBs", "1 K B",
                                      "one",  "nan", "inf", "1e999", "0x",    "1,5K",
                                      "12MM", "1P",  "--1", "1K\n"};
    double bytes;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (tk_parse_size(bad[i], "B", &bytes) == TK_OK)
            fail_msg("'%s' was taken for %g bytes", bad[i], bytes);
}

static void a_size_has_a_range(void **state)
{
    assert_parses("GASNET_PACKEDLONG_LIMIT", "0");
    assert_parses("GASNET_PACKEDLONG_LIMIT", "65448");
    assert_refused("GASNET_PACKEDLONG_LIMIT", "65449", "a number from 0 to 65448 (B)");
    assert_refused("GASNET_PACKEDLONG_LIMIT", "64K", "from 0 to 65448");
    assert_refused("GASNET_PACKEDLONG_LIMIT", "-1", "from 0 to 65448");
}

static void a_whole_number_has_both_ends_of_its_range(void **state)
{
    assert_parses("GASNET_AM_CREDITS_PP", "1");
    assert_parses("GASNET_AM_CREDITS_PP", "1024");
    assert_int_equal(values.am_credits_pp, 1024);
    assert_parses("GASNET_AM_CREDITS_TOTAL", "-1");
    assert_int_equal(values.am_credits_total, -1);
    assert_refused("GASNET_AM_CREDITS_PP", "0", "a whole number from 1 to 1024 (requests)");
    assert_refused("GASNET_AM_CREDITS_PP", "1025", "from 1 to 1024");
    assert_refused("GASNET_USE_XRC", "2", "from -1 to 1");
    assert_null(strchr(why, '(')); /* it has no unit */
}

static void a_whole_number_is_whole(void **state)
{
    static const char *const bad[] = {"1.5", "1 2", "12K", "twelve", "0x1p-1", "1e99", "nan", "-"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_refused("GASNET_AM_CREDITS_PP", bad[i], "a whole number");
    assert_parses("GASNET_AM_CREDITS_PP", "12.0");
    assert_int_equal(values.am_credits_pp, 12);
}

static void a_real_may_have_a_fraction(void **state)
{
    assert_parses("GASNET_EXITTIMEOUT", "0.25");
    assert_true(values.exit_timeout == 0.25);
    assert_refused("GASNET_EXITTIMEOUT", "-0.25", "a number from 0 to 86400 (s)");
    assert_refused("GASNET_EXITTIMEOUT", "1s", "a number from");
}

static void truth_has_ten_spellings(void **state)
{
    static const char *const yes[] = {"1", "y", "yes", "true", "on", "YES", "On", "TRUE"};
    static const char *const no[] = {"0", "n", "no", "false", "off", "NO", "Off", "FALSE"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        assert_parses("GASNET_QUIET", yes[i]);
        assert_true(values.quiet);
        assert_parses("GASNET_CATCH_EXIT", no[i]);
        assert_false(values.catch_exit);
    }
    assert_refused("GASNET_QUIET", "2", "one of 0, 1, no, yes");
    assert_refused("GASNET_QUIET", "maybe", "one of 0, 1");
    assert_refused("GASNET_QUIET", "0 1", "one of 0, 1");
}

static void a_choice_is_one_of_its_words_wholly(void **state)
{
    assert_parses("GASNET_HOST_DETECT", "gethostid");
    assert_string_equal(values.host_detect, "gethostid");
    assert_refused("GASNET_HOST_DETECT", "host", "one of conduit|hostname|gethostid");
    assert_refused("GASNET_HOST_DETECT", "hostnames", "one of");
    assert_refused("GASNET_HOST_DETECT", "conduit|hostname", "one of");
    assert_refused("GASNET_HOST_DETECT", "Hostname", "one of");
}

/* The one rule for all types. */
static void blanks_around_a_value_do_not_count(void **state)
{
    assert_parses("GASNET_IBV_PORTS", " mlx5_0:1 ");
    assert_string_equal(values.ibv_ports, "mlx5_0:1");
    assert_parses("GASNET_HOST_DETECT", "hostname\t");
    assert_string_equal(values.host_detect, "hostname");
    assert_parses("GASNET_AM_CREDITS_PP", "12 ");
    assert_int_equal(values.am_credits_pp, 12);
    assert_parses("GASNET_THREAD_STACK_MIN", " 64M");
    assert_int_equal(values.thread_stack_min, 64 << 20);
    assert_parses("GASNET_QUIET", " yes ");
    assert_true(values.quiet);
}

static void an_empty_value_is_unset(void **state)
{
    static const char *const empty[] = {"", " ", " \t "};
    for (size_t i = 0; i < tk_setting_count * 3; i++) {
        struct tk_settings before;
        memset(&values, 0x5a, sizeof(values));
        before = values;
        assert_int_equal(
            tk_setting_parse(&tk_setting_table[i / 3], empty[i % 3], &values, why, sizeof(why)),
            TK_OK);
        assert_memory_equal(&values, &before, sizeof(values));
    }
}

static void a_number_may_be_one_of_a_few(void **state)
{
    assert_parses("GASNET_MAX_MTU", "4096");
    assert_int_equal(values.max_mtu, 4096);
    assert_parses("GASNET_MAX_MTU", "-1");
    assert_int_equal(values.max_mtu, -1);
    assert_refused("GASNET_MAX_MTU", "1000", "one of -1|0|256|512|1024|2048|4096");
    assert_refused("GASNET_MAX_MTU", "8192", "one of -1|0|256");
}

static void an_ignored_setting_takes_anything(void **state)
{
    assert_parses("GASNET_AMRDMA_MAX_PEERS", "whatever");
    assert_parses("GASNET_PHYSMEM_MAX", "");
}

static void a_reason_never_overruns_its_buffer(void **state)
{
    char small[16], text[600];
    memset(text, '9', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    memset(small, 'x', sizeof(small));
    assert_int_equal(
        tk_setting_parse(setting("GASNET_AM_CREDITS_PP"), text, &values, small, sizeof(small) - 1),
        TK_FAIL);
    assert_int_equal(small[sizeof(small) - 2], 0);
    assert_int_equal(small[sizeof(small) - 1], 'x');
}

/* Clients call setlocale() before they start the library. */
static void the_clients_locale_is_of_no_importance(void **state)
{
    double fraction;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip(); /* no locale with a decimal comma is installed */
    assert_int_equal(tk_parse_size("0.85", "B", &fraction), TK_OK);
    setlocale(LC_NUMERIC, "C");
    assert_true(fraction == 0.85);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_clients_locale_is_of_no_importance),
    cmocka_unit_test(a_size_without_suffix_is_in_its_unit),
    cmocka_unit_test(suffixes_are_powers_of_1024_in_any_spelling),
    cmocka_unit_test(what_is_not_wholly_a_size_is_refused),
    cmocka_unit_test(a_size_has_a_range),
    cmocka_unit_test(a_whole_number_has_both_ends_of_its_range),
    cmocka_unit_test(a_whole_number_is_whole),
    cmocka_unit_test(a_real_may_have_a_fraction),
    cmocka_unit_test(truth_has_ten_spellings),
    cmocka_unit_test(a_choice_is_one_of_its_words_wholly),
    cmocka_unit_test(blanks_around_a_value_do_not_count),
    cmocka_unit_test(an_empty_value_is_unset),
    cmocka_unit_test(a_number_may_be_one_of_a_few),
    cmocka_unit_test(an_ignored_setting_takes_anything),
    cmocka_unit_test(a_reason_never_overruns_its_buffer),
};

UNIT_MAIN(tests)
