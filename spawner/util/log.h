/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of the launcher: each goes to standard error as one write(), so that lines of two
 * launchers that share a terminal do not mix. Safe from any thread; takes no lock. A full pipe
 * delays a message by a second at most, and then the message is dropped. */
#ifndef TRUNKLINE_SPAWNER_LOG_H
#define TRUNKLINE_SPAWNER_LOG_H

#include <stdarg.h>
#include <stddef.h>

/* Exit codes of the launcher itself; all others come from the job. The last one, for a job that
 * ended well but whose output was lost, is the number of EX_IOERR in sysexits.h. */
enum { EXIT_RUNTIME = 1, EXIT_USAGE = 2, EXIT_OUTPUT_LOST = 74 };

/* Longer messages are cut. */
enum { LOG_LINE_MAX = 2048 };

/* Print "gasnetrun_ibv: <text>\n" on standard error: a failure, and a notice that does not need
 * -v. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, only if the user gave -v at least `level` times. */
void log_verbose(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets how many times -v was given; call before any thread or child exists. */
void log_set_verbosity(int level);
int log_verbosity(void);

/* Formats such a line into `line`, for callers with an output queue of their own. Returns its
 * length, 0 on error. */
size_t log_format(char line[LOG_LINE_MAX], const char *format, va_list args);

#endif
