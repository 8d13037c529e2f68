/* SPDX-License-Identifier: BSD-3-Clause */
/* The results as a table for people and as JSON for programs. A ratio is conduit to raw, the median
 * over the repetitions of neighbouring measurements, so that a disturbance of the machine hits
 * both. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static const char *const unit_names[] = {
    [BENCH_NS] = "ns", [BENCH_US] = "us", [BENCH_KOPS] = "kop/s", [BENCH_MBPS] = "MB/s"};

struct spread {
    double median, least, most, first, third; /* the last two: quartiles */
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(const double *samples, int count)
{
    double sorted[bench_reps_max];
    memcpy(sorted, samples, (size_t)count * sizeof(*samples));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare);
    return (struct spread){sorted[count / 2], sorted[0], sorted[count - 1], sorted[count / 4],
                           sorted[count - 1 - count / 4]};
}

static struct spread ratio_of(const struct bench_result *result)
{
    double ratios[bench_reps_max];
    for (int i = 0; i < result->reps; i++)
        ratios[i] = result->conduit[i] / result->raw[i];
    return spread_of(ratios, result->reps);
}

static bool is_time(enum bench_unit unit)
{
    return unit == BENCH_NS || unit == BENCH_US;
}

static double best_ratio(const struct bench_result *result)
{
    struct spread conduit = spread_of(result->conduit, result->reps);
    struct spread raw = spread_of(result->raw, result->reps);
    return is_time(result->what->unit) ? conduit.least / raw.least : conduit.most / raw.most;
}

/* The aim in words, empty without an aim; *met is valid only with an aim. */
static const char *aim_of(const struct bench_result *result, bool *met)
{
    static char text[64];
    const struct bench_case *what = result->what;
    double ratio = ratio_of(result).median;
    *met = true;
    text[0] = 0;
    if (what->aim > 0) {
        *met = is_time(what->unit) ? ratio <= what->aim : ratio >= what->aim;
        snprintf(text, sizeof(text), "%s %.2f", is_time(what->unit) ? "<=" : ">=", what->aim);
    } else if (what->aim_rate > 0) {
        *met = spread_of(result->conduit, result->reps).median >= what->aim_rate;
        snprintf(text, sizeof(text), ">= %.0f %s", what->aim_rate, unit_names[what->unit]);
    }
    return text;
}

static void print_aim(const struct bench_result *result)
{
    bool met;
    const char *aim = aim_of(result, &met);
    if (*aim)
        printf("  aim %s: %s", aim, met ? "met" : "MISSED");
}

static void print_row(const struct bench_result *result)
{
    const struct bench_case *what = result->what;
    struct spread ratio = ratio_of(result);
    printf("%-18s %8zu  %12.2f  %12.2f %-10s  %-5s  %6.2f (%.2f-%.2f)  %6.2f", what->name,
           what->bytes, spread_of(result->conduit, result->reps).median,
           spread_of(result->raw, result->reps).median, what->raw_name, unit_names[what->unit],
           ratio.median, ratio.first, ratio.third, best_ratio(result));
    print_aim(result);
    putchar('\n');
}

void bench_report_table(const struct bench_result *results, int count)
{
    printf("%s, %ld CPUs, medians of %d, of the ratios also the quartiles\n", bench_raw_describe(),
           sysconf(_SC_NPROCESSORS_ONLN), count ? results[0].reps : 0);
    printf("%-18s %8s  %12s  %12s %-10s  %-5s  %18s  %6s\n", "operation", "bytes", "conduit", "raw",
           "", "unit", "ratio", "best");
    for (int i = 0; i < count; i++)
        print_row(&results[i]);
}

static void json_spread(FILE *out, const char *name, struct spread s)
{
    fprintf(
        out,
        "\"%s\": {\"median\": %.4f, \"min\": %.4f, \"max\": %.4f, \"q1\": %.4f, \"q3\": %.4f}, ",
        name, s.median, s.least, s.most, s.first, s.third);
}

static void json_row(FILE *out, const struct bench_result *result, bool last)
{
    const struct bench_case *what = result->what;
    bool met;
    const char *aim = aim_of(result, &met);
    fprintf(
        out,
        "    {\"operation\": \"%s\", \"bytes\": %zu, \"unit\": \"%s\", \"raw_operation\": \"%s\", ",
        what->name, what->bytes, unit_names[what->unit], what->raw_name);
    json_spread(out, "conduit", spread_of(result->conduit, result->reps));
    json_spread(out, "raw", spread_of(result->raw, result->reps));
    if (*aim)
        fprintf(out, "\"aim\": \"%s\", \"aim_met\": %s, ", aim, met ? "true" : "false");
    json_spread(out, "ratio", ratio_of(result));
    fprintf(out, "\"best_ratio\": %.4f}%s\n", best_ratio(result), last ? "" : ",");
}

int bench_report_json(const char *file, const struct bench_result *results, int count)
{
    FILE *out = fopen(file, "w");
    if (!out) {
        fprintf(stderr, "bench: %s can't be written: %s\n", file, strerror(errno));
        return 1;
    }
    fprintf(out, "{\n  \"device\": \"%s\", \"cpus\": %ld, \"repetitions\": %d,\n  \"results\": [\n",
            bench_raw_describe(), sysconf(_SC_NPROCESSORS_ONLN), count ? results[0].reps : 0);
    for (int i = 0; i < count; i++)
        json_row(out, &results[i], i == count - 1);
    fprintf(out, "  ]\n}\n");
    if (fclose(out) == 0)
        return 0;
    fprintf(stderr, "bench: %s can't be written: %s\n", file, strerror(errno));
    return 1;
}
