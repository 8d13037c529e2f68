/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters: the table, masks, sums over threads that come and go, texts, and summaries. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stats/format.h"
#include "stats/stats.h"
#include "unit.h"
#include "stats/write.h"

/* ---- the table ---- */

static void each_row_has_a_class_and_a_name_of_its_own(void **state)
{
    for (unsigned i = 0; i < tk_stats_row_count; i++) {
        const struct tk_stats_row *row = &tk_stats_rows[i];
        assert_true(tk_stats_mask_of(row->letter) != 0);
        assert_true(row->name[0] && row->sentence[0] && row->unit[0]);
        assert_true(strlen(row->name) <= 34); /* columns of the output for people */
        for (const char *c = row->id; *c; c++)
            assert_true(islower((unsigned char)*c) || *c == '_');
        for (unsigned k = 0; k < i; k++) {
            assert_true(strcmp(row->id, tk_stats_rows[k].id) != 0);
            assert_true(strcmp(row->name, tk_stats_rows[k].name) != 0);
        }
    }
}

static void each_class_has_a_letter_of_its_own(void **state)
{
    assert_true(tk_stats_class_count < 32);
    for (unsigned i = 0; i < tk_stats_class_count; i++) {
        assert_true(isupper((unsigned char)tk_stats_classes[i].letter));
        assert_int_equal(tk_stats_mask_of(tk_stats_classes[i].letter), 1u << i);
    }
    assert_int_equal(tk_stats_mask_of('Z'), 0);
}

static uint32_t mask_of(const char *text)
{
    uint32_t mask = 0;
    assert_true(tk_stats_mask_parse(text, &mask));
    return mask;
}

static void masks_are_letters_in_any_case(void **state)
{
    char text[40];
    uint32_t mask, all = mask_of("");
    assert_int_equal(mask_of("Pa"), tk_stats_mask_of('P') | tk_stats_mask_of('A'));
    assert_int_equal(mask_of("^p"), all & ~tk_stats_mask_of('P'));
    assert_int_equal(mask_of("Z"), 0); /* a letter of another library's masks */
    assert_int_equal(mask_of("^"), all);
    assert_false(tk_stats_mask_parse("P1", &mask));
    assert_false(tk_stats_mask_parse("P,G", &mask));
    tk_stats_mask_format(mask_of("ap"), text, sizeof(text));
    assert_string_equal(text, "PA");
    tk_stats_mask_format(all, text, sizeof(text));
    assert_int_equal(strlen(text), tk_stats_class_count);
    tk_stats_mask_format(all, text, 2);
    assert_int_equal(strlen(text), 1);
}

/* ---- counting ---- */

static struct tk_stats now(void)
{
    struct tk_stats stats;
    tk_stats_sum(&stats);
    return stats;
}

static void counts_are_there(void **state)
{
    tk_stats_reset();
    tk_count(tk_counter_barriers);
    tk_count_add(tk_counter_credit_wait_ns, UINT64_C(5000000000));
    tk_count(tk_counter_short_requests);
    tk_count(tk_counter_short_requests);
    tk_uncount(tk_counter_short_requests);
    tk_count_rare(tk_counter_failovers);
    tk_count_transfer(tk_path_puts_inline, tk_counter_put_bytes_network, 1);
    tk_count_transfer(tk_path_puts_inline, tk_counter_put_bytes_network, 8);
    assert_true(tk_count_small_put_mine(15));
    assert_true(tk_count_small_put_mine(tk_small_put_max));
    tk_count_transfer(tk_path_gets_self, tk_counter_get_bytes_self, SIZE_MAX >> 16);
    struct tk_stats stats = now();
    assert_int_equal(stats.counts[tk_counter_barriers], 1);
    assert_int_equal(stats.counts[tk_counter_credit_wait_ns], UINT64_C(5000000000));
    assert_int_equal(stats.counts[tk_counter_short_requests], 1);
    assert_int_equal(stats.counts[tk_counter_failovers], 1);
    assert_int_equal(stats.counts[tk_counter_put_bytes_network], 24 + tk_small_put_max);
    assert_int_equal(stats.transfers[tk_path_puts_inline][0], 1);
    assert_int_equal(stats.transfers[tk_path_puts_inline][3], 2);
    assert_int_equal(stats.transfers[tk_path_puts_inline][9], 1);
    assert_int_equal(stats.transfers[tk_path_gets_self][tk_size_classes - 1], 1);
    tk_stats_reset();
    stats = now();
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        assert_int_equal(tk_stats_value(&stats, &tk_stats_rows[i]), 0);
}

enum { threads = 4, generations = 3, rounds = 1000 };

static void *count_many(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        tk_count(tk_counter_barriers);
        tk_count_transfer(tk_path_puts_self, tk_counter_put_bytes_self, 3);
    }
    return NULL;
}

/* In PAR; those of SEQ must not count at the same time. */
static void threads_come_and_go_and_nothing_is_lost(void **state)
{
    pthread_t thread[threads];
    tk_stats_reset();
    for (int g = 0; g < generations; g++) {
        for (int i = 0; i < threads; i++) {
            assert_int_equal(pthread_create(&thread[i], NULL, count_many, NULL), 0);
            if (!TK_THREADED)
                assert_int_equal(pthread_join(thread[i], NULL), 0);
        }
        for (int i = 0; TK_THREADED && i < threads; i++)
            assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
    struct tk_stats stats = now();
    assert_int_equal(stats.counts[tk_counter_barriers], threads * generations * rounds);
    assert_int_equal(stats.counts[tk_counter_put_bytes_self], 3 * threads * generations * rounds);
    assert_int_equal(stats.transfers[tk_path_puts_self][1], threads * generations * rounds);
}

static void *block_of_a_thread(void *unused)
{
    count_many(unused);
    return tk_stats_mine;
}

/* A program that starts a thread for each task does not grow. */
static void the_block_of_a_thread_that_ended_serves_the_next(void **state)
{
    pthread_t thread;
    void *blocks[2];
    if (!TK_THREADED)
        return;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread, NULL, block_of_a_thread, NULL), 0);
        assert_int_equal(pthread_join(thread, &blocks[i]), 0);
    }
    assert_non_null(blocks[0]);
    assert_ptr_equal(blocks[0], blocks[1]);
    assert_ptr_not_equal(blocks[0], tk_stats_mine);
}

/* ---- texts ---- */

static char written[tk_text_max];

static void begin(struct tk_text *text, int *out)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    text->fd = ends[1];
    text->length = 0;
    text->error = 0;
    *out = ends[0];
}

static const char *end(struct tk_text *text, int in)
{
    tk_text_flush(text);
    close(text->fd);
    size_t length = 0;
    for (ssize_t n; (n = read(in, written + length, sizeof(written) - 1 - length)) > 0;)
        length += (size_t)n;
    close(in);
    written[length] = '\0';
    return written;
}

static struct tk_text text;

static void numbers_and_quotes(void **state)
{
    int in;
    begin(&text, &in);
    tk_text_number(&text, UINT64_MAX);
    tk_text_char(&text, ' ');
    tk_text_number_in(&text, 7, 3);
    tk_text_char(&text, ' ');
    tk_text_add_in(&text, "ab", 4);
    tk_text_char(&text, '|');
    tk_text_fraction(&text, UINT64_C(12003004), 6);
    tk_text_quoted(&text, "a\"\\\n\x1f");
    assert_string_equal(end(&text, in),
                        "18446744073709551615   7 ab  |12.003004\"a\\\"\\\\\\u000a\\u001f\"");
}

static void a_full_disk_is_an_error_and_ends_the_text(void **state)
{
    text.fd = open("/dev/full", O_WRONLY);
    text.length = 0;
    text.error = 0;
    assert_true(text.fd >= 0);
    for (int i = 0; i < 2 * tk_text_max; i++)
        tk_text_char(&text, 'x');
    tk_text_flush(&text);
    assert_int_equal(text.error, ENOSPC);
    assert_int_equal(text.length, 0);
    close(text.fd);
}

static const struct tk_stats_heading heading = {.rank = 1,
                                                .size = 2,
                                                .host = "here",
                                                .how = "exit",
                                                .label = "[1] ",
                                                .ns = 1500000000,
                                                .pid = 9};

static struct tk_stats some(void)
{
    struct tk_stats stats;
    memset(&stats, 0, sizeof(stats));
    stats.counts[tk_counter_put_bytes_network] = 9;
    stats.counts[tk_counter_credit_wait_ns] = 2500;
    stats.transfers[tk_path_puts_inline][0] = 1;
    stats.transfers[tk_path_puts_inline][3] = 1;
    return stats;
}

static void people_get_what_is_not_zero(void **state)
{
    int in;
    struct tk_stats stats = some();
    begin(&text, &in);
    tk_stats_for_people(&text, &heading, &stats, mask_of("PS"));
    assert_string_equal(end(&text, in),
                        "[1] statistics of rank 1 of 2, here, pid 9, 1.500000 s: exit\n"
                        "[1] P puts inline                                          2 transfers   "
                        "B: 1: 1, 8-15: 1\n"
                        "[1] P put bytes, network                                   9 B\n"
                        "[1] S time waited for credits                              2 us\n");
}

static void programs_get_one_line(void **state)
{
    int in;
    struct tk_stats stats = some();
    begin(&text, &in);
    tk_stats_for_programs(&text, &heading, &stats, mask_of("P"));
    const char *line = end(&text, in);
    assert_non_null(strstr(line, "{\"rank\":1,\"ranks\":2,\"host\":\"here\",\"pid\":9,\"seconds\":"
                                 "1.500000,\"end\":\"exit\",\"counters\":{\"puts_inline\":2,"));
    assert_non_null(strstr(line, "\"put_bytes_network\":9"));
    assert_non_null(strstr(line, ",\"sizes\":{\"puts_inline\":{\"1\":1,\"8\":1}}}\n"));
    assert_null(strstr(line, "credit_wait_ns"));
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    struct tk_stats_heading with_settings = heading;
    with_settings.settings = "\"A\":\"1\"";
    begin(&text, &in);
    tk_stats_for_programs(&text, &with_settings, &stats, mask_of("P"));
    assert_non_null(strstr(end(&text, in), "},\"settings\":{\"A\":\"1\"}}\n"));
}

static void a_summary_names_the_ranks_with_least_and_most(void **state)
{
    int in;
    static uint64_t values[tk_stats_rows_max];
    static struct tk_stats_summary summary;
    static const uint64_t of_ranks[] = {5, 3, 9, 3};
    unsigned row = 0;
    while (strcmp(tk_stats_rows[row].id, "barriers") != 0)
        row++;
    for (uint32_t rank = 0; rank < 4; rank++) {
        values[row] = of_ranks[rank];
        tk_stats_summary_add(&summary, rank, values);
    }
    begin(&text, &in);
    tk_stats_summary_for_programs(&text, &summary, 5, mask_of("B"));
    const char *line = end(&text, in);
    assert_non_null(
        strstr(line, "{\"summary\":4,\"ranks\":5,\"counters\":{\"barriers\":{\"sum\":20,\"min\":"
                     "3,\"min_rank\":1,\"avg\":5,\"max\":9,\"max_rank\":2}"));
    begin(&text, &in);
    tk_stats_summary_for_people(&text, &summary, "", 5, mask_of("B"));
    assert_string_equal(
        end(&text, in),
        "summary of 4 of 5 ranks: sum, least and its rank, average, most and its rank\n"
        "B barriers                                        20               3       1"
        "               5                   9       2 barriers\n");
}

/* The sums are those of one rank; the others of `ranks` have 0. */
static void averages_have_the_digits_that_they_need(void **state)
{
    static const struct {
        uint64_t sum;
        uint32_t ranks;
        const char *average;
    } cases[] = {{11, 3, "3.667"},
                 {2, 3, "0.667"},
                 {1, 3, "0.333"},
                 {1, 20, "0.05"},
                 {1, 21, "0.0476"},
                 {1, 1024, "0.000977"},
                 {119, 60, "1.9833"},
                 {UINT64_MAX, 1, "18446744073709551615"},
                 {199, 100, "1.99"},
                 {UINT64_MAX, 2, "9223372036854775807.5"},
                 {12, 3, "4"},
                 {10, 4, "2.5"},
                 {99999, 9999, "10.0009"}};
    static uint64_t values[tk_stats_rows_max];
    unsigned row = 0;
    while (strcmp(tk_stats_rows[row].id, "barriers") != 0)
        row++;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int in;
        char wanted[64];
        struct tk_stats_summary summary = {.ranks = 0};
        for (uint32_t rank = 0; rank < cases[i].ranks; rank++) {
            values[row] = rank ? 0 : cases[i].sum;
            tk_stats_summary_add(&summary, rank, values);
        }
        begin(&text, &in);
        tk_stats_summary_for_programs(&text, &summary, cases[i].ranks, mask_of("B"));
        snprintf(wanted, sizeof(wanted), "\"avg\":%s,\"max\":%llu,", cases[i].average,
                 (unsigned long long)cases[i].sum);
        const char *line = end(&text, in);
        if (!strstr(line, wanted))
            fail_msg("%llu / %u is not %s", (unsigned long long)cases[i].sum, cases[i].ranks,
                     cases[i].average);
        /* The sum can be computed from it. */
        double sum = strtod(cases[i].average, NULL) * cases[i].ranks;
        assert_true(cases[i].sum > UINT32_MAX || (uint64_t)(sum + 0.5) == cases[i].sum);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_row_has_a_class_and_a_name_of_its_own),
    cmocka_unit_test(each_class_has_a_letter_of_its_own),
    cmocka_unit_test(masks_are_letters_in_any_case),
    cmocka_unit_test(counts_are_there),
    cmocka_unit_test(threads_come_and_go_and_nothing_is_lost),
    cmocka_unit_test(the_block_of_a_thread_that_ended_serves_the_next),
    cmocka_unit_test(numbers_and_quotes),
    cmocka_unit_test(a_full_disk_is_an_error_and_ends_the_text),
    cmocka_unit_test(people_get_what_is_not_zero),
    cmocka_unit_test(programs_get_one_line),
    cmocka_unit_test(a_summary_names_the_ranks_with_least_and_most),
    cmocka_unit_test(averages_have_the_digits_that_they_need),
};

UNIT_MAIN(tests)
