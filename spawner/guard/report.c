/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of the guard to the head. Uses the guard's control channel; one thread, no lock. */
#include "config.h"

#include "guard_private.h"
#include "session.h"
#include "spawner/util/launcher_clock.h"

#include <stdarg.h>
#include <stdio.h>

/* Ranks of a host join, finalize and exit in bursts; a frame for each would make the head's work
 * grow with the ranks. What waits for the head's decision does not wait here. */
enum { REPORT_QUIET_MS = 10, REPORT_MOST_MS = 200 };

void guard_hurry_reports(struct guard *g)
{
    g->reports_due = 0;
}

void guard_report(struct guard *g, enum report_kind kind, uint32_t rank, uint32_t number)
{
    int64_t now = clock_ms();

    if (!g->reports.length) {
        g->reports_latest = now + REPORT_MOST_MS;
        g->reports_due = CLOCK_NEVER;
    }
    report_pack(&g->reports, kind, rank, number);
    if (g->reports_due)
        g->reports_due = clock_earlier(now + REPORT_QUIET_MS, g->reports_latest);
}

static void send_reports(struct guard *g)
{
    if (g->reports.length)
        wire_send(&g->control, WIRE_REPORT, 0, 0, bytes_front(&g->reports), g->reports.length);
    bytes_consume(&g->reports, g->reports.length);
    g->reports_due = CLOCK_NEVER;
}

void guard_send_due_reports(struct guard *g)
{
    if (g->reports.length && clock_ms() >= g->reports_due)
        send_reports(g);
}

void guard_send(struct guard *g, enum wire_type type, uint32_t rank, const void *payload,
                size_t length)
{
    send_reports(g);
    wire_send(&g->control, type, 0, rank, payload, length);
}

static void report_failure(struct guard *g, bool show, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void report_failure(struct guard *g, bool show, const char *format, va_list args)
{
    char text[900];
    int used = 0;

    if (g->job && g->job->host_count > 1)
        used = snprintf(text, 300, "host %.280s: ", g->job->hosts[g->job->host].name);
    int n = vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
    if (n < 0)
        return;
    size_t length = (size_t)(used + n);
    send_reports(g);
    wire_send(&g->control, WIRE_FAILED, show, 0, text,
              length < sizeof(text) ? length : sizeof(text) - 1);
}

void guard_report_failure(struct guard *g, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_failure(g, false, format, args);
    va_end(args);
}

void guard_show_failure(struct guard *g, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_failure(g, true, format, args);
    va_end(args);
}

void guard_take_mark(struct guard *g, uint32_t i)
{
    uint32_t rank = g->first + i;
    if (g->finalized[i] || !session_slot(g->session, rank).has_left)
        return;
    g->finalized[i] = true;
    guard_report(g, REPORT_FINALIZED, rank, 0);
}

/* With code 0 a rank does not tell the server that it leaves. */
void guard_take_marks(struct guard *g)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (g->pids[i])
            guard_take_mark(g, i);
    guard_hurry_reports(g);
}
