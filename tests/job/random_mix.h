/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of random_mix.c: what a thread is, and where in the segments it may write. A part is a
 * list of actions; an action does one operation from beginning to end, with `to` as the peer, and
 * checks its result. All actions may run in all threads at once: data that is not the worker's own
 * is atomic or under a gex_HSL_t. */
#ifndef TESTS_JOB_MIX_H
#define TESTS_JOB_MIX_H

#include "gasnet.h"

#include "job.h"

#include <stdatomic.h>

enum {
    MAX_RANKS = 8,
    MAX_THREADS = 8,
    WINDOW = 4,  /* requests that a thread may have in flight */
    CELL = 8192, /* the largest payload */
    AREA = 4 * CELL,
    PER_THREAD = 2 * WINDOW * CELL + AREA,
    PER_WRITER = MAX_THREADS * PER_THREAD,
    CONTROL = 65536, /* bytes before the cells: words for the end of the job */
};

struct worker {
    unsigned id;
    uint64_t random;
    unsigned serial; /* of its requests */
    unsigned notes;  /* requests without an answer that it sent */
    char data[AREA], back[AREA];
};

typedef void mix_action(struct worker *w, gex_Rank_t to);
struct mix_part {
    mix_action *const *actions;
    unsigned count;
};
extern const struct mix_part mix_am, mix_rma, mix_legacy, mix_misc;

/* A random number below `limit`. */
unsigned mix_below(struct worker *w, unsigned limit);

/* Where in a segment of `owner` a thread of `writer` writes: Longs of requests and replies, and its
 * puts. */
void *mix_request_cell(gex_Rank_t owner, gex_Rank_t writer, unsigned thread, unsigned slot);
void *mix_reply_cell(gex_Rank_t owner, unsigned thread, unsigned slot);
void *mix_area(gex_Rank_t owner, const struct worker *w);

/* Handlers; once, before communication. */
void mix_am_start(void);

/* Waits for what this thread still has in flight. */
void mix_am_finish(struct worker *w);

/* The number of requests without an answer that came to this rank, and the sum of their numbers. */
void mix_am_totals(uint64_t *count, uint64_t *sum);

/* A second endpoint with a segment of its own, collectively. */
void mix_rma_start(void);

#endif
