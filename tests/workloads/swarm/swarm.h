/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload swarm: shared by its files. */
#ifndef SWARM_SWARM_H
#define SWARM_SWARM_H

#include "names.h"
#include "rounds.h"
#include "sum.h"
#include "values.h"

enum { swarm_read, swarm_write, swarm_mixed };
enum { swarm_all, swarm_outbound, swarm_inbound };

struct swarm_values {
    struct wl_common common;
    struct rma_values rma;
    int64_t vms, threads, size, window, buf, align, mode, ops, dump_names;
    int64_t cq, allsig, unsig, sq_depth, max_rd_atomic, postlist, ports, base_port, rail_map;
    int64_t transport, rounds;
    bool max_rd_given;
    const char *op;
    unsigned write_percent;
    struct wl_injection injection;
};

/* A fault that swarm alone has, besides that in the number of connections. */
enum { swarm_awake = rma_own_faults + 1 };
extern struct swarm_values swarm;
extern const struct wl_program swarm_program;
extern struct swarm_size swarm_size;
extern struct rma_memory swarm_memory;

enum swarm_check {
    swarm_s2,
    swarm_s3,
    swarm_s4,
    swarm_s5,
    swarm_s6,
    swarm_s7,
    swarm_s8,
    swarm_s9,
    swarm_s11,
    swarm_s12,
    swarm_s15,
    swarm_passive,
    swarm_late,
    swarm_checks
};
extern const char *const swarm_check_names[swarm_checks];

/* The result of a rank. */
struct swarm_outcome {
    struct rma_sum sum;
    struct rma_verdict verdicts[swarm_checks]; /* those of threads are in the sum */
    uint64_t connected;
    double passive_cpu_percent; /* of a rank that does not post, while others do */
};
extern struct swarm_outcome swarm_mine;

void swarm_fail(enum swarm_check check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Rank 0: the results of all ranks in one round over one layer. */
void swarm_round(const struct swarm_outcome *all, int layer);

/* Rank 0, after the last round: a run for each layer. */
void swarm_report(struct wl_report *report);

/* swarm_raw.c: all ranks together. Ends the job if the request is impossible. */
void swarm_raw_open(void);
void swarm_raw_close(void);

/* The maximum number of operations on a queue pair at once. */
uint64_t swarm_raw_bound(void);

void swarm_raw_bind(struct rma_flood *flood);
void swarm_raw_target(struct rma_target *target, struct swarm_end end);

/* Writes `hash` to place `at` of the partner's segment, and waits until it is there. */
void swarm_raw_greet(struct swarm_end end, uint64_t hash, size_t at);

#endif
