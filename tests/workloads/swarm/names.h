/* SPDX-License-Identifier: BSD-3-Clause */
/* The numbering of a swarm: N processes play M machines each, and thread t of process n has a
 * connection for each k in 0..N*M-1: to thread t of process k mod N, as machine k div N. No
 * connection to itself. Numbers and names only. */
#ifndef SWARM_NAMES_H
#define SWARM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct swarm_size {
    uint32_t n, m, w; /* processes, machines in each, threads in each */
};

/* An end of a connection. */
struct swarm_end {
    uint32_t process, thread, k;
};

static inline uint32_t swarm_peer(struct swarm_size size, struct swarm_end end)
{
    return end.k % size.n;
}

static inline uint32_t swarm_machine(struct swarm_size size, struct swarm_end end)
{
    return end.k / size.n;
}

static inline bool swarm_connected(struct swarm_size size, struct swarm_end end)
{
    return swarm_peer(size, end) != end.process;
}

/* The other end: the processes change places, thread and machine stay. */
struct swarm_end swarm_partner(struct swarm_size size, struct swarm_end end);

enum { swarm_name_max = 128 };
void swarm_name(struct swarm_size size, struct swarm_end end, char name[swarm_name_max]);
uint64_t swarm_name_hash(const char *name);

/* W*N*M names in a process, W*(N-1)*M of them connected; W*M*N*(N-1)/2 connections in the job. */
uint64_t swarm_named(struct swarm_size size);
uint64_t swarm_connected_ends(struct swarm_size size);
uint64_t swarm_connections(struct swarm_size size);

/* Among all ends of a process that lead elsewhere, or to it: a number below swarm_named(). */
static inline size_t swarm_writer(struct swarm_size size, uint32_t from, uint32_t thread,
                                  uint32_t machine)
{
    return ((size_t)thread * size.n + from) * size.m + machine;
}

#endif
