/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread that keeps a window of gets and puts in flight to targets that it chooses at random,
 * and judges what comes. For swarm and sharing over GASNet-EX. A thread owns its struct; nothing is
 * shared between threads but the job. */
#ifndef RMA_FLOOD_H
#define RMA_FLOOD_H

#include "clock.h"
#include "ground.h"
#include "histogram.h"
#include "inject.h"
#include "job.h"

/* What a choice may fall on: the other end of a named connection. */
struct rma_target {
    gex_Rank_t rank;
    uint64_t source_id; /* of the pattern there */
    size_t source;      /* which of that rank's sources */
    size_t ring;        /* which of that rank's rings of cells is ours */
    uint64_t writer;    /* our number as its writer */
    uint64_t writes, posts;
    bool broken; /* a fault: writes no longer arrive */
};

enum rma_fault { rma_misroute, rma_corrupt, rma_dropcqe, rma_misread, rma_stray, rma_lost_write };

struct rma_slot {
    gex_Event_t event;
    struct rma_target *target;
    uint64_t posted;
    size_t offset; /* of a read */
    bool write;
};

enum rma_check { rma_data, rma_account, rma_window, rma_little, rma_late, rma_checks };

enum { rma_first_most = 160 };

struct rma_verdict {
    uint64_t failures;
    char first[rma_first_most];
};

struct rma_flood {
    /* set by the caller */
    const struct rma_ground *ground;
    struct rma_target *targets;
    size_t target_count;
    unsigned thread, write_percent;
    size_t align;
    int verify; /* wl_verify_* */
    uint64_t warmup_ns, duration_ns, ops, timeout_ns;
    struct wl_injection injection;
    /* results */
    uint64_t posted, retired, completed, most_outstanding, checked;
    uint64_t measured, measured_writes, empty_polls;
    uint64_t sequence; /* digest of the first choices: who and where */
    struct wl_span span;
    struct wl_histogram times;
    struct rma_verdict verdicts[rma_checks];
    /* own */
    struct wl_random random;
    struct rma_slot *slots;
    double before;
    bool broken;
};

/* Runs until time or number of operations are over, or the job is stopped; leaves nothing in flight
 * unless something was lost. */
void rma_flood_run(struct rma_flood *flood, uint64_t seed, uint64_t stream);

/* Of what was measured. */
double rma_flood_mops(const struct rma_flood *flood);

#endif
