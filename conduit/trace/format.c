/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See format.h. One event is one line in both forms, with its parts in a fixed order, on which
 * gasnet_trace relies. */
#include "config.h"

#include <string.h>

#include "trace/format.h"

static void put_named(struct tk_text *lines, const char *name, uint64_t number)
{
    tk_text_add(lines, name);
    tk_text_number(lines, number);
}

static void put_word(struct tk_text *lines, const char *name, const char *word, bool json)
{
    tk_text_add(lines, json ? ",\"" : " ");
    tk_text_add(lines, name);
    tk_text_add(lines, json ? "\":\"" : "=");
    if (json)
        tk_text_escaped(lines, word);
    else
        tk_text_line(lines, word);
    tk_text_add(lines, json ? "\"" : "");
}

/* The correction of a time may add a digit. */
static void put_blank(struct tk_text *lines, const struct tk_trace_source *source)
{
    tk_text_add(lines, source->is_aligned ? " " : "");
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

static void put_rails(struct tk_text *lines, const struct tk_trace_event *event, const char *text,
                      bool json)
{
    if (event->rail)
        put_named(lines, json ? ",\"rail\":" : " rail=", event->rail - 1U);
    if (event->has_rails && text)
        put_word(lines, "rails", text, json);
}

/* ---- text ---- */

static void put_event_text(struct tk_text *lines, const struct tk_trace_source *source,
                           uint32_t thread, const struct tk_trace_event *event, const char *text)
{
    tk_text_fraction(lines, time_of(source, event->begin), 9);
    put_blank(lines, source);
    put_named(lines, " ", source->rank);
    put_named(lines, " ", thread);
    tk_text_bytes(lines, (const char[]){' ', tk_trace_op_letters[event->op], ' '}, 3);
    tk_text_add(lines, tk_trace_op_names[event->op]);
    put_named(lines, " ns=", duration_of(source, event));
    put_blank(lines, source);
    if (event->peer != tk_trace_no_peer)
        put_named(lines, " peer=", event->peer);
    if (event->nbytes && (!text || event->has_rails))
        put_named(lines, " bytes=", event->nbytes);
    if (event->path)
        put_word(lines, "path", tk_trace_path_names[event->path - 1], false);
    put_rails(lines, event, text, false);
    if (event->handler)
        put_named(lines, " handler=", event->handler);
    if (event->sequence)
        put_named(lines, " seq=", event->sequence);
    if (event->file) {
        tk_text_add(lines, " at=");
        tk_text_line(lines, base_name(event->file));
        put_named(lines, ":", event->line);
    }
    if (text && !event->has_rails) {
        tk_text_add(lines, " text=");
        tk_text_line(lines, text);
    }
    tk_text_add(lines, "\n");
}

/* ---- JSON ---- */

static void put_object(struct tk_text *lines, const char *name, char letter, const char *phase)
{
    tk_text_add(lines, ",\n{\"name\":\"");
    tk_text_add(lines, name);
    tk_text_add(lines, "\",\"cat\":\"");
    tk_text_char(lines, letter);
    tk_text_add(lines, "\",\"ph\":\"");
    tk_text_add(lines, phase);
    tk_text_add(lines, "\"");
}

static void put_place(struct tk_text *lines, const struct tk_trace_source *source, uint32_t thread,
                      uint64_t at)
{
    put_named(lines, ",\"pid\":", source->rank);
    put_named(lines, ",\"tid\":", thread);
    tk_text_add(lines, ",\"ts\":");
    tk_text_fraction(lines, time_of(source, at), 3);
    put_blank(lines, source);
}

/* An arrow from inside of the sending call to the beginning of the handler. */
static void put_arrow(struct tk_text *lines, const struct tk_trace_source *source, uint32_t thread,
                      const struct tk_trace_event *event)
{
    const uint32_t rank = source->rank;
    bool is_send = tk_trace_is_send(event->op);
    put_object(lines, "message", 'A', is_send ? "s" : "f");
    if (!is_send)
        tk_text_add(lines, ",\"bp\":\"e\"");
    put_named(lines, ",\"id\":\"", is_send ? rank : event->peer);
    put_named(lines, ">", is_send ? event->peer : rank);
    put_named(lines, "#", event->sequence);
    tk_text_add(lines, "\"");
    put_place(lines, source, thread, event->begin);
    tk_text_add(lines, "}");
}

/* Viewers draw what overlaps calls as a row of its own: an asynchronous event, whose two ends have
 * the same id. */
static void put_span_id(struct tk_text *lines, const struct tk_trace_source *source,
                        const struct tk_trace_event *event)
{
    put_named(lines, ",\"id\":\"", source->rank);
    put_named(lines, "-", event->peer);
    put_named(lines, ".", event->rail);
    put_named(lines, "@", event->begin);
    tk_text_add(lines, "\"");
}

static void put_span_end(struct tk_text *lines, const struct tk_trace_source *source,
                         uint32_t thread, const struct tk_trace_event *event)
{
    put_object(lines, tk_trace_op_names[event->op], tk_trace_op_letters[event->op], "e");
    put_span_id(lines, source, event);
    put_place(lines, source, thread, event->end);
    tk_text_add(lines, "}");
}

static void put_event_json(struct tk_text *lines, const struct tk_trace_source *source,
                           uint32_t thread, const struct tk_trace_event *event, const char *text)
{
    bool is_beside = tk_trace_is_beside(event->op);
    put_object(lines, tk_trace_op_names[event->op], tk_trace_op_letters[event->op],
               is_beside ? "b" : "X");
    if (is_beside)
        put_span_id(lines, source, event);
    put_place(lines, source, thread, event->begin);
    tk_text_add(lines, ",\"dur\":");
    tk_text_fraction(lines, duration_of(source, event), 3);
    put_blank(lines, source);
    put_named(lines, ",\"args\":{\"rank\":", source->rank);
    if (event->peer != tk_trace_no_peer)
        put_named(lines, ",\"peer\":", event->peer);
    if (event->nbytes && (!text || event->has_rails))
        put_named(lines, ",\"bytes\":", event->nbytes);
    if (event->path)
        put_word(lines, "path", tk_trace_path_names[event->path - 1], true);
    put_rails(lines, event, text, true);
    if (event->handler)
        put_named(lines, ",\"handler\":", event->handler);
    if (event->sequence)
        put_named(lines, ",\"seq\":", event->sequence);
    if (event->file) {
        tk_text_add(lines, ",\"at\":\"");
        tk_text_escaped(lines, base_name(event->file));
        put_named(lines, ":", event->line);
        tk_text_add(lines, "\"");
    }
    if (text && !event->has_rails) {
        tk_text_add(lines, ",\"text\":\"");
        tk_text_escaped(lines, text);
        tk_text_add(lines, "\"");
    }
    tk_text_add(lines, "}}");
    if (is_beside)
        put_span_end(lines, source, thread, event);
    if (event->sequence && (tk_trace_is_send(event->op) || tk_trace_is_handler(event->op)))
        put_arrow(lines, source, thread, event);
}

/* ---- both ---- */

void tk_trace_put_event(struct tk_text *lines, const struct tk_trace_source *source,
                        uint32_t thread, const struct tk_trace_event *event, const char *text,
                        bool json)
{
    if (json)
        put_event_json(lines, source, thread, event, text);
    else
        put_event_text(lines, source, thread, event, text);
}

/* `quote` precedes and follows values that are not numbers. */
static void put_clocks(struct tk_text *lines, const struct tk_trace_clocks *clocks, bool json)
{
    put_named(lines, json ? ",\"monotonic\":" : " monotonic=", clocks->monotonic);
    put_named(lines, json ? ",\"realtime\":" : " realtime=", clocks->realtime);
}

/* The offset measured at the start or the end, and the maximum error of times. */
static void put_offset(struct tk_text *lines, const struct tk_trace_offset *offset, uint64_t error,
                       bool json)
{
    bool is_behind = offset->ns < 0;
    if (offset->at == 0)
        return;
    tk_text_add(lines, json ? ",\"offset\":" : " offset=");
    put_named(lines, is_behind ? "-" : "",
              is_behind ? 0 - (uint64_t)offset->ns : (uint64_t)offset->ns);
    put_named(lines, json ? ",\"error\":" : " error=", error);
}

static void put_mark(struct tk_text *lines, const struct tk_trace_source *source, const char *name,
                     uint64_t at, bool json)
{
    if (json) {
        put_object(lines, name, 'I', "i");
        tk_text_add(lines, ",\"s\":\"p\"");
        put_place(lines, source, 0, at);
        put_named(lines, ",\"args\":{\"rank\":", source->rank);
    } else {
        tk_text_add(lines, "# ");
        tk_text_add(lines, name);
        put_named(lines, " rank=", source->rank);
    }
}

void tk_trace_put_start(struct tk_text *lines, const struct tk_trace_source *source,
                        const struct tk_trace_clocks *clocks, bool json)
{
    if (json) {
        put_object(lines, "process_name", 'I', "M");
        put_named(lines, ",\"pid\":", source->rank);
        put_named(lines, ",\"args\":{\"name\":\"rank ", source->rank);
        tk_text_add(lines, " on ");
        tk_text_escaped(lines, source->host);
        tk_text_add(lines, "\"}}");
    }
    put_mark(lines, source, "start", clocks->monotonic, json);
    put_named(lines, json ? ",\"size\":" : " size=", source->size);
    put_named(lines, json ? ",\"pid\":" : " pid=", (uint64_t)source->pid);
    put_clocks(lines, clocks, json);
    put_offset(lines, &source->alignment.start, source->alignment.start.error, json);
    put_word(lines, "host", source->host, json);
    put_word(lines, "boot", source->boot, json);
    tk_text_add(lines, json ? "}}" : "\n");
}

void tk_trace_put_end(struct tk_text *lines, const struct tk_trace_source *source,
                      const struct tk_trace_clocks *clocks, uint64_t lost, const char *how,
                      bool json)
{
    put_mark(lines, source, "end", clocks->monotonic, json);
    put_clocks(lines, clocks, json);
    put_offset(lines, &source->alignment.end, tk_trace_error(&source->alignment), json);
    put_named(lines, json ? ",\"lost\":" : " lost=", lost);
    put_word(lines, "how", how, json);
    tk_text_add(lines, json ? "}}" : "\n");
}
