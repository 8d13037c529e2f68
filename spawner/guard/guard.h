/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard: one process per host that starts the PMIx server and the ranks, reaps them, and makes
 * sure that nothing of the job outlives it, not even when the launcher is killed with SIGKILL. It
 * is the sub-reaper of the job's processes and owns the session directory. One thread, no libpmix,
 * no lock. */
#ifndef TRUNKLINE_SPAWNER_GUARD_H
#define TRUNKLINE_SPAWNER_GUARD_H

#include "spawner/base/job.h"

/* Runs in a freshly forked child of the head. `control` and `output` are its sockets to the head;
 * the end of `control` means that the head is gone. Never returns. */
void guard_run(const struct job *job, int control, int output) __attribute__((noreturn));

#endif
