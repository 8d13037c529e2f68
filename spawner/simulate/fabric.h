/* SPDX-License-Identifier: BSD-3-Clause */
/* The network of a simulation: which links a message crosses from host to host, and when it
 * arrives. Each link carries one message after another at the given rate; switches forward without
 * waiting for a message's end. Owns the links; one thread.
 *
 * switch: one switch with a port for each host. fattree: leaves with half of their ports to hosts,
 * each connected to as many spines; the host that a message goes to chooses the spine. dragonfly
 * (Kim et al. 2008, balanced): with K ports a router has p = (K + 1) / 4 hosts, 2p routers form a
 * group, each with p links to other groups; paths are minimal. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_FABRIC_H
#define TRUNKLINE_SPAWNER_SIMULATE_FABRIC_H

#include "input.h"

struct sim_link {
    uint64_t free_at; /* ns */
    uint64_t bytes;
    uint32_t messages;
};

struct sim_fabric {
    const struct sim_input *in;
    struct sim_link *links;
    uint32_t count;
    uint32_t below;  /* hosts of a switch */
    uint32_t across; /* spines; routers of a group */
};

/* False: there are too many hosts for the switches, or no memory; one sentence in `why`. */
bool sim_fabric_open(struct sim_fabric *f, const struct sim_input *in, char *why, size_t size);

/* A message leaves at `now`; returns when its last byte arrives. */
uint64_t sim_fabric_send(struct sim_fabric *f, uint32_t from, uint32_t to, uint64_t now,
                         uint64_t nbytes);

/* The link with the most bytes, and its name. */
const struct sim_link *sim_fabric_busiest(const struct sim_fabric *f, char *name, size_t size);

void sim_fabric_close(struct sim_fabric *f);

#endif
