/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates of the rounds of each layer, and the ratio of the interface's to those of raw verbs. */
#ifndef RMA_ROUNDS_H
#define RMA_ROUNDS_H

#include "job.h"

enum { rma_rounds_max = 1000 };

struct rma_rounds {
    double mops[2][rma_rounds_max]; /* by wl_layer_* */
    unsigned count[2];
};

void rma_rounds_add(struct rma_rounds *rounds, int layer, double mops);

/* Median; NaN for an empty list. */
double rma_rounds_mops(const struct rma_rounds *rounds, int layer);

/* Median of the ratios of each round, api by raw; not a number where there was one layer only. */
double rma_rounds_ratio(const struct rma_rounds *rounds);

/* Layer, rails, rounds, median and ratio. */
void rma_rounds_report(struct wl_report *r, const struct rma_rounds *rounds, int layer);

/* Calls the function for each layer with rounds; between calls the report starts its next run.
 */
void rma_rounds_each(struct wl_report *r, const struct rma_rounds *rounds,
                     void (*tell)(struct wl_report *r, int layer));

/* Raw, api, raw, api, ... or one of the two once; ends early when the job is stopped. */
void rma_rounds_run(int64_t layer, int64_t rounds, void (*run)(int layer, bool first));

/* Columns of the table of both layers; NULL for one layer. */
const char *const *rma_rounds_columns(int64_t layer);

/* Why an option is refused: it is for raw verbs. */
extern const char rma_for_raw[];

#endif
