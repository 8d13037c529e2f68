/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The time line of a trace, of bounded size: how much of each of at most 512 slices of time a rank
 * spent in what, its longest calls, a sample of messages, and the texts of the program. */
#ifndef TRUNKLINE_REPORT_TIMELINE_H
#define TRUNKLINE_REPORT_TIMELINE_H

#include "contrib/report/tracks.h"
#include "contrib/trace/parse.h"

enum {
    report_longest_max = 10000, /* in all; each rank has its share */
    report_messages_max = 4096,
    report_message_slots = 4 * report_messages_max,
    report_marks_max = 256,
    report_recent_max = 256 /* completed calls of a thread that may be nested in another */
};

enum report_activity {
    REPORT_TRANSFER,
    REPORT_SEND,
    REPORT_HANDLER,
    REPORT_BARRIER,
    REPORT_COLLECTIVE,
    REPORT_EVENT_WAIT,
    REPORT_CREDIT_WAIT,
    REPORT_SPACE_WAIT,
    REPORT_CONNECT_WAIT,
    REPORT_REGISTRATION,
    REPORT_WORK, /* other calls */
    report_activities
};

struct report_call {
    uint64_t begin, ns, bytes;
    uint32_t thread, peer;
    enum tk_trace_op op;
    enum report_activity activity;
    char place[48];
};

struct report_thread {
    uint32_t number;
    enum report_activity started; /* a barrier or a collective that the next event wait is for */
    size_t count;
    struct {
        uint64_t begin, end;
    } recent[report_recent_max];
};

struct report_row {
    uint32_t rank;
    uint64_t (*slices)[report_activities]; /* ns */
    struct report_thread *threads;
    size_t thread_count;
    struct report_call *longest; /* a heap, the shortest first */
    size_t longest_count;
};

struct report_message {
    uint32_t from, to, sequence;
    uint64_t hash, sent, handled; /* 0: not seen */
    bool is_reply;
};

struct report_mark {
    uint64_t at;
    uint32_t rank;
    char text[96];
};

struct report_timeline {
    unsigned shift; /* a slice is 2^shift ns */
    uint64_t first; /* its number since time 0 */
    uint64_t begin, end;
    bool is_used;
    struct report_row *rows; /* in the order in which ranks came */
    size_t row_count, row_room;
    uint32_t *row_of; /* by rank: 1 + index */
    size_t row_of_room;
    struct report_message *messages;
    size_t message_count;
    uint64_t messages_below; /* only messages with a hash below are kept */
    uint64_t messages_seen;
    struct report_mark *marks;
    size_t mark_count;
    uint64_t marks_lost;
    struct report_tracks tracks;
};

const char *report_activity_name(enum report_activity activity);
enum report_activity report_activity_of(enum tk_trace_op op);

/* False: no memory. */
bool report_timeline_add(struct report_timeline *timeline, const struct trace_item *item);
/* Calls in one file are not nested in calls of another. */
void report_timeline_next_file(struct report_timeline *timeline);
void report_timeline_free(struct report_timeline *timeline);

#endif
