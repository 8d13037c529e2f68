/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How many of everything a process of a job has, by the settings: what is allocated, and what
 * gasnetrun_ibv --plan says of it. Pure: sees no device and no job. */
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

/* Of a process with so many peers over the network, at least one, and queue pairs to each. */
void tk_verbs_limits_find(struct tk_verbs_limits *limits, uint32_t peers, uint32_t conns);

/* Buffers that receive over one rail. */
struct tk_verbs_receivers {
    uint32_t primaries; /* peers whose messages go over it */
    uint32_t conns;     /* all queue pairs on it */
    unsigned notices;   /* buffers for notices on each of those */
    bool is_threaded;
};
unsigned tk_verbs_receive_buffers(const struct tk_verbs_limits *limits,
                                  const struct tk_verbs_receivers *receivers);

enum { tk_pool_growth_min = 16 /* buffers: 1 MiB, small beside what is posted for one peer */ };

/* How many more a pool of `have` buffers gets when so many are wanted; 0: it is large enough. */
unsigned tk_verbs_pool_growth(unsigned have, unsigned wanted);

/* Buffers whose payload handlers may read where it came, at once. */
unsigned tk_verbs_spares(bool is_threaded);

/* Bytes of the largest message that a buffer of a shared queue takes; tk_message_max: of any.
 * Messages that are read from their sender's memory are read over one connection: a port that
 * stands in for it would need keys of its own. */
size_t tk_verbs_shared_buffer(bool fails_over);

/* Buffers for larger messages that are read, or in a handler, at once. */
unsigned tk_verbs_landings(bool is_threaded);

/* Are receive queues shared in a job of so many ranks, if the devices can? `wish` has what
 * connections there are and need; of how many buffers, and for how many of the connections, is set.
 */
bool tk_verbs_srq_wish(struct tk_loan_input *input, uint32_t ranks);

/* Do ranks that share memory share queue pairs too, if receive queues are shared and the devices
 * can? */
bool tk_verbs_xrc_wish(bool is_static);

/* Where ranks are all connected at start-up, with so many queue pairs to each: by asking each other
 * as on demand? The queue pairs that ranks share are made one after the other. Only where that is
 * asked for, for by default such jobs do without datagrams; the same on all ranks. */
bool tk_verbs_static_asks(uint32_t conns);

/* Of so many peers, with so many queue pairs to each: those that can be connected at once
 * (GASNET_CONNECT_MAX). */
uint32_t tk_verbs_peers_at_once(uint32_t peers, uint32_t conns, bool is_static);

/* Is a queue pair made ahead for the next peer, when so many are connected? */
bool tk_verbs_makes_ahead(uint32_t peers, uint32_t connected, uint32_t conns);

/* Datagrams that a rail has buffers for, by the manual's rule. */
unsigned tk_verbs_datagram_receives(uint32_t peers);

/* Of so many queue pairs to a peer, those that go over this rail. */
static inline uint32_t tk_verbs_conns_on(uint32_t conns, uint32_t rails, uint32_t rail)
{
    return (conns + rails - 1 - rail) / rails;
}

#endif
