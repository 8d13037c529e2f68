/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload sharing: shared by its files. */
#ifndef SHARING_SHARING_H
#define SHARING_SHARING_H

#include "map.h"
#include "rounds.h"
#include "sum.h"
#include "values.h"

struct sharing_values {
    struct wl_common common;
    struct rma_values rma;
    int64_t servers, threads, qps, degree, op, size, window, buf, align, ops;
    int64_t cb, sq_depth, lock, route, dst, postlist, ports, base_port, transport, rounds;
    struct wl_injection injection;
};
enum { sharing_cb_qp, sharing_cb_rail, sharing_cb_one };
enum {
    sharing_lock_verbs,
    sharing_lock_spin,
    sharing_lock_mutex,
    sharing_lock_none,
    sharing_lock_combining
};

/* Faults of sharing only. */
enum {
    sharing_swap = rma_own_faults,
    sharing_lose_credit,
    sharing_misown,
    sharing_intrude,
    sharing_awake
};
extern struct sharing_values sharing;
extern const struct wl_program sharing_program;
extern uint32_t sharing_clients;

enum sharing_check {
    sharing_h2,
    sharing_h3,
    sharing_h4,
    sharing_h5,
    sharing_h6,
    sharing_h7,
    sharing_h8,
    sharing_h10,
    sharing_h13,
    sharing_window,
    sharing_little,
    sharing_shares,
    sharing_late,
    sharing_checks
};
extern const char *const sharing_check_names[sharing_checks];

/* The cost of sharing for a thread over raw verbs. */
struct sharing_cost {
    uint64_t foreign;      /* completions of other threads that it took from a queue */
    uint64_t credit_waits; /* operations that found none */
    uint64_t strangers;    /* operations on a connection of another group */
};

/* The result of a rank. */
struct sharing_outcome {
    struct sharing_cost cost;
    uint64_t switches, preemptions; /* context switches of threads: voluntary, involuntary */
    struct rma_sum sum;
    struct rma_verdict verdicts[sharing_checks];
    double client_cpu_percent; /* clients */
};
extern struct sharing_outcome sharing_mine;

void sharing_fail(enum sharing_check check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void sharing_cost_merge(struct sharing_cost *into, const struct sharing_cost *from);

/* Rank 0: the results of all ranks in one round over one layer. */
void sharing_round(const struct sharing_outcome *all, int layer);

/* Rank 0, after the last round: a run for each layer. */
void sharing_report(struct wl_report *report);

/* sharing_raw.c: all ranks together. Ends the job if the request is impossible. */
void sharing_raw_open(void);
void sharing_raw_close(void);

/* Whether writes of --size are inline. At a server. */
bool sharing_raw_inline(void);

void sharing_raw_bind(struct rma_flood *flood);
void sharing_raw_target(struct rma_target *target, uint32_t i);

/* Writes `hash` to place `at` of the other end's segment, by way of `local`, over the n-th of this
 * rank's connections, and waits until it is there. */
void sharing_raw_greet(uint32_t n, char *local, uint64_t hash, size_t at);

/* After the floods. */
const struct sharing_cost *sharing_raw_cost(uint32_t thread);
void sharing_raw_check(void);

#endif
