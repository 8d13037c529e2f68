/* SPDX-License-Identifier: BSD-3-Clause */
/* The floods of one process while they run: a line for each interval that all of them have been
 * through, and the line on a terminal. Each thread counts in intervals of its own time, so no rate
 * contains counts that another thread has not published yet. */
#ifndef RMA_GROUP_H
#define RMA_GROUP_H

#include <pthread.h>
#include <stdint.h>

#include "path.h"
#include "values.h"

enum { rma_intervals_max = 256, rma_rails_max = 64 };

/* One thread's, up to its last tick. */
struct rma_ticker {
    uint64_t next, began, last, measured;
    uint64_t rails[rma_rails_max];
    unsigned passed; /* intervals */
};

struct rma_interval {
    double mops, least, most, rails[rma_rails_max];
    unsigned arrived; /* threads */
};

struct rma_group {
    char name[32];        /* of what runs, for people */
    unsigned threads;     /* that post */
    uint64_t interval_ns; /* 0: no lines */
    size_t size;          /* bytes of an operation */
    const struct rma_flood *floods;
    uint64_t total_ns, ops; /* how long, or how many by each thread */
    bool is_watched;        /* on a terminal */
    /* own */
    pthread_mutex_t mutex;
    unsigned complete; /* intervals that all threads were through */
    struct rma_interval intervals[rma_intervals_max];
};

/* Set before the floods start. `name` is printed with the layer. */
void rma_group_set(struct rma_group *group, const struct wl_common *common,
                   const struct rma_values *values, const char *name, int layer, size_t size,
                   uint64_t ops);

/* Before and after the threads run. */
void rma_group_start(struct rma_group *group);
void rma_group_end(struct rma_group *group);

/* The first: a thread begins to measure. The second: an interval ends. */
void rma_ticker_start(struct rma_flood *flood, uint64_t now);
void rma_tick(struct rma_flood *flood, uint64_t now);

/* Called by the first thread occasionally: updates the terminal. */
void rma_group_show(struct rma_group *group, uint64_t now);

#endif
