/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the library says to people: whole lines on standard error, one write each so that lines of
 * ranks never mix. Thread-safe; the async-signal-safe form is named so. */
#ifndef TK_REPORT_H
#define TK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who is speaking: shown in front of every line once known. */
void tk_report_identity(uint32_t rank, uint32_t size, const char *host);

/* The rank given above; -1 before. */
int64_t tk_report_rank(void);

/* While ranks start they mostly fail for one reason all together: others than rank 0 hold their
 * errors back for a moment, in which the launcher, asked by rank 0, ends them. What only they know
 * is told all the same. */
void tk_report_starting(bool starting);

/* No warnings and notices from now on; errors are always shown. */
void tk_report_quiet(bool quiet);

/* An error: cause, value seen, limit, remedy. */
void tk_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Something the user may want to change; not shown when quiet. */
void tk_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A fact asked for by the user (GASNET_VERBOSEENV). */
void tk_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Why a call returns an error code; shown unless the client switched that off. */
void tk_verbose_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool tk_verbose_errors;

/* Until it is called with false, what this thread complains of is why a call returns an error code,
 * and shown as tk_verbose_error() shows it. */
void tk_report_returned(bool returned);

/* Until it is called with NULL, what this thread complains of is not shown but written to `text`,
 * without a prefix; the last complaint is what stays there. */
void tk_report_into(char *text, size_t size);

/* Misuse or a broken promise of the library's own: prints, then abort()s. */
_Noreturn void tk_panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For signal handlers: `text` with the prefix of this process, nothing else. */
void tk_log_error_signal_safe(const char *text);

#endif
