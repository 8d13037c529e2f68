/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages to the user: whole lines on standard error, one write each so that lines of ranks never
 * mix. Thread-safe; the async-signal-safe function is named so. */
#ifndef TK_REPORT_H
#define TK_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Identity of this process: precedes every line once known. */
void tk_report_identity(uint32_t rank, uint32_t size, const char *host);

/* The rank set by tk_report_identity(); -1 before. */
int64_t tk_report_rank(void);

/* During start-up ranks usually all fail for the same reason: ranks other than 0 delay their errors
 * for a moment, in which the launcher ends them at the request of rank 0. If rank 0 did not fail,
 * their errors are still printed. */
void tk_report_starting(bool starting);

/* No warnings from now on; errors are always printed. */
void tk_report_quiet(bool quiet);

/* An error: cause, value seen, limit, remedy. */
void tk_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Something the user may want to change; not shown when quiet. */
void tk_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A fact asked for by the user (GASNET_VERBOSEENV). */
void tk_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Reason why a call returns an error code; printed unless the client switched that off. */
void tk_verbose_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern bool tk_verbose_errors;

/* Between a call with true and one with false, tk_log_error() of this thread reports the reason why
 * a call returns an error code, and is printed under the same condition as tk_verbose_error(). */
void tk_report_returned(bool returned);

/* Until the next call with NULL, errors of this thread are not printed but written to `text`,
 * without a prefix; the last one remains. */
void tk_report_into(char *text, size_t size);

/* Misuse, or a broken invariant of the library: prints, then abort()s. */
_Noreturn void tk_panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Notes that a file that the user requested could not be written, which was reported: if nothing
 * else fails the process ends with this status, as the launcher does for lost output.
 * Async-signal-safe. */
enum { tk_status_output_lost = 74 /* EX_IOERR */ };
void tk_report_output_lost(void);
bool tk_report_has_lost_output(void);

/* For signal handlers: prints `text` with this process's prefix, unformatted. */
void tk_log_error_signal_safe(const char *text);

#endif
