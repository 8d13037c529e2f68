/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gasnet_trace reads the library's output, refuses everything else, and its sums are right. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/trace/summary.h"
#include "trace/format.h"
#include "unit.h"

static const struct tk_trace_source source = {
    .rank = 3, .size = 4, .host = "n\"1", .boot = "b", .pid = 7};

static struct tk_text lines;

static void assert_word(struct trace_word word, const char *wanted)
{
    assert_int_equal(word.length, strlen(wanted));
    assert_memory_equal(word.at, wanted, word.length);
}

/* The next formatted line that is not part of the frame; *at moves behind it. */
static enum trace_kind next_item(char **at, struct trace_item *item)
{
    enum trace_kind kind = TRACE_FRAME;
    while (kind == TRACE_FRAME && *at < lines.bytes + lines.length) {
        char *line = *at;
        char *end = memchr(line, '\n', (size_t)(lines.bytes + lines.length - line));
        if (!end)
            end = lines.bytes + lines.length;
        *at = end + 1;
        /* In a file an object's comma is at the end of the line. */
        if (end > line && !(end - line == 1 && *line == ','))
            kind = trace_parse(line, (size_t)(end - line), item);
    }
    return kind;
}

static struct tk_trace_event random_event(struct unit_random *r)
{
    static const char *const places[] = {NULL, "/a/b.c", "c d.c", "quote\"back\\.c", "\xc3\xa4.c"};
    struct tk_trace_event event = {.begin = unit_below(r, 1000000) * UINT64_C(1000000007),
                                   .nbytes = unit_below(r, 3) ? unit_below(r, 1 << 30) : 0,
                                   .file = places[unit_below(r, 5)],
                                   .line = unit_below(r, 10000),
                                   .peer = unit_below(r, 3) ? unit_below(r, 9) : tk_trace_no_peer,
                                   .sequence = unit_below(r, 3),
                                   .op = (uint8_t)unit_below(r, tk_trace_ops),
                                   .path = (uint8_t)unit_below(r, tk_trace_paths + 1),
                                   .rail = (uint8_t)unit_below(r, 5),
                                   .handler = (uint8_t)unit_below(r, 256)};
    event.end = event.begin + unit_below(r, 1000000) * UINT64_C(1009);
    return event;
}

static void assert_event(const struct trace_item *item, const struct tk_trace_event *event,
                         bool has_text)
{
    assert_int_equal(item->begin, event->begin);
    assert_int_equal(item->ns, event->end - event->begin);
    assert_int_equal(item->bytes, has_text ? 0 : event->nbytes);
    assert_int_equal(item->rank, 3);
    assert_int_equal(item->thread, 5);
    assert_int_equal(item->peer, event->peer);
    assert_int_equal(item->op, event->op);
    assert_word(item->path, event->path ? tk_trace_path_names[event->path - 1] : "");
    assert_int_equal(item->rail, event->rail ? event->rail - 1U : trace_no_rail);
    char place[300] = "";
    if (event->file) {
        const char *slash = strrchr(event->file, '/');
        snprintf(place, sizeof(place), "%s:%u", slash ? slash + 1 : event->file, event->line);
    }
    assert_word(item->place, place);
}

static void what_is_written_is_read(void **state)
{
    struct unit_random r = unit_random(7);
    struct trace_item item;
    for (int i = 0; i < 4000; i++) {
        struct tk_trace_event event = random_event(&r);
        const char *text = unit_below(&r, 4) ? NULL : "a \"b\"\\ at=x:1 ns=7\n text=z \x80";
        struct tk_trace_source from = source;
        from.is_aligned = i & 2;
        lines.length = 0;
        tk_trace_put_event(&lines, &from, 5, &event, text, i & 1);
        char *at = lines.bytes;
        assert_int_equal(next_item(&at, &item), TRACE_EVENT);
        assert_event(&item, &event, text != NULL);
        assert_int_not_equal(next_item(&at, &item), TRACE_FOREIGN);
    }
}

/* Of one rail, of several, and of none as in files of earlier releases. */
static void rails_are_read(void **state)
{
    static const char list[] = "0:4096,1:1024,15:18446744073709551615";
    struct tk_trace_event event = {.end = 5, .nbytes = 5120, .peer = 1, .op = tk_trace_put};
    struct trace_rail rails[trace_rails_max];
    struct trace_item item;
    for (int json = 0; json < 2; json++) {
        char *at = lines.bytes;
        lines.length = 0;
        event.has_rails = true;
        tk_trace_put_event(&lines, &source, 5, &event, list, json);
        event.has_rails = false;
        event.rail = 64;
        tk_trace_put_event(&lines, &source, 5, &event, NULL, json);
        event.rail = 0;
        tk_trace_put_event(&lines, &source, 5, &event, NULL, json);
        assert_int_equal(next_item(&at, &item), TRACE_EVENT);
        assert_int_equal(item.bytes, 5120);
        assert_int_equal(item.text.length, 0);
        assert_int_equal(trace_rails_of(&item, rails), 3);
        assert_int_equal(rails[1].rail, 1);
        assert_int_equal(rails[1].bytes, 1024);
        assert_true(rails[2].rail == 15 && rails[2].bytes == UINT64_MAX);
        assert_int_equal(next_item(&at, &item), TRACE_EVENT);
        assert_int_equal(trace_rails_of(&item, rails), 1);
        assert_true(rails[0].rail == 63 && rails[0].bytes == 5120);
        assert_int_equal(next_item(&at, &item), TRACE_EVENT);
        assert_int_equal(trace_rails_of(&item, rails), 0);
    }
}

/* A connection overlaps calls: viewers get its two ends, and it is one event of the file. */
static void a_connection_is_one_event(void **state)
{
    const struct tk_trace_event event = {
        .begin = 7000, .end = 12000, .peer = 2, .rail = 2, .op = tk_trace_connect};
    struct trace_item item;
    char *at = lines.bytes;
    lines.length = 0;
    tk_trace_put_event(&lines, &source, 5, &event, NULL, true);
    lines.bytes[lines.length] = '\0';
    assert_string_equal(
        lines.bytes, ",\n{\"name\":\"connect\",\"cat\":\"I\",\"ph\":\"b\",\"id\":\"3-2.2@7000\","
                     "\"pid\":3,\"tid\":5,\"ts\":7.000,\"dur\":5.000,\"args\":{\"rank\":3,"
                     "\"peer\":2,\"rail\":1}},\n{\"name\":\"connect\",\"cat\":\"I\",\"ph\":\"e\","
                     "\"id\":\"3-2.2@7000\",\"pid\":3,\"tid\":5,\"ts\":12.000}");
    assert_int_equal(next_item(&at, &item), TRACE_EVENT);
    assert_true(item.op == tk_trace_connect && item.ns == 5000 && item.rail == 1);
    assert_int_equal(next_item(&at, &item), TRACE_FRAME);
}

static void marks_are_read(void **state)
{
    const struct tk_trace_clocks clocks = {12000000345, 99};
    struct tk_trace_source aligned = source;
    struct trace_item item;
    aligned.is_aligned = true;
    aligned.alignment.start = (struct tk_trace_offset){.at = 1, .ns = -70, .error = 30};
    aligned.alignment.end = (struct tk_trace_offset){.at = 2, .ns = 50, .error = 20};
    for (int json = 0; json < 2; json++) {
        lines.length = 0;
        tk_trace_put_start(&lines, &source, &clocks, json);
        tk_trace_put_end(&lines, &source, &clocks, 4, "signal 6", json);
        tk_trace_put_start(&lines, &aligned, &clocks, json);
        tk_trace_put_end(&lines, &aligned, &clocks, 4, "signal 6", json);
        char *at = lines.bytes;
        assert_int_equal(next_item(&at, &item), TRACE_START);
        assert_int_equal(item.rank, 3);
        assert_int_equal(item.size, 4);
        assert_word(item.host, "n\"1");
        assert_int_equal(next_item(&at, &item), TRACE_END);
        assert_int_equal(item.rank, 3);
        assert_word(item.how, "signal 6");
        assert_false(item.is_aligned);
        for (int end = 0; end < 2; end++) {
            assert_int_equal(next_item(&at, &item), end ? TRACE_END : TRACE_START);
            assert_true(item.is_aligned);
            assert_int_equal(item.error, 30);
        }
    }
}

static enum trace_kind parse(const char *text)
{
    /* A buffer exactly as long as the line, so that a sanitizer detects reads past its end. */
    size_t length = strlen(text);
    char *line = malloc(length ? length : 1);
    struct trace_item item;
    memcpy(line, text, length);
    enum trace_kind kind = trace_parse(line, length, &item);
    free(line);
    return kind;
}

static void what_is_not_a_trace_is_foreign(void **state)
{
    static const char *const foreign[] = {
        "",
        "#",
        "# begin rank=0",
        "# start size=2",
        "# start rank=0 size=x",
        "hello",
        "1.000000001 0 0 P put",
        "1.000000001 0 0 P put bytes=1",
        "1.000000001 0 0 P put ns=",
        "1.000000001 0 0 P put ns=1x",
        "1.000000001 0 0 P put ns=99999999999999999999",
        "1.000000001 0 0 G put ns=1",
        "1.000000001 0 0 P puts ns=1",
        "1.00000001 0 0 P put ns=1",
        "1.000000001 4294967296 0 P put ns=1",
        "99999999999999999999.000000001 0 0 P put ns=1",
        "1.000000001 0 0 P put ns=1 peer=-1",
        "1.000000001 0 0 P put ns=1 word",
        "1.000000001 0 0 P put ns=1 rail=64",
        "1.000000001 0 0 P put ns=1 rail=x",
        "1.000000001 0 0 P put ns=1 rails=0",
        "1.000000001 0 0 P put ns=1 rails=0:1,",
        "1.000000001 0 0 P put ns=1 rails=64:1",
        "1.000000001 0 0 P put ns=1 rails=0:1;1:2",
        "{",
        "{}",
        "{\"name\":\"put\"",
        "{\"name\":\"put\"}",
        "{\"name\":\"put\\",
        "{\"name\":\"put\\u00",
        "{\"name\":\"put\",\"cat\":\"P\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1.5,\"dur\":1."
        "000}",
        "{\"name\":\"put\",\"cat\":\"P\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1.500,\"dur\":1."
        "000}x",
        "{\"name\":\"put\",\"cat\":\"P\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":1.500,\"args\":{",
        "{\"ph\":\"B\"}",
        "[[",
    };
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
        if (parse(foreign[i]) != TRACE_FOREIGN)
            fail_msg("taken: %s", foreign[i]);
    assert_int_equal(parse("["), TRACE_FRAME);
    assert_int_equal(parse("{\"name\":\"trunkline\",\"ph\":\"M\",\"pid\":0},"), TRACE_FRAME);
    assert_int_equal(parse("1.000000001 0 0 P put ns=1 later=x"), TRACE_EVENT);
    assert_int_equal(parse("1.000000001  0 0 P put ns=1  peer=1"), TRACE_EVENT);
}

/* Each line, cut anywhere and with a byte changed: nothing beyond the line is read. */
static void damaged_lines_are_ignored(void **state)
{
    struct unit_random r = unit_random(11);
    for (int i = 0; i < 4000; i++) {
        struct tk_trace_event event = random_event(&r);
        lines.length = 0;
        tk_trace_put_event(&lines, &source, 5, &event, i & 2 ? "te\"xt" : NULL, i & 1);
        lines.bytes[lines.length] = '\0';
        char *line = lines.bytes + (i & 1 ? 2 : 0);
        line[strcspn(line, "\n")] = '\0';
        size_t length = strlen(line);
        line[unit_below(&r, (unsigned)length)] = (char)(1 + unit_below(&r, 255));
        line[unit_below(&r, (unsigned)length + 1)] = '\0';
        parse(line);
    }
}

/* ---- sums ---- */

static struct trace_summary summary;

static void add(uint64_t begin, uint64_t ns, uint32_t thread, enum tk_trace_op op, uint32_t peer)
{
    const struct trace_item item = {
        .begin = begin,
        .ns = ns,
        .bytes = 8,
        .rank = 1,
        .thread = thread,
        .peer = peer,
        .op = op,
        .rail = op == tk_trace_put || op == tk_trace_connect ? 3 : trace_no_rail,
        .place = {"a.c:1", 5}};
    assert_true(trace_summary_add(&summary, TRACE_EVENT, &item));
}

static void sums_are_right(void **state)
{
    memset(&summary, 0, sizeof(summary));
    trace_summary_next_file(&summary);
    add(10, 5, 0, tk_trace_put, 2);
    add(20, 5, 0, tk_trace_put, 2);
    add(21, 3, 1, tk_trace_put, 0);
    add(30, 10, 0, tk_trace_request_handler, 2); /* has nothing inside */
    add(15, 30, 0, tk_trace_connect, 2);         /* around nothing, and in nothing */
    add(19, 41, 0, tk_trace_event_wait, tk_trace_no_peer);
    add(90, 7, 0, tk_trace_lost, tk_trace_no_peer);
    trace_summary_next_file(&summary);
    add(5, 100, 0, tk_trace_get, 2); /* of another file: not around the others */
    const struct trace_operation *wait = &summary.operations[tk_trace_event_wait];
    assert_int_equal(wait->sum.ns, 41);
    assert_int_equal(wait->sum.own, 41 - 5 - 10);
    assert_int_equal(wait->begin, 19);
    assert_string_equal(wait->place, "a.c:1");
    assert_int_equal(summary.operations[tk_trace_put].sum.calls, 3);
    assert_int_equal(summary.operations[tk_trace_put].sum.ns, 13);
    assert_int_equal(summary.operations[tk_trace_put].sum.max, 5);
    assert_int_equal(summary.operations[tk_trace_put].sum.bytes, 24);
    assert_int_equal(summary.operations[tk_trace_get].sum.own, 100);
    assert_int_equal(summary.rails[3].calls, 3);
    assert_int_equal(summary.rails[3].bytes[TRACE_RAIL_PUT], 24);
    assert_int_equal(summary.rails[3].connections, 1);
    assert_int_equal(summary.events, 7);
    assert_int_equal(summary.lost, 8);
    assert_int_equal(summary.threads.count, 2);
    assert_int_equal(summary.lines.count, 5);
    const struct trace_entry *pair = trace_table_entry(&summary.pairs, 1, 2, "", 0);
    assert_int_equal(pair->sum.calls, 3);
    assert_int_equal(pair->sum.ns, 110);
    assert_int_equal(summary.pairs.count, 2);
    const struct trace_rank *rank = summary.ranks.entries[0].more;
    assert_int_equal(rank->waits, 26);
    assert_int_equal(rank->handlers, 10);
    assert_int_equal(rank->begin, 5);
    assert_int_equal(rank->end, 105);
    trace_summary_free(&summary);
}

/* More calls inside of one than are kept: no memory for each, and the sum is off by a few at most.
 */
static void long_calls_have_many_inside(void **state)
{
    enum { inside = 100000 };
    memset(&summary, 0, sizeof(summary));
    for (uint64_t i = 0; i < 10; i++)
        add(i, 1, 0, tk_trace_get, 2);
    for (uint64_t i = 0; i < inside; i++)
        add(100 + 2 * i, 1, 0, tk_trace_put, 2);
    add(99, 2 * inside + 5, 0, tk_trace_barrier, tk_trace_no_peer);
    uint64_t own = summary.operations[tk_trace_barrier].sum.own;
    assert_true(own >= inside + 5 - 10 && own <= 2 * inside + 5);
    add(400000, 1, 0, tk_trace_put, 2);
    add(300000, 200000, 0, tk_trace_barrier, tk_trace_no_peer);
    assert_int_equal(summary.operations[tk_trace_barrier].sum.own - own, 199999);
    trace_summary_free(&summary);
}

static void tables_find_what_they_have(void **state)
{
    struct trace_table table = {0};
    char name[16];
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 5000; i++) {
            snprintf(name, sizeof(name), "%u", i % 100);
            struct trace_entry *entry =
                trace_table_entry(&table, i / 1000, i % 1000, name, strlen(name));
            assert_non_null(entry);
            assert_int_equal(entry->sum.calls, round);
            entry->sum.calls++;
        }
    }
    assert_int_equal(table.count, 5000);
    trace_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(rails_are_read),
        cmocka_unit_test(a_connection_is_one_event),
        cmocka_unit_test(marks_are_read),
        cmocka_unit_test(what_is_not_a_trace_is_foreign),
        cmocka_unit_test(damaged_lines_are_ignored),
        cmocka_unit_test(sums_are_right),
        cmocka_unit_test(long_calls_have_many_inside),
        cmocka_unit_test(tables_find_what_they_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
