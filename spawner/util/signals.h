/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals to the launcher as bytes in a pipe. It uses a handler instead of a signalfd because a
 * signal must interrupt a write() to a stuck terminal. Process-wide, no lock. */
#ifndef TRUNKLINE_SPAWNER_SIGNALS_H
#define TRUNKLINE_SPAWNER_SIGNALS_H

#include <signal.h>

/* Asks the launcher what its ranks wait for. */
#define SIGNAL_EXPLAIN SIGRTMIN

/* Installs the handlers; lists in `ignored` (0-terminated, at most 7 entries) what was ignored
 * before. SIGHUP stays ignored if it was (nohup). Returns the file to poll. */
int signals_catch(int *ignored);

/* Closes the files of the pipe, in a process that was forked from the head. */
void signals_forget(void);

/* The next signal that came, 0 for none. */
int signals_next(int fd);

#endif
