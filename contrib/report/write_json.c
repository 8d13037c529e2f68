/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See write.h: the model as JSON. Tables are arrays of numbers in a fixed order, as page/base.js
 * names it, because names would be most of the file. Parts that the input does not have are null,
 * and "missing" says which setting gives them. */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/report/rules.h"
#include "contrib/report/write.h"

enum { rows_max = 64, lines_max = 50, calls_max = 400 };

/* ---- strings ---- */

/* Bytes of the character at `at`; 0: not UTF-8. */
static unsigned utf8_length(const unsigned char *at, unsigned *code)
{
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    *code = at[0] & ~(unsigned)lead[length] & 0x3f;
    for (unsigned i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    bool is_surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < least[length] || *code > 0x10ffff || is_surrogate ? 0 : length;
}

/* Controls, and what changes the direction of text or ends lines. */
static bool is_unsafe(unsigned code)
{
    return code < 0xa0 || (code >= 0x200b && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
           code == 0xfeff;
}

void report_write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        unsigned code, length;
        if (*at >= 0x80) {
            length = utf8_length(at, &code);
            if (length == 0 || is_unsafe(code))
                fputs("\\ufffd", out);
            else
                fwrite(at, 1, length, out);
            at += length ? length : 1;
            continue;
        }
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f || strchr("<>&'", *at))
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
        at++;
    }
    fputc('"', out);
}

static void member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\":", name);
    report_write_string(out, text);
}

/* ---- ranks ---- */

/* "hosts": names; each rank has the index of its own in `index`. False: no memory. */
static bool write_hosts(FILE *out, const struct report_model *model, uint32_t size, uint32_t *index)
{
    struct trace_table hosts = {0};
    bool is_good = true;
    fputs("\"hosts\":[", out);
    for (uint32_t i = 0; i < size && i < model->rank_count; i++) {
        const char *host = model->ranks[i].host;
        size_t count = hosts.count;
        const struct trace_entry *entry = trace_table_entry(&hosts, 0, 0, host, strlen(host));
        if (!entry) {
            is_good = false;
            break;
        }
        index[i] = (uint32_t)(entry - hosts.entries);
        if (hosts.count == count)
            continue;
        fputs(count ? "," : "", out);
        report_write_string(out, host);
    }
    fputs("],", out);
    trace_table_free(&hosts);
    return is_good;
}

/* Traces of all ranks in order have rank N as entry N. */
static const struct trace_entry *entry_of(const struct trace_table *table, uint64_t first)
{
    if (first < table->count && table->entries[first].first == first)
        return &table->entries[first];
    for (size_t i = 0; i < table->count; i++)
        if (table->entries[i].first == first)
            return &table->entries[i];
    return NULL;
}

/* Events, span, calls, waits, handlers and lost events; times in ns. */
static void write_trace_of_rank(FILE *out, const struct report_model *model, uint32_t rank)
{
    const struct trace_entry *entry = entry_of(&model->trace.ranks, rank);
    const struct trace_rank *more = entry ? entry->more : NULL;
    if (!model->ranks[rank].is_traced || !more) {
        fputs("null", out);
        return;
    }
    fprintf(out, "[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
            entry->sum.calls, more->end - more->begin, entry->sum.own, more->waits, more->handlers,
            more->lost);
}

static void write_counters(FILE *out, const struct report_rank *rank)
{
    if (!rank->counters) {
        fputs("null", out);
        return;
    }
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        fprintf(out, "%c%" PRIu64, i ? ',' : '[', rank->counters[i]);
    fputc(']', out);
}

static void write_state(FILE *out, const struct report_rank *rank)
{
    if (!rank->was_seen) {
        fputs("null", out);
        return;
    }
    fputc('{', out);
    member(out, "state", rank->state);
    fputc(',', out);
    member(out, "for", rank->waits_for);
    if (rank->wait_peer != tk_trace_no_peer)
        fprintf(out, ",\"peer\":%u", rank->wait_peer);
    fprintf(out, ",\"micros\":%" PRIu64 ",\"rails\":%u,\"memory\":%" PRIu64 "}", rank->wait_micros,
            rank->rails, rank->memory_kb);
}

static void write_ranks(FILE *out, const struct report_model *model, uint32_t size,
                        const uint32_t *index)
{
    static const char *const sources[] = {"", "top", "stats"};
    const char *before = "";
    fputs("\"ranks\":[", out);
    for (uint32_t i = 0; i < size && i < model->rank_count; i++) {
        const struct report_rank *rank = &model->ranks[i];
        if (!rank->is_known)
            continue;
        fprintf(out,
                "%s\n{\"rank\":%u,\"host\":%u,\"pid\":%u,\"source\":\"%s\",\"micros\":%" PRIu64 ",",
                before, i, index[i], rank->pid, sources[rank->source], rank->micros);
        member(out, "how", rank->how);
        fputs(",\"now\":", out);
        write_state(out, rank);
        fputs(",\"trace\":", out);
        write_trace_of_rank(out, model, i);
        fputs(",\"counters\":", out);
        write_counters(out, rank);
        fputc('}', out);
        before = ",";
    }
    fputs("],\n", out);
}

static void write_columns(FILE *out)
{
    fputs("\"counters\":[", out);
    for (unsigned i = 0; i < tk_stats_row_count; i++) {
        const struct tk_stats_row *row = &tk_stats_rows[i];
        fprintf(out, "%s\n[\"%s\",\"%c\",\"%s\",\"%s\",%d]", i ? "," : "", row->id, row->letter,
                row->unit, row->name, row->is_path);
    }
    fputs("],\n", out);
}

/* ---- histograms ---- */

/* Number and value of those that are not 0. */
static void write_bins(FILE *out, const uint64_t *bins, unsigned count)
{
    const char *before = "";
    fputc('[', out);
    for (unsigned i = 0; i < count; i++) {
        if (bins[i] == 0)
            continue;
        fprintf(out, "%s[%u,%" PRIu64 "]", before, i, bins[i]);
        before = ",";
    }
    fputc(']', out);
}

/* Sizes by path, over all ranks; an exact count by a rank's statistics. */
static void write_sizes(FILE *out, const struct report_model *model)
{
    const char *before = "";
    fputs("\"sizes\":[", out);
    for (unsigned row = 0; row < tk_stats_row_count; row++) {
        uint64_t bins[tk_size_classes] = {0}, all = 0;
        if (!tk_stats_rows[row].is_path)
            continue;
        for (uint32_t i = 0; i < model->rank_count; i++)
            for (unsigned k = 0; model->ranks[i].sizes && k < tk_size_classes; k++) {
                bins[k] += model->ranks[i].sizes->paths[tk_stats_rows[row].index][k];
                all += model->ranks[i].sizes->paths[tk_stats_rows[row].index][k];
            }
        if (all == 0)
            continue;
        fprintf(out, "%s\n[%u,", before, row);
        write_bins(out, bins, tk_size_classes);
        fputc(']', out);
        before = ",";
    }
    fputs("],\n", out);
}

/* Times and bytes of calls, by operation and path. */
static void write_calls(FILE *out, const struct report_model *model)
{
    const struct trace_table *table = &model->calls;
    fputs("\"calls\":[", out);
    for (size_t i = 0; i < table->count && i < calls_max; i++) {
        const struct trace_entry *entry = &table->entries[i];
        const struct report_calls *calls = entry->more;
        fprintf(out, "%s\n[\"%s\",", i ? "," : "", trace_op_name((enum tk_trace_op)entry->first));
        report_write_string(out, entry->name);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", entry->sum.calls, entry->sum.ns,
                entry->sum.bytes);
        write_bins(out, calls->times, 64);
        fputc(',', out);
        write_bins(out, calls->bytes, tk_size_classes);
        fputc(']', out);
    }
    fputs("],\n", out);
}

/* ---- the matrix ---- */

static void write_paths(FILE *out)
{
    static const char *const names[REPORT_RAILS] = {"over the network", "in shared memory",
                                                    "to itself", "path not in the file",
                                                    "several rails"};
    for (unsigned i = 0; i < REPORT_RAILS; i++)
        fprintf(out, "%s\"%s\"", i ? "," : "", names[i]);
    for (unsigned i = 0; i < report_rails_max; i++)
        fprintf(out, i + 1 < report_rails_max ? ",\"rail %u\"" : ",\"rails from %u\"", i);
}

/* Rail, calls, bytes of puts, of gets, of messages and of others, connections. */
static void write_rails(FILE *out, const struct trace_summary *trace)
{
    const char *before = "";
    fputs("\"rails\":[", out);
    for (unsigned i = 0; i < trace_rails_max; i++) {
        const struct trace_rail_sum *rail = &trace->rails[i];
        if (!rail->calls && !rail->connections)
            continue;
        fprintf(out, "%s[%u,%" PRIu64, before, i, rail->calls);
        for (unsigned k = 0; k < trace_rail_classes; k++)
            fprintf(out, ",%" PRIu64, rail->bytes[k]);
        fprintf(out, ",%" PRIu64 "]", rail->connections);
        before = ",";
    }
    fputs("],", out);
}

/* From, to, kind, path, operations, bytes. */
static void write_matrix(FILE *out, const struct report_model *model)
{
    const struct report_matrix *m = &model->matrix;
    const char *before = "";
    if (!m->is_used) {
        fputs("\"matrix\":null,\n", out);
        return;
    }
    fprintf(out,
            "\"matrix\":{\"per\":%llu,\"kinds\":[\"puts and gets\",\"messages\","
            "\"atomics, non-contiguous\"],\"paths\":[",
            1ULL << m->shift);
    write_paths(out);
    fputs("],", out);
    write_rails(out, &model->trace);
    fputs("\"cells\":[", out);
    for (unsigned at = 0; at < report_cells * report_cells; at++)
        for (unsigned layer = 0; layer < report_kinds * report_paths; layer++) {
            unsigned from = at / report_cells, to = at % report_cells;
            unsigned kind = layer / report_paths, path = layer % report_paths;
            const struct report_cell *cell = &m->cells[kind][path][from][to];
            if (cell->count == 0)
                continue;
            fprintf(out, "%s[%u,%u,%u,%u,%" PRIu64 ",%" PRIu64 "]", before, from, to, kind, path,
                    cell->count, cell->bytes);
            before = ",";
        }
    fputs("]},\n", out);
}

/* ---- the time line ---- */

/* One character of 64 for the share of each slice, without the empty ones at the end. A share above
 * 0 is never shown as 0. */
static void write_shares(FILE *out, const uint64_t *ns, uint64_t whole)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
    unsigned count = report_slices;
    while (count > 0 && ns[count - 1] == 0)
        count--;
    fputc('"', out);
    for (unsigned i = 0; i < count; i++) {
        double share = (double)ns[i] / (double)whole * 63;
        unsigned digit = share >= 63 ? 63 : (unsigned)(share + 0.5);
        fputc(digits[digit == 0 && ns[i] ? 1 : digit], out);
    }
    fputc('"', out);
}

static void write_group(FILE *out, const struct report_timeline *t, uint32_t first, uint32_t last)
{
    static uint64_t ns[report_activities][report_slices];
    uint64_t threads = 0;
    memset(ns, 0, sizeof(ns));
    for (uint32_t rank = first; rank <= last && rank < t->row_of_room; rank++) {
        if (!t->row_of[rank])
            continue;
        const struct report_row *row = &t->rows[t->row_of[rank] - 1];
        threads += row->thread_count;
        for (unsigned i = 0; i < report_slices; i++)
            for (unsigned a = 0; a < report_activities; a++)
                ns[a][i] += row->slices[i][a];
    }
    /* A slice has no more than its time, even if the nesting of calls was not recognized. */
    uint64_t whole = (threads ? threads : 1) << t->shift;
    for (unsigned i = 0; i < report_slices; i++) {
        uint64_t all = 0;
        for (unsigned a = 0; a < report_activities; a++)
            all += ns[a][i];
        for (unsigned a = 0; a < report_activities && all > whole; a++)
            ns[a][i] = (uint64_t)((double)ns[a][i] / (double)all * (double)whole);
    }
    fprintf(out, "\n{\"first\":%u,\"last\":%u,\"threads\":%" PRIu64 ",\"shares\":[", first, last,
            threads);
    for (unsigned a = 0; a < report_activities; a++) {
        fputs(a ? "," : "", out);
        write_shares(out, ns[a], whole);
    }
    fputs("]}", out);
}

static void write_groups(FILE *out, const struct report_timeline *t)
{
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < t->row_of_room; i++)
        if (t->row_of[i])
            ranks = i + 1;
    uint32_t per = 1;
    while ((ranks + per - 1) / per > rows_max)
        per *= 2;
    fprintf(out, "\"per\":%u,\"rows\":[", per);
    for (uint32_t first = 0; first < ranks; first += per) {
        fputs(first ? "," : "", out);
        write_group(out, t, first, first + per <= ranks ? first + per - 1 : ranks - 1);
    }
    fputs("],", out);
}

/* Rank, thread, operation, activity, begin since that of the time line, ns, peer or -1, bytes and
 * place. */
static void write_longest(FILE *out, const struct report_timeline *t)
{
    const char *before = "";
    fputs("\"calls\":[", out);
    for (size_t r = 0; r < t->row_count; r++)
        for (size_t i = 0; i < t->rows[r].longest_count; i++) {
            const struct report_call *call = &t->rows[r].longest[i];
            fprintf(out, "%s[%u,%u,%d,%d,%" PRIu64 ",%" PRIu64, before, t->rows[r].rank,
                    call->thread, (int)call->op, (int)call->activity, call->begin - t->begin,
                    call->ns);
            if (call->peer != tk_trace_no_peer || call->bytes || call->place[0])
                fprintf(out, ",%" PRId64 ",%" PRIu64,
                        call->peer == tk_trace_no_peer ? INT64_C(-1) : (int64_t)call->peer,
                        call->bytes);
            if (call->place[0]) {
                fputc(',', out);
                report_write_string(out, call->place);
            }
            fputc(']', out);
            before = ",";
        }
    fputs("],\n", out);
}

static void write_messages(FILE *out, const struct report_timeline *t)
{
    const char *before = "";
    fprintf(out, "\"sent\":%" PRIu64 ",\"messages\":[", t->messages_seen);
    for (size_t i = 0; t->messages && i < report_message_slots; i++) {
        const struct report_message *m = &t->messages[i];
        if (!m->sequence || !m->sent || !m->handled)
            continue;
        fprintf(out, "%s[%u,%u,%" PRIu64 ",%" PRId64 "]", before, m->from, m->to,
                m->sent - t->begin, (int64_t)(m->handled - m->sent));
        before = ",";
    }
    fputs("],\n\"marks\":[", out);
    for (size_t i = 0; i < t->mark_count; i++) {
        fprintf(out, "%s[%u,%" PRIu64 ",", i ? "," : "", t->marks[i].rank,
                t->marks[i].at - t->begin);
        report_write_string(out, t->marks[i].text);
        fputc(']', out);
    }
    fputs("]", out);
}

/* A connection: rank, peer, rail, begin since that of the time line, ns. */
static void write_tracks(FILE *out, const struct report_timeline *t)
{
    const struct report_tracks *tracks = &t->tracks;
    fputs(",\n\"connecting\":", out);
    write_bins(out, tracks->values[REPORT_TRACK_CONNECTING], report_slices);
    fputs(",\"registering\":", out);
    write_bins(out, tracks->values[REPORT_TRACK_REGISTERING], report_slices);
    fputs(",\"rails\":[", out);
    for (unsigned i = 0; i < report_rails_max; i++) {
        fputs(i ? "," : "", out);
        write_bins(out, tracks->values[REPORT_TRACK_RAILS + i], report_slices);
    }
    fprintf(out, "],\"connected\":%" PRIu64 ",\"connections\":[", tracks->connections_seen);
    for (size_t i = 0; i < tracks->connection_count; i++) {
        const struct report_connection *c = &tracks->connections[i];
        fprintf(out, "%s[%u,%u,%d,%" PRIu64 ",%" PRIu64 "]", i ? "," : "", c->rank, c->peer,
                c->rail == trace_no_rail ? -1 : (int)c->rail, c->begin - t->begin, c->ns);
    }
    fputc(']', out);
}

static void write_timeline(FILE *out, const struct report_model *model)
{
    const struct report_timeline *t = &model->timeline;
    if (!t->is_used) {
        fputs("\"timeline\":null,\n", out);
        return;
    }
    fprintf(out,
            "\"timeline\":{\"begin\":%" PRIu64 ",\"span\":%" PRIu64 ",\"slice\":%llu,"
            "\"offset\":%" PRId64 ",\"activities\":[",
            t->begin, t->end - t->begin, 1ULL << t->shift,
            (int64_t)((t->first << t->shift) - t->begin));
    for (unsigned a = 0; a < report_activities; a++)
        fprintf(out, "%s\"%s\"", a ? "," : "", report_activity_name((enum report_activity)a));
    fputs("],\"operations\":[", out);
    for (unsigned op = 0; op < tk_trace_ops; op++)
        fprintf(out, "%s\"%s\"", op ? "," : "", trace_op_name((enum tk_trace_op)op));
    fputs("],\n", out);
    write_groups(out, t);
    write_longest(out, t);
    write_messages(out, t);
    write_tracks(out, t);
    fputs("},\n", out);
}

/* ---- tables ---- */

static int compare_own(const void *left, const void *right)
{
    const struct trace_entry *a = *(const struct trace_entry *const *)left;
    const struct trace_entry *b = *(const struct trace_entry *const *)right;
    return (a->sum.own < b->sum.own) - (a->sum.own > b->sum.own);
}

/* Operation, FILE:LINE, calls, ns, own ns, longest, bytes. */
static bool write_lines(FILE *out, const struct report_model *model)
{
    const struct trace_table *table = &model->trace.lines;
    const struct trace_entry **list = malloc((table->count + 1) * sizeof(*list));
    if (!list)
        return false;
    for (size_t i = 0; i < table->count; i++)
        list[i] = &table->entries[i];
    qsort(list, table->count, sizeof(*list), compare_own);
    fprintf(out, "\"line_count\":%zu,\"lines\":[", table->count);
    for (size_t i = 0; i < table->count && i < lines_max; i++) {
        const struct trace_sum *sum = &list[i]->sum;
        fprintf(out, "%s\n[\"%s\",", i ? "," : "", trace_op_name((enum tk_trace_op)list[i]->first));
        report_write_string(out, list[i]->name);
        fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", sum->calls,
                sum->ns, sum->own, sum->max, sum->bytes);
    }
    fputs("],\n", out);
    free(list);
    return true;
}

/* Time, the figures in the order of enum report_figure, ranks, rails and memory. */
static void write_samples(FILE *out, const struct report_model *model)
{
    fputs("\"samples\":[", out);
    for (size_t i = 0; i < model->sample_count; i++) {
        const struct report_sample *s = &model->samples[i];
        fprintf(out, "%s[%" PRIu64, i ? "," : "", s->micros);
        for (unsigned f = 0; f < report_figures; f++)
            fprintf(out, ",%" PRIu64, s->figures[f]);
        fprintf(out, ",%u,%u,%u,%" PRIu64 "]", s->ranks, s->rails_min, s->rails_max, s->memory_kb);
    }
    fputs("],\n", out);
}

static void write_settings(FILE *out, const struct report_model *model)
{
    fputs(model->has_settings ? "\"settings\":[" : "\"settings\":null", out);
    for (size_t i = 0; i < model->setting_count; i++) {
        fputs(i ? ",[" : "[", out);
        report_write_string(out, model->settings[i].name);
        fputc(',', out);
        report_write_string(out, model->settings[i].value);
        fputc(']', out);
    }
    fputs(model->has_settings ? "],\n" : ",\n", out);
}

/* ---- findings, and what is missing ---- */

static bool write_findings(FILE *out, const struct report_model *model)
{
    static const char *const weights[] = {"note", "warning", "error"};
    struct findings findings;
    if (!findings_of(model, &findings))
        return false;
    fputs("\"findings\":[", out);
    for (size_t i = 0; i < findings.count; i++) {
        const struct finding *f = &findings.list[i];
        fprintf(out, "%s\n{\"rule\":\"%s\",\"weight\":\"%s\",", i ? "," : "", f->rule,
                weights[f->weight]);
        member(out, "setting", f->setting);
        fputc(',', out);
        member(out, "sentence", f->sentence);
        fputs(",\"evidence\":[", out);
        for (unsigned k = 0; k < f->evidence_count; k++) {
            fputs(k ? ",[" : "[", out);
            report_write_string(out, f->evidence[k].what);
            fputc(',', out);
            report_write_string(out, f->evidence[k].value);
            fputc(']', out);
        }
        fputs("]}", out);
    }
    fputs("],\n", out);
    findings_free(&findings);
    return true;
}

static bool has_counters(const struct report_model *model)
{
    for (uint32_t i = 0; i < model->rank_count; i++)
        if (model->ranks[i].counters)
            return true;
    return false;
}

static void write_missing(FILE *out, const struct report_model *model)
{
    const struct {
        bool is_missing;
        const char *part, *sentence;
    } rows[] = {
        {!model->timeline.is_used, "trace",
         "No trace: who talks to whom, the time line, times of calls and source lines are not "
         "known. A trace library and GASNET_TRACEFILE=NAME-%.json give them."},
        {!has_counters(model), "counters",
         "No statistics: sizes by path and the balance of ranks are not known. "
         "GASNET_STATSFILE=NAME-%.json gives them."},
        {model->timeline.is_used && model->trace.lines.count == 0, "lines",
         "No source lines: the program does not set them (GASNETT_TRACE_SETSOURCELINE)."},
        {model->sample_count < 2, "samples",
         "Nothing over time: rates, rails and failovers need two records of gasnetrun_ibv --top "
         "--json of the running job; --report takes one each second."},
        {!model->has_settings, "settings",
         "Settings are not known: statistics of this release as .json have those that differ from "
         "their defaults."}};
    const char *before = "";
    fputs("\"missing\":{", out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (!rows[i].is_missing)
            continue;
        fputs(before, out);
        member(out, rows[i].part, rows[i].sentence);
        before = ",";
    }
    fputs("},\n", out);
}

/* Warnings about the input itself. */
static void write_notes(FILE *out, const struct report_model *model)
{
    const char *before = "";
    fputs("\"notes\":[", out);
    if (model->cut > 0) {
        fprintf(out, "\"%" PRIu64 " file%s within a line: the rest is not in this report.\"",
                model->cut, model->cut == 1 ? " ends" : "s end");
        before = ",";
    }
    if (model->has_text)
        fprintf(out,
                "%s\"Statistics as text have times in whole microseconds; a name that ends in "
                ".json has them in ns.\"",
                before);
    fputs("],\n", out);
}

bool report_write_json(FILE *out, const struct report_model *model, bool is_live)
{
    uint32_t size = report_size(model);
    uint32_t *index = calloc(size + 1, sizeof(*index));
    if (!index)
        return false;
    fputs("{", out);
    member(out, "title", model->title);
    fputc(',', out);
    member(out, "program", model->program);
    fprintf(out,
            ",\"release\":\"%s\",\"live\":%s,\"size\":%u,\"files\":[%u,%u,%u],"
            "\"silent_hosts\":%u,\"events\":%" PRIu64 ",\"lost\":%" PRIu64 ",\n",
            PACKAGE_STRING, is_live ? "true" : "false", size, model->stats_files,
            model->trace_files, model->top_files, model->silent_hosts, model->trace.events,
            model->trace.lost);
    bool is_done = write_hosts(out, model, size, index);
    write_columns(out);
    write_ranks(out, model, size, index);
    write_sizes(out, model);
    write_calls(out, model);
    write_matrix(out, model);
    write_timeline(out, model);
    is_done = is_done && write_lines(out, model);
    write_samples(out, model);
    write_settings(out, model);
    is_done = is_done && write_findings(out, model);
    write_missing(out, model);
    write_notes(out, model);
    fputs("\"end\":true}", out);
    free(index);
    return is_done;
}
