/* SPDX-License-Identifier: BSD-3-Clause */
/* See sum.h. Owns the threads while they run. */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sum.h"

struct task {
    struct rma_flood *flood;
    uint64_t seed, stream;
    pthread_t thread;
};

static void *work(void *arg)
{
    struct task *task = arg;
    rma_flood_run(task->flood, task->seed, task->stream);
    return NULL;
}

static void set_group(struct rma_group *group, struct rma_flood *floods, unsigned count)
{
    group->floods = floods;
    group->threads = 0;
    for (unsigned t = 0; t < count; t++) {
        group->threads += floods[t].target_count > 0;
        floods[t].group = group;
    }
    group->is_watched &= group->threads > 0;
    rma_group_start(group);
}

void rma_run_all(struct rma_flood *floods, unsigned count, struct rma_group *group, uint64_t seed,
                 uint64_t first_stream)
{
    struct task *tasks = calloc(count, sizeof(*tasks));
    if (!tasks)
        wl_job_die("no memory for %u threads", count);
    if (group)
        set_group(group, floods, count);
    for (unsigned t = 0; t < count; t++) {
        tasks[t] = (struct task){.flood = &floods[t], .seed = seed, .stream = first_stream + t};
        if (t && floods[t].target_count && pthread_create(&tasks[t].thread, NULL, work, &tasks[t]))
            wl_job_die("thread %u can't be started", t);
    }
    if (floods[0].target_count)
        work(&tasks[0]);
    for (unsigned t = 1; t < count; t++)
        if (floods[t].target_count)
            pthread_join(tasks[t].thread, NULL);
    if (group)
        rma_group_end(group);
    free(tasks);
}

void rma_sum_clear(struct rma_sum *sum)
{
    *sum = (struct rma_sum){
        .least_mops = HUGE_VAL, .least_posted = UINT64_MAX, .interval_count = UINT64_MAX};
    wl_histogram_clear(&sum->times);
}

void rma_verdict_merge(struct rma_verdict *into, const struct rma_verdict *from)
{
    if (into->failures == 0)
        *into = *from;
    else
        into->failures += from->failures;
}

static double per(double what, uint64_t count)
{
    return count ? what / (double)count : 0;
}

static struct rma_row row_of(const struct rma_flood *flood)
{
    struct rma_row row = {
        .bound_to = flood->bound_to,
        .mops = rma_flood_mops(flood),
        .cpu_ns_per_op =
            per((double)(flood->span.ended_cpu - flood->span.began_cpu), flood->measured),
        .p50_us = (double)wl_histogram_at(&flood->times, .5) * 1e-3,
        .p99_us = (double)wl_histogram_at(&flood->times, .99) * 1e-3,
        .p99_9_us = (double)wl_histogram_at(&flood->times, .999) * 1e-3};
    for (int part = 0; part < rma_parts; part++)
        row.cycles[part] = per((double)flood->cycles[part], flood->samples[part]);
    return row;
}

struct rma_row *rma_sum_flood(struct rma_sum *sum, const struct rma_flood *flood)
{
    static struct rma_sum one; /* too large for a stack; one thread adds up */
    double mops = rma_flood_mops(flood);
    one = (struct rma_sum){.posted = flood->posted,
                           .completed = flood->completed,
                           .measured = flood->measured,
                           .measured_writes = flood->measured_writes,
                           .checked = flood->checked,
                           .most_outstanding = flood->most_outstanding,
                           .timed = flood->timed,
                           .empty_polls = flood->empty_polls,
                           .doorbells = flood->doorbells,
                           .cqes = flood->cqes,
                           .line_outstanding = flood->line_outstanding,
                           .least_posted = flood->posted,
                           .cpu_ns = flood->span.ended_cpu - flood->span.began_cpu,
                           .sequence = flood->sequence,
                           .interrupted = flood->interrupted,
                           .latency_ns = flood->latency_ns,
                           .cycles_per_ns = flood->cycles_per_ns,
                           .interval_count = UINT64_MAX,
                           .row_count = 1,
                           .longest_ns = flood->span.ended - flood->span.began,
                           .least_mops = mops,
                           .most_mops = mops,
                           .times = flood->times};
    for (int check = 0; check < rma_checks; check++)
        one.verdicts[check] = flood->verdicts[check];
    for (size_t i = 0; i < flood->target_count; i++)
        one.rails[flood->targets[i].rail % rma_rails_max] += flood->targets[i].measured;
    for (int part = 0; part < rma_parts; part++) {
        one.cycles[part] = flood->cycles[part];
        one.samples[part] = flood->samples[part];
    }
    one.rows[0] = row_of(flood);
    rma_sum_merge(sum, &one);
    return sum->row_count <= rma_rows_max ? &sum->rows[sum->row_count - 1] : NULL;
}

void rma_sum_group(struct rma_sum *sum, const struct rma_group *group)
{
    sum->interval_count = group->complete;
    sum->interval_ns = group->interval_ns;
    for (unsigned i = 0; i < group->complete; i++)
        sum->intervals[i] = group->intervals[i].mops;
}

static void merge_rows(struct rma_sum *into, const struct rma_sum *from)
{
    for (uint64_t i = 0; i < from->row_count; i++, into->row_count++)
        if (i < rma_rows_max && into->row_count < rma_rows_max)
            into->rows[into->row_count] = from->rows[i];
}

/* Counts the intervals that all posting processes completed. */
static void merge_intervals(struct rma_sum *into, const struct rma_sum *from)
{
    for (int i = 0; i < rma_intervals_max; i++)
        into->intervals[i] += from->intervals[i];
    if (from->interval_count < into->interval_count)
        into->interval_count = from->interval_count;
    if (from->interval_ns)
        into->interval_ns = from->interval_ns;
}

void rma_sum_merge(struct rma_sum *into, const struct rma_sum *from)
{
    for (int check = 0; check < rma_checks; check++)
        rma_verdict_merge(&into->verdicts[check], &from->verdicts[check]);
    for (int rail = 0; rail < rma_rails_max; rail++)
        into->rails[rail] += from->rails[rail];
    into->posted += from->posted;
    into->completed += from->completed;
    into->measured += from->measured;
    into->measured_writes += from->measured_writes;
    into->checked += from->checked;
    into->timed += from->timed;
    into->empty_polls += from->empty_polls;
    into->doorbells += from->doorbells;
    into->cqes += from->cqes;
    into->cpu_ns += from->cpu_ns;
    into->sequence += from->sequence;
    into->interrupted += from->interrupted;
    into->latency_ns += from->latency_ns;
    for (int part = 0; part < rma_parts; part++) {
        into->cycles[part] += from->cycles[part];
        into->samples[part] += from->samples[part];
    }
    into->cycles_per_ns = fmax(into->cycles_per_ns, from->cycles_per_ns);
    merge_rows(into, from);
    merge_intervals(into, from);
    if (from->longest_ns > into->longest_ns)
        into->longest_ns = from->longest_ns;
    into->least_mops = fmin(into->least_mops, from->least_mops);
    into->most_mops = fmax(into->most_mops, from->most_mops);
    if (from->most_outstanding > into->most_outstanding)
        into->most_outstanding = from->most_outstanding;
    if (from->line_outstanding > into->line_outstanding)
        into->line_outstanding = from->line_outstanding;
    if (from->least_posted < into->least_posted)
        into->least_posted = from->least_posted;
    wl_histogram_merge(&into->times, &from->times);
}

/* Not the sum of the threads' own rates: threads that took turns on a CPU would count as if they
 * had run at the same time. */
double rma_sum_mops(const struct rma_sum *sum)
{
    return sum->longest_ns ? (double)sum->measured * 1e3 / (double)sum->longest_ns : 0;
}

uint64_t rma_sum_unequal(const struct rma_sum *sum)
{
    uint64_t by_rail = 0;
    for (int rail = 0; rail < rma_rails_max; rail++)
        by_rail += sum->rails[rail];
    return (sum->times.count != sum->timed) + (by_rail != sum->measured);
}

void rma_sum_compare(const struct rma_sum *raw, const struct rma_sum *api,
                     struct rma_verdict *verdict)
{
    bool alike = raw->posted == api->posted ||
                 (raw->least_posted >= rma_sequence_max && api->least_posted >= rma_sequence_max);
    if (alike && raw->sequence != api->sequence && verdict->failures++ == 0)
        snprintf(verdict->first, sizeof(verdict->first),
                 "digest %016llx over raw, %016llx over api", (unsigned long long)raw->sequence,
                 (unsigned long long)api->sequence);
}

int rma_add_number(char *text, size_t size, bool is_first, double value)
{
    const char *format = value < 1000 ? "%s%.4g" : "%s%.0f";
    return snprintf(text, size, format, is_first ? "" : "+", value);
}

/* By rail, with plus signs between: every report has the same number of keys. */
static void report_rails(struct wl_report *r, const struct rma_sum *sum, size_t size)
{
    char mops[256] = "", gbps[256] = "";
    for (int rail = 0, used = 0; rail < rma_rails_max; rail++) {
        double rate =
            sum->longest_ns ? (double)sum->rails[rail] * 1e3 / (double)sum->longest_ns : 0;
        if (!sum->rails[rail])
            continue;
        size_t m = strlen(mops), g = strlen(gbps);
        rma_add_number(mops + m, sizeof(mops) - m, used == 0, rate);
        rma_add_number(gbps + g, sizeof(gbps) - g, used == 0, rate * (double)size * 8e-3);
        used++;
    }
    wl_report_text(r, wl_summary, "rails_mops", mops);
    wl_report_text(r, wl_summary, "rails_gbps", gbps);
}

void rma_rows_report(struct wl_report *r, const struct rma_sum *sum, const char *key, size_t offset)
{
    size_t count = sum->row_count < rma_rows_max ? (size_t)sum->row_count : rma_rows_max;
    char text[rma_rows_max * 16] = "";
    for (size_t i = 0, used = 0; i < count; i++) {
        double value;
        memcpy(&value, (const char *)&sum->rows[i] + offset, sizeof(value));
        used += (size_t)rma_add_number(text + used, sizeof(text) - used, i == 0, value);
    }
    wl_report_text(r, wl_summary, key, text);
}

static void report_rows(struct wl_report *r, const struct rma_sum *sum)
{
    rma_rows_report(r, sum, "thread_mops", offsetof(struct rma_row, mops));
    rma_rows_report(r, sum, "thread_bound_to", offsetof(struct rma_row, bound_to));
    rma_rows_report(r, sum, "thread_cpu_ns_per_op", offsetof(struct rma_row, cpu_ns_per_op));
    rma_rows_report(r, sum, "thread_post_cycles", offsetof(struct rma_row, cycles[rma_posting]));
    rma_rows_report(r, sum, "thread_poll_cycles", offsetof(struct rma_row, cycles[rma_polling]));
    rma_rows_report(r, sum, "thread_loop_cycles", offsetof(struct rma_row, cycles[rma_looping]));
    rma_rows_report(r, sum, "thread_p50_us", offsetof(struct rma_row, p50_us));
    rma_rows_report(r, sum, "thread_p99_us", offsetof(struct rma_row, p99_us));
    rma_rows_report(r, sum, "thread_p99_9_us", offsetof(struct rma_row, p99_9_us));
}

/* Where the time goes, by the CPU's counter; --cycles chooses the samples. */
static void report_parts(struct wl_report *r, const struct rma_sum *sum)
{
    static const char *const names[rma_parts] = {
        [rma_choosing] = "choose_cycles", [rma_posting] = "post_cycles",
        [rma_polling] = "poll_cycles",    [rma_verifying] = "verify_cycles",
        [rma_looping] = "loop_cycles",    [rma_locking] = "lock_cycles",
        [rma_routing] = "routing_cycles"};
    for (int part = 0; part < rma_parts; part++)
        wl_report_real(r, wl_summary, names[part],
                       per((double)sum->cycles[part], sum->samples[part]));
    wl_report_whole(r, wl_summary, "interrupted_samples", (int64_t)sum->interrupted);
    wl_report_real(r, wl_summary, "cycles_per_us", sum->cycles_per_ns * 1e3);
}

static void report_intervals(struct wl_report *r, const struct rma_sum *sum)
{
    for (uint64_t i = 0; sum->interval_count <= rma_intervals_max && i < sum->interval_count; i++)
        wl_report_interval(r, (double)(i + 1) * (double)sum->interval_ns * 1e-9, sum->intervals[i]);
}

void rma_sum_report(struct wl_report *r, const struct rma_sum *sum, size_t size)
{
    char digest[32];
    report_intervals(r, sum);
    report_rows(r, sum);
    report_parts(r, sum);
    wl_report_real(r, wl_summary, "rate_mops", rma_sum_mops(sum));
    wl_report_real(r, wl_summary, "slowest_thread_mops", sum->least_mops);
    wl_report_real(r, wl_summary, "fastest_thread_mops", sum->most_mops);
    wl_report_real(r, wl_summary, "rate_gbps", rma_sum_mops(sum) * (double)size * 8e-3);
    wl_report_times(r, "op", &sum->times);
    wl_report_real(r, wl_summary, "latency_mean_of_all_us",
                   per((double)sum->latency_ns, sum->times.count ? sum->measured : 0) * 1e-3);
    wl_report_real(r, wl_summary, "cpu_ns_per_op", per((double)sum->cpu_ns, sum->measured));
    wl_report_real(r, wl_summary, "empty_polls_per_op",
                   per((double)sum->empty_polls, sum->completed));
    report_rails(r, sum, size);
    wl_report_real(r, wl_summary, "posts_per_doorbell", per((double)sum->posted, sum->doorbells));
    wl_report_real(r, wl_summary, "cqes_per_op", per((double)sum->cqes, sum->posted));
    wl_report_whole(r, wl_summary, "most_on_a_connection", (int64_t)sum->line_outstanding);
    wl_report_real(r, wl_summary, "write_percent",
                   100 * per((double)sum->measured_writes, sum->measured));
    wl_report_whole(r, wl_summary, "most_outstanding", (int64_t)sum->most_outstanding);
    wl_report_whole(r, wl_summary, "ops_measured", (int64_t)sum->measured);
    wl_report_whole(r, wl_summary, "ops_total", (int64_t)sum->posted);
    snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)sum->sequence);
    wl_report_text(r, wl_summary, "sequence_digest", digest);
    wl_report_whole(r, wl_verify, "checked_reads", (int64_t)sum->checked);
}
