/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of sharing: the outcomes of all ranks added up, round by round, and the report. Owns
 * sharing_mine, and rank 0's totals. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "sharing.h"

struct sharing_outcome sharing_mine;

/* By layer: results of the last round, but verdicts of all rounds. */
static struct sharing_outcome totals[2];
static struct rma_rounds rounds;

const char *const sharing_check_names[sharing_checks] = {
    "H2",  "H3",  "H4",     "H5",     "H6",     "H7",     "H8",
    "H10", "H13", "window", "little", "shares", "timeout"};

void sharing_fail(enum sharing_check check, const char *format, ...)
{
    struct rma_verdict *verdict = &sharing_mine.verdicts[check];
    va_list args;
    va_start(args, format);
    if (verdict->failures++ == 0)
        vsnprintf(verdict->first, sizeof(verdict->first), format, args);
    va_end(args);
}

void sharing_cost_merge(struct sharing_cost *into, const struct sharing_cost *from)
{
    into->foreign += from->foreign;
    into->credit_waits += from->credit_waits;
    into->strangers += from->strangers;
}

static void add(struct sharing_outcome *total, const struct sharing_outcome *one)
{
    static const enum sharing_check names[rma_checks] = {
        [rma_data] = sharing_h5,       [rma_account] = sharing_h3,    [rma_window] = sharing_window,
        [rma_little] = sharing_little, [rma_shares] = sharing_shares, [rma_late] = sharing_late};
    for (int check = 0; check < sharing_checks; check++)
        rma_verdict_merge(&total->verdicts[check], &one->verdicts[check]);
    for (int check = 0; check < rma_checks; check++)
        rma_verdict_merge(&total->verdicts[names[check]], &one->sum.verdicts[check]);
    rma_sum_merge(&total->sum, &one->sum);
    sharing_cost_merge(&total->cost, &one->cost);
    total->switches += one->switches;
    total->preemptions += one->preemptions;
    if (one->client_cpu_percent > total->client_cpu_percent)
        total->client_cpu_percent = one->client_cpu_percent;
}

static void report_checks(struct wl_report *report, const struct sharing_outcome *total)
{
    for (int check = 0; check < sharing_checks; check++) {
        const struct rma_verdict *verdict = &total->verdicts[check];
        wl_report_check(report, sharing_check_names[check], verdict->failures, verdict->first);
        if (verdict->failures)
            wl_say("%s failed %llu times, first: %s", sharing_check_names[check],
                   (unsigned long long)verdict->failures, verdict->first);
    }
}

/* Threads that share connections for a while must find each other's completions: otherwise the run
 * did not test routing. */
static bool must_meet(int layer)
{
    return layer == wl_layer_raw && sharing.degree > 1 && sharing.ops == 0 && !wl_stopped();
}

static void check_meetings(struct sharing_outcome *total, int layer)
{
    struct rma_verdict *verdict = &total->verdicts[sharing_h6];
    if (must_meet(layer) && total->cost.foreign == 0 && verdict->failures++ == 0)
        snprintf(verdict->first, sizeof(verdict->first),
                 "no thread found a completion of another's, so routing was not tried: fewer --qps "
                 "or a longer --duration will");
}

void sharing_round(const struct sharing_outcome *all, int layer)
{
    struct sharing_outcome *total = &totals[layer];
    rma_sum_clear(&total->sum);
    total->cost = (struct sharing_cost){.foreign = 0};
    total->switches = total->preemptions = 0;
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        add(total, &all[rank]);
    total->verdicts[sharing_h3].failures +=
        !wl_stopped() && total->sum.posted != total->sum.completed;
    check_meetings(total, layer);
    total->verdicts[sharing_h10].failures += rma_sum_unequal(&total->sum);
    rma_rounds_add(&rounds, layer, rma_sum_mops(&total->sum));
    if (layer == wl_layer_api && rounds.count[wl_layer_raw])
        rma_sum_compare(&totals[wl_layer_raw].sum, &total->sum, &total->verdicts[sharing_h7]);
}

static void report_cost(struct wl_report *report, const struct sharing_outcome *total)
{
    const struct sharing_cost *cost = &total->cost;
    uint64_t cqes = total->sum.cqes;
    wl_report_real(report, wl_summary, "foreign_cqe_percent",
                   cqes ? 100 * (double)cost->foreign / (double)cqes : 0);
    wl_report_whole(report, wl_summary, "credit_waits", (int64_t)cost->credit_waits);
    rma_rows_report(report, &total->sum, "thread_foreign_percent",
                    offsetof(struct rma_row, foreign_percent));
    rma_rows_report(report, &total->sum, "thread_credit_waits",
                    offsetof(struct rma_row, credit_waits));
    wl_report_whole(report, wl_summary, "voluntary_switches", (int64_t)total->switches);
    wl_report_whole(report, wl_summary, "involuntary_switches", (int64_t)total->preemptions);
}

static void report_layer(struct wl_report *report, int layer)
{
    const struct sharing_outcome *total = &totals[layer];
    wl_job.uses_ports = layer == wl_layer_raw;
    wl_job_describe(report, &sharing_program, &sharing, (int)sharing.threads);
    rma_rounds_report(report, &rounds, layer);
    wl_report_whole(report, wl_summary, "clients", sharing_clients);
    wl_report_real(report, wl_summary, "rate_per_thread_mops",
                   rma_sum_mops(&total->sum) / (double)(sharing.servers * sharing.threads));
    wl_report_real(report, wl_summary, "busiest_client_cpu_percent", total->client_cpu_percent);
    wl_report_flag(report, wl_summary, "writes_inline",
                   sharing.op && layer == wl_layer_raw && sharing_raw_inline());
    report_cost(report, total);
    rma_sum_report(report, &total->sum, (size_t)sharing.size);
    report_checks(report, total);
}

void sharing_report(struct wl_report *report)
{
    rma_rounds_each(report, &rounds, report_layer);
}
