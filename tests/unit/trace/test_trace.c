/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events pass a ring in order, events that find no space are counted, and both output forms are
 * correct. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "trace/format.h"
#include "trace/ring.h"
#include "trace/trace_private.h"
#include "unit.h"

static const struct tk_trace_source source = {
    .rank = 3, .size = 4, .host = "n\"1", .boot = "b", .pid = 7};

static void text_of(uint64_t number, char *text)
{
    size_t length = number * 37 % tk_trace_text_max;
    memset(text, 'a' + (char)(number % 26), length);
    text[length] = '\0';
}

/* A thread that is sometimes faster and sometimes slower than the reader: events are taken in
 * order, and missing ones were counted. */
static void what_comes_out_went_in(void **state)
{
    struct tk_trace_ring *ring = calloc(1, sizeof(*ring));
    struct unit_random r = unit_random(3);
    uint64_t added = 0, taken = 0, next = 0;
    char wanted[tk_trace_text_max + 1], found[tk_trace_text_max + 1];
    struct tk_trace_event event = {.op = tk_trace_program};
    for (int round = 0; round < 60; round++) {
        for (unsigned n = unit_below(&r, 3000); n > 0; n--) {
            text_of(added, wanted);
            event.begin = added++;
            tk_trace_ring_add(ring, event, wanted, strlen(wanted));
        }
        for (unsigned n = unit_below(&r, 3000); n > 0; n--) {
            if (!tk_trace_ring_take(ring, &event, found, sizeof(found)))
                break;
            assert_true(event.begin >= next);
            next = event.begin + 1;
            text_of(event.begin, wanted);
            assert_string_equal(found, wanted);
            taken++;
        }
    }
    while (tk_trace_ring_take(ring, &event, found, sizeof(found)))
        taken++;
    assert_true(ring->lost > 0);
    assert_true(taken > tk_trace_ring_slots);
    assert_int_equal(taken + ring->lost, added);
    free(ring);
}

/* A list of rails takes slots as a text does, and the event keeps its bytes. */
static void a_list_of_rails_keeps_the_bytes(void **state)
{
    static const char list[] = "0:1048576,1:1048576,2:1048576,3:1048576,4:1048576,5:1048576";
    struct tk_trace_ring *ring = calloc(1, sizeof(*ring));
    struct tk_trace_event event = {.op = tk_trace_put, .nbytes = 6291456, .has_rails = true};
    char text[tk_trace_text_max + 1];
    assert_int_equal(tk_trace_ring_add(ring, event, list, sizeof(list)), 3);
    assert_true(tk_trace_ring_take(ring, &event, text, sizeof(text)));
    assert_int_equal(event.nbytes, 6291456);
    assert_string_equal(text, list);
    free(ring);
}

/* One that is full to the last slot loses nothing. */
static void a_ring_holds_all_its_slots(void **state)
{
    struct tk_trace_ring *ring = calloc(1, sizeof(*ring));
    struct tk_trace_event event = {.op = tk_trace_put};
    char text[8];
    for (uint64_t i = 0; i < tk_trace_ring_slots; i++)
        assert_int_equal(tk_trace_ring_add(ring, event, NULL, 0), i + 1);
    assert_int_equal(ring->lost, 0);
    tk_trace_ring_add(ring, event, NULL, 0);
    assert_int_equal(ring->lost, 1);
    assert_true(tk_trace_ring_take(ring, &event, text, sizeof(text)));
    tk_trace_ring_add(ring, event, NULL, 0);
    assert_int_equal(ring->lost, 1);
    free(ring);
}

static struct tk_text lines;

static void assert_lines(const char *wanted)
{
    lines.bytes[lines.length] = '\0';
    assert_string_equal(lines.bytes, wanted);
    lines.length = 0;
}

static void an_event_is_a_line_of_text(void **state)
{
    const struct tk_trace_event put = {.begin = 12000000345,
                                       .end = 12000000400,
                                       .nbytes = 8,
                                       .file = "/a/b.c",
                                       .line = 9,
                                       .peer = 1,
                                       .op = tk_trace_put_nb};
    const struct tk_trace_event line = {
        .begin = 5, .end = 5, .nbytes = 3, .peer = tk_trace_no_peer, .op = tk_trace_program};
    tk_trace_put_event(&lines, &source, 2, &put, NULL, false);
    assert_lines("12.000000345 3 2 P put_nb ns=55 peer=1 bytes=8 at=b.c:9\n");
    tk_trace_put_event(&lines, &source, 0, &line, "a\nb", false);
    assert_lines("0.000000005 3 0 H program ns=0 text=a b\n");
}

static void an_event_is_an_object_and_a_message_an_arrow(void **state)
{
    struct tk_trace_event event = {.begin = 1234567,
                                   .end = 1235567,
                                   .peer = 1,
                                   .sequence = 70000,
                                   .op = tk_trace_request_short,
                                   .handler = 200};
    tk_trace_put_event(&lines, &source, 2, &event, NULL, true);
    assert_lines(",\n{\"name\":\"request_short\",\"cat\":\"A\",\"ph\":\"X\",\"pid\":3,\"tid\":2,"
                 "\"ts\":1234.567,\"dur\":1.000,\"args\":{\"rank\":3,\"peer\":1,\"handler\":200,"
                 "\"seq\":70000}},\n{\"name\":\"message\",\"cat\":\"A\",\"ph\":\"s\","
                 "\"id\":\"3>1#70000\",\"pid\":3,\"tid\":2,\"ts\":1234.567}");
    event.op = tk_trace_request_handler;
    tk_trace_put_event(&lines, &source, 2, &event, NULL, true);
    assert_non_null(strstr((lines.bytes[lines.length] = '\0', lines.bytes),
                           "\"ph\":\"f\",\"bp\":\"e\",\"id\":\"1>3#70000\""));
    lines.length = 0;
}

/* Without the blanks that reserve space for longer times. */
static void squeeze(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++)
        if (*at != ' ' || !strchr(" ,}\n", at[1]))
            *to++ = *at;
    *to = '\0';
}

static struct tk_trace_event random_times(struct unit_random *r)
{
    struct tk_trace_event event = {
        .begin = TK_SECOND + unit_below(r, 2000000000), .peer = 1, .op = tk_trace_request_short};
    event.end = event.begin + unit_below(r, 1 + unit_below(r, 2000000000));
    return event;
}

static int64_t random_offset(struct unit_random *r)
{
    return (int64_t)unit_below(r, 40) * (int64_t)unit_below(r, 1000000000) -
           (int64_t)unit_below(r, 1000000000);
}

/* As if the offset at the end had been known from the beginning; a clock that is ahead or behind,
 * fast or slow, and times that gain or lose a digit. */
static void lines_are_corrected(void **state)
{
    static struct tk_text wanted;
    struct unit_random r = unit_random(11);
    for (int i = 0; i < 3000; i++) {
        struct tk_trace_source aligned = source;
        const struct tk_trace_offset end = {.at = 5 * TK_SECOND, .error = 7};
        struct tk_trace_offset last = end;
        bool json = i & 1;
        aligned.is_aligned = true;
        aligned.alignment.start =
            (struct tk_trace_offset){.at = TK_SECOND, .ns = random_offset(&r), .error = 5};
        last.ns =
            aligned.alignment.start.ns + (int64_t)unit_below(&r, 3000000000) - (int64_t)TK_SECOND;
        struct tk_trace_alignment both = aligned.alignment;
        bool is_other = tk_trace_align_end(&both, &last);
        assert_int_equal(tk_trace_error(&both) <= 12 + 7, true);
        lines.length = wanted.length = 0;
        for (int n = 0; n < 4; n++) {
            struct tk_trace_event event = random_times(&r);
            event.sequence = (uint32_t)n;
            const char *text = n == 3 ? "ts\":1.0,\"ts\":2 ns=3" : NULL;
            aligned.alignment.end.at = 0;
            tk_trace_put_event(&lines, &aligned, 2, &event, text, json);
            aligned.alignment = both;
            tk_trace_put_event(&wanted, &aligned, 2, &event, text, json);
            aligned.alignment.end.at = 0;
        }
        if (is_other)
            tk_trace_correct(&both, lines.bytes, lines.length, json);
        lines.bytes[lines.length] = wanted.bytes[wanted.length] = '\0';
        squeeze(lines.bytes);
        squeeze(wanted.bytes);
        assert_string_equal(lines.bytes, wanted.bytes);
    }
    lines.length = 0;
}

/* Text from the program can't corrupt the file. */
static void a_text_is_escaped(void **state)
{
    const struct tk_trace_event event = {.peer = tk_trace_no_peer, .op = tk_trace_program};
    tk_trace_put_event(&lines, &source, 0, &event, "\"\\\n\xe4", true);
    assert_lines(",\n{\"name\":\"program\",\"cat\":\"H\",\"ph\":\"X\",\"pid\":3,\"tid\":0,"
                 "\"ts\":0.000,\"dur\":0.000,\"args\":{\"rank\":3,"
                 "\"text\":\"\\\"\\\\\\u000a\\u00e4\"}}");
}

/* The longest event fits into the space that the writer reserves for one. */
static void the_longest_event_fits(void **state)
{
    char text[tk_trace_text_max], file[4096];
    struct tk_trace_event event = {.begin = UINT64_MAX,
                                   .end = UINT64_MAX - 1,
                                   .file = file,
                                   .line = UINT32_MAX,
                                   .peer = UINT32_MAX - 1,
                                   .sequence = UINT32_MAX,
                                   .op = tk_trace_request_handler,
                                   .handler = 255};
    memset(text, 1, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    memset(file, 1, sizeof(file));
    file[200] = '\0';
    tk_trace_put_event(&lines, &source, UINT32_MAX, &event, text, true);
    assert_true(lines.length < tk_trace_event_max);
    lines.length = tk_text_max - 3;
    tk_trace_put_event(&lines, &source, 0, &event, text, true);
    assert_int_equal(lines.length, tk_text_max);
    lines.length = 0;
}

static void *take_number(void *number)
{
    *(uint16_t *)number = tk_trace_number(1, 200, true);
    return NULL;
}

static uint16_t number_of_another_thread(void)
{
    pthread_t thread;
    uint16_t number;
    assert_int_equal(pthread_create(&thread, NULL, take_number, &number), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return number;
}

static void what_was_not_sent_uses_no_number(void **state)
{
    const struct tk_trace_plan plan = {.size = 2};
    assert_true(tk_trace_recorder_open(&plan));
    uint16_t first = tk_trace_number(1, 200, true);
    tk_trace_unsent();
    assert_int_equal(tk_trace_number(1, 200, true), first);
    assert_int_equal(number_of_another_thread(), first + 1);
    tk_trace_unsent(); /* too late */
    assert_int_equal(tk_trace_number(1, 200, true), first + 2);
    assert_int_equal(tk_trace_number(1, 200, false), 0);
    tk_trace_unsent();
    tk_trace_unsent();
    assert_int_equal(number_of_another_thread(), first + 3);
    tk_trace_recorder_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_not_sent_uses_no_number),
    cmocka_unit_test(what_comes_out_went_in),
    cmocka_unit_test(a_list_of_rails_keeps_the_bytes),
    cmocka_unit_test(a_ring_holds_all_its_slots),
    cmocka_unit_test(an_event_is_a_line_of_text),
    cmocka_unit_test(an_event_is_an_object_and_a_message_an_arrow),
    cmocka_unit_test(lines_are_corrected),
    cmocka_unit_test(a_text_is_escaped),
    cmocka_unit_test(the_longest_event_fits),
};

UNIT_MAIN(tests)
