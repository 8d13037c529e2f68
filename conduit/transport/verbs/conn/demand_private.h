/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by demand_record.c, demand.c and unconnected.c only. Call all functions with the lock of
 * demands, except where a comment says otherwise. */
#ifndef TK_VERBS_DEMAND_PRIVATE_H
#define TK_VERBS_DEMAND_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"
#include "peer/peer.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/incarnation.h"
#include "transport/verbs/verbs_state.h"

struct tk_conn;
struct tk_transport;

/* A peer that is being connected, or whose connection is being closed. */
struct tk_demand_record {
    struct tk_demand_record *next;
    struct tk_peer *peer;
    struct tk_conn *conns; /* NULL: none yet */
    uint64_t since, reported;
    uint64_t due;      /* when to send again, or to ask again after a denial */
    uint64_t interval; /* until the next repeat */
    struct tk_incarnation incarnation;
    unsigned denied; /* how often the other end had no space */
    bool is_wanted;  /* this rank wants it */
    bool is_new;     /* for traces: its queue pairs were created for it */
    bool has_waited; /* it waited for receive buffers of a shared queue */
    uint64_t came;   /* arrival of a request that waits for space; 0: none */
    struct tk_datagram request;
};

struct tk_demand {
    tk_lock_t lock;
    struct tk_demand_record *records;
    struct tk_demand_record spare; /* the first one; its peer is NULL while free */
    const struct tk_transport *connected, *unconnected;
    tk_counter_t pending;
    uint32_t wanted;      /* peers connected because this rank wanted it */
    uint32_t opened;      /* counts a peer each time it is connected */
    uint32_t closed;      /* connections closed for others */
    uint32_t questions;   /* questions to close that we asked */
    uint32_t sent, again; /* datagrams sent; repeats among them */
    uint32_t waited;      /* connections that waited for receive buffers of a shared queue */
    uint32_t ahead;       /* connections whose queue pairs existed before they were wanted */
    uint64_t refill;      /* when to make buffers for the next one; 0: they exist */
    uint64_t lost_since;  /* librdmacm failed since then, and our address was gone; 0: not so */
    bool any_came;        /* a datagram of this job has come */
    bool has_failed;      /* the cause was logged */
    bool is_listening;    /* librdmacm may report connects of peers; counts as pending */
    bool is_starting;     /* listed ranks are being connected at start-up */
};

static inline const struct tk_transport *tk_demand_table_of(const struct tk_peer *peer)
{
    return __atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE);
}

/* No lock. */
static inline bool tk_demand_is_up(const struct tk_peer *peer)
{
    return tk_demand_table_of(peer) != tk_conns.demand->unconnected;
}

/* Are peers connected by librdmacm? Otherwise by datagrams. */
static inline bool tk_demand_is_by_cm(void)
{
    return tk_verbs.cm != NULL;
}

/* ---- demand_record.c ---- */

/* Adds to the work that polls continue. */
void tk_demand_pending_add(int by);

struct tk_demand_record *tk_demand_record_of(const struct tk_peer *peer); /* NULL: none */
struct tk_demand_record *tk_demand_record_make(struct tk_peer *peer);
void tk_demand_record_drop(struct tk_demand_record *record);

/* Execute the steps that follow from an event or a datagram; the record may be gone afterwards. */
void tk_demand_record_advance(struct tk_demand_record *record, enum tk_incarnation_event event);
void tk_demand_record_came(struct tk_demand_record *record, const struct tk_datagram *datagram);

/* librdmacm failed to connect the peer: starts again. */
void tk_demand_record_broke(struct tk_demand_record *record);

/* Requests of other ranks go first, because those ranks hold resources until they are answered. */
bool tk_demand_record_begin(struct tk_demand_record *record, uint64_t now);

/* Returns how many connections it is about to free; negative: how many it needs. */
int tk_demand_record_step(struct tk_demand_record *record, uint64_t now);

/* Begins to close one connection; false: none may be closed. */
bool tk_demand_part_one(void);

/* Makes receive buffers for the next connection, when that is due. */
void tk_demand_refill(uint64_t now);

/* ---- demand.c ---- */

/* This rank uses the peer; a reply proves that a message came over the connection. Takes the
 * lock. */
void tk_demand_use(struct tk_peer *peer, bool is_reply);

#endif
