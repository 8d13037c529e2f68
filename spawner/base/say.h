/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's voice: every sentence it prints goes to stderr as one write, so that sentences of
 * two launchers sharing a terminal do not mix. Safe from any thread; takes no lock. */
#ifndef TRUNKLINE_SPAWNER_SAY_H
#define TRUNKLINE_SPAWNER_SAY_H

/* Exit codes of the launcher itself; everything else is the job's. */
enum { EXIT_RUNTIME = 1, EXIT_USAGE = 2 };

/* Prints "gasnetrun_ibv: <text>\n" on stderr. Text longer than 2 KiB is cut. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like say(), but only when the user asked for at least `level` times -v. */
void say_verbose(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets how many times -v was given; call before any thread or child exists. */
void say_set_verbosity(int level);
int say_verbosity(void);

#endif
