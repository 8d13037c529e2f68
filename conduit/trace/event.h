/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contents of a trace: trace.def as types, and events. Pure. */
#ifndef TK_TRACE_EVENT_H
#define TK_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/table.h"

enum tk_trace_op {
#define TK_TRACE_OP(id, letter, name) tk_trace_##id,
#include "trace/trace.def"
    tk_trace_ops
};

/* How far the clock of rank 0 is ahead of this rank's, measured at a time of this rank's clock. */
struct tk_trace_offset {
    uint64_t at; /* 0: not measured */
    int64_t ns;
    uint64_t error; /* maximum error */
};

/* One piece of work of a thread, or a moment (end == begin). Times are nanoseconds of
 * CLOCK_MONOTONIC. */
struct tk_trace_event {
    uint64_t begin, end;
    uint64_t nbytes;
    const char *file; /* of the program, as set by it; NULL: unknown. Never freed. */
    uint32_t line;
    uint32_t peer; /* tk_trace_no_peer: none */
    /* Of a message: its number among those that the sender recorded for this receiver; 0: none.
     * The handler has the sender's number, by which the two are matched. */
    uint32_t sequence;
    uint8_t op;
    uint8_t path; /* tk_path_counted or tk_trace_path, + 1; 0: it took none, or it is not known */
    uint8_t handler;
    uint8_t slots;  /* following slots of the ring that hold the event's text */
    uint8_t rail;   /* index + 1; 0: none, or several */
    bool has_rails; /* the text is a list of rails with their bytes: 0:4096,1:4096 */
};

/* Paths that no counter has: of a message whose payload the receiver reads, and of what is
 * registered. */
enum tk_trace_path {
    tk_trace_path_rendezvous = tk_paths,
    tk_trace_path_region,
    tk_trace_path_segment,
    tk_trace_path_buffers,
    tk_trace_paths
};

enum { tk_trace_text_max = 1000 };
#define tk_trace_no_peer UINT32_MAX

/* For each operation: its word in files, and its class. */
extern const char *const tk_trace_op_names[tk_trace_ops];
extern const char tk_trace_op_letters[tk_trace_ops];

/* For each path: its word. */
extern const char *const tk_trace_path_names[tk_trace_paths];

static inline bool tk_trace_is_send(unsigned op)
{
    return op >= tk_trace_request_short && op <= tk_trace_reply_long;
}

static inline bool tk_trace_is_handler(unsigned op)
{
    return op == tk_trace_request_handler || op == tk_trace_reply_handler;
}

/* Not nested in calls of its thread: it may begin in one and end in another. */
static inline bool tk_trace_is_beside(unsigned op)
{
    return op == tk_trace_connect;
}

/* A line without a duration. */
static inline bool tk_trace_is_moment(unsigned op)
{
    return op == tk_trace_information || op == tk_trace_lost || op == tk_trace_program;
}

#endif
