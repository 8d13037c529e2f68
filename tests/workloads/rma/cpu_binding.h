/* SPDX-License-Identifier: BSD-3-Clause */
/* --bind: a CPU for each thread of all ranks of a host. */
#ifndef RMA_CPU_BINDING_H
#define RMA_CPU_BINDING_H

#include <stdint.h>

/* Collective: finds CPUs for `threads` threads of this rank, or ends the job with status 2 where a
 * rank has none left. */
void rma_bind_open(uint32_t threads);

/* Binds the calling thread; ends the job when the system does not let it. */
void rma_bind_cpu(uint32_t thread);

/* The only CPU that the calling thread may use; -1: it has several. */
int rma_bound_cpu(void);

#endif
