/* SPDX-License-Identifier: BSD-3-Clause */
/* The results of a workload, collected once and written in three forms: aligned text, JSON, CSV.
 * Every key has its unit in its name. A report holds one run or several (transports side by side),
 * all with the same keys. */
#ifndef WL_REPORT_H
#define WL_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "histogram.h"

enum wl_section { wl_params, wl_env, wl_summary, wl_verify, wl_sections };

struct wl_report;

struct wl_report *wl_report_open(const char *workload, const char *version);
void wl_report_close(struct wl_report *r);

/* All later values belong to a further run. */
void wl_report_run(struct wl_report *r);

/* Keys and texts are copied. Text "true" and "false" in wl_report_flag only. */
void wl_report_text(struct wl_report *r, enum wl_section section, const char *key,
                    const char *text);
void wl_report_whole(struct wl_report *r, enum wl_section section, const char *key, int64_t value);
void wl_report_real(struct wl_report *r, enum wl_section section, const char *key, double value);
void wl_report_flag(struct wl_report *r, enum wl_section section, const char *key, bool value);

/* count and, in microseconds, mean, min, percentiles 50, 90, 95, 99, 99.9 and max, as
 * <name>_p50_us ... */
void wl_report_times(struct wl_report *r, const char *name, const struct wl_histogram *h);

/* A check: how often it failed and, when it did, where first. Makes the status FAIL. */
void wl_report_check(struct wl_report *r, const char *id, uint64_t failures, const char *first);

/* Fails the present run for a reason that has no check of its own. */
void wl_report_fail(struct wl_report *r);

/* An interval of the present run: seconds since the start and the rate in it. */
void wl_report_interval(struct wl_report *r, double at_s, double mops);

/* The rates of `count` ranks in the interval that was added last; `name` is a literal, the same in
 * all intervals. */
void wl_report_interval_of(struct wl_report *r, const char *name, const double *mops, size_t count);

/* Of all runs. */
bool wl_report_passed(const struct wl_report *r);

void wl_report_print(const struct wl_report *r, FILE *file);

/* The runs as rows; `columns` are keys of the summary, ends with NULL. */
void wl_report_print_table(const struct wl_report *r, const char *const *columns, FILE *file);

/* False with one line in `why`. The CSV file gets one row for each run; it is made with a header,
 * or must have that very header, and then is added to. */
bool wl_report_write_json(const struct wl_report *r, const char *path, char *why, size_t size);
bool wl_report_write_csv(const struct wl_report *r, const char *path, char *why, size_t size);

#endif
