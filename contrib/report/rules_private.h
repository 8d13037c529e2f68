/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of the rules share. */
#ifndef TRUNKLINE_REPORT_RULES_PRIVATE_H
#define TRUNKLINE_REPORT_RULES_PRIVATE_H

#include "contrib/report/rules.h"

/* finding.c */
void finding_say(struct finding *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void finding_prove(struct finding *f, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* rules_trace.c */
bool finding_late_rank(const struct report_model *model, struct finding *f);
bool finding_busy_handlers(const struct report_model *model, struct finding *f);
bool finding_lost_events(const struct report_model *model, struct finding *f);

#endif
