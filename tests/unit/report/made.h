/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lines of files for the tests of gasnet_report, read into a model. One model at a time. */
#ifndef UNIT_REPORT_MADE_H
#define UNIT_REPORT_MADE_H

#include "contrib/report/read.h"
#include "contrib/report/rules.h"

extern struct report_model *model;
extern struct report_reader reader;

void made_begin(void);
void made_end(void);

/* A line as printf makes it. */
enum read_status made_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, which must be read. */
void made_read(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Statistics of a rank of a job of `size` ranks over one second, that ended with "exit"; `counters`
 * are members of that object. */
void made_rank(uint32_t rank, uint32_t size, const char *counters);

/* An event of a trace, in microseconds since second 1; `more` begins with a blank. */
void made_event(uint32_t rank, double begin, double length, const char *operation,
                const char *more);

/* The sentence of that rule; NULL: it is silent. Valid until the next call. */
const struct finding *made_finding(const char *rule);
unsigned made_findings(void);

/* The model as JSON; freed by the caller. */
char *made_json(void);

#endif
