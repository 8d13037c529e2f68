/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection is one RC queue pair to one peer over a rail; conn/ owns it. Each pair of ranks has
 * the same number of connections, one of which is primary: it carries everything small, in order.
 * The others carry pieces of large transfers, and the notices by which another one becomes primary
 * when a connection dies (failover/failover.c).
 *
 * A connection's lock guards its credits, its receive queue and the order of its sends. The lock of
 * a pool or of a lane may be taken under it. The locks of the completion queues are only tried, and
 * are released before a completion is handled. */
#ifndef TK_VERBS_CONN_H
#define TK_VERBS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/platform.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

struct tk_buffer;
struct tk_lane;
struct tk_loan;
struct tk_tx_log;

enum {
    tk_conns_max = 64,      /* to a peer: tk_rma_state.unfenced has a bit for each */
    tk_unsignaled_max = 128 /* bytes of an unsignaled message: Shorts, and a few words of payload */
};

struct tk_conn {
    _Alignas(TK_CACHE_LINE) tk_lock_t lock;
    int8_t control_expected; /* 1 until the exit notice came, which has its own buffer */
    uint16_t queue;          /* number of the wait queue for credits; 0: none */
    int rx_base;             /* receive buffers needed while no request is in flight */
    struct ibv_qp *qp;
    struct tk_peer *peer;
    struct tk_lane *lane;   /* the same for all connections to a rank, but see tk_lanes_spread() */
    struct ibv_qp *target;  /* receives for this connection; NULL: qp does */
    uint8_t number;         /* among those to the peer */
    bool takes_small;       /* the peer's receive buffers are small; larger messages by rendezvous
                               (data/rendezvous.h) */
    uint8_t rail;           /* its index */
    bool is_closing;        /* its posted buffers are being flushed */
    bool is_for_atomics;    /* carries only atomics: the peer, which may be ourselves, has another
                               transport */
    bool is_fenced;         /* puts have reads behind them: see data/stripe.c */
    bool is_ready;          /* it has a primary's receive buffers, or is getting them */
    bool has_received_last; /* "last receive" was reported, not handled yet */
    size_t short_put_max;   /* bytes; inline_limit, or 0 where it is fenced */
    uint64_t carried, cost; /* of large transfers: bytes times cost so far; cost per byte */
    int credits;            /* requests that we may send now */
    int credits_to_return;  /* the peer's credits that we hold back */
    int rx_extra;           /* receive buffers in the queue beyond those needed */
    int unsignaled;         /* messages posted since the last signaled one */
    uint16_t waiting;       /* threads in the wait queue; 0 in SEQ; see data/credit.c */
    bool is_held;           /* sends nothing: it has no space and no credits; the same lock */
    bool ack_due : 1;       /* an ACK could not be sent for lack of space; the same lock */
    bool has_sent_control : 1;  /* our exit notice; the same lock */
    tk_counter_t returned;      /* in PAR: slots that came back; with the lane's lock */
    tk_counter_t broken;        /* not 0: an error was logged; posted work never completes */
    tk_counter_t space;         /* free slots of the send queue, in PAR less `returned` */
    struct tk_tx unsignaled_tx; /* names the connection in errors of unsignaled messages; has their
                                   bounce buffers, linked, `more_bounces` of them; see data/tx.h */
    uint64_t starved_since;     /* when a report saw that a request lacked a credit; 0: never */
    struct ibv_send_wr unsignaled_wr; /* for unsignaled messages; only its length changes */
    struct ibv_sge unsignaled_sge;
    union {
        struct tk_short message;
        char bytes[tk_unsignaled_max];
    } unsignaled_data;

    struct tk_tx_log *tx_log; /* NULL: no failover group */
    tk_counter_t reserved;    /* slots taken by am reservations */
    tk_counter_t rndv_count;  /* rendezvous messages in flight, in either direction */
    tk_counter_t state;       /* enum tk_connection_state, see failover/connection_state.h */
    struct tk_path path;      /* once it was connected */
    struct tk_loan *loan;     /* NULL: it has receive buffers of its own; see data/srq.h */

    /* Used where connections are closed to make space for others (conn/incarnation.h); with the
     * lock of demands. */
    uint32_t epoch;     /* connections to the peer that were closed, or are closing */
    uint32_t last_used; /* a time; only while it is watched (conn/qp_evict.c) */
    uint64_t spared;    /* not closed before that time, as a thread waited for it */
    int held_credits;   /* credits that may not be used now; with the connection's lock */
    uint32_t served;    /* threads that left the wait queue; the same lock */
};

/* Sizes of allocations: the connections to a peer; the table of all ranks, connected or not. */
static inline size_t tk_conns_bytes(size_t conns)
{
    return conns * sizeof(struct tk_conn);
}

static inline size_t tk_conns_of_bytes(size_t ranks)
{
    return ranks * sizeof(struct tk_conn *);
}

static inline struct tk_conn *tk_conns_to(uint32_t rank)
{
    return __atomic_load_n(&tk_verbs.conns_of[rank], __ATOMIC_ACQUIRE);
}

/* Both ends of a pair derive the same number, and a rank's peers are spread over its connections.
 */
static inline uint32_t tk_primary_number(uint32_t rank)
{
    return (tk_peers.me + rank) % tk_verbs.conns_pp;
}

/* The connection that carries messages. Another thread may be switching the primary: a thread that
 * has locked the old one then finds no space in it. */
static inline struct tk_conn *tk_primary(const struct tk_peer *peer)
{
    return __atomic_load_n(&peer->connection, __ATOMIC_RELAXED);
}

/* True if another thread has switched the primary since `conn` was looked up; `conn` may be in use
 * again. With its lock. */
static inline bool tk_is_passed_over(const struct tk_conn *conn, const struct tk_peer *peer)
{
    return TK_THREADED && conn != tk_primary(peer);
}

/* For callers that change its credits: locked, and still the primary one. */
static inline struct tk_conn *tk_primary_lock(const struct tk_peer *peer)
{
    struct tk_conn *conn = tk_primary(peer);
    tk_lock(&conn->lock);
    while (tk_is_passed_over(conn, peer)) {
        tk_unlock(&conn->lock);
        conn = tk_primary(peer);
        tk_lock(&conn->lock);
    }
    return conn;
}

/* Free slots of its send queue; `space` is written with the connection's lock. In PAR both words
 * wrap, one down, one up. */
static inline int tk_conn_space(const struct tk_conn *conn)
{
    uint32_t space = (uint32_t)tk_counter_read(&conn->space);
    return (int)(TK_THREADED ? space + (uint32_t)tk_counter_read(&conn->returned) : space);
}

static inline struct tk_rail *tk_rail_of(const struct tk_conn *conn)
{
    return &tk_verbs.rails[conn->rail];
}

static inline const struct tk_path *tk_path_of(const struct tk_conn *conn)
{
    return &conn->path;
}

#endif
