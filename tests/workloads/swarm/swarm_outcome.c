/* SPDX-License-Identifier: BSD-3-Clause */
/* The result of a swarm: the outcomes of all ranks added up, round by round, and the report. Owns
 * swarm_mine, and rank 0's totals. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "swarm.h"

struct swarm_outcome swarm_mine;

/* By layer: results of the last round, but verdicts of all rounds. */
static struct swarm_outcome totals[2];
static struct rma_rounds rounds;

const char *const swarm_check_names[swarm_checks] = {
    "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S9", "S11", "S12", "S15", "passive", "timeout"};

void swarm_fail(enum swarm_check check, const char *format, ...)
{
    struct rma_verdict *verdict = &swarm_mine.verdicts[check];
    va_list args;
    va_start(args, format);
    if (verdict->failures++ == 0)
        vsnprintf(verdict->first, sizeof(verdict->first), format, args);
    va_end(args);
}

static void report_checks(struct wl_report *report, const struct swarm_outcome *total)
{
    for (int check = 0; check < swarm_checks; check++) {
        const struct rma_verdict *verdict = &total->verdicts[check];
        wl_report_check(report, swarm_check_names[check], verdict->failures, verdict->first);
        if (verdict->failures)
            wl_say("%s failed %llu times, first: %s", swarm_check_names[check],
                   (unsigned long long)verdict->failures, verdict->first);
    }
}

static void add(struct swarm_outcome *total, const struct swarm_outcome *one)
{
    static const enum swarm_check names[rma_checks] = {
        [rma_data] = swarm_s4,    [rma_account] = swarm_s5, [rma_window] = swarm_s9,
        [rma_little] = swarm_s12, [rma_shares] = swarm_s8,  [rma_late] = swarm_late};
    for (int check = 0; check < swarm_checks; check++)
        rma_verdict_merge(&total->verdicts[check], &one->verdicts[check]);
    for (int check = 0; check < rma_checks; check++)
        rma_verdict_merge(&total->verdicts[names[check]], &one->sum.verdicts[check]);
    rma_sum_merge(&total->sum, &one->sum);
    total->connected += one->connected;
    if (one->passive_cpu_percent > total->passive_cpu_percent)
        total->passive_cpu_percent = one->passive_cpu_percent;
}

/* Checks that need all ranks. */
static void check_sums(struct swarm_outcome *total)
{
    total->verdicts[swarm_s2].failures += total->connected != 2 * swarm_connections(swarm_size);
    total->verdicts[swarm_s5].failures +=
        !wl_stopped() && total->sum.posted != total->sum.completed;
    total->verdicts[swarm_s11].failures += rma_sum_unequal(&total->sum);
}

void swarm_round(const struct swarm_outcome *all, int layer)
{
    struct swarm_outcome *total = &totals[layer];
    rma_sum_clear(&total->sum);
    total->connected = 0;
    total->passive_cpu_percent = 0;
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        add(total, &all[rank]);
    check_sums(total);
    rma_rounds_add(&rounds, layer, rma_sum_mops(&total->sum));
    if (layer == wl_layer_api && rounds.count[wl_layer_raw])
        rma_sum_compare(&totals[wl_layer_raw].sum, &total->sum, &total->verdicts[swarm_s15]);
}

/* The completion of unsignaled writes cannot be observed: only the queues of a thread's connections
 * limit them, and that is not the window. */
static int64_t bound_on_a_thread(bool is_raw)
{
    if (!is_raw || swarm.allsig || swarm.write_percent == 0)
        return swarm.window;
    return (int64_t)(swarm_raw_bound() * swarm_connected_ends(swarm_size) / swarm_size.w);
}

static void report_layer(struct wl_report *report, int layer)
{
    const struct swarm_outcome *total = &totals[layer];
    bool is_raw = layer == wl_layer_raw;
    wl_job.uses_ports = layer == wl_layer_raw;
    wl_job_describe(report, &swarm_program, &swarm, (int)swarm.threads);
    rma_rounds_report(report, &rounds, layer);
    wl_report_text(report, wl_summary, "machines_are",
                   is_raw          ? "connections"
                   : swarm.vms > 1 ? "striped"
                                   : "processes");
    wl_report_whole(report, wl_summary, "named_per_process", (int64_t)swarm_named(swarm_size));
    wl_report_whole(report, wl_summary, "connected_in_job", (int64_t)total->connected);
    wl_report_whole(report, wl_summary, "connections_in_job",
                    (int64_t)swarm_connections(swarm_size));
    wl_report_whole(report, wl_summary, "bound_on_a_connection",
                    is_raw ? (int64_t)swarm_raw_bound() : swarm.window);
    wl_report_whole(report, wl_summary, "bound_on_a_thread", bound_on_a_thread(is_raw));
    wl_report_real(report, wl_summary, "busiest_passive_cpu_percent", total->passive_cpu_percent);
    wl_report_real(report, wl_summary, "rate_per_process_mops",
                   rma_sum_mops(&total->sum) / wl_job.size);
    rma_sum_report(report, &total->sum, (size_t)swarm.size);
    report_checks(report, total);
}

void swarm_report(struct wl_report *report)
{
    rma_rounds_each(report, &rounds, report_layer);
}
