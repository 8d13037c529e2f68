/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sums over the lines of traces. Memory use is that of the sums and of the last calls of each
 * thread, however many lines are read. */
#ifndef TRUNKLINE_TRACE_SUMMARY_H
#define TRUNKLINE_TRACE_SUMMARY_H

#include "contrib/trace/parse.h"
#include "contrib/trace/table.h"

enum { trace_word_max = 80 };

struct trace_operation {
    struct trace_sum sum;
    /* Of the longest. */
    uint32_t rank, thread;
    uint64_t begin;
    char place[trace_word_max];
};

/* Bytes that went over a rail, by class; of atomics and of non-contiguous transfers together. */
enum trace_rail_class {
    TRACE_RAIL_PUT,
    TRACE_RAIL_GET,
    TRACE_RAIL_MESSAGE,
    TRACE_RAIL_OTHER,
    trace_rail_classes
};
struct trace_rail_sum {
    uint64_t calls, bytes[trace_rail_classes], connections;
};

struct trace_rank {
    uint64_t begin, end;            /* of its events */
    uint64_t waits, handlers, lost; /* the first two: ns, each without calls inside */
    unsigned starts;
    bool is_aligned;
    uint64_t error;
    char host[trace_word_max], how[trace_word_max];
};

struct trace_summary {
    struct trace_operation operations[tk_trace_ops];
    struct trace_table ranks;   /* by rank; `more` is its struct trace_rank */
    struct trace_table threads; /* by rank and thread; `more` belongs to summary.c */
    struct trace_table pairs;   /* by rank and peer: what a rank starts */
    struct trace_table lines;   /* by operation and FILE:LINE */
    struct trace_table paths;   /* by operation and path */
    struct trace_rail_sum rails[trace_rails_max]; /* a striped call is one of each of its rails */
    uint64_t events, lost;
    uint64_t cut;  /* files that end within a line */
    uint32_t size; /* of the job; 0: not known */
    unsigned files;
};

/* False: no memory. */
bool trace_summary_add(struct trace_summary *summary, enum trace_kind kind,
                       const struct trace_item *item);

/* Calls in one file do not nest in calls of another. */
void trace_summary_next_file(struct trace_summary *summary);

enum trace_rail_class trace_rail_class_of(enum tk_trace_op op);

/* Whether its time is one of waiting for others. */
bool trace_is_wait(enum tk_trace_op op);

void trace_summary_free(struct trace_summary *summary);

#endif
