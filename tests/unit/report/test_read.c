/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gasnet_report reads what the library and the launcher write, in both forms, and refuses
 * everything else; the model has their numbers, and its JSON has no markup. */
#include "config.h"

#include <unistd.h>

#include "contrib/report/write.h"
#include "made.h"
#include "stats/format.h"
#include "trace/format.h"
#include "unit.h"

static struct tk_text text;

static struct tk_stats some(struct unit_random *r)
{
    struct tk_stats stats;
    memset(&stats, 0, sizeof(stats));
    for (unsigned i = 0; i < tk_counters; i++)
        stats.counts[i] = unit_below(r, 3) ? unit_below(r, 1 << 30) * UINT64_C(1000) : 0;
    for (unsigned i = 0; i < tk_paths; i++)
        for (unsigned k = 0; k < tk_size_classes; k++)
            stats.transfers[i][k] = unit_below(r, 4) == 0 ? unit_below(r, 100000) : 0;
    return stats;
}

/* Line by line, as a file is read. */
static void read_text(void)
{
    for (char *at = text.bytes, *end = at + text.length; at < end;) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        assert_non_null(newline);
        assert_int_equal(report_read_line(&reader, at, (size_t)(newline - at)), READ_GOOD);
        at = newline + 1;
    }
}

static void assert_rank_has(uint32_t rank, const struct tk_stats *stats)
{
    assert_true(rank < model->rank_count && model->ranks[rank].counters);
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        if (model->ranks[rank].counters[i] != tk_stats_value(stats, &tk_stats_rows[i]))
            fail_msg("%s is %llu", tk_stats_rows[i].id,
                     (unsigned long long)model->ranks[rank].counters[i]);
    assert_memory_equal(model->ranks[rank].sizes->paths, stats->transfers,
                        sizeof(stats->transfers));
}

static void statistics_are_read_in_both_forms(void **state)
{
    struct unit_random r = unit_random(3);
    for (int form = 0; form < 2; form++) {
        struct tk_stats stats[3];
        made_begin();
        text = (struct tk_text){.fd = 0};
        for (uint32_t i = 0; i < 3; i++) {
            char label[16];
            snprintf(label, sizeof(label), "[%u] ", i);
            const struct tk_stats_heading heading = {.rank = i,
                                                     .size = 3,
                                                     .host = "n-1, x",
                                                     .how = "exit",
                                                     .label = label,
                                                     .settings = "\"GASNET_QUIET\":\"1\"",
                                                     .ns = UINT64_C(1500000000),
                                                     .pid = 9};
            stats[i] = some(&r);
            if (form == 0)
                tk_stats_for_programs(&text, &heading, &stats[i], UINT32_MAX);
            else
                tk_stats_for_people(&text, &heading, &stats[i], UINT32_MAX);
        }
        read_text();
        for (uint32_t i = 0; i < 3; i++)
            assert_rank_has(i, &stats[i]);
        assert_int_equal(model->ranks[2].micros, 1500000);
        assert_string_equal(model->ranks[2].host, "n-1, x");
        assert_string_equal(model->ranks[2].how, "exit");
        assert_int_equal(model->size, 3);
        assert_int_equal(model->setting_count, form == 0);
        made_end();
    }
}

static void a_summary_and_lines_of_the_program_change_nothing(void **state)
{
    static const struct tk_stats_summary summary = {.ranks = 2, .rows = {{.sum = 5, .max = 3}}};
    made_begin();
    made_rank(0, 2, "\"puts_inline\":5");
    text = (struct tk_text){.fd = 0};
    tk_stats_summary_for_programs(&text, &summary, 2, UINT32_MAX);
    tk_stats_summary_for_people(&text, &summary, "[0] ", 2, UINT32_MAX);
    read_text();
    made_read("{\"rank\":0,\"program\":\"a line\"}");
    made_read("[0] H a line");
    assert_int_equal(report_counter(&model->ranks[0], "puts_inline"), 5);
    made_end();
}

/* A program that dumps its statistics writes them again at its end. */
static void the_last_statistics_of_a_rank_count(void **state)
{
    made_begin();
    made_rank(1, 2, "\"puts_inline\":5,\"sleeps\":1");
    made_rank(1, 2, "\"puts_inline\":7,\"of_a_later_release\":3");
    assert_int_equal(report_counter(&model->ranks[1], "puts_inline"), 7);
    assert_int_equal(report_counter(&model->ranks[1], "sleeps"), 0);
    made_end();
}

static const char top_record[] =
    "{\"job\":5,\"program\":\"p\",\"size\":2,\"hosts\":1,\"silent_hosts\":0,\"ranks\":[{\"rank\":0,"
    "\"host\":\"a\",\"pid\":1,\"state\":\"running\","
    "\"waits_for\":null,\"seconds\":%d.000000,\"threads\":1,\"rails\":2,\"memory_kb\":9,\"private_"
    "kb\":1,\"counters\":{\"puts_inline\":%d,"
    "\"put_bytes_network\":%d}},{\"rank\":1,\"host\":\"a\",\"pid\":2,\"state\":\"gone\",\"waits_"
    "for\":null,\"seconds\":0.000000,\"threads\":0,"
    "\"rails\":0,\"memory_kb\":0,\"private_kb\":0,\"counters\":null,\"why\":\"it is gone\"}]}";

static void records_of_top_are_samples_and_counters(void **state)
{
    made_begin();
    for (int i = 1; i <= 3; i++)
        made_read(top_record, i, 10 * i, 1000 * i);
    assert_int_equal(model->sample_count, 3);
    assert_int_equal(model->samples[1].figures[REPORT_PUTS], 20);
    assert_int_equal(model->samples[2].figures[REPORT_BYTES_NETWORK], 3000);
    assert_int_equal(model->samples[2].micros, 3000000);
    assert_int_equal(report_counter(&model->ranks[0], "puts_inline"), 30);
    assert_string_equal(model->ranks[1].why, "it is gone");
    /* Statistics are exact and come at the end: a record does not replace them. */
    made_rank(0, 2, "\"puts_inline\":44");
    made_read(top_record, 4, 40, 4000);
    assert_int_equal(report_counter(&model->ranks[0], "puts_inline"), 44);
    assert_int_equal(model->samples[3].figures[REPORT_PUTS], 40);
    /* A record of a rank that has ended has pid 0; which process it was stays known. */
    made_rank(1, 2, "\"puts_inline\":1");
    model->ranks[1].pid = 77;
    made_read("{\"job\":5,\"program\":\"p\",\"size\":2,\"hosts\":1,\"silent_hosts\":%d,\"ranks\":["
              "{\"rank\":1,\"host\":\"a\",\"pid\":%d,\"state\":\"\",\"waits_for\":null,"
              "\"counters\":null,\"why\":\"it has ended\"}]}",
              0, 0);
    assert_int_equal(model->ranks[1].pid, 77);
    made_end();
}

static void many_records_become_few_samples(void **state)
{
    made_begin();
    for (int i = 1; i <= 5000; i++)
        made_read(top_record, i, i, i);
    assert_true(model->sample_count <= report_samples_max &&
                model->sample_count > report_samples_max / 4);
    for (size_t i = 1; i < model->sample_count; i++)
        assert_int_equal(model->samples[i].micros - model->samples[i - 1].micros,
                         model->sample_step * UINT64_C(1000000));
    made_end();
}

#define CELL(kind, path, from, to) model->matrix.cells[REPORT_##kind][path][from][to]

static void a_trace_makes_a_matrix_of_any_size(void **state)
{
    made_begin();
    made_event(1, 0, 1, "put", " peer=0 bytes=100 path=bounce");
    made_event(1, 2, 1, "put", " peer=0 bytes=50 path=shared");
    made_event(1, 4, 1, "get", " peer=1 bytes=7 path=self");
    made_event(1, 6, 1, "put", " peer=0 bytes=7"); /* refused */
    made_event(1, 8, 1, "request_medium", " peer=0 bytes=30 seq=1");
    made_event(0, 9, 1, "request_handler", " peer=1 bytes=30 seq=1");
    assert_int_equal(CELL(TRANSFERS, REPORT_NETWORK, 1, 0).bytes, 100);
    assert_int_equal(CELL(TRANSFERS, REPORT_SHARED, 1, 0).bytes, 50);
    assert_int_equal(CELL(TRANSFERS, REPORT_SELF, 1, 1).bytes, 7);
    assert_int_equal(CELL(MESSAGES, REPORT_UNKNOWN, 1, 0).count, 1);
    assert_int_equal(CELL(MESSAGES, REPORT_UNKNOWN, 0, 1).count, 0);
    made_event(1023, 20, 1, "put", " peer=1022 bytes=3 path=inline");
    assert_int_equal(model->matrix.shift, 4);
    assert_int_equal(CELL(TRANSFERS, REPORT_NETWORK, 63, 63).bytes, 3);
    assert_int_equal(CELL(TRANSFERS, REPORT_NETWORK, 0, 0).bytes, 100);
    assert_int_equal(CELL(TRANSFERS, REPORT_NETWORK, 0, 0).count, 1);
    made_end();
}

static void the_matrix_has_rails_and_paths_of_messages(void **state)
{
    made_begin();
    made_event(0, 0, 1, "put", " peer=1 bytes=100 path=bounce rail=1");
    made_event(0, 2, 1, "put", " peer=1 bytes=300 path=striped rails=0:100,1:200");
    made_event(0, 4, 1, "request_medium", " peer=1 bytes=30 path=inline rail=0 seq=1");
    made_event(0, 6, 1, "request_short", " peer=2 path=shared seq=1");
    made_event(0, 8, 1, "atomic", " peer=1 bytes=8 rail=40");
    assert_int_equal(CELL(TRANSFERS, REPORT_RAILS + 1, 0, 1).bytes, 100);
    assert_int_equal(CELL(TRANSFERS, REPORT_SEVERAL, 0, 1).bytes, 300);
    assert_int_equal(CELL(MESSAGES, REPORT_RAILS, 0, 1).bytes, 30);
    assert_int_equal(CELL(MESSAGES, REPORT_SHARED, 0, 2).count, 1);
    assert_int_equal(CELL(OTHER, REPORT_RAILS + report_rails_max - 1, 0, 1).bytes, 8);
    assert_int_equal(model->trace.rails[1].bytes[TRACE_RAIL_PUT], 300);
    assert_int_equal(model->trace.rails[0].bytes[TRACE_RAIL_PUT], 100);
    assert_int_equal(model->trace.rails[0].bytes[TRACE_RAIL_MESSAGE], 30);
    assert_int_equal(model->trace.rails[40].bytes[TRACE_RAIL_OTHER], 8);
    made_end();
}

static uint64_t sum_of(unsigned track)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < report_slices; i++)
        sum += model->timeline.tracks.values[track][i];
    return sum;
}

/* However wide slices become, and whichever file comes first. */
static void rails_and_connections_have_all_their_amounts(void **state)
{
    enum { connections = report_connections_max + 500 };
    struct unit_random r = unit_random(9);
    uint64_t wanted[2] = {0, 0}, connecting = 0, registering = 0;
    made_begin();
    for (int i = 0; i < connections; i++) {
        unsigned one = unit_below(&r, 100000), other = unit_below(&r, 100000);
        double at = i < connections / 2 ? 1e6 + 300.0 * i : 200.0 * i;
        char more[80];
        snprintf(more, sizeof(more), " peer=1 bytes=%u path=striped rails=0:%u,1:%u", one + other,
                 one, other);
        made_event(0, at, unit_below(&r, 100000), "put", more);
        made_event(0, at, 1 + i, "connect", " peer=1 rail=1");
        made_event(0, at, 3, "register", " bytes=4096 path=region");
        wanted[0] += one;
        wanted[1] += other;
        connecting += (uint64_t)(1 + i) * 1000;
        registering += 3000;
    }
    const struct report_tracks *tracks = &model->timeline.tracks;
    assert_int_equal(sum_of(REPORT_TRACK_RAILS), wanted[0]);
    assert_int_equal(sum_of(REPORT_TRACK_RAILS + 1), wanted[1]);
    assert_int_equal(sum_of(REPORT_TRACK_CONNECTING), connecting);
    assert_int_equal(sum_of(REPORT_TRACK_REGISTERING), registering);
    assert_int_equal(tracks->connections_seen, connections);
    assert_int_equal(tracks->connection_count, report_connections_max);
    for (size_t i = 0; i < tracks->connection_count; i++)
        assert_true(tracks->connections[i].ns > 500 * 1000);
    made_end();
}

static uint64_t time_in(uint32_t rank, enum report_activity activity)
{
    const struct report_timeline *t = &model->timeline;
    uint64_t ns = 0;
    for (unsigned i = 0; i < report_slices; i++)
        ns += t->rows[t->row_of[rank] - 1].slices[i][activity];
    return ns;
}

/* However long the time and in whatever order files come. */
static void the_time_line_has_all_time_once(void **state)
{
    struct unit_random r = unit_random(5);
    made_begin();
    for (uint32_t rank = 0; rank < 3; rank++) {
        double at = rank == 2 ? 0 : 1000 * (rank + 1);
        for (int i = 0; i < 300; i++) {
            unsigned length = 10 + unit_below(&r, 5000);
            made_event(rank, at + 2, 3, "request_handler", " peer=1");
            made_event(rank, at + 6, 2, "put", " peer=1 bytes=8 path=inline");
            made_event(rank, at, length, "event_wait", "");
            at += length + unit_below(&r, 100000);
        }
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_int_equal(time_in(rank, REPORT_HANDLER), 300 * 3000);
        assert_int_equal(time_in(rank, REPORT_TRANSFER), 300 * 2000);
    }
    uint64_t all = 0;
    for (size_t i = 0; i < model->trace.operations[tk_trace_event_wait].sum.calls; i++)
        all++;
    assert_int_equal(all, 900);
    assert_int_equal(time_in(0, REPORT_EVENT_WAIT) + time_in(1, REPORT_EVENT_WAIT) +
                         time_in(2, REPORT_EVENT_WAIT),
                     model->trace.operations[tk_trace_event_wait].sum.ns - UINT64_C(900) * 5000);
    made_end();
}

/* Each message of the sample has both ends. */
static void the_sample_of_messages_is_whole(void **state)
{
    made_begin();
    for (int i = 0; i < 20000; i++) {
        char more[64];
        snprintf(more, sizeof(more), " peer=1 seq=%d", i + 1);
        made_event(0, 10.0 * i, 1, "request_short", more);
    }
    for (int i = 0; i < 20000; i++) {
        char more[64];
        snprintf(more, sizeof(more), " peer=0 seq=%d", i + 1);
        made_event(1, 10.0 * i + 5, 1, "request_handler", more);
    }
    const struct report_timeline *t = &model->timeline;
    assert_true(t->message_count > report_messages_max / 4 &&
                t->message_count <= report_messages_max);
    for (size_t i = 0; i < report_message_slots; i++)
        if (t->messages[i].sequence)
            assert_int_equal(t->messages[i].handled - t->messages[i].sent, 5000);
    made_end();
}

static void the_longest_calls_are_kept(void **state)
{
    made_begin();
    for (int i = 0; i < 30000; i++)
        made_event(0, 100.0 * i, i * 7919 % 30000 / 1000.0 + 1, "put",
                   " peer=1 bytes=8 path=inline");
    const struct report_row *row = &model->timeline.rows[0];
    assert_int_equal(row->longest_count, report_longest_max);
    for (size_t i = 0; i < row->longest_count; i++)
        assert_true(row->longest[i].ns >= 21000);
    made_end();
}

static void numbers_out_of_range_are_refused(void **state)
{
    made_begin();
    assert_int_equal(made_line("1.000000000 4000000000 0 P put ns=1 peer=1"), READ_RANGE);
    assert_int_equal(made_line("1.000000000 1 0 P put ns=1 peer=131072"), READ_RANGE);
    assert_int_equal(made_line("9999999999.000000000 1 0 P put ns=1"), READ_RANGE);
    assert_int_equal(made_line("1.000000000 1 0 P put ns=18446744073709551615"), READ_RANGE);
    assert_int_equal(made_line("{\"rank\":131072,\"ranks\":2,\"host\":\"h\",\"pid\":1,\"seconds\":"
                               "1.000000,\"end\":\"exit\",\"counters\":{}}"),
                     READ_RANGE);
    made_end();
}

static void other_lines_are_refused(void **state)
{
    static const char *const lines[] = {
        "x",
        "{",
        "{}",
        "[1,2]",
        "{\"rank\":0}",
        "{\"rank\":0,\"ranks\":1}",
        "{\"job\":1}",
        "{\"job\":1,\"size\":2,\"ranks\":{}}",
        "{\"summary\":1}",
        "{\"job\":1,\"size\":2,\"ranks\":[5]}",
        "{\"rank\":0,\"ranks\":1,\"seconds\":1.000000,\"counters\":{\"sleeps\":\"1\"}}",
        "{\"rank\":0,\"ranks\":1,\"seconds\":1,\"counters\":{}}",
        "statistics of rank",
        "[0] statistics of rank 0 of 1, h, pid 1, 1.0 s: exit",
        "P puts inline                                     5 transfers",
        "[9",
        "{\"a\":\"\\q\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":tru}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"a\":1}}",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "\"a",
        "{\"name\":\"put\"}"};
    made_begin();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (made_line("%s", lines[i]) != READ_FOREIGN)
            fail_msg("taken: %s", lines[i]);
    made_end();
}

/* ---- files that end anywhere ---- */

static size_t lines_of_standard_error(const char *name, bool *is_read)
{
    made_begin();
    unit_listen();
    *is_read = report_read_file(&reader, name);
    size_t lines = unit_lines(unit_heard());
    if (*is_read)
        free(made_json());
    /* A number is whole or not there. */
    const struct report_rank *rank = model->rank_count ? &model->ranks[0] : NULL;
    if (*is_read && rank && rank->sizes) {
        uint64_t puts = report_counter(rank, "puts_inline");
        uint64_t some = rank->sizes->paths[tk_path_puts_inline][3];
        assert_true((puts == 0 || puts == 19) && (some == 0 || some == 17));
    }
    made_end();
    return lines;
}

static void cut_everywhere(const char *content, size_t length)
{
    char name[] = "/tmp/trunkline-unit-XXXXXX";
    int fd = mkstemp(name);
    const char *second = memchr(content, '\n', length);
    assert_true(fd >= 0 && second);
    assert_int_equal(write(fd, content, length), (ssize_t)length);
    for (size_t size = length + 1; size-- > 0;) {
        bool is_read;
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        size_t lines = lines_of_standard_error(name, &is_read);
        if (lines != !is_read)
            fail_msg("%zu of %zu bytes: %zu lines", size, length, lines);
        if (size > (size_t)(second - content) && !is_read)
            fail_msg("%zu of %zu bytes are refused", size, length);
    }
    close(fd);
    unlink(name);
}

static void a_file_may_end_at_any_byte(void **state)
{
    static const struct tk_stats stats = {
        .counts = {[tk_counter_barriers] = 12, [tk_counter_credit_wait_ns] = 5000},
        .transfers = {[tk_path_puts_inline] = {[3] = 17, [4] = 2}}};
    const struct tk_stats_heading heading = {.rank = 0,
                                             .size = 2,
                                             .host = "h",
                                             .how = "exit",
                                             .label = "[0] ",
                                             .ns = UINT64_C(1500000000),
                                             .pid = 9};
    static const struct tk_trace_source source = {
        .rank = 0, .size = 2, .host = "n\"1", .boot = "b", .pid = 7};
    static const struct tk_trace_clocks clocks = {1000000000, 5};
    static const struct tk_trace_event event = {.begin = 1000000100,
                                                .end = 1000002100,
                                                .nbytes = 8,
                                                .file = "a b.c",
                                                .line = 3,
                                                .peer = 1,
                                                .sequence = 4,
                                                .op = tk_trace_request_short};
    text = (struct tk_text){.fd = 0};
    tk_stats_for_people(&text, &heading, &stats, UINT32_MAX);
    cut_everywhere(text.bytes, text.length);
    text = (struct tk_text){.fd = 0};
    tk_stats_for_programs(&text, &heading, &stats, 1);
    tk_stats_for_programs(&text, &heading, &stats, 1);
    cut_everywhere(text.bytes, text.length);
    for (int json = 0; json < 2; json++) {
        text = (struct tk_text){.fd = 0};
        tk_trace_put_start(&text, &source, &clocks, json);
        tk_trace_put_event(&text, &source, 0, &event, NULL, json);
        tk_trace_put_end(&text, &source, &clocks, 0, "exit", json);
        if (json) { /* in a file the comma of an object is at the end of its line */
            memmove(text.bytes, text.bytes + 2, text.length - 2);
            text.length -= 2;
            tk_text_char(&text, '\n');
        }
        cut_everywhere(text.bytes, text.length);
    }
}

/* ---- what is written ---- */

static void no_text_becomes_markup(void **state)
{
    static const char evil[] =
        "</script><script>alert(1)</script><!--&'\\\"\x01\xff\xe2\x80\xa8\xe2\x80\xae\xc3\xa4";
    char escaped[6 * sizeof(evil)], *to = escaped;
    for (const char *c = evil; *c; c++)
        to += sprintf(to, "\\u%04x", (unsigned char)*c);
    made_begin();
    report_word_copy(model->title, sizeof(model->title), (struct trace_word){evil, strlen(evil)});
    made_read("{\"rank\":0,\"ranks\":1,\"host\":\"%s\",\"pid\":7,\"seconds\":1.000000,\"end\":\"%"
              "s\",\"counters\":{},\"sizes\":{},\"settings\":{\"%s\":\"%s\"}}",
              escaped, escaped, escaped, escaped);
    made_read("1.000000000 0 0 P put ns=2000 peer=0 bytes=8 path=%.30s at=%.40s:10 text=x", evil,
              evil);
    made_read("1.000000000 0 0 H program ns=0 text=%s", evil);
    char *json = made_json();
    assert_null(strpbrk(json, "<>&"));
    assert_null(strchr(json, 0x01));
    assert_null(strchr(json, '\xff'));
    assert_null(strstr(json, "\xe2\x80\xa8"));
    assert_non_null(strstr(json, "\\u003c/script\\u003e"));
    assert_non_null(strstr(json, "\xc3\xa4"));
    struct json_tree tree = {0};
    for (char *c = json; *c; c++)
        if (*c == '\n')
            *c = ' ';
    assert_int_equal(json_parse(&tree, json, strlen(json)), JSON_GOOD);
    json_free(&tree);
    free(json);
    made_end();
}

/* The hashes of the policy are those of the script and the style in the page. */
static void the_page_allows_its_own_script_alone(void **state)
{
    made_begin();
    made_rank(0, 1, "");
    char *page = NULL;
    size_t size;
    FILE *out = open_memstream(&page, &size);
    assert_true(report_write_page(out, model, PAGE_FILE));
    fclose(out);
    assert_non_null(strstr(page, "default-src 'none'; script-src 'sha256-"));
    assert_null(strstr(page, "unsafe-"));
    assert_null(strstr(page, "connect-src"));
    assert_non_null(strstr(report_page_policy(PAGE_LIVE), "; connect-src 'self'"));
    unsigned scripts = 0;
    for (const char *at = page; (at = strstr(at, "<script")) != NULL; at++)
        scripts++;
    assert_int_equal(scripts, 2);
    free(page);
    made_end();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(statistics_are_read_in_both_forms),
    cmocka_unit_test(a_summary_and_lines_of_the_program_change_nothing),
    cmocka_unit_test(the_last_statistics_of_a_rank_count),
    cmocka_unit_test(records_of_top_are_samples_and_counters),
    cmocka_unit_test(many_records_become_few_samples),
    cmocka_unit_test(a_trace_makes_a_matrix_of_any_size),
    cmocka_unit_test(the_matrix_has_rails_and_paths_of_messages),
    cmocka_unit_test(rails_and_connections_have_all_their_amounts),
    cmocka_unit_test(the_time_line_has_all_time_once),
    cmocka_unit_test(the_sample_of_messages_is_whole),
    cmocka_unit_test(the_longest_calls_are_kept),
    cmocka_unit_test(numbers_out_of_range_are_refused),
    cmocka_unit_test(other_lines_are_refused),
    cmocka_unit_test(a_file_may_end_at_any_byte),
    cmocka_unit_test(no_text_becomes_markup),
    cmocka_unit_test(the_page_allows_its_own_script_alone),
};

UNIT_MAIN(tests)
