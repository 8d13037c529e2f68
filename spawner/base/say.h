/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's voice: every sentence it prints goes to stderr as one write, so that sentences of
 * two launchers sharing a terminal do not mix. Safe from any thread; takes no lock. A pipe that
 * nobody empties keeps it for a second, no longer. */
#ifndef TRUNKLINE_SPAWNER_SAY_H
#define TRUNKLINE_SPAWNER_SAY_H

#include <stdarg.h>
#include <stddef.h>

/* Exit codes of the launcher itself; everything else is the job's. The last one, of a job that
 * ended well, has the number of EX_IOERR in sysexits.h. */
enum { EXIT_RUNTIME = 1, EXIT_USAGE = 2, EXIT_OUTPUT_LOST = 74 };

/* Longer sentences are cut. */
enum { SAY_LONGEST = 2048 };

/* Prints "gasnetrun_ibv: <text>\n" on stderr. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like say(), but only when the user asked for at least `level` times -v. */
void say_verbose(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets how many times -v was given; call before any thread or child exists. */
void say_set_verbosity(int level);
int say_verbosity(void);

/* Writes that line into `line` instead, for who has a queue to put it in; returns its length, 0:
 * there is none. */
size_t say_format(char line[SAY_LONGEST], const char *format, va_list args);

#endif
