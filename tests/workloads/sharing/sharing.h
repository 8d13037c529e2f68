/* SPDX-License-Identifier: BSD-3-Clause */
/* The workload sharing: what its files share. */
#ifndef SHARING_SHARING_H
#define SHARING_SHARING_H

#include "map.h"
#include "sum.h"

struct sharing_values {
    struct wl_common common;
    int64_t servers, threads, qps, degree, op, size, window, buf, align, ops;
    struct wl_injection injection;
};
extern struct sharing_values sharing;
extern const struct wl_program sharing_program;
extern uint32_t sharing_clients;

enum sharing_check {
    sharing_h2,
    sharing_h3,
    sharing_h5,
    sharing_h8,
    sharing_h10,
    sharing_h13,
    sharing_window,
    sharing_little,
    sharing_late,
    sharing_checks
};
extern const char *const sharing_check_names[sharing_checks];

/* What a rank brings home. */
struct sharing_outcome {
    struct rma_sum sum;
    struct rma_verdict verdicts[sharing_checks];
    double client_cpu_percent; /* clients */
};
extern struct sharing_outcome sharing_mine;

void sharing_fail(enum sharing_check check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Rank 0. */
void sharing_report(struct wl_report *report, const struct sharing_outcome *all);

#endif
