/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that only provides its memory, and the CPU time that this costs. */
#ifndef RMA_PASSIVE_H
#define RMA_PASSIVE_H

#include <stdbool.h>

enum { rma_passive_max_percent = 2 /* of a CPU: polling a hundred times a second needs less */ };

/* Collective, with wl_job_barrier() of the ranks that post: sleeps until they have finished.
 * Returns percent of a CPU; 0 if it was too short to measure. `is_awake`, a fault: it does not
 * sleep, for half a second and more. */
double rma_be_passive(bool is_awake);

#endif
