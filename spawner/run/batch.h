/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts that a batch system has given to this job. Reads the batch systems' own variables and
 * files; owns nothing, no lock. Does not run their commands: each of their jobs has the variables.
 */
#ifndef TRUNKLINE_SPAWNER_BATCH_H
#define TRUNKLINE_SPAWNER_BATCH_H

#include "host_list.h"

/* Fills the list from the allocation of Slurm, PBS, LSF, SGE or Cobalt, and its origin; without one
 * leaves it empty. False: the allocation cannot be understood, and why. */
bool batch_read(struct host_list *list, char *why, size_t size);

/* Adds the hosts of a list in Slurm's form, as "a[1-3,07],b"; `tasks`, as "2(x3),1", may be NULL.
 */
bool batch_read_slurm(struct host_list *list, const char *names, const char *tasks, char *why,
                      size_t size);

#endif
