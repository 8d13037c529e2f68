/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of gasnetrun_ibv --top: its table and object over samples that are made here, and the
 * head's part (view.c) between a caller and guards that are made here too. */
#include "config.h"

#include "base/wait_record.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/hail.h"
#include "spawner/util/job.h"
#include "spawner/head/view.h"
#include "spawner/run/samples.h"
#include "spawner/run/top_table.h"
#include "spawner/wire/counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

enum { RANKS = 3 };

/* ---- table and object */

static struct counts_rank now_ranks[RANKS], former_ranks[RANKS];
static struct top_sample now, former;
static char *text;

static void set(struct counts_rank *r, const char *id, uint64_t value)
{
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        if (strcmp(tk_stats_rows[i].id, id) == 0) {
            r->values[i] = value;
            return;
        }
    fail_msg("there is no counter %s", id);
}

static struct counts_rank made(uint32_t pid)
{
    struct counts_rank r = {.pid = pid,
                            .is_there = 1,
                            .has_counters = 1,
                            .state = 'S',
                            .wait_peer = tk_wait_nobody,
                            .resident_kb = 2048,
                            .ns = 10 * SECOND};
    strcpy(r.host, "node");
    return r;
}

static int begin(void **state)
{
    now = (struct top_sample){.job = {.ranks = RANKS, .hosts = 1, .pid = 77, .program = "kv"},
                              .ranks = now_ranks};
    former = now;
    former.ranks = former_ranks;
    for (uint32_t i = 0; i < RANKS; i++) {
        now_ranks[i] = made(100 + i);
        former_ranks[i] = made(100 + i);
        former_ranks[i].ns = 8 * SECOND;
    }
    return 0;
}

static int end(void **state)
{
    free(text);
    text = NULL;
    return 0;
}

static const char *table(unsigned rows, unsigned columns, const struct top_sample *was)
{
    size_t size;
    free(text);
    struct top_screen screen = {
        .out = open_memstream(&text, &size), .rows = rows, .columns = columns};
    top_table(&screen, &now, was);
    fclose(screen.out);
    return text;
}

static const char *object(void)
{
    size_t size;
    free(text);
    FILE *out = open_memstream(&text, &size);
    top_json(out, &now);
    fclose(out);
    return text;
}

/* The nth line, from 0, in memory of its own until the next call. */
static const char *line(unsigned n)
{
    static char copy[1024];
    const char *at = text;
    while (n-- && at)
        at = (at = strchr(at, '\n')) ? at + 1 : NULL;
    assert_non_null(at);
    snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(at, "\n"), at);
    return copy;
}

static unsigned lines(void)
{
    unsigned count = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        count++;
    return count;
}

static void assert_has(const char *haystack, const char *needle)
{
    if (!strstr(haystack, needle))
        fail_msg("no '%s' in: %s", needle, haystack);
}

/* The value below a heading of the table; a column ends where its heading ends. */
static const char *cell(const char *heading, unsigned rank)
{
    static char value[64];
    const char *word = strstr(line(1), heading);
    assert_non_null(word);
    size_t stop = (size_t)(word - line(1)) + strlen(heading);
    const char *row = line(2 + rank);
    assert_true(strlen(row) >= stop);
    size_t from = stop;
    while (from > 0 && row[from - 1] != ' ')
        from--;
    snprintf(value, sizeof(value), "%.*s", (int)(stop - from), row + from);
    return value;
}

static void sums_since_the_start_and_rates_between_two_samples(void **state)
{
    set(&now_ranks[1], "short_requests", 700);
    set(&now_ranks[1], "medium_replies", 300);
    set(&former_ranks[1], "short_requests", 400);
    set(&now_ranks[1], "credit_wait_ns", SECOND);
    table(0, 0, NULL);
    assert_has(line(0), "gasnetrun_ibv: job 77, 3 processes of kv on 1 host, since the start");
    assert_string_equal(cell("MSGS", 1), "1000");
    assert_string_equal(cell("MSGS", 0), "0");
    assert_string_equal(cell("MSGS", 3), "1000"); /* of all */
    assert_string_equal(cell("STALLED", 1), "1.00s");
    table(0, 0, &former);
    assert_has(line(0), "per second");
    assert_string_equal(cell("MSGS/s", 1), "300"); /* 600 in 2 s */
    assert_string_equal(cell("STALLED", 1), "50.0%");
}

static void failovers_are_a_count_also_beside_rates(void **state)
{
    set(&now_ranks[0], "failovers", 3);
    set(&former_ranks[0], "failovers", 3);
    now_ranks[0].rails = 2;
    table(0, 0, &former);
    assert_string_equal(cell("FAILOVER", 0), "3");
    assert_string_equal(cell("RAILS", 0), "2");
    assert_string_equal(cell("RAILS", 1), "-");
}

/* A program that set its counters to 0, two samples of one time, and another process of that rank.
 */
static void rates_are_never_negative_nor_infinite(void **state)
{
    set(&now_ranks[0], "short_requests", 10);
    set(&former_ranks[0], "short_requests", 500);
    set(&now_ranks[1], "short_requests", 10);
    former_ranks[1].ns = now_ranks[1].ns;
    set(&now_ranks[2], "short_requests", 1000);
    set(&former_ranks[2], "short_requests", 900);
    former_ranks[2].pid = 5;
    table(0, 0, &former);
    assert_string_equal(cell("MSGS/s", 0), "0");
    assert_string_equal(cell("MSGS/s", 1), "0");
    assert_string_equal(cell("MSGS/s", 2), "100"); /* since its own start, 10 s ago */
}

static void large_numbers_keep_their_column(void **state)
{
    static const struct {
        uint64_t value;
        const char *shown;
    } cases[] = {{99999, "99999"},
                 {100000, "100.0k"},
                 {123456789, "123.5M"},
                 {UINT64_C(1234567890123), "1235G"},
                 {UINT64_MAX, "18447P"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(&now_ranks[0], "short_requests", cases[i].value);
        table(0, 0, NULL);
        assert_string_equal(cell("MSGS", 0), cases[i].shown);
        assert_string_equal(cell("MEMORY", 0), "2.0M");
    }
}

static const char *state_of(char process, uint32_t kind, char thread, bool is_done)
{
    now_ranks[0].state = process;
    now_ranks[0].wait_kind = kind;
    now_ranks[0].wait_state = thread;
    now_ranks[0].is_done = is_done;
    table(0, 0, NULL);
    static char word[16];
    assert_int_equal(sscanf(line(2), "%*u %*s %*u %15s", word), 1);
    return word;
}

static void states_have_words(void **state)
{
    assert_string_equal(state_of('S', TK_WAITS_NOT, 0, false), "sleeping");
    assert_string_equal(state_of('R', TK_WAITS_NOT, 0, false), "running");
    assert_string_equal(state_of('S', TK_WAITS_EVENT, 'R', false), "spinning");
    assert_string_equal(state_of('R', TK_WAITS_EVENT, 'S', false), "sleeping");
    assert_string_equal(state_of('R', TK_WAITS_EVENT, 'D', false), "blocked");
    assert_string_equal(state_of('T', TK_WAITS_EVENT, 'R', false), "stopped");
    assert_string_equal(state_of(0, TK_WAITS_NOT, 0, false), "gone");
    assert_string_equal(state_of(0, TK_WAITS_NOT, 0, true), "left");
    now_ranks[0].is_there = 0;
    assert_string_equal(state_of('R', TK_WAITS_NOT, 0, false), "unknown");
}

static void waits_have_peer_and_age_and_unknown_kinds_a_word(void **state)
{
    now_ranks[0].wait_kind = TK_WAITS_SEND;
    now_ranks[0].wait_peer = 7;
    now_ranks[0].wait_ns = 3 * SECOND / 2;
    now_ranks[1].wait_kind = 99;
    table(0, 0, NULL);
    assert_has(line(2), " to send 7, 1.5 s ");
    assert_has(line(3), " other, 0.0 s ");
    object();
    assert_has(text, "\"waits_for\":\"send\",\"wait_seconds\":1.500000,\"wait_peer\":7");
    assert_has(text, "\"waits_for\":\"other\",\"wait_seconds\":0.000000,\"seconds\"");
    assert_has(text, "\"waits_for\":null");
}

static void ranks_without_counters_say_why(void **state)
{
    now_ranks[0].has_counters = 0;
    strcpy(now_ranks[0].why, "its memory can't be read");
    now_ranks[1].has_counters = now_ranks[1].is_there = 0;
    now.job.silent = 1;
    table(0, 0, NULL);
    assert_has(line(0), "; 1 host has not answered in time");
    assert_has(line(2), " its memory can't be read");
    assert_has(line(3), " its host has not answered");
    object();
    assert_has(text, "\"silent_hosts\":1");
    assert_has(text, "\"counters\":null,\"why\":\"its memory can't be read\"}");
    assert_has(text, "\"counters\":null,\"why\":\"its host has not answered\"}");
}

static void small_terminals_cut_lines_and_ranks_but_not_the_sum(void **state)
{
    set(&now_ranks[2], "short_requests", 5);
    table(6, 0, NULL);
    assert_int_equal(lines(), 6);
    assert_has(line(4), "... and 1 more");
    assert_has(line(5), "   all ");
    assert_string_equal(cell("MSGS", 3), "5");
    table(0, 20, NULL);
    for (unsigned i = 0; i < lines(); i++)
        assert_true(strlen(line(i)) <= 20);
}

/* Under another launcher. */
static void ranks_elsewhere_are_counted_and_not_shown(void **state)
{
    now_ranks[1].is_elsewhere = 1;
    now.job.elsewhere = 1;
    set(&now_ranks[2], "short_requests", 5);
    table(0, 0, NULL);
    assert_has(line(0), "job of process 77, 2 of 3 processes of kv, on this host, since the start");
    assert_int_equal(lines(), 5);
    assert_has(line(3), "     2 ");
    assert_string_equal(cell("MSGS", 1), "5");
    table(5, 0, NULL);
    assert_has(line(3), "... and 1 more");
    object();
    assert_has(text, "\"rank\":0,");
    assert_has(text, "{\"rank\":2,");
    assert_null(strstr(text, "\"rank\":1,"));
}

/* Names come from other hosts. */
static void nothing_steers_a_terminal_or_breaks_the_object(void **state)
{
    strcpy(now_ranks[0].host, "a\033[2J\"\\");
    strcpy(now.job.program, "x\ny\"");
    table(0, 0, NULL);
    assert_null(strchr(text, '\033'));
    assert_int_equal(lines(), 2 + RANKS + 1);
    assert_has(line(0), "x?y\"");
    object();
    assert_int_equal(lines(), 1);
    assert_has(text, "\"host\":\"a\\u001b[2J\\\"\\\\\"");
    assert_has(text, "\"program\":\"x\\u000ay\\\"\"");
}

/* ---- the head's part */

static struct job_host hosts[2];
static struct job job;
static struct view v;
static int caller_end;
static unsigned asked;
static uint32_t last_question;
static bool is_second_there;

int hail_listen(const char *question)
{
    assert_string_equal(question, "top");
    return dup(STDERR_FILENO);
}

int hail_accept(int listener)
{
    int pair[2];
    (void)listener;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    caller_end = pair[1];
    return pair[0];
}

void tree_send(struct tree *t, uint32_t host, enum wire_type type, uint16_t aux, uint32_t rank,
               const void *payload, size_t length)
{
    (void)t, (void)host, (void)aux, (void)payload;
    assert_int_equal(type, WIRE_TOP);
    assert_int_equal(length, 0);
    asked++;
    last_question = rank;
}

static bool is_there(void *owner, uint32_t host)
{
    (void)owner;
    return host == 0 || is_second_there;
}

static int begin_view(void **state)
{
    hosts[0] = (struct job_host){.name = "one", .first = 0, .count = 2};
    hosts[1] = (struct job_host){.name = "two", .first = 2, .count = 1};
    job = (struct job){.ranks = RANKS, .host_count = 2, .hosts = hosts, .program = "/bin/kv"};
    v = (struct view){.job = &job, .is_there = is_there};
    asked = 0;
    is_second_there = true;
    caller_end = -1;
    view_open(&v);
    return 0;
}

static int end_view(void **state)
{
    view_close(&v);
    if (caller_end >= 0)
        close(caller_end);
    return 0;
}

static void counts_of(uint32_t rank)
{
    struct counts_rank r = made(1000 + rank);
    struct wire_frame f = {
        .type = WIRE_COUNTS, .rank = rank, .payload = (uint8_t *)&r, .length = sizeof(r)};
    assert_true(view_take(&v, &f));
}

static void host_is_done(uint32_t question)
{
    struct wire_frame f = {.type = WIRE_COUNTS_END, .rank = question};
    assert_true(view_take(&v, &f));
}

/* Takes the answer as a caller does; returns how long it was. */
static size_t take(struct counts_job *head, struct counts_rank *ranks)
{
    size_t size = sizeof(*head) + RANKS * sizeof(*ranks), length = 0;
    uint8_t *all = calloc(1, size + 1);
    assert_non_null(all);
    ssize_t n;
    while (length <= size &&
           (n = recv(caller_end, all + length, size + 1 - length, MSG_DONTWAIT)) > 0) {
        length += (size_t)n;
        if (v.phase == VIEW_GIVING)
            view_serve(&v);
    }
    memcpy(head, all, sizeof(*head));
    memcpy(ranks, all + sizeof(*head), RANKS * sizeof(*ranks));
    free(all);
    return length;
}

static void a_caller_gets_all_ranks_when_all_hosts_have_answered(void **state)
{
    struct counts_job head;
    struct counts_rank ranks[RANKS];
    view_serve(&v);
    assert_int_equal(asked, 2);
    assert_int_equal(v.phase, VIEW_ASKED);
    assert_int_equal(view_poll(&v).fd, -1); /* the next one waits */
    counts_of(0);
    counts_of(1);
    host_is_done(last_question);
    counts_of(2);
    assert_int_equal(v.phase, VIEW_ASKED);
    host_is_done(last_question);
    assert_int_equal(take(&head, ranks), sizeof(head) + sizeof(ranks));
    assert_int_equal(head.magic, COUNTS_MAGIC);
    assert_int_equal(head.rank_size, sizeof(struct counts_rank));
    assert_int_equal(head.ranks, RANKS);
    assert_int_equal(head.silent, 0);
    assert_string_equal(head.program, "kv");
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(ranks[i].pid, 1000 + i);
        assert_string_equal(ranks[i].host, i < 2 ? "one" : "two");
    }
    assert_int_equal(v.phase, VIEW_IDLE);
    assert_int_equal(view_poll(&v).fd, v.listener);
}

static void a_silent_host_is_counted_and_its_ranks_are_unknown(void **state)
{
    struct counts_job head;
    struct counts_rank ranks[RANKS];
    view_serve(&v);
    counts_of(0);
    counts_of(1);
    host_is_done(last_question);
    view_watch(&v); /* not yet due */
    assert_int_equal(v.phase, VIEW_ASKED);
    v.deadline = clock_ms() - 1;
    view_watch(&v);
    assert_int_equal(take(&head, ranks), sizeof(head) + sizeof(ranks));
    assert_int_equal(head.silent, 1);
    assert_int_equal(ranks[0].is_there, 1);
    assert_int_equal(ranks[2].is_there, 0);
    assert_string_equal(ranks[2].host, "two");
}

static void late_answers_do_not_count_for_the_next_question(void **state)
{
    struct counts_job head;
    struct counts_rank ranks[RANKS];
    view_serve(&v);
    uint32_t first = last_question;
    v.deadline = clock_ms() - 1;
    view_watch(&v);
    take(&head, ranks);
    close(caller_end);
    host_is_done(first); /* while nobody asks */
    view_serve(&v);
    assert_int_not_equal(last_question, first);
    host_is_done(first);
    host_is_done(first);
    assert_int_equal(v.phase, VIEW_ASKED);
    host_is_done(last_question);
    host_is_done(last_question);
    assert_int_equal(v.phase, VIEW_IDLE);
}

static void a_host_without_its_job_is_not_asked(void **state)
{
    struct counts_job head;
    struct counts_rank ranks[RANKS];
    is_second_there = false;
    view_serve(&v);
    assert_int_equal(asked, 1);
    host_is_done(last_question);
    assert_int_equal(take(&head, ranks), sizeof(head) + sizeof(ranks));
    assert_int_equal(ranks[2].is_there, 0);
}

static void wrong_frames_change_nothing(void **state)
{
    struct counts_rank r = made(1);
    struct wire_frame f = {
        .type = WIRE_COUNTS, .rank = RANKS, .payload = (uint8_t *)&r, .length = sizeof(r)};
    assert_true(view_take(&v, &f)); /* nobody asks */
    view_serve(&v);
    assert_true(view_take(&v, &f)); /* there is no such rank */
    f.rank = 0;
    f.length--;
    assert_true(view_take(&v, &f)); /* of another build */
    f.type = WIRE_STACK;
    assert_false(view_take(&v, &f));
    struct counts_rank there;
    memcpy(&there, v.answer.memory + v.answer.start + sizeof(struct counts_job), sizeof(there));
    assert_int_equal(there.is_there, 0);
}

/* A caller that is stopped or gone does not block other callers. */
static void a_caller_that_does_not_read_is_given_up(void **state)
{
    job.ranks = 4000; /* more than a socket holds */
    hosts[1].count = 3998;
    view_serve(&v);
    host_is_done(last_question);
    host_is_done(last_question);
    assert_int_equal(v.phase, VIEW_GIVING);
    assert_int_equal(view_poll(&v).events, POLLOUT);
    v.deadline = clock_ms() - 1;
    view_watch(&v);
    assert_int_equal(v.phase, VIEW_IDLE);
    assert_int_equal(view_deadline(&v), CLOCK_NEVER);
    close(caller_end);
    view_serve(&v);
    close(caller_end); /* before the answer */
    caller_end = -1;
    host_is_done(last_question);
    host_is_done(last_question);
    assert_int_equal(v.phase, VIEW_IDLE);
}

/* ---- samples for --report */

static unsigned samples_taken;
static int64_t next_wait;

static int64_t take_sample(void *samples, const uint8_t *answer)
{
    struct counts_job head;
    assert_ptr_equal(samples, &next_wait);
    memcpy(&head, answer, sizeof(head));
    assert_int_equal(head.ranks, RANKS);
    samples_taken++;
    return next_wait;
}

static void begin_samples(void)
{
    view_close(&v);
    v = (struct view){
        .job = &job, .is_there = is_there, .sample = take_sample, .samples = &next_wait};
    samples_taken = asked = 0;
    next_wait = 60000;
    view_open(&v);
}

static void samples_are_taken_at_intervals(void **state)
{
    begin_samples();
    assert_true(view_deadline(&v) > clock_ms());
    view_watch(&v); /* not yet due */
    assert_int_equal(asked, 0);
    v.sample_at = clock_ms() - 1;
    view_watch(&v);
    assert_int_equal(asked, 2);
    for (uint32_t i = 0; i < RANKS; i++)
        counts_of(i);
    host_is_done(last_question);
    host_is_done(last_question);
    assert_int_equal(samples_taken, 1);
    assert_int_equal(v.phase, VIEW_IDLE);
    assert_true(view_deadline(&v) > clock_ms() + next_wait / 2);
    next_wait = 0; /* no more are wanted */
    v.sample_at = clock_ms() - 1;
    view_watch(&v);
    host_is_done(last_question);
    host_is_done(last_question);
    assert_int_equal(samples_taken, 2);
    assert_true(view_deadline(&v) == CLOCK_NEVER);
}

/* Neither delays the other for longer than an answer takes. */
static void a_caller_waits_for_a_sample_and_gets_its_own_answer(void **state)
{
    struct counts_job head;
    struct counts_rank ranks[RANKS];
    begin_samples();
    v.sample_at = clock_ms() - 1;
    view_watch(&v);
    assert_int_equal(view_poll(&v).fd, -1);
    host_is_done(last_question);
    host_is_done(last_question);
    assert_int_equal(view_poll(&v).fd, v.listener);
    view_serve(&v);
    v.sample_at = clock_ms() - 1;
    view_watch(&v); /* the caller's answer is not due, and no sample is begun */
    assert_int_equal(asked, 4);
    host_is_done(last_question);
    host_is_done(last_question);
    assert_int_equal(take(&head, ranks), sizeof(head) + sizeof(ranks));
    assert_int_equal(samples_taken, 1);
}

static bool is_nobody_there(void *owner, uint32_t host)
{
    (void)owner, (void)host;
    return false;
}

static void a_job_that_is_over_has_no_samples(void **state)
{
    begin_samples();
    v.is_there = is_nobody_there;
    v.sample_at = clock_ms() - 1;
    view_watch(&v);
    assert_int_equal(samples_taken, 0);
    assert_int_equal(asked, 0);
    assert_true(view_deadline(&v) > clock_ms());
}

/* The job ids of the records that are kept, in order. */
static unsigned records_of(const struct samples *s, unsigned *ids, unsigned most)
{
    char *line = NULL;
    size_t size = 0;
    unsigned count = 0;
    rewind(s->file);
    while (getline(&line, &size, s->file) > 0 && count < most) {
        assert_int_equal(sscanf(line, "{\"job\":%u,", &ids[count]), 1);
        assert_int_equal(line[strlen(line) - 1], '\n');
        count++;
    }
    free(line);
    fseek(s->file, 0, SEEK_END);
    return count;
}

static void a_full_file_loses_every_second_record(void **state)
{
    enum { RECORD = 10000, TAKEN = 40 };
    struct samples s = {.parent = "/tmp", .full = 12 * RECORD, .period_ms = 1000};
    size_t size = sizeof(now.job) + sizeof(now_ranks);
    uint8_t *answer = malloc(size);
    unsigned ids[TAKEN + 1], count = 0;
    assert_non_null(answer);
    for (unsigned id = 1; id <= TAKEN; id++) {
        now.job.pid = id;
        memcpy(answer, &now.job, sizeof(now.job));
        memcpy(answer + sizeof(now.job), now_ranks, sizeof(now_ranks));
        assert_true(samples_take(&s, answer) > 0);
    }
    count = records_of(&s, ids, TAKEN + 1);
    assert_in_range(count, 4, TAKEN / 2);
    assert_true(ftell(s.file) <= s.full + 2 * RECORD);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[count - 1], TAKEN);
    for (unsigned i = 1; i < count; i++)
        assert_true(ids[i] > ids[i - 1]);
    assert_true(s.period_ms >= 2000);
    samples_close(&s);
    free(answer);
}

static void before_ranks_have_counters_nothing_is_kept(void **state)
{
    struct samples s = {.parent = "/nonexistent", .full = SAMPLES_BYTES, .period_ms = 1000};
    uint8_t answer[sizeof(now.job) + sizeof(now_ranks)];
    for (uint32_t i = 0; i < RANKS; i++)
        now_ranks[i].has_counters = 0;
    memcpy(answer, &now.job, sizeof(now.job));
    memcpy(answer + sizeof(now.job), now_ranks, sizeof(now_ranks));
    assert_int_equal(samples_take(&s, answer), 1000);
    assert_null(s.file);
}

static void samples_without_a_place_end(void **state)
{
    struct samples s = {.parent = "/nonexistent", .full = SAMPLES_BYTES, .period_ms = 1000};
    uint8_t answer[sizeof(now.job) + sizeof(now_ranks)];
    memcpy(answer, &now.job, sizeof(now.job));
    memcpy(answer + sizeof(now.job), now_ranks, sizeof(now_ranks));
    assert_int_equal(samples_take(&s, answer), 0);
    samples_close(&s);
}

int main(void)
{
    const struct CMUnitTest tables[] = {
        cmocka_unit_test_setup_teardown(sums_since_the_start_and_rates_between_two_samples, begin,
                                        end),
        cmocka_unit_test_setup_teardown(failovers_are_a_count_also_beside_rates, begin, end),
        cmocka_unit_test_setup_teardown(rates_are_never_negative_nor_infinite, begin, end),
        cmocka_unit_test_setup_teardown(large_numbers_keep_their_column, begin, end),
        cmocka_unit_test_setup_teardown(states_have_words, begin, end),
        cmocka_unit_test_setup_teardown(waits_have_peer_and_age_and_unknown_kinds_a_word, begin,
                                        end),
        cmocka_unit_test_setup_teardown(ranks_without_counters_say_why, begin, end),
        cmocka_unit_test_setup_teardown(small_terminals_cut_lines_and_ranks_but_not_the_sum, begin,
                                        end),
        cmocka_unit_test_setup_teardown(ranks_elsewhere_are_counted_and_not_shown, begin, end),
        cmocka_unit_test_setup_teardown(nothing_steers_a_terminal_or_breaks_the_object, begin, end),
    };
    const struct CMUnitTest views[] = {
        cmocka_unit_test_setup_teardown(a_caller_gets_all_ranks_when_all_hosts_have_answered,
                                        begin_view, end_view),
        cmocka_unit_test_setup_teardown(a_silent_host_is_counted_and_its_ranks_are_unknown,
                                        begin_view, end_view),
        cmocka_unit_test_setup_teardown(late_answers_do_not_count_for_the_next_question, begin_view,
                                        end_view),
        cmocka_unit_test_setup_teardown(a_host_without_its_job_is_not_asked, begin_view, end_view),
        cmocka_unit_test_setup_teardown(wrong_frames_change_nothing, begin_view, end_view),
        cmocka_unit_test_setup_teardown(a_caller_that_does_not_read_is_given_up, begin_view,
                                        end_view),
    };
    const struct CMUnitTest samples[] = {
        cmocka_unit_test_setup_teardown(samples_are_taken_at_intervals, begin_view, end_view),
        cmocka_unit_test_setup_teardown(a_caller_waits_for_a_sample_and_gets_its_own_answer,
                                        begin_view, end_view),
        cmocka_unit_test_setup_teardown(a_job_that_is_over_has_no_samples, begin_view, end_view),
        cmocka_unit_test_setup_teardown(a_full_file_loses_every_second_record, begin, end),
        cmocka_unit_test_setup_teardown(before_ranks_have_counters_nothing_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(samples_without_a_place_end, begin, end),
    };
    int failures = cmocka_run_group_tests_name("table", tables, NULL, NULL);
    failures += cmocka_run_group_tests_name("samples", samples, NULL, NULL);
    return failures + cmocka_run_group_tests_name("view", views, NULL, NULL);
}
