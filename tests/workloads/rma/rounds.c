/* SPDX-License-Identifier: BSD-3-Clause */
/* See rounds.h. Owns nothing. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rails.h"
#include "rounds.h"

void rma_rounds_add(struct rma_rounds *rounds, int layer, double mops)
{
    if (rounds->count[layer] < rma_rounds_max)
        rounds->mops[layer][rounds->count[layer]++] = mops;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, unsigned count)
{
    double sorted[rma_rounds_max];
    if (count == 0)
        return NAN;
    memcpy(sorted, values, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_size);
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double rma_rounds_mops(const struct rma_rounds *rounds, int layer)
{
    return median(rounds->mops[layer], rounds->count[layer]);
}

double rma_rounds_ratio(const struct rma_rounds *rounds)
{
    double ratios[rma_rounds_max];
    unsigned count = 0;
    for (unsigned i = 0; i < rounds->count[wl_layer_raw] && i < rounds->count[wl_layer_api]; i++)
        if (rounds->mops[wl_layer_raw][i] > 0)
            ratios[count++] = rounds->mops[wl_layer_api][i] / rounds->mops[wl_layer_raw][i];
    return median(ratios, count);
}

void rma_rounds_report(struct wl_report *r, const struct rma_rounds *rounds, int layer)
{
    char names[256] = "the conduit's";
    if (layer == wl_layer_raw)
        rma_rails_names(names, sizeof(names));
    wl_report_text(r, wl_summary, "layer", wl_layer_words[layer]);
    wl_report_text(r, wl_summary, "rails_used", names);
    wl_report_whole(r, wl_summary, "rounds", rounds->count[layer]);
    wl_report_real(r, wl_summary, "rate_median_mops", rma_rounds_mops(rounds, layer));
    wl_report_real(r, wl_summary, "api_per_raw", rma_rounds_ratio(rounds));
}

void rma_rounds_each(struct wl_report *r, const struct rma_rounds *rounds,
                     void (*tell)(struct wl_report *r, int layer))
{
    bool any = false;
    for (int layer = 0; layer < 2; layer++) {
        if (rounds->count[layer] == 0)
            continue;
        if (any)
            wl_report_run(r);
        tell(r, layer);
        any = true;
    }
}

void rma_rounds_run(int64_t layer, int64_t rounds, void (*run)(int layer, bool first))
{
    for (int64_t round = 0; round < (layer == wl_layer_both ? rounds : 1) && !wl_stopped();
         round++) {
        if (layer != wl_layer_api)
            run(wl_layer_raw, round == 0);
        if (layer != wl_layer_raw)
            run(wl_layer_api, round == 0 && layer == wl_layer_api);
    }
    wl_job_barrier();
}

const char *const *rma_rounds_columns(int64_t layer)
{
    static const char *const columns[] = {"layer",         "rate_median_mops", "op_p50_us",
                                          "cpu_ns_per_op", "api_per_raw",      NULL};
    return layer == wl_layer_both ? columns : NULL;
}

const char rma_for_raw[] =
    "is for --layer raw and both: over the interface it is the conduit's choice";
