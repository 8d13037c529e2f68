/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See rules_private.h: the texts of a finding. No state. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "contrib/report/rules_private.h"

void finding_say(struct finding *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(f->sentence, sizeof(f->sentence), format, args);
    va_end(args);
}

void finding_prove(struct finding *f, const char *what, const char *format, ...)
{
    va_list args;
    if (f->evidence_count == finding_evidence_max)
        return;
    va_start(args, format);
    snprintf(f->evidence[f->evidence_count].what, sizeof(f->evidence[0].what), "%s", what);
    vsnprintf(f->evidence[f->evidence_count].value, sizeof(f->evidence[0].value), format, args);
    f->evidence_count++;
    va_end(args);
}
