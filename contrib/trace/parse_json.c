/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See parse.h: lines of a trace for programs. An object is one line there, with one object, "args",
 * inside. */
#include "config.h"

#include <string.h>

#include "contrib/trace/parse.h"

enum field {
    NAME,
    CATEGORY,
    PHASE,
    PROCESS,
    THREAD,
    BEGIN,
    DURATION,
    /* of "args" */
    RANK,
    PEER,
    BYTES,
    PLACE,
    SIZE,
    HOST,
    HOW,
    ERROR,
    PATH,
    SEQUENCE,
    TEXT,
    RAIL,
    RAILS,
    fields
};

static const char *const keys[fields] = {"name",  "cat",  "ph",    "pid",  "tid",  "ts",   "dur",
                                         "rank",  "peer", "bytes", "at",   "size", "host", "how",
                                         "error", "path", "seq",   "text", "rail", "rails"};

struct cursor {
    char *at, *end;
    struct trace_word found[fields];
};

static bool take(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static int hex_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c | 0x20) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Behind the backslash; the writer escapes bytes, not characters. */
static bool take_escaped(struct cursor *c, char *byte)
{
    if (c->at == c->end)
        return false;
    *byte = *c->at++;
    if (*byte != 'u')
        return *byte == '"' || *byte == '\\' || *byte == '/';
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = c->at < c->end ? hex_of(*c->at++) : -1;
        if (digit < 0)
            return false;
        code = code << 4 | (unsigned)digit;
    }
    *byte = code < 256 ? (char)(unsigned char)code : '?';
    return true;
}

/* Decoded in place: it never becomes longer. */
static bool take_string(struct cursor *c, struct trace_word *word)
{
    if (!take(c, '"'))
        return false;
    char *to = c->at;
    word->at = to;
    while (c->at < c->end && *c->at != '"') {
        char byte = *c->at++;
        if (byte == '\\' && !take_escaped(c, &byte))
            return false;
        *to++ = byte;
    }
    word->length = (size_t)(to - word->at);
    return take(c, '"');
}

static bool take_number(struct cursor *c, struct trace_word *word)
{
    word->at = c->at;
    take(c, '-');
    while (c->at < c->end && ((*c->at >= '0' && *c->at <= '9') || *c->at == '.'))
        c->at++;
    word->length = (size_t)(c->at - word->at);
    while (take(c, ' ')) /* where a time was corrected, or might have been */
        continue;
    return word->length > 0;
}

static bool take_value(struct cursor *c, struct trace_word *word)
{
    return c->at < c->end && *c->at == '"' ? take_string(c, word) : take_number(c, word);
}

static void keep(struct cursor *c, struct trace_word key, struct trace_word value, bool is_inside)
{
    for (unsigned i = is_inside ? RANK : NAME; i < (is_inside ? fields : RANK); i++)
        if (trace_word_is(key, keys[i]))
            c->found[i] = value;
}

static bool take_inside(struct cursor *c)
{
    struct trace_word key, value;
    if (!take(c, '{'))
        return false;
    do {
        if (!take_string(c, &key) || !take(c, ':') || !take_value(c, &value))
            return false;
        keep(c, key, value, true);
    } while (take(c, ','));
    return take(c, '}');
}

static bool take_object(struct cursor *c)
{
    struct trace_word key, value;
    if (!take(c, '{'))
        return false;
    do {
        if (!take_string(c, &key) || !take(c, ':'))
            return false;
        if (trace_word_is(key, "args")) {
            if (!take_inside(c))
                return false;
        } else {
            if (!take_value(c, &value))
                return false;
            keep(c, key, value, false);
        }
    } while (take(c, ','));
    return take(c, '}');
}

static bool read_if_there(struct trace_word word, uint32_t *number)
{
    return word.length == 0 || trace_number32(word, number);
}

static enum trace_kind event_of(const struct trace_word *found, struct trace_item *item)
{
    bool is_whole = trace_number32(found[PROCESS], &item->rank) &&
                    trace_number32(found[THREAD], &item->thread) &&
                    trace_fraction(found[BEGIN], 3, &item->begin) &&
                    trace_fraction(found[DURATION], 3, &item->ns) &&
                    trace_op_find(found[NAME], found[CATEGORY], &item->op) &&
                    read_if_there(found[PEER], &item->peer) &&
                    read_if_there(found[SEQUENCE], &item->sequence) &&
                    (found[BYTES].length == 0 || trace_number(found[BYTES], &item->bytes)) &&
                    trace_rails_read(found[RAIL], found[RAILS], item);
    item->place = found[PLACE];
    item->path = found[PATH];
    item->text = found[TEXT];
    return is_whole ? TRACE_EVENT : TRACE_FOREIGN;
}

static enum trace_kind mark_of(const struct trace_word *found, struct trace_item *item)
{
    bool is_start = trace_word_is(found[NAME], "start");
    if ((!is_start && !trace_word_is(found[NAME], "end")) ||
        !trace_number32(found[RANK], &item->rank) || !read_if_there(found[SIZE], &item->size))
        return TRACE_FOREIGN;
    item->host = found[HOST];
    item->how = found[HOW];
    item->is_aligned = trace_number(found[ERROR], &item->error);
    return is_start ? TRACE_START : TRACE_END;
}

enum trace_kind trace_parse_json(char *line, size_t length, struct trace_item *item)
{
    struct cursor c = {.at = line, .end = line + length};
    if (length == 1 && (line[0] == '[' || line[0] == ']'))
        return TRACE_FRAME;
    if (!take_object(&c))
        return TRACE_FOREIGN;
    take(&c, ',');
    if (c.at != c.end)
        return TRACE_FOREIGN;
    /* "b": a span beside the calls of its thread, with its duration. */
    if (trace_word_is(c.found[PHASE], "X") || trace_word_is(c.found[PHASE], "b"))
        return event_of(c.found, item);
    if (trace_word_is(c.found[PHASE], "i"))
        return mark_of(c.found, item);
    /* Names of processes, the ends of arrows and of spans. */
    bool is_frame = trace_word_is(c.found[PHASE], "M") || trace_word_is(c.found[PHASE], "s") ||
                    trace_word_is(c.found[PHASE], "f") || trace_word_is(c.found[PHASE], "e");
    return is_frame ? TRACE_FRAME : TRACE_FOREIGN;
}
