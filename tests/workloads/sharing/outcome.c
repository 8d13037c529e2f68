/* SPDX-License-Identifier: BSD-3-Clause */
/* What sharing amounts to: the outcomes of all ranks added up, and the report. Owns sharing_mine.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "sharing.h"

struct sharing_outcome sharing_mine;

const char *const sharing_check_names[sharing_checks] = {"H2",  "H3",     "H5",     "H8",     "H10",
                                                         "H13", "window", "little", "timeout"};

void sharing_fail(enum sharing_check check, const char *format, ...)
{
    struct rma_verdict *verdict = &sharing_mine.verdicts[check];
    va_list args;
    va_start(args, format);
    if (verdict->failures++ == 0)
        vsnprintf(verdict->first, sizeof(verdict->first), format, args);
    va_end(args);
}

static void add(struct sharing_outcome *total, const struct sharing_outcome *one)
{
    static const enum sharing_check names[rma_checks] = {[rma_data] = sharing_h5,
                                                         [rma_account] = sharing_h3,
                                                         [rma_window] = sharing_window,
                                                         [rma_little] = sharing_little,
                                                         [rma_late] = sharing_late};
    for (int check = 0; check < sharing_checks; check++)
        rma_verdict_merge(&total->verdicts[check], &one->verdicts[check]);
    for (int check = 0; check < rma_checks; check++)
        rma_verdict_merge(&total->verdicts[names[check]], &one->sum.verdicts[check]);
    rma_sum_merge(&total->sum, &one->sum);
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

void sharing_report(struct wl_report *report, const struct sharing_outcome *all)
{
    static struct sharing_outcome total;
    rma_sum_clear(&total.sum);
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        add(&total, &all[rank]);
    total.verdicts[sharing_h3].failures += !wl_stopped() && total.sum.posted != total.sum.completed;
    /* H10: what threads counted is what the histograms hold. */
    total.verdicts[sharing_h10].failures += total.sum.times.count != total.sum.measured;
    wl_job_describe(report, &sharing_program, &sharing, (int)sharing.threads);
    wl_report_whole(report, wl_summary, "clients", sharing_clients);
    wl_report_real(report, wl_summary, "rate_per_thread_mops",
                   rma_sum_mops(&total.sum) / (double)(sharing.servers * sharing.threads));
    wl_report_real(report, wl_summary, "busiest_client_cpu_percent", total.client_cpu_percent);
    rma_sum_report(report, &total.sum, (size_t)sharing.size);
    report_checks(report, &total);
}
