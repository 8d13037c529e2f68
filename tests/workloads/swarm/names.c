/* SPDX-License-Identifier: BSD-3-Clause */
/* See names.h. Owns nothing. */
#include "config.h"

#include <stdio.h>

#include "names.h"
#include "random.h"

struct swarm_end swarm_partner(struct swarm_size size, struct swarm_end end)
{
    return (struct swarm_end){swarm_peer(size, end), end.thread,
                              swarm_machine(size, end) * size.n + end.process};
}

void swarm_name(struct swarm_size size, struct swarm_end end, char name[swarm_name_max])
{
    snprintf(name, swarm_name_max, "on_phys_mc_%u-at_thr_%u-for_phys_mc_%u-for_vm_%u", end.process,
             end.thread, swarm_peer(size, end), swarm_machine(size, end));
}

uint64_t swarm_name_hash(const char *name)
{
    uint64_t hash = WL_GOLDEN;
    while (*name)
        hash = wl_mix(hash + (unsigned char)*name++);
    return hash;
}

uint64_t swarm_named(struct swarm_size size)
{
    return (uint64_t)size.w * size.n * size.m;
}

uint64_t swarm_connected_ends(struct swarm_size size)
{
    return (uint64_t)size.w * (size.n - 1) * size.m;
}

uint64_t swarm_connections(struct swarm_size size)
{
    return (uint64_t)size.w * size.m * size.n * (size.n - 1) / 2;
}
