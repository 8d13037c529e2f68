/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process is doing, from /proc, for an error message about one that does not go on. Only
 * reads; never waits for the process. Owns nothing, takes no lock. */
#ifndef TRUNKLINE_SPAWNER_PROCINFO_H
#define TRUNKLINE_SPAWNER_PROCINFO_H

#include <stddef.h>
#include <sys/types.h>

/* Writes one line without its newline: the state, the system call that each thread is blocked in
 * and on which file, and the command line; that it still runs the launcher's code if `program` is
 * to be there by now. Works for own children; of others less is readable. */
void procinfo_describe(pid_t pid, const char *program, char *text, size_t size);

#endif
