/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The parameters of a simulation: its size, the behaviour of its network, injected faults. A run
 * depends on these values only, so its command line repeats a failure. Owns no state. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_MEMBERS_MAX = 256, /* the low byte of a VRQPN names the sender */
    SIM_RANKS = 32,        /* receivers of one switch */
    SIM_LEAVES_MAX = 32,
};

enum sim_aggregate { SIM_EXACT, SIM_SCAN, SIM_ROUNDS };

/* Probabilities are parts of a million. */
enum { SIM_ALWAYS = 1000000 };

struct sim_options {
    uint32_t members, levels, leaf; /* leaf: members of one leaf switch, of two levels */
    uint32_t broadcasts;            /* of all members together */
    uint32_t loss, dup, reorder;    /* of frames on each link */
    uint32_t skew;                  /* largest extra delay of a frame, as a part of the link's */
    uint32_t rnr;                   /* a receiver has no receive posted for a message */
    uint32_t delayed;               /* an acknowledgement waits for others */
    uint32_t deaths, sleeps;        /* a root stops in the middle of a broadcast */
    uint32_t hostile;               /* a forged frame beside each broadcast */
    uint32_t pauses;                /* a recirculating packet waits */
    uint32_t keep;                  /* the lock is kept for the next broadcast */
    uint32_t packets, messages; /* maximum of packets of a message, of messages of a broadcast */
    uint32_t mtu;
    uint32_t window; /* packets a sender has in flight */
    uint64_t seed;
    uint32_t aggregate;
    uint32_t mutant;
    bool loops; /* the core's fast mode */
    bool alone; /* one root, no contention: time between broadcasts */
    bool shrink, verbose;
};

void sim_options_default(struct sim_options *o);
/* 0: valid; 1: --help was printed; 2: invalid, one line was printed. */
int sim_options_parse(struct sim_options *o, int argc, char **argv);
/* Writes the command line that repeats this run, without default values. */
void sim_options_print(const struct sim_options *o, char *to, size_t room);

#endif
