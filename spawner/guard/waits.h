/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the waits and stacks of this host's ranks without their help, so that a stopped one can be
 * explained too. Only reads. One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_GUARD_WAITS_H
#define TRUNKLINE_SPAWNER_GUARD_WAITS_H

#include "spawner/wire/counts.h"
#include "spawner/wire/waits.h"

#include <stdbool.h>
#include <sys/types.h>

/* For the rank started as `pid`; `session` is the directory where it has left the address of its
 * record. */
void waits_read(const char *session, uint32_t rank, pid_t pid, struct waits_rank *waits);

/* The same for a process whose record lies at that address. */
void waits_read_at(uint32_t rank, pid_t pid, uint64_t address, struct waits_rank *waits);

/* Copies memory of a process; false, with errno: it can't be read. */
bool waits_copy(pid_t pid, uint64_t address, void *to, size_t size);

/* counts.c. Computes the counters of a rank from its record, which was read before. */
void waits_counts(const struct waits_rank *waits, struct counts_rank *counts);

/* Starts gdb on a rank, to print its stacks into the file returned; -1: why is in `why`. */
int waits_start_stack(pid_t pid, pid_t *gdb, char *why, size_t size);

#endif
