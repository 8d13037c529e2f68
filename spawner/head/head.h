/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a job: the process the user started. It starts the guard, carries the standard files,
 * feeds the exit policy, and ends the job when the policy or the user says so. No libpmix call; one
 * thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_HEAD_H
#define TRUNKLINE_SPAWNER_HEAD_H

#include "collect.h"
#include "spawner/util/job.h"

/* Catches the signals that end a job and records in job->ignored those that were ignored before.
 * Call before head_run(), while nothing has been started. Returns what signals_catch() does. */
int head_catch_signals(struct job *job);

/* Runs the job to its end and returns the exit status for the launcher. When it returns, no process
 * of the job and no session directory is left. `collect`: where files of ranks go; NULL: nowhere.
 */
int head_run(const struct job *job, struct collect *collect);

#endif
