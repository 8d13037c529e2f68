/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread that keeps a window of gets and puts in flight to targets that it chooses at random,
 * and checks the results. For swarm and sharing over GASNet-EX. A thread owns its struct; nothing
 * is shared between threads but the job. */
#ifndef RMA_FLOOD_H
#define RMA_FLOOD_H

#include "clock.h"
#include "target_memory.h"
#include "group.h"
#include "histogram.h"
#include "inject.h"
#include "job.h"
#include "path.h"

/* A possible target: the other end of a named connection. */
struct rma_target {
    gex_Rank_t rank;
    uint64_t source_id; /* of the pattern there */
    size_t source;      /* which of that rank's sources */
    size_t ring;        /* which of that rank's rings of cells is ours */
    uint64_t writer;    /* our number as its writer */
    uint64_t writes, posts, measured;
    void *line;    /* owned by the path */
    unsigned rail; /* that it goes by; 0 where the path does not say */
    bool broken;   /* a fault: writes no longer arrive */
};

enum rma_fault {
    rma_misroute,
    rma_corrupt,
    rma_dropcqe,
    rma_misread,
    rma_stray,
    rma_lost_write,
    rma_bias,
    rma_overfill,
    rma_miscount,
    rma_mistime,
    rma_reseed,
    rma_own_faults /* faults of a single workload begin here */
};

struct rma_slot {
    gex_Event_t event; /* the path's */
    uint64_t ticket;   /* the path's */
    char *local;
    struct rma_target *target;
    uint64_t number, posted;
    size_t offset; /* of a read */
    bool write;
    bool lost; /* a fault: it was never begun */
};

/* Parts of a thread's time, if measured: --cycles. A path measures its own parts. */
enum rma_part {
    rma_choosing,
    rma_posting,
    rma_polling,
    rma_verifying,
    rma_looping, /* all of it, for one operation */
    rma_locking,
    rma_routing,
    rma_parts
};

/* A longer piece was interrupted: another process had the CPU meanwhile. Ten microseconds; the
 * slowest call of a path takes one. Waiting for a lock may be long. */
enum { rma_cycles_max = 1 << 15 };

enum rma_check { rma_data, rma_account, rma_window, rma_little, rma_shares, rma_late, rma_checks };

enum {
    rma_first_max = 160,
    rma_sequence_max = 1000 /* choices of a thread that its digest covers */
};

struct rma_verdict {
    uint64_t failures;
    char first[rma_first_max];
};

/* One in `every` on average, at distances that vary: completions come in batches, and an even
 * stride would always meet the same place in them. */
struct rma_sampler {
    uint64_t left, drawn;
};

struct rma_flood {
    /* set by the caller */
    const struct rma_memory *memory;
    struct rma_target *targets;
    size_t target_count;
    const struct rma_path *path;
    void *own; /* the path's */
    unsigned thread, write_percent;
    unsigned batch;  /* operations that are begun together, with one target; 0: 1 */
    bool is_untimed; /* a slot is free before its operation is complete: there is no latency */
    size_t align;
    int verify; /* wl_verify_* */
    uint64_t warmup_ns, duration_ns, ops, timeout_ns;
    uint64_t lat_every, cycles_every; /* sample one in this many; cycles_every 0: none */
    struct rma_group *group;          /* NULL: nothing is printed while it runs */
    bool is_bound;                    /* to a CPU of its own: see place.h */
    struct wl_injection injection;
    /* results */
    uint64_t posted, retired, completed, most_outstanding, checked;
    uint64_t measured, measured_writes, timed, empty_polls;
    uint64_t latency_ns; /* all together, whether they are in the histogram or not */
    uint64_t cycles[rma_parts], samples[rma_parts], interrupted;
    double cycles_per_ns;
    int bound_to;                               /* a CPU; -1: none alone */
    uint64_t doorbells, cqes, line_outstanding; /* of paths over verbs; the last: most on a line */
    uint64_t sequence;                          /* digest of the first choices: target and offset */
    struct wl_span span;
    struct wl_histogram times;
    struct rma_verdict verdicts[rma_checks];
    /* own */
    struct wl_random random;
    struct rma_slot *slots;
    struct rma_target *target; /* of the present batch */
    uint64_t choice;
    double before;
    bool broken, biased;
    bool is_sampled; /* this turn's parts are measured */
    struct rma_sampler lat_sampler, cycles_sampler;
    uint64_t turns, began_cycles;
    uint64_t shown; /* retired; read by the thread that prints it */
    struct rma_ticker ticker;
};

static inline uint64_t rma_lap_begin(const struct rma_flood *flood)
{
    return flood->is_sampled ? wl_cycles() : 0;
}

/* Charges the time since the last call to a part, and begins the next one. */
static inline uint64_t rma_lap(struct rma_flood *flood, enum rma_part part, uint64_t since)
{
    if (!flood->is_sampled)
        return 0;
    uint64_t now = wl_cycles();
    if (part != rma_locking && now - since > rma_cycles_max) {
        flood->interrupted++;
        return now;
    }
    flood->cycles[part] += now - since;
    flood->samples[part]++;
    return now;
}

/* Runs until the time or the number of operations is reached, or the job is stopped; leaves nothing
 * in flight unless something was lost. */
void rma_flood_run(struct rma_flood *flood, uint64_t seed, uint64_t stream);

/* For paths that wait for something of their own, called after each empty poll: yields to others.
 * False if it takes too long, or everything is broken: then `what` is printed. / */
struct rma_patience {
    uint64_t since;
    unsigned looks;
};
bool rma_flood_wait(struct rma_flood *flood, struct rma_patience *patience, const char *what,
                    const struct rma_target *target);

void rma_flood_fail(struct rma_flood *flood, enum rma_check check, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Of what was measured. */
double rma_flood_mops(const struct rma_flood *flood);

#endif
