/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload swarm: what its files share. */
#ifndef SWARM_SWARM_H
#define SWARM_SWARM_H

#include "names.h"
#include "sum.h"

enum { swarm_read, swarm_write, swarm_mixed };
enum { swarm_all, swarm_outbound, swarm_inbound };

struct swarm_values {
    struct wl_common common;
    int64_t vms, threads, size, window, buf, align, mode, ops, dump_names;
    const char *op;
    unsigned write_percent;
    struct wl_injection injection;
};
extern struct swarm_values swarm;
extern const struct wl_program swarm_program;
extern struct swarm_size swarm_size;
extern struct rma_ground swarm_ground;

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
    swarm_late,
    swarm_checks
};
extern const char *const swarm_check_names[swarm_checks];

/* What a rank brings home. */
struct swarm_outcome {
    struct rma_sum sum;
    struct rma_verdict verdicts[swarm_checks]; /* those of threads are in the sum */
    uint64_t connected;
};
extern struct swarm_outcome swarm_mine;

void swarm_fail(enum swarm_check check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Rank 0. */
void swarm_report(struct wl_report *report, const struct swarm_outcome *all);

#endif
