/* SPDX-License-Identifier: BSD-3-Clause */
/* See report.h. Owns the values of a report, as text that is already valid as a JSON number. / */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "report_private.h"

static void *grow(void *array, size_t count, size_t size)
{
    /* Capacity doubles at each power of two: all lists here are small. */
    if (count & (count - 1) && count)
        return array;
    void *more = realloc(array, (count ? count * 2 : 1) * size);
    if (!more)
        abort();
    return more;
}

static char *copy(const char *text)
{
    char *mine = strdup(text);
    if (!mine)
        abort();
    return mine;
}

struct wl_report *wl_report_open(const char *workload, const char *version)
{
    struct wl_report *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    r->workload = copy(workload);
    r->version = copy(version);
    wl_report_run(r);
    return r;
}

static void free_run(struct wl_run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        free(run->entries[i].key);
        free(run->entries[i].value);
    }
    for (size_t i = 0; i < run->interval_count; i++)
        for (size_t role = 0; role < run->intervals[i].role_count; role++)
            free(run->intervals[i].roles[role].mops);
    free(run->entries);
    free(run->intervals);
}

void wl_report_close(struct wl_report *r)
{
    for (size_t i = 0; i < r->count; i++)
        free_run(&r->runs[i]);
    free(r->runs);
    free(r->workload);
    free(r->version);
    free(r);
}

void wl_report_run(struct wl_report *r)
{
    r->runs = grow(r->runs, r->count, sizeof(*r->runs));
    r->runs[r->count++] = (struct wl_run){0};
}

static void add(struct wl_report *r, enum wl_section section, const char *key, const char *value,
                bool quoted)
{
    struct wl_run *run = &r->runs[r->count - 1];
    run->entries = grow(run->entries, run->count, sizeof(*run->entries));
    run->entries[run->count++] = (struct wl_entry){section, copy(key), copy(value), quoted};
}

void wl_report_text(struct wl_report *r, enum wl_section section, const char *key, const char *text)
{
    add(r, section, key, text, true);
}

void wl_report_whole(struct wl_report *r, enum wl_section section, const char *key, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    add(r, section, key, text, false);
}

void wl_report_real(struct wl_report *r, enum wl_section section, const char *key, double value)
{
    char text[64];
    /* JSON has no value for NaN. */
    if (!isfinite(value))
        snprintf(text, sizeof(text), "null");
    else
        snprintf(text, sizeof(text), "%.6g", value);
    add(r, section, key, text, false);
}

void wl_report_flag(struct wl_report *r, enum wl_section section, const char *key, bool value)
{
    add(r, section, key, value ? "true" : "false", false);
}

static void add_time(struct wl_report *r, const char *name, const char *what, double ns)
{
    char key[96];
    snprintf(key, sizeof(key), "%s_%s_us", name, what);
    wl_report_real(r, wl_summary, key, ns / 1000);
}

void wl_report_times(struct wl_report *r, const char *name, const struct wl_histogram *h)
{
    static const struct {
        const char *name;
        double share;
    } points[] = {{"p50", .5}, {"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99_9", .999}};
    char key[96];
    snprintf(key, sizeof(key), "%s_count", name);
    wl_report_whole(r, wl_summary, key, (int64_t)h->count);
    add_time(r, name, "mean", wl_histogram_mean(h));
    add_time(r, name, "min", h->count ? (double)h->least : 0);
    for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++)
        add_time(r, name, points[i].name, (double)wl_histogram_at(h, points[i].share));
    add_time(r, name, "max", (double)h->most);
}

void wl_report_fail(struct wl_report *r)
{
    r->runs[r->count - 1].failed = true;
}

void wl_report_check(struct wl_report *r, const char *id, uint64_t failures, const char *first)
{
    char key[96];
    snprintf(key, sizeof(key), "%s_failures", id);
    wl_report_whole(r, wl_verify, key, (int64_t)failures);
    snprintf(key, sizeof(key), "%s_first", id);
    wl_report_text(r, wl_verify, key, failures ? first : "");
    if (failures)
        wl_report_fail(r);
}

void wl_report_interval(struct wl_report *r, double at_s, double mops)
{
    struct wl_run *run = &r->runs[r->count - 1];
    run->intervals = grow(run->intervals, run->interval_count, sizeof(*run->intervals));
    run->intervals[run->interval_count++] = (struct wl_interval){.at_s = at_s, .mops = mops};
}

void wl_report_interval_of(struct wl_report *r, const char *name, const double *mops, size_t count)
{
    struct wl_run *run = &r->runs[r->count - 1];
    struct wl_interval *interval = &run->intervals[run->interval_count - 1];
    double *mine = calloc(count + 1, sizeof(*mine));
    if (!mine || interval->role_count == wl_roles_max)
        abort();
    memcpy(mine, mops, count * sizeof(*mine));
    interval->roles[interval->role_count].name = name;
    interval->roles[interval->role_count].mops = mine;
    interval->roles[interval->role_count++].count = count;
}

bool wl_report_passed(const struct wl_report *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->runs[i].failed)
            return false;
    return true;
}
