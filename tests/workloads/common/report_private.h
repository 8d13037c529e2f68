/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents of a report; for report.c, which fills it, and report_write.c. */
#ifndef WL_REPORT_PRIVATE_H
#define WL_REPORT_PRIVATE_H

#include "report.h"

struct wl_entry {
    enum wl_section section;
    char *key, *value;
    bool quoted; /* text; otherwise a number, true, false or null */
};

enum { wl_roles_max = 2 };

struct wl_interval {
    double at_s, mops;
    struct {
        const char *name;
        double *mops;
        size_t count;
    } roles[wl_roles_max];
    size_t role_count;
};

struct wl_run {
    struct wl_entry *entries;
    size_t count;
    struct wl_interval *intervals;
    size_t interval_count;
    bool failed;
};

struct wl_report {
    char *workload, *version;
    struct wl_run *runs;
    size_t count;
};

#endif
