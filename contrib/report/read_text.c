/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See read.h: statistics for people, as conduit/stats/format.c writes them. They have no counter
 * that is 0, and times in whole microseconds. */
#include "config.h"

#include <string.h>

#include "contrib/report/read.h"

enum { name_columns = 34 };

static bool skip(struct trace_word *line, const char *text)
{
    size_t n = strlen(text);
    if (line->length < n || memcmp(line->at, text, n) != 0)
        return false;
    line->at += n;
    line->length -= n;
    return true;
}

static void skip_blanks(struct trace_word *line)
{
    while (skip(line, " "))
        continue;
}

/* Up to `end`, which is skipped too. */
static bool take_until(struct trace_word *line, const char *end, struct trace_word *word)
{
    const char *found = line->length ? memmem(line->at, line->length, end, strlen(end)) : NULL;
    if (!found)
        return false;
    word->at = line->at;
    word->length = (size_t)(found - line->at);
    line->length -= word->length;
    line->at = found;
    return skip(line, end);
}

static bool take_number(struct trace_word *line, uint64_t *number)
{
    struct trace_word digits = {line->at, 0};
    while (digits.length < line->length && line->at[digits.length] >= '0' &&
           line->at[digits.length] <= '9')
        digits.length++;
    line->at += digits.length;
    line->length -= digits.length;
    return trace_number(digits, number);
}

/* Behind "statistics of rank ". The host may contain no comma; the end may contain anything. */
static enum read_status read_heading(struct report_reader *reader, struct trace_word line)
{
    uint64_t number, size, pid, micros;
    struct trace_word host, seconds;
    if (!take_number(&line, &number) || !skip(&line, " of ") || !take_number(&line, &size) ||
        !skip(&line, ", ") || !take_until(&line, ", pid ", &host) || !take_number(&line, &pid) ||
        !skip(&line, ", ") || !take_until(&line, " s: ", &seconds) ||
        !trace_fraction(seconds, 6, &micros))
        return READ_FOREIGN;
    if (number >= report_ranks_max || size > report_ranks_max)
        return READ_RANGE;
    struct report_rank *rank = report_rank(reader->model, (uint32_t)number);
    if (!rank || !report_rank_counters(rank, true))
        return READ_NO_MEMORY;
    rank->source = REPORT_STATS;
    rank->micros = micros;
    rank->pid = (uint32_t)pid;
    report_word_copy(rank->host, sizeof(rank->host), host);
    report_word_copy(rank->how, sizeof(rank->how), line);
    if (size > reader->model->size)
        reader->model->size = (uint32_t)size;
    reader->text_rank = (int64_t)number;
    reader->is_in_summary = false;
    reader->model->has_text = true;
    return READ_GOOD;
}

/* "   B: 1: 5, 2-3: 7" */
static bool read_sizes(struct trace_word line, uint64_t *sizes)
{
    skip_blanks(&line);
    if (line.length == 0)
        return true;
    if (!skip(&line, "B: "))
        return false;
    do {
        uint64_t least, most, count;
        if (!take_number(&line, &least) || least == 0)
            return false;
        if (skip(&line, "-") && !take_number(&line, &most))
            return false;
        unsigned class = 63 - (unsigned)__builtin_clzll(least);
        if (!skip(&line, ": ") || !take_number(&line, &count) || class >= tk_size_classes)
            return false;
        sizes[class] = count;
    } while (skip(&line, ", "));
    return line.length == 0;
}

static const struct tk_stats_row *row_of(char letter, struct trace_word name)
{
    while (name.length > 0 && name.at[name.length - 1] == ' ')
        name.length--;
    for (unsigned i = 0; i < tk_stats_row_count; i++)
        if (tk_stats_rows[i].letter == letter && trace_word_is(name, tk_stats_rows[i].name))
            return &tk_stats_rows[i];
    return NULL;
}

static enum read_status read_row(struct report_reader *reader, struct trace_word line)
{
    struct report_rank *rank = &reader->model->ranks[reader->text_rank];
    uint64_t value;
    if (line.length < name_columns + 3 || line.at[1] != ' ')
        return READ_FOREIGN;
    const struct tk_stats_row *row =
        row_of(line.at[0], (struct trace_word){line.at + 2, name_columns});
    line.at += 2 + name_columns;
    line.length -= 2 + name_columns;
    skip_blanks(&line);
    if (!take_number(&line, &value) || !skip(&line, " "))
        return READ_FOREIGN;
    if (!row) /* of a later release */
        return READ_GOOD;
    bool is_time = strcmp(row->unit, "ns") == 0;
    if (!skip(&line, is_time ? "us" : row->unit))
        return READ_FOREIGN;
    rank->counters[row - tk_stats_rows] = is_time ? value * 1000 : value;
    if (!row->is_path)
        return line.length == 0 ? READ_GOOD : READ_FOREIGN;
    return read_sizes(line, rank->sizes->paths[row->index]) ? READ_GOOD : READ_FOREIGN;
}

/* Ranks that share a file put "[rank] " in front. Their lines are not mixed: each rank writes its
 * text at once. */
enum read_status report_read_text(struct report_reader *reader, struct trace_word line)
{
    uint64_t number;
    bool is_labelled = skip(&line, "[");
    if (is_labelled && (!take_number(&line, &number) || !skip(&line, "] ")))
        return READ_FOREIGN;
    reader->has_stats = true;
    if (skip(&line, "statistics of rank "))
        return read_heading(reader, line);
    if (skip(&line, "summary of ")) {
        reader->is_in_summary = true;
        return READ_GOOD;
    }
    if (skip(&line, "H ") || reader->is_in_summary)
        return READ_GOOD;
    if (is_labelled && number != (uint64_t)reader->text_rank)
        return READ_FOREIGN;
    return reader->text_rank >= 0 ? read_row(reader, line) : READ_FOREIGN;
}
