/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of the guard to the head. Uses the guard's control channel; one thread, no lock. */
#include "config.h"

#include "guard_private.h"

#include <stdarg.h>
#include <stdio.h>

void guard_report(struct guard *g, enum report_kind kind, uint32_t rank, uint32_t number)
{
    report_pack(&g->reports, kind, rank, number);
}

void guard_send_reports(struct guard *g)
{
    if (!g->reports.length)
        return;
    wire_send(&g->control, WIRE_REPORT, 0, 0, bytes_front(&g->reports), g->reports.length);
    bytes_consume(&g->reports, g->reports.length);
}

void guard_report_failure(struct guard *g, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0)
        return;
    if ((size_t)n >= sizeof(text))
        n = sizeof(text) - 1;
    guard_send_reports(g);
    wire_send(&g->control, WIRE_FAILED, 0, 0, text, (size_t)n);
}
