/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a process, from /proc, for an error message about one that makes no progress. Only
 * reads; never waits for the process. Owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_PROCINFO_H
#define TRUNKLINE_SPAWNER_PROCINFO_H

#include <stddef.h>
#include <sys/types.h>

/* Writes one line without its newline: the state, the system call that each thread is blocked in
 * and on which file, and the command line. If `program` is given and the process still runs the
 * launcher's code, it reports that exec has not happened yet. Works for own children; less is
 * readable of other processes. */
void procinfo_describe(pid_t pid, const char *program, char *text, size_t size);

#endif
