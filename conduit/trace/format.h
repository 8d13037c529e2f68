/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events as text, or in the Trace Event Format that Perfetto and Chrome open. Pure and
 * async-signal-safe: no stdio, no allocation. */
#ifndef TK_TRACE_FORMAT_H
#define TK_TRACE_FORMAT_H

#include "stats/text.h"
#include "trace/align.h"
#include "trace/event.h"

/* The maximum size of one event: each byte of its text may be escaped to six. */
enum { tk_trace_event_max = 6 * tk_trace_text_max + 8192 };

/* The first line of a rank's trace. */
struct tk_trace_source {
    uint32_t rank, size;
    const char *host, *boot; /* `boot`: equal for processes whose CLOCK_MONOTONIC is the same
                              * clock */
    int pid;
    bool is_aligned; /* times are by rank 0's clock: */
    struct tk_trace_alignment alignment;
};

struct tk_trace_clocks {
    uint64_t monotonic, realtime;
};

/* JSON objects begin with the separator from the previous one: ",\n". */
void tk_trace_put_event(struct tk_text *lines, const struct tk_trace_source *source,
                        uint32_t thread, const struct tk_trace_event *event, const char *text,
                        bool json);
void tk_trace_put_start(struct tk_text *lines, const struct tk_trace_source *source,
                        const struct tk_trace_clocks *clocks, bool json);
void tk_trace_put_end(struct tk_text *lines, const struct tk_trace_source *source,
                      const struct tk_trace_clocks *clocks, uint64_t lost, const char *how,
                      bool json);

#endif
