/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state that several folders of transport/verbs read on hot paths: one object, so that a poll
 * touches few cache lines. open.c fills it in; members say which lock protects them. What only one
 * folder reads is in a struct of that folder, which is opaque here. */
#ifndef TK_VERBS_STATE_H
#define TK_VERBS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/counter.h"
#include "base/pool_type.h"
#include "transport/transport.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/device/device.h"

struct tk_buffer;
struct tk_cm;
struct tk_conn;
struct tk_rank_pair;
struct tk_registration;
struct tk_rndv_state;
struct tk_slab;
struct tk_tx;

/* A rank is one of: a neighbour or ourselves; a peer of this transport; a peer whose puts have
 * reads behind them (data/stripe.c). TK_RANK_SMALL is added if its receive buffers are small
 * (data/rendezvous.h). */
enum tk_rank_kind {
    TK_RANK_NOT_OURS,
    TK_RANK_PLAIN,
    TK_RANK_FENCED,
    TK_RANK_SMALL = 4 /* a bit besides the others */
};

static inline size_t tk_kinds_bytes(size_t ranks)
{
    return ranks * sizeof(uint8_t);
}

struct tk_verbs {
    struct tk_device device; /* the first, and on most hosts the only one; ->next has the others */
    struct tk_rail *rails;
    struct tk_cm *cm; /* NULL: librdmacm connects no rail */
    uint32_t rail_count;
    uint32_t device_count;
    uint32_t conns_pp;         /* to each peer */
    uint32_t peers;            /* peers of this transport */
    struct tk_conn **conns_of; /* by rank: conns_pp in a row, or `nobody` */
    struct tk_conn *nobody;    /* conns_pp connections without queue pair and without space */
    struct tk_registration *segment;
    size_t inline_limit;   /* the minimum of all queue pairs */
    size_t put_from_max;   /* bytes of a put in place that goes in one piece */
    size_t short_get_max;  /* bytes of a get that never needs another connection */
    size_t logged_get_max; /* the same with logging; otherwise 0 */
    struct tk_rma_limits rma_limits;
    uint32_t message_max; /* the minimum of all ports */
    int remote_access;    /* rights of peers: read, write, and atomics if they are allowed */
    enum tk_atomic_scope atomics; /* of all ranks */
    int list_max;                 /* ranges of local memory in one request; minimum of devices */
    bool pins;                    /* see tk_verbs_pins() */
    bool is_paged;                /* registered memory other than buffers is paged on demand */
    bool has_iwarp;               /* a rail is of that kind */
    bool failover_enabled;        /* posted work is logged, to repeat it over another connection */
    bool needs_more;              /* more fields in work requests than plain RC: see data/tx.h */
    struct tk_buffer *fence_sink; /* target of reads behind puts, never used */
    struct tk_slab *slabs;
    struct tk_pool bounce_pool;
    struct tk_pool large_pool; /* large buffers for rendezvous messages: data/rendezvous.h */
    uint32_t recv_small;       /* bytes of a receive buffer; 0: any message fits */
    uint32_t small_max;        /* bytes of a peer's receive buffer, if that is small */
    struct tk_rndv_state *rndv;
    tk_counter_t rndv_count; /* messages that we read, or will; part of the pending work */
    tk_counter_t rndv_stuck; /* of these, those that found no space in a send queue */
    struct tk_lane lanes[tk_lanes_max];
    uint32_t lane_count;
    struct tk_tx *txs;
    int credits_pp, slack, batch_slack;
    bool has_bounded; /* all ranks have receive buffers for TK_BOUNDED, so that it takes no credit
                       */
    struct tk_loan_plan srq_plan; /* .buffers is 0: receive queues are not shared */
    uint32_t recv_min; /* not 0: GASNET_RBUF_COUNT is too small, and this is the minimum */
    int depth_pp, depth_total;
    int bounces; /* buffers in bounce_pool and out of it */
    struct {
        tk_lock_t lock;
        struct tk_buffer *first, *last; /* messages that came while no handler could run */
    } deferred;
    int unsignaled_max; /* unsignaled messages in a row on a connection; 0 where they are logged,
                           and where not even two arguments go inline */
    int logged_unsignaled_max;  /* the same for logged messages */
    int unsignaled_bounces_max; /* the same for messages in bounce buffers; see data/tx.h */
    tk_counter_t credits_total; /* requests that this process may still have in flight */
    tk_counter_t pending_work;  /* ACKs to send, connections to move */
    tk_counter_t returns;       /* connections that were reopened; see tk_fence() */
    tk_counter_t received_last; /* connections with an unhandled event "last receive" */
    struct tk_rank_pair *pairs; /* by rank; see failover/failover.c. NULL: nothing is logged */
    bool is_static;             /* all peers are connected at start-up */
    int credits_all;            /* the initial value of credits_total */
    bool is_total_bound;        /* less than the credits of all peers; otherwise not counted */
    uint8_t *kind_of;           /* by rank: enum tk_rank_kind */
};

extern TK_HIDDEN struct tk_verbs tk_verbs;

/* Is the rank a peer of this transport? From tk_verbs_connect() on. */
static inline bool tk_is_verbs_peer(uint32_t rank)
{
    return tk_verbs.kind_of[rank] != TK_RANK_NOT_OURS;
}

/* Is each connection on demand greeted before it is used (cm/iwarp_first_send.c)? */
static inline bool tk_cm_greets(void)
{
    return tk_verbs.has_iwarp && !tk_verbs.is_static;
}

/* Did this rank offer XRC (conn/xrc.h)? Then receive queues are made after tk_xrc_agree(), by its
 * result. */
static inline bool tk_xrc_is_offered(void)
{
    return tk_verbs.device.xrcd != NULL;
}

#endif
