/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report as files: the model as one JSON object, which the page's script draws, and the page
 * around it. */
#ifndef TRUNKLINE_REPORT_WRITE_H
#define TRUNKLINE_REPORT_WRITE_H

#include <stdio.h>

#include "contrib/report/model.h"

/* What the page is for. */
enum page_use {
    PAGE_FILE, /* one file with its data */
    PAGE_LIVE  /* served; the script asks for data.json each second */
};

/* One line without `<`, `>` and `&`, so that it may stand in a page as it is. The writer judges the
 * model (rules.h). False: no memory; errors of `out` are the caller's. */
bool report_write_json(FILE *out, const struct report_model *model, bool is_live);

/* The page. `model` may be NULL with PAGE_LIVE: there is no data yet. */
bool report_write_page(FILE *out, const struct report_model *model, enum page_use use);

/* The value of the header Content-Security-Policy, which the page also has in a <meta>; valid until
 * the next call. */
const char *report_page_policy(enum page_use use);

/* A string of JSON between quotes. Bytes that are not UTF-8 become U+FFFD. */
void report_write_string(FILE *out, const char *text);

/* Made of page/ when the tool is built. */
extern const char report_page_head[], report_page_body[], report_page_style[], report_page_script[];

#endif
