/* SPDX-License-Identifier: BSD-3-Clause */
/* The launcher's part: the tree of guards, and the fences of the PMIx servers through the head. One
 * thread. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_LAUNCHER_H
#define TRUNKLINE_SPAWNER_SIMULATE_LAUNCHER_H

#include "simulation.h"

/* Guards that the head has started, and processes that pass a frame on to the farthest host. */
uint32_t sim_branches(const struct simulation *s);
uint32_t sim_levels(const struct simulation *s);

/* A frame between the launcher's processes of two hosts. */
uint64_t sim_frame_time(const struct simulation *s, uint64_t bytes);

/* The head sends or receives so many frames with `bytes` in all. */
void sim_head_works(struct simulation *s, uint64_t frames, uint64_t bytes);

/* A frame to all hosts. Returns how long it takes. */
uint64_t sim_to_all(struct simulation *s, uint64_t bytes);

/* A frame from each host, with `bytes` in all; the last host is ready at `last`, the first at
 * `first`. Returns when the head has all. */
uint64_t sim_from_all(struct simulation *s, uint64_t bytes, uint64_t first, uint64_t last);

/* A fence of all ranks with so many bytes in all, between the clocks of the hosts. */
void sim_fence(struct simulation *s, uint64_t bytes);

/* The clocks of the hosts. */
void sim_spread_hosts(const struct simulation *s, uint64_t *first, uint64_t *last);

/* CPU time for each rank of each host, and of each rank for each rank of its host. */
void sim_each_rank(struct simulation *s, uint64_t cost, uint64_t of_host);

#endif
