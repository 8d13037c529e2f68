/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connect files as texts: the peers that each rank reads from one, which files are refused and why,
 * and that a run reads back the file that an earlier run wrote. */
#include "config.h"

#include <stdlib.h>

#include "peer/connect_file.h"
#include "unit.h"

enum { ranks = 16, ranks_max = 2000 };

static char why[200];
static bool wanted[ranks_max];

static enum tk_connect_verdict parse(const char *text, uint32_t me, uint32_t size)
{
    why[0] = 0;
    return tk_connect_parse(text, strlen(text), me, size, wanted, why, sizeof(why));
}

/* "0 4 6": the peers that rank `me` of 16 connects to. */
static void assert_peers(const char *text, uint32_t me, const char *expected)
{
    char got[200] = "";
    assert_int_equal(parse(text, me, ranks), TK_CONNECT_FITS);
    for (uint32_t r = 0; r < ranks; r++)
        if (wanted[r])
            snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u", *got ? " " : "", r);
    assert_string_equal(got, expected);
}

static void the_manuals_examples_are_read(void **state)
{
    assert_peers("7: 0 4 6\n", 7, "0 4 6");
    assert_peers("7:0 4\n7:6\n", 7, "0 4 6");
    assert_peers("6:9-12\n", 6, "9 10 11 12");
    assert_peers("6:9-12\n", 12, "6");
    assert_peers("1:0\n0:1\n", 0, "1");
    assert_peers("1:0\n0:1\n", 1, "0");
    assert_peers("1:0\n", 2, "");
}

static void order_blanks_and_repetition_do_not_matter(void **state)
{
    assert_peers("", 0, "");
    assert_peers("\n \t\n7:\n", 7, "");
    assert_peers("7:6  4\t0 \r\n", 7, "0 4 6"); /* by hand, and from another system */
    assert_peers("7: 4-6 5-8 0 0-1", 7, "0 1 4 5 6 8");
    assert_peers("7: 4-4", 7, "4");
    assert_peers("7: 0-15", 7, "0 1 2 3 4 5 6 8 9 10 11 12 13 14 15");
    assert_peers("7: 7", 7, "");
}

static void bases_count_from_their_line_on(void **state)
{
    assert_peers("size: 16\nbase: 36\n7: a-c f\n", 7, "10 11 12 15");
    assert_peers("base:16\nB: 0\n", 11, "0");
    assert_peers("10: 1\nbase: 2\n10: 11\n", 10, "1");
    assert_peers("10: 1\nbase: 2\n10: 11\n", 2, "3");
    assert_peers("base: 2\n1: 0\nbase: 10\nsize: 16\n1: 10\n", 1, "0 10");
}

static void assert_refused(const char *text, enum tk_connect_verdict verdict, const char *reason)
{
    assert_int_equal(parse(text, 3, ranks), verdict);
    if (!strstr(why, reason))
        fail_msg("'%s', not '%s'", why, reason);
}

static void what_is_malformed_is_named_with_its_line(void **state)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"3: 1\nthis is no file\n", "line 2: 'this is no file' is not of the form 'rank: peers'"},
        {"3: 1,2\n", "line 1: '1,2' is not a rank, or range of ranks, in base 10"},
        {"3: a\n", "line 1: 'a' is not a rank, or range of ranks, in base 10"},
        {"base: 2\n1: 2\n", "line 2: '2' is not a rank, or range of ranks, in base 2"},
        {" 3: 1\n", "line 1: ' 3' is not a rank"},
        {": 1\n", "line 1: '' is not a rank"},
        {"3: -1\n", "line 1: '' is not a rank"},
        {"3: 1-\n", "line 1: '' is not a rank"},
        {"3: 1-2-3\n", "line 1: '2-3' is not a rank"},
        {"3: 6-4\n", "line 1: '6-4' is not a range: its end is below its begin"},
        {"base: 1\n", "line 1: '1' is not a decimal number from 2 to 36"},
        {"base: 37\n", "line 1: '37' is not a decimal number from 2 to 36"},
        {"base: g\n", "line 1: 'g' is not a decimal number from 2 to 36"},
        {"base:\n", "line 1: '' is not a decimal number from 2 to 36"},
        {"size: many\n", "line 1: 'many' is not one decimal number of ranks"},
        {"size: 16 17\n", "is not one decimal number of ranks"},
        {"size: 16\n3: 16\n", "line 2 names rank 16 (base 10), but this job has 16 ranks"},
        {"\x7f"
         "ELF\x02\x01",
         "line 1: "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_refused(cases[i].text, TK_CONNECT_MALFORMED, cases[i].reason);
}

/* Also where the line is not about this rank. */
static void a_file_of_another_job_is_known_as_such(void **state)
{
    assert_refused("size: 17\n3: 1\n", TK_CONNECT_OTHER_JOB,
                   "line 1: it is of a job of 17 ranks, but this one has 16");
    assert_refused("3: 1\nsize: 8\n", TK_CONNECT_OTHER_JOB, "line 2: it is of a job of 8 ranks");
    assert_refused("size: 99999999999999999999\n", TK_CONNECT_OTHER_JOB, "line 1: it is of a job");
    assert_refused("5: 4-16\n", TK_CONNECT_OTHER_JOB,
                   "line 1 names rank 16 (base 10), but this job has 16 ranks");
    assert_refused("99999999999999999999: 1\n", TK_CONNECT_OTHER_JOB, "line 1 names rank 999");
    assert_refused("base: 36\n3: g\n", TK_CONNECT_OTHER_JOB, "line 2 names rank g (base 36)");
}

static void assert_written(uint32_t me, unsigned base, const char *peers, const char *expected)
{
    assert_int_equal(parse(peers, me, ranks), TK_CONNECT_FITS);
    char *text = tk_connect_format(me, ranks, base, true, wanted);
    assert_string_equal(text, expected);
    free(text);
}

static void neighbouring_peers_are_written_as_ranges(void **state)
{
    assert_written(7, 36, "7: 0 4 6", "size: 16\nbase: 36\n7: 0 4 6\n");
    assert_written(11, 36, "11: 0-3 12-15", "size: 16\nbase: 36\nb: 0-3 c-f\n");
    assert_written(7, 10, "7: 0-15", "size: 16\nbase: 10\n7: 0-15\n");
    assert_written(7, 10, "7: 0 1 6 8", "size: 16\nbase: 10\n7: 0-1 6-8\n");
    assert_written(7, 10, "7: 5 6", "size: 16\nbase: 10\n7: 5-6\n");
    assert_written(5, 2, "5: 3 15", "size: 16\nbase: 2\n101: 11 1111\n");
    assert_written(0, 10, "", "size: 16\nbase: 10\n0:\n");
}

/* Every second rank: no ranges to merge, and many lines. */
static void what_is_written_is_read_again_in_every_base(void **state)
{
    static bool before[ranks_max];
    struct unit_random random = unit_random(1);
    for (unsigned base = tk_connect_base_min; base <= tk_connect_base_max; base++) {
        for (uint32_t r = 0; r < ranks_max; r++)
            before[r] = r != 1000 && unit_below(&random, base % 3 + 2) == 0;
        char *text = tk_connect_format(1000, ranks_max, base, true, before);
        for (const char *line = text, *next; *line; line = next + 1) {
            next = strchr(line, '\n');
            assert_in_range(next - line, 1, 76);
        }
        assert_int_equal(parse(text, 1000, ranks_max), TK_CONNECT_FITS);
        assert_memory_equal(wanted, before, sizeof(before));
        assert_int_equal(tk_connect_count(text, strlen(text)), 1);
        free(text);
    }
}

static void ranks_are_counted_by_their_lines(void **state)
{
    static const char text[] = "size: 3\nbase: 10\n0: 1\n0: 2\n2:\n1: 0\n";
    assert_int_equal(tk_connect_count(text, strlen(text)), 3);
    assert_int_equal(tk_connect_count(text, strlen(text) - 1), 2);
    assert_int_equal(tk_connect_count("", 0), 0);
}

static void names_have_the_rank_for_each_per_cent(void **state)
{
    char *name = tk_connect_name("a%b%", 12);
    assert_string_equal(name, "a12b12");
    free(name);
    name = tk_connect_name("/plain", 12);
    assert_string_equal(name, "/plain");
    free(name);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_manuals_examples_are_read),
    cmocka_unit_test(order_blanks_and_repetition_do_not_matter),
    cmocka_unit_test(bases_count_from_their_line_on),
    cmocka_unit_test(what_is_malformed_is_named_with_its_line),
    cmocka_unit_test(a_file_of_another_job_is_known_as_such),
    cmocka_unit_test(neighbouring_peers_are_written_as_ranges),
    cmocka_unit_test(what_is_written_is_read_again_in_every_base),
    cmocka_unit_test(ranks_are_counted_by_their_lines),
    cmocka_unit_test(names_have_the_rank_for_each_per_cent),
};

UNIT_MAIN(tests)
