/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sizes of everything that a process of a job allocates, by the settings; gasnetrun_ibv --plan
 * prints them too. Pure: sees no device and no job. */
#ifndef TK_VERBS_LIMITS_H
#define TK_VERBS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/verbs/data/credit_loan.h"

struct tk_verbs_limits {
    int credits_pp, credits_total, slack;
    int batch_slack; /* credits held back while several messages that came together are handled */
    int depth_pp, depth_total;
    int bounces;
};

/* GASNET_AM_CREDITS_SLACK=-1, of so many credits. */
int tk_verbs_slack_default(int pp);

/* Finds the limits of a process with `peers` peers over the network (at least one) and so many
 * queue pairs to each. */
void tk_verbs_limits_find(struct tk_verbs_limits *limits, uint32_t peers, uint32_t conns);

/* Do the queue pairs to a peer replace each other? iWARP, which limits.c does not know, excludes
 * it. */
bool tk_verbs_fails_over(uint32_t conns);

/* What a process may use of these limits. */
struct tk_verbs_credits {
    int base;  /* of a new connection */
    int total; /* of all connections together */
    int slack;
    int batch_slack;     /* as above; from a shared queue each message is acknowledged by itself */
    bool is_total_bound; /* connections may have more than `total` */
};

/* With the plan of shared receive queues; NULL: each connection has its own. */
struct tk_verbs_credits tk_verbs_credits_find(const struct tk_verbs_limits *limits,
                                              const struct tk_loan_plan *plan, uint32_t peers);

/* The connections that receive over one rail. */
struct tk_verbs_receivers {
    uint32_t primaries; /* all queue pairs on the rail */
    uint32_t conns;     /* all queue pairs on it */
    unsigned notices;   /* buffers for notices on each of those */
    bool is_threaded;
};
unsigned tk_verbs_receive_buffers(const struct tk_verbs_limits *limits,
                                  const struct tk_verbs_receivers *receivers);

enum { tk_pool_growth_min = 16 /* buffers: 1 MiB, small beside what is posted for one peer */ };

/* How many buffers are added to a pool of `have` when `wanted` are needed; 0: it is large
 * enough. */
unsigned tk_verbs_pool_growth(unsigned have, unsigned wanted);

/* How many buffers of `size` bytes a pool for a shared queue gets when `wanted` are needed. */
unsigned tk_verbs_shared_pool(unsigned wanted, size_t size);

/* Number of buffers whose payloads handlers may read in place at the same time. */
unsigned tk_verbs_spares(bool is_threaded);

/* The largest message, in bytes, that a buffer of a shared queue takes; tk_message_max: any. With
 * failover it is tk_message_max: rendezvous messages are read over one connection, and a port that
 * replaces it would need keys of its own. */
size_t tk_verbs_shared_buffer(bool fails_over);

/* Buffers for larger messages that are being read, or handled, at the same time. */
unsigned tk_verbs_landings(bool is_threaded);

/* Are receive queues shared in a job of so many ranks, provided that the devices support it?
 * `input` has the number of connections and their needs. Sets the number of buffers, and the number
 * of connections that these cover. */
bool tk_verbs_srq_wish(struct tk_loan_input *input, uint32_t ranks);

/* Divides a queue among these connections, on a device that allows `most` buffers in one. False: it
 * needs more, and is not used. */
bool tk_verbs_srq_fits(struct tk_loan_input *input, int conns, int most, struct tk_loan_plan *plan);

/* Do ranks that share memory share queue pairs too? Provided that receive queues are shared and the
 * devices support it. */
bool tk_verbs_xrc_wish(bool is_static);

/* In a job that connects all ranks at start-up, with so many queue pairs to each: are they
 * connected by datagrams, as on demand? Shared queue pairs are, because they are made one after the
 * other. Only if a setting asks for it, because by default such jobs need no datagrams. All ranks
 * get the same answer. */
bool tk_verbs_static_asks(uint32_t conns);

/* How many of `peers`, with so many queue pairs to each, can be connected at once
 * (GASNET_CONNECT_MAX). */
uint32_t tk_verbs_peers_at_once(uint32_t peers, uint32_t conns, bool is_static);

/* Is a queue pair made ahead for the next peer when `connected` peers are connected? */
bool tk_verbs_makes_ahead(uint32_t peers, uint32_t connected, uint32_t conns);

/* Number of receive buffers for datagrams on a rail, by the manual's rule. */
unsigned tk_verbs_datagram_receives(uint32_t peers);

/* How many of `conns` queue pairs to a peer use this rail. */
static inline uint32_t tk_verbs_conns_on(uint32_t conns, uint32_t rails, uint32_t rail)
{
    return (conns + rails - 1 - rail) / rails;
}

#endif
