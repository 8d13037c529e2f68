/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of traces as values: both forms that conduit/trace/format.c writes. Pure. */
#ifndef TRUNKLINE_TRACE_PARSE_H
#define TRUNKLINE_TRACE_PARSE_H

#include "contrib/trace/word.h"

enum trace_kind {
    TRACE_FOREIGN, /* not a line of a trace */
    TRACE_FRAME,   /* what only the format needs */
    TRACE_EVENT,
    TRACE_START,
    TRACE_END
};

enum { trace_rails_max = 64 };
#define trace_no_rail UINT32_MAX

struct trace_item {
    uint64_t begin, ns; /* of CLOCK_MONOTONIC; on rank 0's host, if it is aligned */
    uint64_t bytes;
    uint32_t rank, thread;
    uint32_t peer; /* tk_trace_no_peer: none */
    uint32_t size; /* ranks of the job; at its start */
    enum tk_trace_op op;
    struct trace_word place; /* FILE:LINE of the program */
    struct trace_word path;  /* of a transfer or a message; what was registered */
    uint32_t rail;           /* trace_no_rail: none, several, or not known */
    struct trace_word rails; /* several: "0:4096,1:4096", bytes by rail */
    struct trace_word text;  /* of the program */
    uint32_t sequence;       /* of a message between two ranks; 0: none */
    bool is_aligned;         /* at both: the largest error of the times */
    uint64_t error;
    struct trace_word host; /* at the start */
    struct trace_word how;  /* at the end */
};

/* The line without its end. Escapes are decoded in it; words of `item` lie in it. */
enum trace_kind trace_parse(char *line, size_t length, struct trace_item *item);

/* What went over each rail. Returns how many there are. */
struct trace_rail {
    uint32_t rail;
    uint64_t bytes;
};
unsigned trace_rails_of(const struct trace_item *item, struct trace_rail rails[trace_rails_max]);

/* For parsers: both may be empty. False: not a rail or a list of rails. */
bool trace_rails_read(struct trace_word rail, struct trace_word rails, struct trace_item *item);

/* Of one that is no text. */
enum trace_kind trace_parse_json(char *line, size_t length, struct trace_item *item);

#endif
