/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs each rank of this machine is bound to. The plan is pure, of a topology; a guard makes
 * it once and its children set their own part. One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_BIND_H
#define TRUNKLINE_SPAWNER_BIND_H

#include "spawner/util/job.h"

#include <hwloc.h>

struct bind_plan {
    hwloc_topology_t topology;
    hwloc_cpuset_t *sets; /* one for each rank of the plan */
    uint32_t count;
};

/* Loads the topology of this host, reduced to the CPUs that this process may use (cgroup, taskset),
 * into a plan without sets. False with a sentence in `why`. */
bool bind_load(struct bind_plan *p, char *why, size_t size);

/* Fills the sets of `count` ranks in the order of the machine's cores.
 *   core    `cpus` CPUs (0: one) for each rank, in whole cores that no other rank has
 *   socket all CPUs of a socket; ranks are spread over the sockets in blocks, and it must have
 *   `cpus` CPUs for each of its ranks False with a sentence in `why` when there are not enough. */
bool bind_make(struct bind_plan *p, enum job_bind bind, uint32_t cpus, uint32_t count, char *why,
               size_t size);

/* Binds the calling process. False with errno. */
bool bind_apply(const struct bind_plan *p, uint32_t index);

/* The numbers of the CPUs, "0-1,4", for people. */
void bind_describe(const struct bind_plan *p, uint32_t index, char *text, size_t size);

void bind_free(struct bind_plan *p);

#endif
