/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapts a job on a host that did not inherit it: merges the job's environment over that host's
 * own, and raises or lowers resource limits as far as the hard limits there allow. Owns the list
 * that replaces job->env; no lock. */
#ifndef TRUNKLINE_SPAWNER_THERE_H
#define TRUNKLINE_SPAWNER_THERE_H

#include "spawner/util/job.h"

/* `job` is a guard's own copy. `is_far`: the launcher's limits were not inherited. False without
 * memory. */
bool there_adapt(struct job *job, bool is_far);

#endif
