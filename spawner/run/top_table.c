/* SPDX-License-Identifier: BSD-3-Clause */
/* See top_table.h. No state. */
#include "config.h"

#include "top_table.h"

#include "base/wait_record.h"

#include <stdarg.h>
#include <string.h>

static const char *const wait_words[][2] = {
    [TK_WAITS_NOT] = {"-", ""},
    [TK_WAITS_EVENT] = {"event", "event"},
    [TK_WAITS_SOURCE] = {"source", "source"},
    [TK_WAITS_SEND] = {"to send", "send"},
    [TK_WAITS_RMA] = {"to post", "rma"},
    [TK_WAITS_CONDITION] = {"condition", "condition"},
    [TK_WAITS_LAUNCHER] = {"launcher", "launcher"},
    [TK_WAITS_LOCK] = {"lock", "lock"},
    [TK_WAITS_NAMED] = {"named barrier", "named_barrier"},
    [TK_WAITS_TEAM] = {"new team", "team"},
    [TK_WAITS_CONNECTION] = {"connection", "connection"},
};
enum { WAIT_WORDS = sizeof(wait_words) / sizeof(*wait_words) };

static const char *wait_word(const struct counts_rank *r, bool is_for_programs)
{
    return r->wait_kind < WAIT_WORDS ? wait_words[r->wait_kind][is_for_programs] : "other";
}

static const char *word_of(const struct counts_rank *r)
{
    char state = r->wait_kind ? r->wait_state : r->state;
    if (!r->is_there)
        return "unknown";
    if (!r->state)
        return r->is_done ? "left" : "gone";
    if (r->state == 'T' || r->state == 't')
        return "stopped";
    if (state == 'R')
        return r->wait_kind ? "spinning" : "running";
    return state == 'D' ? "blocked" : "sleeping";
}

/* ---- sums of counters */

static uint64_t sum_of(const struct counts_rank *r, const char *const *ids)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        for (const char *const *id = ids; *id; id++) {
            const char *name = tk_stats_rows[i].id;
            size_t n = strlen(*id);
            bool is_prefix = (*id)[n - 1] == '_';
            if (is_prefix ? strncmp(name, *id, n) == 0 : strcmp(name, *id) == 0)
                sum += r->values[i];
        }
    return sum;
}

enum { MESSAGES, RECEIVED, PUTS, GETS, BYTES, STALLED_NS, FAILOVERS, BACK, FIGURES };

/* Names of counters, or what they begin with. */
static const char *const figure_ids[FIGURES][8] = {
    [MESSAGES] = {"short_requests", "medium_requests", "long_requests", "short_replies",
                  "medium_replies", "long_replies"},
    [RECEIVED] = {"shorts_received", "mediums_received", "longs_received"},
    [PUTS] = {"puts_"},
    [GETS] = {"gets_"},
    [BYTES] = {"put_bytes_", "get_bytes_", "message_bytes_"},
    [STALLED_NS] = {"credit_wait_ns", "room_wait_ns"},
    [FAILOVERS] = {"failovers"},
    [BACK] = {"connections_back"}};

/* Of a rank: rates per second; without a former sample, sums. */
static void take_figures(const struct counts_rank *now, const struct counts_rank *former,
                         double *figures)
{
    double seconds = former ? ((double)now->ns - (double)former->ns) / 1e9 : 1;
    for (unsigned i = 0; i < FIGURES; i++) {
        uint64_t is = sum_of(now, figure_ids[i]);
        bool is_rate = former && i != FAILOVERS && i != BACK;
        uint64_t was = is_rate ? sum_of(former, figure_ids[i]) : 0;
        figures[i] = is >= was ? (double)(is - was) : 0; /* the program may have set them to 0 */
        if (is_rate)
            figures[i] = seconds > 0 ? figures[i] / seconds : 0;
    }
}

/* ---- text */

struct top_line {
    char text[512];
    size_t length;
};

static void put(struct top_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void put(struct top_line *line, const char *format, ...)
{
    size_t room = sizeof(line->text) - line->length;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line->text + line->length, room, format, args);
    va_end(args);
    if (n > 0)
        line->length += (size_t)n < room ? (size_t)n : room - 1;
}

static void end_line(const struct top_screen *s, struct top_line *line)
{
    size_t length = line->length;
    while (length && line->text[length - 1] == ' ')
        length--;
    if (s->columns && length > s->columns)
        length = s->columns;
    /* Text from other hosts must not contain control characters for the terminal. */
    for (size_t i = 0; i < length; i++)
        if (line->text[i] < ' ' || line->text[i] == 0x7f)
            line->text[i] = '?';
    fprintf(s->out, "%.*s%s\n", (int)length, line->text, s->is_terminal ? "\033[K" : "");
    line->length = 0;
}

/* In eight columns: four digits, or five where no unit is needed. */
static void put_number(struct top_line *line, double number)
{
    static const char units[] = " kMGTPE";
    unsigned unit = 0;
    while (number >= 99999.5 && units[unit + 1]) {
        number /= 1000;
        unit++;
    }
    if (unit == 0)
        put(line, " %8.0f", number);
    else
        put(line, " %7.*f%c", number < 1000 ? 1 : 0, number, units[unit]);
}

static void put_memory(struct top_line *line, uint64_t kb)
{
    double mib = (double)kb / 1024;
    put(line, mib < 99999 ? " %7.1fM" : " %7.0fM", mib);
}

static void put_figures(struct top_line *line, const double *figures, bool is_rate)
{
    for (unsigned i = MESSAGES; i <= BYTES; i++)
        put_number(line, figures[i]);
    if (is_rate)
        put(line, " %7.1f%%", figures[STALLED_NS] / 1e7);
    else
        put(line, " %7.2fs", figures[STALLED_NS] / 1e9);
}

static void put_wait(struct top_line *line, const struct counts_rank *r)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%s", wait_word(r, false));
    if (r->wait_kind && r->wait_peer != tk_wait_nobody)
        n += snprintf(text + n, sizeof(text) - (size_t)n, " %u", r->wait_peer);
    if (r->wait_kind)
        snprintf(text + n, sizeof(text) - (size_t)n, ", %.1f s", (double)r->wait_ns / 1e9);
    put(line, " %-22.22s", text);
}

static void put_rails(struct top_line *line, const struct counts_rank *r, const double *figures)
{
    if (r->rails)
        put(line, " %5u", r->rails);
    else
        put(line, "     -");
    put_number(line, figures[FAILOVERS]);
    put_number(line, figures[BACK]);
}

static void put_heading(struct top_line *line, bool is_rate)
{
    static const char *const names[2][6] = {
        {"MSGS", "HANDLED", "PUTS", "GETS", "BYTES", "STALLED"},
        {"MSGS/s", "HANDL/s", "PUTS/s", "GETS/s", "BYTES/s", "STALLED"}};
    put(line, "%6s %-12s %8s %-9s %-22s", "RANK", "HOST", "PID", "STATE", "WAITS FOR");
    for (unsigned i = 0; i < 6; i++)
        put(line, " %8s", names[is_rate][i]);
    put(line, " %5s %8s %8s %8s", "RAILS", "FAILOVER", "BACK", "MEMORY");
}

static void put_rank(struct top_line *line, uint32_t rank, const struct counts_rank *now,
                     const struct counts_rank *former, const double *figures)
{
    put(line, "%6u %-12.12s %8u %-9s", rank, now->host, now->pid, word_of(now));
    if (!now->has_counters) {
        put(line, " %s", now->is_there ? now->why : "its host has not answered");
        return;
    }
    put_wait(line, now);
    put_figures(line, figures, former != NULL);
    put_rails(line, now, figures);
    put_memory(line, now->resident_kb);
}

static void put_title(struct top_line *line, const struct counts_job *job, bool is_rate)
{
    const char *span = is_rate ? "per second" : "since the start";
    if (job->elsewhere)
        put(line, "gasnetrun_ibv: job of process %u, %u of %u processes of %s, on this host, %s",
            job->pid, job->ranks - job->elsewhere, job->ranks, job->program, span);
    else
        put(line, "gasnetrun_ibv: job %u, %u process%s of %s on %u host%s, %s", job->pid,
            job->ranks, job->ranks == 1 ? "" : "es", job->program, job->hosts,
            job->hosts == 1 ? "" : "s", span);
    if (job->silent)
        put(line, "; %u host%s not answered in time", job->silent,
            job->silent == 1 ? " has" : "s have");
}

static const struct counts_rank *former_of(const struct top_sample *former, uint32_t rank,
                                           const struct counts_rank *now)
{
    static const struct counts_rank none;
    const struct counts_rank *was = former ? &former->ranks[rank] : NULL;
    return was && (!was->has_counters || was->pid != now->pid) ? &none : was;
}

void top_table(const struct top_screen *s, const struct top_sample *now,
               const struct top_sample *former)
{
    struct top_line line = {.length = 0};
    double figures[FIGURES], all[FIGURES] = {0};
    uint64_t memory = 0;
    unsigned room = s->rows > 4 ? s->rows - 4 : s->rows ? 1 : UINT32_MAX;
    put_title(&line, &now->job, former != NULL);
    end_line(s, &line);
    put_heading(&line, former != NULL);
    end_line(s, &line);
    for (uint32_t i = 0, shown = 0; i < now->job.ranks; i++) {
        const struct counts_rank *was = former_of(former, i, &now->ranks[i]);
        if (now->ranks[i].is_elsewhere)
            continue;
        take_figures(&now->ranks[i], was, figures);
        for (unsigned f = 0; f < FIGURES; f++)
            all[f] += figures[f];
        memory += now->ranks[i].resident_kb;
        if (shown++ >= room)
            continue;
        put_rank(&line, i, &now->ranks[i], was, figures);
        end_line(s, &line);
    }
    if (now->job.ranks - now->job.elsewhere > room)
        put(&line, "%6s and %u more", "...", now->job.ranks - now->job.elsewhere - room);
    if (line.length)
        end_line(s, &line);
    put(&line, "%6s %-12s %8s %-9s %-22s", "all", "", "", "", "");
    put_figures(&line, all, former != NULL);
    put(&line, " %5s", "");
    put_number(&line, all[FAILOVERS]);
    put_number(&line, all[BACK]);
    put_memory(&line, memory);
    end_line(s, &line);
}

/* ---- for programs */

static void quote(FILE *out, const char *text)
{
    fputc('"', out);
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*c);
        else if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void json_rank(FILE *out, uint32_t rank, const struct counts_rank *r)
{
    fprintf(out, "{\"rank\":%u,\"host\":", rank);
    quote(out, r->host);
    fprintf(out, ",\"pid\":%u,\"state\":\"%s\",\"waits_for\":", r->pid, word_of(r));
    if (r->wait_kind) {
        fprintf(out, "\"%s\",\"wait_seconds\":%.6f", wait_word(r, true), (double)r->wait_ns / 1e9);
        if (r->wait_peer != tk_wait_nobody)
            fprintf(out, ",\"wait_peer\":%u", r->wait_peer);
    } else {
        fputs("null", out);
    }
    fprintf(out,
            ",\"seconds\":%.6f,\"threads\":%u,\"rails\":%u,\"memory_kb\":%llu"
            ",\"private_kb\":%llu,\"counters\":",
            (double)r->ns / 1e9, r->threads, r->rails, (unsigned long long)r->resident_kb,
            (unsigned long long)r->private_kb);
    if (!r->has_counters) {
        fputs("null,\"why\":", out);
        quote(out, r->is_there ? r->why : "its host has not answered");
        fputc('}', out);
        return;
    }
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        fprintf(out, "%c\"%s\":%llu", i ? ',' : '{', tk_stats_rows[i].id,
                (unsigned long long)r->values[i]);
    fputs("}}", out);
}

void top_json(FILE *out, const struct top_sample *now)
{
    fprintf(out, "{\"job\":%u,\"program\":", now->job.pid);
    quote(out, now->job.program);
    fprintf(out, ",\"size\":%u,\"hosts\":%u,\"silent_hosts\":%u,\"ranks\":[", now->job.ranks,
            now->job.hosts, now->job.silent);
    for (uint32_t i = 0, shown = 0; i < now->job.ranks; i++) {
        if (now->ranks[i].is_elsewhere)
            continue;
        if (shown++)
            fputc(',', out);
        json_rank(out, i, &now->ranks[i]);
    }
    fputs("]}\n", out);
}
