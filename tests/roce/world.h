/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two nodes and a network between them, all in one process and on one simulated clock: the model
 * that tests of the end point run on. The network loses, doubles, delays, reorders and damages
 * packets as a seed decides. Each node posts random requests to the other and verifies every byte
 * that comes back or arrives. Single-threaded. */
#ifndef ROCE_WORLD_H
#define ROCE_WORLD_H

#include "endpoint/endpoint.h"

/* An implementation of an end point; the kernel's behaviour (kernel.c) is another one. */
struct machine {
    const char *name;
    void *(*open)(const struct roce_attributes *a, const struct roce_calls *calls, void *context);
    void (*close)(void *m);
    int (*post)(void *m, const struct roce_request *r);
    void (*input)(void *m, roce_time now, const struct roce_packet *p, bool congested);
    size_t (*output)(void *m, roce_time now, uint8_t *out);
    roce_time (*deadline)(void *m);
};
extern const struct machine machine_endpoint, machine_kernel;

struct trouble {
    uint32_t loss, doubling, late, damage; /* of 1000 packets */
    uint64_t delay_ns, late_ns;            /* of each, and most of a late one */
    uint32_t mark;                         /* of 1000 arrive with the mark of congestion */
};

struct plan {
    uint64_t seed;
    const struct machine *machine[2];
    struct trouble trouble;
    uint8_t transport;
    uint32_t mtu, requests; /* requests: of each node */
    uint32_t longest;       /* bytes of a message */
    uint32_t start_psn;
    uint32_t reads;         /* max_rd_atomic */
    uint32_t receives_late; /* of 1000: a receive is posted late, so that the sender meets RNR */
    bool one_way;
};

struct outcome {
    uint64_t time;          /* simulated ns */
    uint64_t packets, lost; /* in the network */
    struct roce_counters counters[2];
    uint32_t completed[2], received[2];
    char wrong[200]; /* empty: all was right */
};

/* Runs until all requests are complete and verified, or something is wrong. */
void world_run(const struct plan *plan, struct outcome *outcome);

/* A generator like the tests' own. */
uint32_t world_random(uint64_t *state);

#endif
