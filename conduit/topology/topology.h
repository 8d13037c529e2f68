/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Topology: which ranks share a host, which of those share memory, and how many CPUs this process
 * may use. Filled once at start-up, read-only after. */
#ifndef TK_TOPOLOGY_H
#define TK_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { tk_host_name_max = 64, tk_host_id_max = 128 };

/* The data that a rank publishes about its host; part of its peer info. */
struct tk_host_info {
    char name[tk_host_name_max]; /* for messages */
    char id[tk_host_id_max];     /* equal on ranks of one host; built as GASNET_HOST_DETECT says */
};

struct tk_topology {
    uint32_t hosts;      /* number of hosts */
    uint32_t my_host;    /* index of ours, in order of each host's lowest rank */
    uint32_t local_size; /* ranks on our host */
    uint32_t on_machine; /* ranks on this machine, where the launcher has made several virtual hosts
                            of it; else 0 */
    uint32_t local_rank; /* our index among them */
    uint32_t *local_ranks;    /* their job ranks, ascending */
    const uint32_t *host_of;  /* host index of each rank */
    uint32_t nbrhds;          /* number of neighbourhoods: groups of ranks that share memory */
    uint32_t my_nbrhd;        /* index of ours, in order of each one's lowest rank */
    uint32_t nbrhd_size;      /* ranks in ours */
    uint32_t nbrhd_rank;      /* our index among them */
    uint32_t *nbrhd_ranks;    /* their job ranks, ascending; a part of local_ranks */
    const uint32_t *nbrhd_of; /* neighbourhood index of each rank */
    unsigned cpus;            /* CPUs in this process's set */
    bool oversubscribed; /* ranks of this machine outnumber its CPUs: waiting must yield the CPU */
};

extern struct tk_topology tk_topology;

/* The name of this host; on a virtual host of the launcher (gasnetrun_ibv -H =NAME), the virtual
 * host's name. */
void tk_topology_host_name(char name[tk_host_name_max]);

/* Before the map is built: sets `cpus`, and `oversubscribed` by what the launcher reports, ranks of
 * this host and of the job. */
void tk_topology_expect(uint32_t local, uint32_t size);

/* Describes this host. */
enum tk_status tk_topology_describe(struct tk_host_info *info);

/* Makes the map, which is the same in all ranks: host indices, then neighbourhood indices, by rank.
 * info_of(rank) returns the host part of each rank's peer info. Each host is divided, in rank
 * order, into neighbourhoods of at most GASNET_SUPERNODE_MAXSIZE ranks. */
enum tk_status tk_topology_map(uint32_t *map, uint32_t size,
                               const struct tk_host_info *(*info_of)(uint32_t rank));

/* Finds the entries of this rank in the map, and keeps a pointer to the map. */
enum tk_status tk_topology_build(uint32_t rank, uint32_t size, const uint32_t *map);

/* The bytes that the map and the ranks of our host take. */
static inline size_t tk_topology_map_bytes(size_t ranks)
{
    return ranks * (sizeof(*tk_topology.host_of) + sizeof(*tk_topology.nbrhd_of));
}

static inline size_t tk_topology_local_bytes(size_t local)
{
    return local * sizeof(*tk_topology.local_ranks);
}

/* The number of ranks that use the memory and the CPUs of this machine. */
static inline uint32_t tk_machine_ranks(void)
{
    return tk_topology.on_machine ? tk_topology.on_machine : tk_topology.local_size;
}

/* How many times as long a rank of this machine waits for its CPU as where each CPU has a few: it
 * answers so much later. At least 1. */
static inline unsigned tk_machine_crowd(void)
{
    enum { few = 8 };
    unsigned crowd = tk_topology.cpus ? tk_machine_ranks() / tk_topology.cpus / few : 0;
    return crowd > 0 ? crowd : 1;
}

/* Whether the rank shares memory with this one. True for this rank itself. */
static inline bool tk_is_neighbour(uint32_t rank)
{
    return tk_topology.nbrhd_of[rank] == tk_topology.my_nbrhd;
}

#endif
