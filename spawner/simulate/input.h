/* SPDX-License-Identifier: BSD-3-Clause */
/* What is simulated: the words of gasnetrun_ibv --simulate=WORD,... Pure. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_INPUT_H
#define TRUNKLINE_SPAWNER_SIMULATE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_fabric_kind { SIM_ONE_SWITCH, SIM_FAT_TREE, SIM_DRAGONFLY };

enum sim_call_kind { SIM_BARRIER, SIM_BROADCAST, SIM_REDUCE, SIM_REDUCE_ALL };

/* Collectives in the order in which the program calls them. */
struct sim_call {
    enum sim_call_kind kind;
    uint32_t times;
    uint64_t nbytes;
};

enum { SIM_CALLS_MAX = 32 };

struct sim_input {
    uint32_t ranks, hosts;
    uint32_t cpus; /* of a host */
    enum sim_fabric_kind fabric;
    uint32_t ports;   /* of a switch */
    uint64_t latency; /* of a link, ns */
    uint64_t gbits;   /* of a link, per second */
    uint64_t seed;
    uint32_t jitter; /* percent by which the start of hosts differs */
    bool forks;      /* guards are started by forks, on virtual hosts, else by ssh */
    int64_t fails;   /* the host that fails after the calls; -1: none */
    bool is_silent;  /* its connections stay open */
    int64_t exits;   /* the rank that exits alone after the calls, the others work; -1: all exit */
    int64_t late;    /* the rank that works on alone; -1: none */
    uint32_t code;   /* of the exits; of one alone 1 if the user names none */
    uint32_t srq;    /* of a device: buffers of a shared receive queue, */
    uint32_t qps;    /* and queue pairs; 0: not known */
    uint64_t memory; /* of a host, bytes; 0: not known */
    char costs[512]; /* file; empty: built in */
    struct sim_call calls[SIM_CALLS_MAX];
    uint32_t call_count;
    bool plants_gather;  /* mistakes, for tests: each leader sends to the first one, */
    bool plants_connect; /* and connects to all others; */
    bool plants_notify;  /* each passes a notice of the exit on to all others; */
    bool plants_ask;     /* each rank asks at once who leads */
    bool prints_costs;
};

/* `words` may be NULL. False: one is wrong; one sentence in `why`. */
bool sim_input_parse(struct sim_input *in, uint32_t ranks, uint32_t hosts, const char *words,
                     char *why, size_t size);

const char *sim_fabric_name(enum sim_fabric_kind kind);
const char *sim_call_name(enum sim_call_kind kind);

#endif
