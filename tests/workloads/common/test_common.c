/* SPDX-License-Identifier: BSD-3-Clause */
/* The workloads' common part without a job: options, histogram, faults, report, progress line. */
#include "config.h"

#include <math.h>
#include <unistd.h>

#include "clock.h"
#include "histogram.h"
#include "inject.h"
#include "options.h"
#include "paths.h"
#include "progress.h"
#include "random.h"
#include "report.h"
#include "unit.h"

struct sample {
    int64_t window, size, flag, word;
    double seconds;
    const char *file;
};

static const char *const words[] = {"red", "green", NULL};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"window", wl_whole, offsetof(struct sample, window), "4", 1, 256, "slots", 0, wl_power_of_2,
     "slots in flight"},
    {"size", wl_size, offsetof(struct sample, size), "2K", 1, 1048576, "bytes", 0, 0, "of a piece"},
    {"flag", wl_flag, offsetof(struct sample, flag), "0", 0, 1, 0, 0, 0, "a switch"},
    {"word", wl_word, offsetof(struct sample, word), "green", 0, 0, 0, words, 0, "a colour"},
    {"seconds", wl_real, offsetof(struct sample, seconds), "0.5", 0.1, 10, "s", 0, 0, "how long"},
    {"file", wl_text, offsetof(struct sample, file), 0, 0, 0, 0, 0, wl_not_hashed, "where to"},
};
/* clang-format on */

static bool related(void *values, uint64_t given, char *why, size_t size)
{
    struct sample *s = values;
    (void)given;
    if (s->window * 512 <= s->size)
        return true;
    snprintf(why, size, "--window times 512 is more than --size");
    return false;
}

static const struct wl_program program = {"sample", "A sample.", table,
                                          sizeof(table) / sizeof(*table), related};
static struct sample values;
static char why[wl_why_max];
static uint64_t given;

static enum wl_parsed parse(const char *line)
{
    char text[256], *argv[20] = {"sample"}, *rest = text;
    int argc = 1;
    snprintf(text, sizeof(text), "%s", line);
    for (char *word; (word = strsep(&rest, " ")) && *word && argc < 20;)
        argv[argc++] = strcmp(word, "''") ? word : "";
    memset(&values, 0, sizeof(values));
    return wl_options_parse(&program, argc, argv, &values, &given, why, sizeof(why));
}

static void options_have_defaults_and_both_spellings(void **state)
{
    assert_int_equal(parse(""), wl_run);
    assert_int_equal(values.window, 4);
    assert_int_equal(values.size, 2048);
    assert_int_equal(values.word, 1);
    assert_null(values.file);
    assert_false(wl_option_given(&program, given, "window"));
    assert_int_equal(parse("--window 2 --size=4K --flag --word red --seconds 1e0 --file x"),
                     wl_run);
    assert_int_equal(values.window, 2);
    assert_int_equal(values.size, 4096);
    assert_int_equal(values.flag, 1);
    assert_int_equal(values.word, 0);
    assert_true(values.seconds == 1);
    assert_true(wl_option_given(&program, given, "window"));
    assert_int_equal(parse("--flag 0"), wl_run);
    assert_int_equal(values.flag, 0);
    assert_int_equal(parse("--window x --help"), wl_refused);
    assert_int_equal(parse("--help --window x"), wl_help);
}

static void what_is_not_in_range_is_refused_in_one_line(void **state)
{
    static const struct {
        const char *line, *because;
    } bad[] = {
        {"--window 0", "from 1 to 256"},
        {"--window 3", "a power of 2"},
        {"--window 4x", "'4x' is not a whole number"},
        {"--window ''", "'' is not a whole number"},
        {"--window -1", "from 1 to 256"},
        {"--window 99999999999999999999", "from 1 to 256"},
        {"--window", "needs a value"},
        {"--window --flag", "needs a value"},
        {"--window 2 --window 2", "--window is given twice"},
        {"--windo 2", "unknown option --windo"},
        {"--windows=2", "unknown option --windows"},
        {"2", "'2' is not expected"},
        {"--", "'--' is not expected"},
        {"--size 1T", "K, M, G are understood"},
        {"--size 16777216T", "whole number"},
        {"--size 9007199254740993G", "from 1 to 1048576 bytes"},
        {"--size 2M", "from 1 to 1048576 bytes"},
        {"--flag 2", "0 or 1"},
        {"--word blue", "one of red|green"},
        {"--seconds nan", "a number from 0.1 to 10 s"},
        {"--seconds 1s", "a number from 0.1 to 10 s"},
        {"--seconds 0", "from 0.1 to 10"},
        {"--window 8", "more than --size"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (parse(bad[i].line) != wl_refused)
            fail_msg("'%s' was accepted", bad[i].line);
        unit_assert_says(why, bad[i].because);
        assert_null(strchr(why, '\n'));
    }
}

static void equal_parameters_have_equal_hashes(void **state)
{
    uint64_t hash;
    parse("");
    hash = wl_options_hash(&program, &values);
    parse("--size 2048 --file other");
    assert_true(wl_options_hash(&program, &values) == hash);
    static const char *const others[] = {"--window 2", "--size 2049", "--flag", "--word red",
                                         "--seconds 0.50001"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        parse(others[i]);
        if (wl_options_hash(&program, &values) == hash)
            fail_msg("'%s' is not in the hash", others[i]);
    }
}

static void help_names_every_option_with_default_and_range(void **state)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    wl_options_help(&program, file);
    fclose(file);
    unit_assert_says(text, "slots in flight (default 4; 1..256 slots, a power of 2)");
    unit_assert_says(text, "a colour (default green; red|green)");
    unit_assert_says(text, "a switch (default 0; 0 or 1)");
    unit_assert_says(text, "where to (default none)");
    for (size_t i = 0; i < program.count; i++)
        unit_assert_says(text, table[i].name);
    free(text);
}

static void a_bucket_is_no_wider_than_a_64th(void **state)
{
    unsigned last = 0;
    for (uint64_t value = 0; value < UINT64_C(1) << 40; value += 1 + value / 500) {
        unsigned bucket = wl_bucket_of(value);
        assert_true(bucket == last || bucket == last + 1);
        last = bucket;
        struct wl_histogram h;
        wl_histogram_clear(&h);
        wl_histogram_add(&h, value);
        wl_histogram_add(&h, value * 2 + 1000);
        uint64_t seen = wl_histogram_at(&h, .5);
        assert_true(seen >= value && seen <= value + value / 64);
    }
    assert_true(wl_bucket_of(UINT64_MAX) == wl_buckets - 1);
}

static void percentiles_of_parts_are_those_of_the_whole(void **state)
{
    static struct wl_histogram whole, part[2];
    struct wl_random r = wl_random(1, 0);
    wl_histogram_clear(&whole);
    wl_histogram_clear(&part[0]);
    wl_histogram_clear(&part[1]);
    assert_int_equal(wl_histogram_at(&whole, .5), 0);
    for (int i = 1; i <= 10000; i++) {
        wl_histogram_add(&whole, (uint64_t)i);
        wl_histogram_add(&part[wl_below(&r, 2)], (uint64_t)i);
    }
    wl_histogram_merge(&part[0], &part[1]);
    assert_memory_equal(&whole, &part[0], sizeof(whole));
    assert_int_equal(whole.least, 1);
    assert_int_equal(whole.most, 10000);
    assert_true(wl_histogram_mean(&whole) == 5000.5);
    static const double shares[] = {0, .5, .9, .95, .99, .999, 1};
    for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++) {
        double exact = shares[i] * 10000 < 1 ? 1 : shares[i] * 10000;
        double seen = (double)wl_histogram_at(&whole, shares[i]);
        assert_true(seen >= exact - 0.01 && seen <= exact * (1 + 1.0 / 64));
    }
}

static void random_numbers_are_fair_and_streams_differ(void **state)
{
    enum { draws = 60000, faces = 6 };
    unsigned seen[faces] = {0};
    struct wl_random r = wl_random(7, 3), same = wl_random(7, 3), other = wl_random(7, 4);
    assert_true(wl_next(&same) != wl_next(&other));
    same = wl_random(7, 3);
    assert_true(wl_next(&same) == wl_next(&r));
    for (int i = 0; i < draws; i++)
        seen[wl_below(&r, faces)]++;
    double sigma = sqrt(draws * (1.0 / faces) * (1 - 1.0 / faces));
    for (int i = 0; i < faces; i++)
        assert_true(fabs(seen[i] - (double)draws / faces) < 5 * sigma);
    /* the published first numbers of splitmix64 from state 1234567 */
    struct wl_random known = {1234567};
    assert_true(wl_next(&known) == UINT64_C(6457827717110365317));
    assert_true(wl_next(&known) == UINT64_C(3203168211198807973));
}

static const struct wl_fault faults[] = {{"drop", "K7", "drops"}, {"flip", "K4", "flips"}, {0}};

static void faults_happen_at_their_occasion_once(void **state)
{
    struct wl_injection injection;
    assert_true(wl_inject_parse(&injection, faults, NULL, why, sizeof(why)));
    assert_int_equal(injection.fault, -1);
    assert_true(wl_inject_parse(&injection, faults, "none", why, sizeof(why)));
    assert_true(wl_inject_parse(&injection, faults, "flip:10", why, sizeof(why)));
    for (int i = 1; i < 10; i++)
        assert_false(wl_inject(&injection, 1));
    assert_false(wl_inject_came());
    assert_true(wl_inject_parse(&injection, faults, "flip:3", why, sizeof(why)));
    for (int i = 1; i < 10; i++) {
        assert_false(wl_inject(&injection, 0));
        assert_int_equal(wl_inject(&injection, 1), i == 3);
        assert_int_equal(wl_inject_came(), i >= 3);
    }
    assert_true(wl_inject_parse(&injection, faults, "drop", why, sizeof(why)));
    assert_true(wl_inject(&injection, 0));
    assert_false(wl_inject(&injection, 0));
    assert_true(wl_inject_parse(&injection, faults, "drop:2", why, sizeof(why)));
    for (int i = 1; i < 5; i++)
        assert_int_equal(wl_inject_since(&injection, 0), i >= 2);
    static const char *const bad[] = {"",        "flop",    "flip:",           "flip:0", "flip:-1",
                                      "flip:+1", "flip:1x", "flip:1000000001", "fli"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        if (wl_inject_parse(&injection, faults, bad[i], why, sizeof(why)))
            fail_msg("'%s' was accepted", bad[i]);
        unit_assert_says(why, "one of none|drop|flip");
    }
}

static struct wl_report *filled(int runs, uint64_t failures)
{
    struct wl_report *r = wl_report_open("sample", "1");
    struct wl_histogram h;
    wl_histogram_clear(&h);
    wl_histogram_add(&h, 2000);
    for (int i = 0; i < runs; i++) {
        if (i)
            wl_report_run(r);
        wl_report_check(r, "X1", failures, "rank 1 saw \"2\"");
        wl_report_text(r, wl_params, "name", i ? "b" : "a,\"\n");
        wl_report_whole(r, wl_summary, "ops", 12);
        wl_report_real(r, wl_summary, "rate_mops", i ? NAN : 1.5);
        wl_report_flag(r, wl_env, "software_rdma", true);
        wl_report_times(r, "read", &h);
        wl_report_interval(r, 1, 0.5);
        wl_report_interval(r, 2, 1.5);
    }
    return r;
}

/* The content of a writer's file, valid until the next call. */
static const char *written(bool (*write_to)(const struct wl_report *, const char *, char *, size_t),
                           const struct wl_report *r, const char *path)
{
    static char text[16384];
    if (!write_to(r, path, why, sizeof(why)))
        fail_msg("%s", why);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = 0;
    fclose(file);
    return text;
}

static void json_has_all_parts(void **state)
{
    char path[] = "/tmp/trunkline-report-XXXXXX";
    close(mkstemp(path));
    struct wl_report *r = filled(1, 0);
    const char *text = written(wl_report_write_json, r, path);
    unit_assert_says(text,
                     "{\n  \"workload\": \"sample\",\n  \"version\": \"1\",\n  \"params\": {\n");
    unit_assert_says(text, "\"name\": \"a,\\\"\\u000a\"\n  },\n  \"env\"");
    unit_assert_says(text, "\"intervals\": [\n    {\"at_s\": 1.000, \"rate_mops\": 0.5},\n");
    unit_assert_says(text, "\"ops\": 12,\n    \"rate_mops\": 1.5,\n    \"read_count\": 1,");
    unit_assert_says(text, "\"read_p99_9_us\": 2,");
    unit_assert_says(text, "\"X1_failures\": 0,\n    \"X1_first\": \"\"");
    unit_assert_says(text, "\"status\": \"PASS\"\n}\n");
    wl_report_close(r);
    r = filled(2, 1);
    assert_false(wl_report_passed(r));
    text = written(wl_report_write_json, r, path);
    assert_int_equal(text[0], '[');
    unit_assert_says(text, "\"rate_mops\": null");
    unit_assert_says(text, "\"status\": \"FAIL\"\n},\n{");
    unit_assert_says(text, "rank 1 saw \\\"2\\\"");
    wl_report_close(r);
    unlink(path);
}

static void csv_gets_rows_below_one_header(void **state)
{
    char path[] = "/tmp/trunkline-report-XXXXXX";
    close(mkstemp(path));
    struct wl_report *r = filled(2, 0);
    written(wl_report_write_csv, r, path);
    const char *text = written(wl_report_write_csv, r, path);
    assert_int_equal(
        strncmp(text, "workload,version,params_name,env_software_rdma,summary_ops,", 58), 0);
    /* 1 header, 4 rows, and the line breaks inside the two quoted names */
    assert_int_equal(unit_lines(text), 7);
    unit_assert_says(text, "sample,1,\"a,\"\"\n\",true,12,1.5,");
    wl_report_whole(r, wl_summary, "more", 1);
    assert_false(wl_report_write_csv(r, path, why, sizeof(why)));
    unit_assert_says(why, "run 2 has other keys than the first");
    wl_report_close(r);
    r = wl_report_open("other", "1");
    assert_false(wl_report_write_csv(r, path, why, sizeof(why)));
    unit_assert_says(why, "has another header");
    assert_false(wl_report_write_csv(r, "/nowhere/x", why, sizeof(why)));
    unit_assert_says(why, "/nowhere/x can't be opened");
    wl_report_close(r);
    unlink(path);
}

static void tables_are_aligned(void **state)
{
    static const char *const columns[] = {"ops", "rate_mops", "missing", NULL};
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    struct wl_report *r = filled(2, 0);
    wl_report_print_table(r, columns, file);
    wl_report_print(r, file);
    fclose(file);
    unit_assert_says(text, "ops  rate_mops  missing  verify\n"
                           " 12        1.5        -  PASS\n"
                           " 12       null        -  PASS\n");
    unit_assert_says(text, "summary  ops                          12\n");
    wl_report_close(r);
    free(text);
}

static void a_span_counts_what_follows_the_warm_up(void **state)
{
    struct wl_span span = wl_span_start(1000, 100, 500);
    assert_false(wl_span_step(&span, 1099));
    assert_int_equal(span.phase, wl_warming);
    assert_true(wl_span_step(&span, 1105));
    assert_false(wl_span_step(&span, 1106));
    assert_false(wl_span_step(&span, 1599));
    assert_int_equal(span.phase, wl_measuring);
    assert_false(wl_span_step(&span, 1610));
    assert_int_equal(span.phase, wl_over);
    wl_span_end(&span, 2000);
    assert_int_equal(span.ended - span.began, 505);
    span = wl_span_start(1000, 0, 0);
    wl_span_end(&span, 1200);
    assert_int_equal(span.ended - span.began, 0);
}

static void the_progress_line_has_rate_and_time_left(void **state)
{
    char line[80];
    wl_progress_line(line, sizeof(line), "kv", 2 * WL_SECOND, 5 * WL_SECOND, 3000000);
    assert_string_equal(line, "kv: 2.0 s, 1.5000 Mops so far, 3 s left");
    wl_progress_line(line, sizeof(line), "kv", WL_SECOND, 0, 0);
    assert_string_equal(line, "kv: 1.0 s, 0.0000 Mops so far");
    assert_true(wl_progress_line(line, 10, "kv", WL_SECOND, 0, 0) == 9);
}

static void files_are_looked_at_before_they_are_written(void **state)
{
    char folder[] = "/tmp/trunkline-paths-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/new", folder);
    assert_true(wl_path_writable("json", path, why, sizeof(why)));
    assert_true(wl_prefix_writable("save", path, ".0", why, sizeof(why)));
    assert_int_equal(access(path, F_OK), -1); /* a look leaves nothing */
    assert_true(wl_path_writable("json", "relative", why, sizeof(why)));
    assert_true(wl_path_writable("json", "/dev/null", why, sizeof(why)));
    assert_false(wl_path_writable("json", folder, why, sizeof(why)));
    unit_assert_says(why, "can't be written: Is a directory");
    assert_false(wl_prefix_writable("save", folder, ".0", why, sizeof(why)));
    unit_assert_says(why, "it is a directory, not the beginning of names");
    assert_false(wl_prefix_writable("save", "/dev/full", ".0", why, sizeof(why)));
    unit_assert_says(why, "--save /dev/full can't be written: it is a device");
    assert_false(wl_prefix_writable("save", "/tmp/", ".0", why, sizeof(why)));
    assert_false(wl_path_writable("csv", "", why, sizeof(why)));
    snprintf(path, sizeof(path), "%s/none/new", folder);
    assert_false(wl_path_writable("json", path, why, sizeof(why)));
    unit_assert_says(why, "can't be written: No such file or directory");
    assert_int_equal(rmdir(folder), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(options_have_defaults_and_both_spellings),
    cmocka_unit_test(what_is_not_in_range_is_refused_in_one_line),
    cmocka_unit_test(equal_parameters_have_equal_hashes),
    cmocka_unit_test(help_names_every_option_with_default_and_range),
    cmocka_unit_test(a_bucket_is_no_wider_than_a_64th),
    cmocka_unit_test(percentiles_of_parts_are_those_of_the_whole),
    cmocka_unit_test(random_numbers_are_fair_and_streams_differ),
    cmocka_unit_test(faults_happen_at_their_occasion_once),
    cmocka_unit_test(json_has_all_parts),
    cmocka_unit_test(csv_gets_rows_below_one_header),
    cmocka_unit_test(tables_are_aligned),
    cmocka_unit_test(a_span_counts_what_follows_the_warm_up),
    cmocka_unit_test(the_progress_line_has_rate_and_time_left),
    cmocka_unit_test(files_are_looked_at_before_they_are_written),
};
UNIT_MAIN(tests)
