/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See read.h: files line by line, and which reader a line is for. A line may be long: --top writes
 * all ranks into one. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/report/read.h"

enum { line_max = 256 << 20, name_max = 200 };

static bool begins(const char *line, size_t length, const char *with)
{
    size_t n = strlen(with);
    return length >= n && memcmp(line, with, n) == 0;
}

static enum read_status read_object(struct report_reader *reader, char *line, size_t length)
{
    struct json_tree *tree = &reader->tree;
    enum json_status status = json_parse(tree, line, length);
    const struct json_node *root = json_root(tree);
    if (status != JSON_GOOD)
        return status == JSON_WRONG ? READ_FOREIGN : READ_NO_MEMORY;
    if (json_member(tree, root, "job")) {
        reader->has_top = true;
        return report_read_top(reader, root);
    }
    reader->has_stats = true;
    return report_read_stats(reader, root);
}

static bool is_statistics_text(const char *line, size_t length)
{
    if (length > 1 && line[0] == '[' && isdigit((unsigned char)line[1]))
        return true;
    return begins(line, length, "statistics of rank ") || begins(line, length, "summary of ") ||
           (length > 2 && line[1] == ' ' && line[0] >= 'A' && line[0] <= 'Z');
}

enum read_status report_read_line(struct report_reader *reader, char *line, size_t length)
{
    while (length > 0 && line[length - 1] == '\r')
        length--;
    if (length == 0)
        return READ_GOOD;
    if (length == 1 && (line[0] == '[' || line[0] == ']'))
        return READ_GOOD;
    if (is_statistics_text(line, length))
        return report_read_text(reader, (struct trace_word){line, length});
    if (line[0] == '{' && !begins(line, length, "{\"name\":"))
        return read_object(reader, line, length);
    return report_read_trace(reader, line, length);
}

/* ---- files ---- */

/* A name may have any byte; the message is one line. */
static bool complain(const struct report_reader *reader, bool with_line, const char *why)
{
    char name[name_max];
    report_word_copy(name, sizeof(name), (struct trace_word){reader->name, strlen(reader->name)});
    if (with_line)
        fprintf(stderr, "gasnet_report: %s:%llu: %s\n", name, (unsigned long long)reader->line,
                why);
    else
        fprintf(stderr, "gasnet_report: %s: %s\n", name, why);
    return false;
}

static const char *why_not(enum read_status status)
{
    if (status == READ_NO_MEMORY)
        return "no memory for the report";
    if (status == READ_RANGE)
        return "the number of a rank or a time is out of range (ranks: 0 to 131071)";
    return "not a line of statistics, of a trace or of --top --json of " PACKAGE_NAME;
}

/* An incomplete line is the last one of a rank that was killed while it wrote, or of a full
 * disk. */
static bool take_line(struct report_reader *reader, char *line, size_t length)
{
    bool is_whole = length > 0 && line[length - 1] == '\n';
    reader->line++;
    if (is_whole)
        length--;
    /* Only of an object is it known that nothing is missing. */
    bool is_text = line[0] != '{' && line[0] != ']';
    enum read_status status = length > line_max || (!is_whole && is_text)
                                  ? READ_FOREIGN
                                  : report_read_line(reader, line, length);
    if (status == READ_GOOD)
        return true;
    if (status == READ_FOREIGN && !is_whole && reader->line > 1 && length <= line_max) {
        reader->model->cut++;
        return true;
    }
    return complain(reader, true, why_not(status));
}

struct line {
    char *text;
    size_t length, room;
};

static bool grow(struct line *line)
{
    size_t room = line->room ? 2 * line->room : 4096;
    char *text = realloc(line->text, room);
    if (!text)
        return false;
    line->text = text;
    line->room = room;
    return true;
}

/* With its newline; false: the end, or an error, which errno has. getline() would take all memory
 * for a file without lines: here such a line ends when it is longer than one may be. */
static bool next_line(struct line *line, FILE *file)
{
    line->length = 0;
    errno = 0;
    for (int c = 0; c != '\n' && line->length <= line_max; line->text[line->length++] = (char)c)
        if (line->length == line->room && !grow(line))
            return false;
        else if ((c = getc_unlocked(file)) == EOF)
            break;
    return line->length > 0;
}

static bool read_opened(struct report_reader *reader, FILE *file)
{
    struct line line = {.text = NULL};
    bool is_good = true;
    while (is_good && next_line(&line, file))
        is_good = take_line(reader, line.text, line.length);
    int error = errno;
    free(line.text);
    if (!is_good)
        return false;
    if (ferror(file) || error)
        return complain(reader, false, strerror(error ? error : EIO));
    return reader->line > 0 || complain(reader, false, "the file is empty");
}

static void begin_file(struct report_reader *reader, const char *name)
{
    reader->name = name;
    reader->line = 0;
    reader->has_stats = reader->has_trace = reader->has_top = reader->is_in_summary = false;
    reader->text_rank = -1;
    trace_summary_next_file(&reader->model->trace);
    report_timeline_next_file(&reader->model->timeline);
}

bool report_read_file(struct report_reader *reader, const char *name)
{
    bool is_input = !strcmp(name, "-");
    begin_file(reader, is_input ? "standard input" : name);
    FILE *file = is_input ? stdin : fopen(name, "re");
    if (!file)
        return complain(reader, false, strerror(errno));
    bool is_read = read_opened(reader, file);
    if (!is_input)
        fclose(file);
    reader->model->stats_files += reader->has_stats;
    reader->model->trace_files += reader->has_trace;
    reader->model->top_files += reader->has_top;
    return is_read;
}

void report_reader_begin(struct report_reader *reader, struct report_model *model)
{
    *reader = (struct report_reader){.model = model, .text_rank = -1};
}

void report_reader_free(struct report_reader *reader)
{
    json_free(&reader->tree);
}

/* ---- traces ---- */

enum read_status report_read_trace(struct report_reader *reader, char *line, size_t length)
{
    const uint64_t time_max = UINT64_MAX / 4;
    struct trace_item item;
    enum trace_kind kind = trace_parse(line, length, &item);
    if (kind == TRACE_FOREIGN)
        return READ_FOREIGN;
    reader->has_trace = true;
    if (kind == TRACE_FRAME)
        return READ_GOOD;
    if (item.rank >= report_ranks_max || item.begin > time_max || item.ns > time_max ||
        (item.peer != tk_trace_no_peer && item.peer >= report_ranks_max))
        return READ_RANGE;
    return report_trace_add(reader->model, kind, &item) ? READ_GOOD : READ_NO_MEMORY;
}
