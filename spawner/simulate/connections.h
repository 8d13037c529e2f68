/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection between two leaders: of each end when it may send, its credits, and what it holds
 * back of the other's. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_CONNECTIONS_H
#define TRUNKLINE_SPAWNER_SIMULATE_CONNECTIONS_H

#include "simulation.h"

#include "transport/verbs/data/credit_loan.h"

struct sim_end {
    uint64_t wanted; /* when it has something to send; UINT64_MAX: it has not */
    uint64_t up;     /* when it may send */
    uint32_t datagrams;
    int credits;                 /* requests that it may send now */
    int to_return;               /* the other's credits that it holds back */
    struct tk_borrower borrower; /* with shared receive queues: of its own credits, */
    struct tk_account account;   /* and of the other's */
};

/* The lower leader's end is 0. */
struct sim_connection {
    uint64_t key; /* lower neighbourhood, and higher one; never 0 */
    struct sim_end ends[2];
};

static inline int sim_end_of(uint32_t from, uint32_t to)
{
    return from > to;
}

/* Valid until the next connection is made; NULL without memory. */
struct sim_connection *sim_connection(struct simulation *s, uint32_t from, uint32_t to);

/* Ensures that two leaders are connected; returns when `from` may send. */
uint64_t sim_connect(struct simulation *s, uint32_t from, uint32_t to, uint64_t now);
void sim_connections_close(struct simulation *s);

#endif
