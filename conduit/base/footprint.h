/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory and queue pairs that a process of a job takes. Each room adds its part, with the
 * functions that its allocations use too; start/plan.c adds them up for a hypothetical job, and
 * gasnetrun_ibv --plan prints the result. No state. */
#ifndef TK_FOOTPRINT_H
#define TK_FOOTPRINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/page.h"

/* A job as one of its processes sees it. */
struct tk_job_shape {
    uint32_t ranks, hosts, nbrhds; /* of the job */
    uint32_t local;                /* ranks of a host, */
    uint32_t nbrhd;                /* and of those that share memory */
    uint32_t rails, devices;       /* of each rank */
    uint32_t conns;                /* queue pairs to each peer over the network */
    uint32_t connected;            /* such peers that a rank is connected to */
    uint32_t host_name_length;
    uint32_t variables;      /* of the environment */
    uint64_t host_memory;    /* bytes */
    uint64_t device_regions; /* that a device can register */
    bool is_static;          /* all are connected at start-up */
    bool is_threaded;        /* the library's threading mode is PAR */
};

/* In bytes but for the first. */
struct tk_footprint {
    uint64_t queue_pairs;
    uint64_t registered;    /* with the devices, segments apart */
    uint64_t private_bytes; /* of its own, not registered */
    uint64_t shared;        /* its own memory that others of its host map, and its share of
                             * theirs */
};

/* A table that is equal in all ranks of a host: one of them creates it for all
 * (bootstrap/host_table.h). / */
static inline void tk_footprint_add_table(struct tk_footprint *total,
                                          const struct tk_job_shape *shape, uint64_t bytes)
{
    if (shape->local > 1)
        total->shared += tk_align_up(bytes, tk_page_size()) / shape->local;
    else
        total->private_bytes += bytes;
}

/* The number of peers that are reached over the network. */
static inline uint32_t tk_shape_peers(const struct tk_job_shape *shape)
{
    return shape->ranks - shape->nbrhd;
}

#endif
