/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection between two leaders: of each end when it may send, its credits, and what it holds
 * back of the other's. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_CONNECTIONS_H
#define TRUNKLINE_SPAWNER_SIMULATE_CONNECTIONS_H

#include "simulation.h"

#include "transport/verbs/conn/incarnation.h"
#include "transport/verbs/data/credit_loan.h"

struct sim_end {
    uint64_t wanted; /* when it has something to send; UINT64_MAX: it has not */
    uint64_t up;     /* when it may send */
    uint32_t datagrams;
    int credits;                    /* requests that it may send now */
    int to_return;                  /* the other's credits that it holds back */
    int returned;                   /* those of the last poll that it has returned since, */
    bool is_acked;                  /* by an ACK: messages.c */
    uint32_t sent_in, taken_in;     /* passes: of its last message, and of the other's */
    int bounded_sent, bounded_came; /* messages that take no credit */
    struct tk_borrower borrower;    /* with shared receive queues: of its own credits, */
    struct tk_account account;      /* and of the other's */

    /* Where the number of connections is bounded: demand.c */
    struct tk_incarnation incarnation;
    struct tk_incarnation_word request; /* of the other, that waits for space */
    uint64_t came;                      /* when it came; 0: none */
    uint64_t due, interval;             /* of the next repeat, and until it */
    uint64_t spared;                    /* not closed before that time */
    uint32_t last_used;
    uint32_t denied;
    bool is_listed, is_wanted, is_watched;
    bool is_quiet; /* messages without completion were posted */
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

/* An end gets its queue pair, and its credits. */
void sim_connection_make(struct simulation *s, uint32_t me, uint32_t other, struct sim_end *end,
                         uint64_t now);

/* False without memory. */
bool sim_list_add(uint32_t **list, uint32_t *count, uint32_t *space, uint32_t partner);

/* Where it is not bounded: ensures that two leaders are connected; returns when `from` may send. */
uint64_t sim_connect(struct simulation *s, uint32_t from, uint32_t to, uint64_t now);
void sim_connections_close(struct simulation *s);

#endif
