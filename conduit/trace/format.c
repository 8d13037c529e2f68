/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See format.h. One event is one line in both forms, with its parts in one order: gasnet_trace
 * reads them so. */
#include "config.h"

#include <string.h>

#include "trace/format.h"

static void put_bytes(struct tk_trace_lines *lines, const char *text, size_t length)
{
    size_t room = tk_trace_lines_max - lines->length;
    if (length > room)
        length = room;
    memcpy(lines->bytes + lines->length, text, length);
    lines->length += length;
}

static void put(struct tk_trace_lines *lines, const char *text)
{
    put_bytes(lines, text, strlen(text));
}

/* With leading zeros up to `digits`. */
static void put_number(struct tk_trace_lines *lines, uint64_t number, unsigned digits)
{
    char text[24];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number || sizeof(text) - at < digits);
    put_bytes(lines, text + at, sizeof(text) - at);
}

static void put_fraction(struct tk_trace_lines *lines, uint64_t ns, uint64_t unit, unsigned digits)
{
    put_number(lines, ns / unit, 1);
    put(lines, ".");
    put_number(lines, ns % unit, digits);
}

/* What a string of JSON may have. Bytes that are not ASCII become escapes too: the program's text
 * need not be UTF-8. */
static void put_escaped(struct tk_trace_lines *lines, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        char escape[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15], '\0'};
        if (c < 0x20 || c >= 0x7f)
            put(lines, escape);
        else if (c == '"' || c == '\\')
            put_bytes(lines, (const char[]){'\\', (char)c}, 2);
        else
            put_bytes(lines, text, 1);
    }
}

/* A line of text stays one. */
static void put_flat(struct tk_trace_lines *lines, const char *text)
{
    for (; *text; text++)
        put_bytes(lines, (unsigned char)*text < 0x20 ? " " : text, 1);
}

static void put_named(struct tk_trace_lines *lines, const char *name, uint64_t number)
{
    put(lines, name);
    put_number(lines, number, 1);
}

static void put_word(struct tk_trace_lines *lines, const char *name, const char *word, bool json)
{
    put(lines, json ? ",\"" : " ");
    put(lines, name);
    put(lines, json ? "\":\"" : "=");
    if (json)
        put_escaped(lines, word);
    else
        put_flat(lines, word);
    put(lines, json ? "\"" : "");
}

/* A time that is to be corrected may become longer by a digit. */
static void put_blank(struct tk_trace_lines *lines, const struct tk_trace_source *source)
{
    put(lines, source->is_aligned ? " " : "");
}

static uint64_t time_of(const struct tk_trace_source *source, uint64_t at)
{
    return source->is_aligned ? tk_trace_aligned(&source->alignment, at) : at;
}

static uint64_t duration_of(const struct tk_trace_source *source,
                            const struct tk_trace_event *event)
{
    return time_of(source, event->end) - time_of(source, event->begin);
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

/* ---- text ---- */

static void put_event_text(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                           uint32_t thread, const struct tk_trace_event *event, const char *text)
{
    put_fraction(lines, time_of(source, event->begin), 1000000000, 9);
    put_blank(lines, source);
    put_named(lines, " ", source->rank);
    put_named(lines, " ", thread);
    put_bytes(lines, (const char[]){' ', tk_trace_op_letters[event->op], ' '}, 3);
    put(lines, tk_trace_op_names[event->op]);
    put_named(lines, " ns=", duration_of(source, event));
    put_blank(lines, source);
    if (event->peer != tk_trace_no_peer)
        put_named(lines, " peer=", event->peer);
    if (event->nbytes && !text)
        put_named(lines, " bytes=", event->nbytes);
    if (event->path)
        put_word(lines, "path", tk_trace_path_names[event->path - 1], false);
    if (event->handler)
        put_named(lines, " handler=", event->handler);
    if (event->sequence)
        put_named(lines, " seq=", event->sequence);
    if (event->file) {
        put(lines, " at=");
        put_flat(lines, base_name(event->file));
        put_named(lines, ":", event->line);
    }
    if (text) {
        put(lines, " text=");
        put_flat(lines, text);
    }
    put(lines, "\n");
}

/* ---- JSON ---- */

static void put_object(struct tk_trace_lines *lines, const char *name, char letter,
                       const char *phase)
{
    put(lines, ",\n{\"name\":\"");
    put(lines, name);
    put(lines, "\",\"cat\":\"");
    put_bytes(lines, &letter, 1);
    put(lines, "\",\"ph\":\"");
    put(lines, phase);
    put(lines, "\"");
}

static void put_place(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                      uint32_t thread, uint64_t at)
{
    put_named(lines, ",\"pid\":", source->rank);
    put_named(lines, ",\"tid\":", thread);
    put(lines, ",\"ts\":");
    put_fraction(lines, time_of(source, at), 1000, 3);
    put_blank(lines, source);
}

/* An arrow from inside of the call that sends to the beginning of the handler. */
static void put_arrow(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                      uint32_t thread, const struct tk_trace_event *event)
{
    const uint32_t rank = source->rank;
    bool is_send = tk_trace_is_send(event->op);
    put_object(lines, "message", 'A', is_send ? "s" : "f");
    if (!is_send)
        put(lines, ",\"bp\":\"e\"");
    put_named(lines, ",\"id\":\"", is_send ? rank : event->peer);
    put_named(lines, ">", is_send ? event->peer : rank);
    put_named(lines, "#", event->sequence);
    put(lines, "\"");
    put_place(lines, source, thread, event->begin);
    put(lines, "}");
}

static void put_event_json(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                           uint32_t thread, const struct tk_trace_event *event, const char *text)
{
    put_object(lines, tk_trace_op_names[event->op], tk_trace_op_letters[event->op], "X");
    put_place(lines, source, thread, event->begin);
    put(lines, ",\"dur\":");
    put_fraction(lines, duration_of(source, event), 1000, 3);
    put_blank(lines, source);
    put_named(lines, ",\"args\":{\"rank\":", source->rank);
    if (event->peer != tk_trace_no_peer)
        put_named(lines, ",\"peer\":", event->peer);
    if (event->nbytes && !text)
        put_named(lines, ",\"bytes\":", event->nbytes);
    if (event->path)
        put_word(lines, "path", tk_trace_path_names[event->path - 1], true);
    if (event->handler)
        put_named(lines, ",\"handler\":", event->handler);
    if (event->sequence)
        put_named(lines, ",\"seq\":", event->sequence);
    if (event->file) {
        put(lines, ",\"at\":\"");
        put_escaped(lines, base_name(event->file));
        put_named(lines, ":", event->line);
        put(lines, "\"");
    }
    if (text) {
        put(lines, ",\"text\":\"");
        put_escaped(lines, text);
        put(lines, "\"");
    }
    put(lines, "}}");
    if (event->sequence && (tk_trace_is_send(event->op) || tk_trace_is_handler(event->op)))
        put_arrow(lines, source, thread, event);
}

/* ---- both ---- */

void tk_trace_put_event(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                        uint32_t thread, const struct tk_trace_event *event, const char *text,
                        bool json)
{
    if (json)
        put_event_json(lines, source, thread, event, text);
    else
        put_event_text(lines, source, thread, event, text);
}

/* `quote` is in front of values that are no numbers and behind them. */
static void put_clocks(struct tk_trace_lines *lines, const struct tk_trace_clocks *clocks,
                       bool json)
{
    put_named(lines, json ? ",\"monotonic\":" : " monotonic=", clocks->monotonic);
    put_named(lines, json ? ",\"realtime\":" : " realtime=", clocks->realtime);
}

/* As measured at one of its ends, and how wrong times on it are at most. */
static void put_offset(struct tk_trace_lines *lines, const struct tk_trace_offset *offset,
                       uint64_t error, bool json)
{
    bool is_behind = offset->ns < 0;
    if (offset->at == 0)
        return;
    put(lines, json ? ",\"offset\":" : " offset=");
    put_named(lines, is_behind ? "-" : "",
              is_behind ? 0 - (uint64_t)offset->ns : (uint64_t)offset->ns);
    put_named(lines, json ? ",\"error\":" : " error=", error);
}

static void put_mark(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                     const char *name, uint64_t at, bool json)
{
    if (json) {
        put_object(lines, name, 'I', "i");
        put(lines, ",\"s\":\"p\"");
        put_place(lines, source, 0, at);
        put_named(lines, ",\"args\":{\"rank\":", source->rank);
    } else {
        put(lines, "# ");
        put(lines, name);
        put_named(lines, " rank=", source->rank);
    }
}

void tk_trace_put_start(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                        const struct tk_trace_clocks *clocks, bool json)
{
    if (json) {
        put_object(lines, "process_name", 'I', "M");
        put_named(lines, ",\"pid\":", source->rank);
        put_named(lines, ",\"args\":{\"name\":\"rank ", source->rank);
        put(lines, " on ");
        put_escaped(lines, source->host);
        put(lines, "\"}}");
    }
    put_mark(lines, source, "start", clocks->monotonic, json);
    put_named(lines, json ? ",\"size\":" : " size=", source->size);
    put_named(lines, json ? ",\"pid\":" : " pid=", (uint64_t)source->pid);
    put_clocks(lines, clocks, json);
    put_offset(lines, &source->alignment.start, source->alignment.start.error, json);
    put_word(lines, "host", source->host, json);
    put_word(lines, "boot", source->boot, json);
    put(lines, json ? "}}" : "\n");
}

void tk_trace_put_end(struct tk_trace_lines *lines, const struct tk_trace_source *source,
                      const struct tk_trace_clocks *clocks, uint64_t lost, const char *how,
                      bool json)
{
    put_mark(lines, source, "end", clocks->monotonic, json);
    put_clocks(lines, clocks, json);
    put_offset(lines, &source->alignment.end, tk_trace_error(&source->alignment), json);
    put_named(lines, json ? ",\"lost\":" : " lost=", lost);
    put_word(lines, "how", how, json);
    put(lines, json ? "}}" : "\n");
}
