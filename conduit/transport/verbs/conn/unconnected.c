/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of peers that are not connected, or that are being watched (qp_evict.h): each function
 * begins to connect the peer, and calls the table of connected peers once it is connected. Owns the
 * tables; locks only in demand.c. */
#include "config.h"

#include "base/first_use.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/demand_private.h"
#include "transport/verbs/conn/qp_evict.h"
#include "transport/verbs/conn/unconnected.h"
#include "transport/verbs/verbs_state.h"

/* The table to call; NULL: the peer can't be used now. */
TK_FIRST_USE static const struct tk_transport *table_for(struct tk_peer *peer, bool is_reply)
{
    if (!tk_demand_is_up(peer))
        tk_demand_use(peer, is_reply);
    tk_evict_used(peer);
    return tk_demand_is_up(peer) ? tk_conns.demand->connected : NULL;
}

static bool is_answer(unsigned kind)
{
    return kind == TK_REPLY || kind == TK_ACK;
}

TK_FIRST_USE static enum tk_status demand_send(struct tk_peer *peer, struct tk_outgoing *message)
{
    const struct tk_transport *table = table_for(peer, is_answer(message->head->kind));
    return table ? table->am.send(peer, message) : TK_BUSY;
}

TK_FIRST_USE static enum tk_status demand_send_short(struct tk_peer *peer,
                                                     struct tk_message_head head,
                                                     const int32_t *args, tk_short_busy *busy)
{
    const struct tk_transport *table = table_for(peer, is_answer(head.kind));
    if (table)
        return table->am.send_short(peer, head, args, busy);
    return busy ? busy(peer, head, args) : TK_BUSY;
}

TK_FIRST_USE static enum tk_status demand_send_small(struct tk_peer *peer, unsigned tag,
                                                     uint64_t args, tk_small_busy *busy)
{
    const struct tk_transport *table = table_for(peer, is_answer(tk_tag_head(tag).kind));
    if (table)
        return table->am.send_small(peer, tag, args, busy);
    return busy ? busy(peer, tag, args) : TK_BUSY;
}

static enum tk_status demand_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    const struct tk_transport *table = table_for(reservation->peer, is_answer(reservation->kind));
    return table ? table->am.reserve(reservation, place, buffer) : TK_BUSY;
}

static enum tk_status demand_reserve_place(struct tk_am_reservation *reservation)
{
    const struct tk_transport *table = table_for(reservation->peer, is_answer(reservation->kind));
    return table ? table->am.reserve_place(reservation) : TK_BUSY;
}

static enum tk_status demand_send_reserved(struct tk_am_reservation *reservation,
                                           struct tk_outgoing *message)
{
    const struct tk_transport *table = table_for(reservation->peer, is_answer(reservation->kind));
    return table ? table->am.send_reserved(reservation, message) : TK_BUSY;
}

/* A reservation always belongs to a connection. */
static void demand_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    tk_conns.demand->connected->am.release(reservation, keep_credit);
}

/* Always false: the caller falls back to rma.post(). */
static bool demand_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                       size_t nbytes)
{
    (void)op, (void)remote, (void)local, (void)nbytes;
    table_for(peer, false);
    return false;
}

static bool demand_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                       size_t nbytes)
{
    (void)op, (void)remote, (void)local, (void)nbytes;
    table_for(peer, false);
    return false;
}

static enum tk_status demand_rma(struct tk_peer *peer, const struct tk_rma *rma,
                                 struct tk_rma_state *state)
{
    const struct tk_transport *table = table_for(peer, false);
    return table ? table->rma.post(peer, rma, state) : TK_BUSY;
}

static enum tk_status demand_gather(struct tk_peer *peer, const struct tk_gather *gather)
{
    const struct tk_transport *table = table_for(peer, false);
    return table ? table->rma.gather(peer, gather) : TK_BUSY;
}

static void demand_replies(struct tk_peer *peer)
{
    table_for(peer, true);
}

/* ---- the tables ---- */

struct tk_transport tk_transport_unconnected;

static struct tk_transport watched; /* the same functions, which tell the two apart */

static void set_tables(const struct tk_transport *connected, const struct tk_transport *unconnected)
{
    tk_conns.demand->connected = connected;
    tk_conns.demand->unconnected = unconnected;
    watched = *unconnected;
    tk_evict_use_tables(connected, &watched);
}

void tk_unconnected_use_tables(const struct tk_transport *connected,
                               const struct tk_transport *unconnected)
{
    for (uint32_t r = 0; tk_conns.demand && r < tk_peers.size; r++) {
        struct tk_peer *peer = tk_peer(r);
        if (tk_is_verbs_peer(r))
            peer->transport = tk_demand_is_up(peer) ? connected : unconnected;
    }
    if (tk_conns.demand)
        set_tables(connected, unconnected);
}

static void make_table(struct tk_transport *table, const struct tk_transport *connected)
{
    *table = *connected;
    table->am.send = demand_send;
    table->am.send_short = demand_send_short;
    table->am.send_small = demand_send_small;
    table->am.send_medium = tk_send_medium_whole; /* by demand_send() */
    table->am.reserve = demand_reserve;
    table->am.reserve_place = demand_reserve_place;
    table->am.send_reserved = demand_send_reserved;
    table->am.release = demand_release;
    table->rma.put = demand_put;
    table->rma.put_from = NULL; /* rma.post() connects instead */
    table->am.send_long = NULL;
    table->rma.get = demand_get;
    table->rma.post = demand_rma;
    table->rma.gather = demand_gather;
    table->am.before_reply = demand_replies;
}

void tk_unconnected_open(const struct tk_transport *connected)
{
    make_table(&tk_transport_unconnected, connected);
    set_tables(connected, &tk_transport_unconnected);
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (!tk_is_verbs_peer(r))
            continue;
        tk_peer(r)->connection = tk_verbs.nobody + tk_primary_number(r);
        tk_peer(r)->transport = tk_conns.demand->unconnected;
    }
}
