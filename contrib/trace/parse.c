/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See parse.h: lines of text. Unknown words are skipped, so that traces of later releases can be
 * read; unknown operations are errors. */
#include "config.h"

#include <string.h>

#include "contrib/trace/parse.h"

/* The next word of a line; blanks stand behind each but the last. */
static struct trace_word next_word(struct trace_word *line)
{
    struct trace_word word = *line;
    const char *blank = line->length ? memchr(line->at, ' ', line->length) : NULL;
    if (blank) {
        word.length = (size_t)(blank - line->at);
        line->at = blank + 1;
        line->length -= word.length + 1;
        for (; line->length > 0 && *line->at == ' '; line->length--)
            line->at++;
    } else {
        line->length = 0;
    }
    return word;
}

/* name=value: returns the value, empty if the name differs. */
static struct trace_word value_of(struct trace_word word, const char *name)
{
    size_t length = strlen(name);
    if (word.length <= length + 1 || memcmp(word.at, name, length) != 0 || word.at[length] != '=')
        return (struct trace_word){NULL, 0};
    return (struct trace_word){word.at + length + 1, word.length - length - 1};
}

/* From the value up to " text=", if present: file names may contain blanks. What follows is
 * *behind_text. */
static struct trace_word value_with_blanks(struct trace_word value, struct trace_word *line,
                                           struct trace_word *behind_text)
{
    static const char text[] = " text=";
    const char *end = line->at + line->length;
    if (line->length == 0)
        return value;
    const char *behind = memmem(value.at, (size_t)(end - value.at), text, sizeof(text) - 1);
    if (behind) {
        const char *begin = behind + sizeof(text) - 1;
        *behind_text = (struct trace_word){begin, (size_t)(end - begin)};
    }
    value.length = (size_t)((behind ? behind : end) - value.at);
    line->length = 0;
    return value;
}

static bool read_event_word(struct trace_word word, struct trace_word *line,
                            struct trace_item *item, bool *has_time)
{
    struct trace_word value;
    if ((value = value_of(word, "ns")).length)
        return *has_time = trace_number(value, &item->ns);
    if ((value = value_of(word, "peer")).length)
        return trace_number32(value, &item->peer);
    if ((value = value_of(word, "bytes")).length)
        return trace_number(value, &item->bytes);
    if ((value = value_of(word, "path")).length)
        item->path = value;
    else if ((value = value_of(word, "rail")).length)
        return trace_rails_read(value, item->rails, item);
    else if ((value = value_of(word, "rails")).length)
        return trace_rails_read((struct trace_word){NULL, 0}, value, item);
    else if ((value = value_of(word, "at")).length)
        item->place = value_with_blanks(value, line, &item->text);
    else if ((value = value_of(word, "seq")).length)
        return trace_number32(value, &item->sequence);
    else if (word.length >= 5 && memcmp(word.at, "text=", 5) == 0) {
        const char *end = line->length ? line->at + line->length : word.at + word.length;
        item->text = (struct trace_word){word.at + 5, (size_t)(end - word.at) - 5};
        line->length = 0;
    } else
        return memchr(word.at, '=', word.length) != NULL;
    return true;
}

static enum trace_kind parse_event(struct trace_word line, struct trace_item *item)
{
    bool has_time = false;
    struct trace_word begin = next_word(&line), rank = next_word(&line);
    struct trace_word thread = next_word(&line), letter = next_word(&line);
    struct trace_word name = next_word(&line);
    if (!trace_fraction(begin, 9, &item->begin) || !trace_number32(rank, &item->rank) ||
        !trace_number32(thread, &item->thread) || !trace_op_find(name, letter, &item->op))
        return TRACE_FOREIGN;
    while (line.length > 0) {
        struct trace_word word = next_word(&line);
        if (word.length == 0 || !read_event_word(word, &line, item, &has_time))
            return TRACE_FOREIGN;
    }
    return has_time ? TRACE_EVENT : TRACE_FOREIGN;
}

/* "# start rank=..." and "# end rank=...", whose "how" is the last and may have blanks. */
static enum trace_kind parse_mark(struct trace_word line, struct trace_item *item)
{
    bool has_rank = false;
    next_word(&line);
    struct trace_word name = next_word(&line);
    bool is_start = trace_word_is(name, "start");
    if (!is_start && !trace_word_is(name, "end"))
        return TRACE_FOREIGN;
    while (line.length > 0) {
        struct trace_word word = next_word(&line), value;
        if ((value = value_of(word, "rank")).length)
            has_rank = trace_number32(value, &item->rank);
        else if ((value = value_of(word, "size")).length && !trace_number32(value, &item->size))
            return TRACE_FOREIGN;
        else if ((value = value_of(word, "error")).length)
            item->is_aligned = trace_number(value, &item->error);
        else if ((value = value_of(word, "host")).length)
            item->host = value;
        else if ((value = value_of(word, "how")).length)
            item->how = value_with_blanks(value, &line, &item->text);
    }
    if (!has_rank)
        return TRACE_FOREIGN;
    return is_start ? TRACE_START : TRACE_END;
}

enum trace_kind trace_parse(char *line, size_t length, struct trace_item *item)
{
    *item = (struct trace_item){.peer = tk_trace_no_peer, .rail = trace_no_rail};
    const struct trace_word word = {line, length};
    if (length == 0)
        return TRACE_FOREIGN;
    if (length > 1 && line[0] == '#' && line[1] == ' ')
        return parse_mark(word, item);
    if (line[0] >= '0' && line[0] <= '9')
        return parse_event(word, item);
    return trace_parse_json(line, length, item);
}
