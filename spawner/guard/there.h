/* SPDX-License-Identifier: BSD-3-Clause */
/* Adapts a job on a host that did not inherit it: the environment there is the base of the one that
 * came with the job, and limits of resources are raised or lowered as far as the hard ones there
 * allow. Owns the list that replaces job->env; no lock. */
#ifndef TRUNKLINE_SPAWNER_THERE_H
#define TRUNKLINE_SPAWNER_THERE_H

#include "spawner/util/job.h"

/* `job` is a guard's own copy. `is_far`: the launcher's limits were not inherited. False without
 * memory. */
bool there_adapt(struct job *job, bool is_far);

#endif
