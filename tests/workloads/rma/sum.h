/* SPDX-License-Identifier: BSD-3-Clause */
/* Floods of several threads and ranks together: running them, adding them up, reporting them. */
#ifndef RMA_SUM_H
#define RMA_SUM_H

#include "flood.h"

enum { rma_rows_max = 256 /* threads of a job that a report lists one by one */ };

/* Of one thread. */
struct rma_row {
    double mops, cpu_ns_per_op, p50_us, p99_us, p99_9_us, cycles[rma_parts];
    double bound_to;                      /* a CPU, or -1 */
    double foreign_percent, credit_waits; /* the caller's, see sharing.h */
};

/* Plain data: sent between ranks as it is. */
struct rma_sum {
    uint64_t rails[rma_rails_max]; /* measured, by the rail that they went by */
    uint64_t posted, completed, measured, measured_writes, checked, most_outstanding;
    uint64_t timed, empty_polls, doorbells, cqes, line_outstanding, cpu_ns, sequence;
    uint64_t least_posted; /* by a thread */
    uint64_t latency_ns, cycles[rma_parts], samples[rma_parts], interrupted;
    double cycles_per_ns;
    double intervals[rma_intervals_max];  /* Mops */
    uint64_t interval_count, interval_ns; /* when all were complete */
    uint64_t row_count;
    struct rma_row rows[rma_rows_max];
    uint64_t longest_ns; /* interval of a thread; the total of all threads is divided by it */
    double least_mops, most_mops; /* of the slowest and the fastest thread */
    struct wl_histogram times;
    struct rma_verdict verdicts[rma_checks];
};

/* One thread for each flood that has targets, the first in the caller's. The group may be NULL, and
 * becomes that of the floods. */
void rma_run_all(struct rma_flood *floods, unsigned count, struct rma_group *group, uint64_t seed,
                 uint64_t first_stream);

void rma_sum_clear(struct rma_sum *sum);
/* Returns the thread's row, NULL where there are too many. */
struct rma_row *rma_sum_flood(struct rma_sum *sum, const struct rma_flood *flood);
/* Once for each process whose threads posted. */
void rma_sum_group(struct rma_sum *sum, const struct rma_group *group);
void rma_sum_merge(struct rma_sum *into, const struct rma_sum *from);
void rma_verdict_merge(struct rma_verdict *into, const struct rma_verdict *from);

/* Of all together. */
double rma_sum_mops(const struct rma_sum *sum);

/* Operations are counted in three ways, which must agree. Returns how many disagree. */
uint64_t rma_sum_unequal(const struct rma_sum *sum);

/* Fails the verdict if the two layers made different choices; compares as many as both made. */
void rma_sum_compare(const struct rma_sum *raw, const struct rma_sum *api,
                     struct rma_verdict *verdict);

/* Rates, times and costs; `size` in bytes. */
void rma_sum_report(struct wl_report *r, const struct rma_sum *sum, size_t size);

/* Writes `value`, preceded by a plus sign unless it is the first. The number itself contains no
 * plus sign, so no exponent. Returns its length, as snprintf() does. */
int rma_add_number(char *text, size_t size, bool is_first, double value);

/* A number of each thread's row, with plus signs between: as many keys in each report, whatever
 * there is. `offset` of a double in the row. */
void rma_rows_report(struct wl_report *r, const struct rma_sum *sum, const char *key,
                     size_t offset);

#endif
