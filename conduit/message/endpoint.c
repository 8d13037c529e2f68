/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See endpoint.h. */
#include "config.h"

#include "base/report.h"
#include "message/endpoint.h"

_Static_assert(offsetof(struct tk_ep_peer, peer) == 0, "a peer is found in its copy");
_Static_assert((int)tk_handler_endpoint + (int)tk_endpoints_max <= (int)GEX_AM_INDEX_BASE &&
                   (int)tk_internal_handlers <= (int)tk_handler_endpoint,
               "each endpoint has an index of its own below those of clients");

static const struct tk_ep_peer *copy_of(const struct tk_peer *peer)
{
    return (const struct tk_ep_peer *)(const void *)peer;
}

/* A message that found no space before is marked already. */
static void mark(const struct tk_ep_peer *copy, struct tk_message_head *head)
{
    if (head->handler < GEX_AM_INDEX_BASE)
        return;
    head->reserved = (uint16_t)(head->handler | copy->ours << 8);
    head->handler = (uint8_t)(tk_handler_endpoint + copy->theirs);
}

static enum tk_status ep_send(struct tk_peer *peer, struct tk_outgoing *message)
{
    const struct tk_ep_peer *copy = copy_of(peer);
    mark(copy, message->head);
    return tk_peer_transport(copy->real)->am.send(copy->real, message);
}

static enum tk_status ep_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    reservation->peer = copy->real;
    enum tk_status status = tk_peer_transport(copy->real)->am.reserve(reservation, place, buffer);
    reservation->peer = (struct tk_peer *)&copy->peer;
    return status;
}

static enum tk_status ep_reserve_place(struct tk_am_reservation *reservation)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    reservation->peer = copy->real;
    enum tk_status status = tk_peer_transport(copy->real)->am.reserve_place(reservation);
    reservation->peer = (struct tk_peer *)&copy->peer;
    return status;
}

static enum tk_status ep_send_reserved(struct tk_am_reservation *reservation,
                                       struct tk_outgoing *message)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    mark(copy, message->head);
    reservation->peer = copy->real;
    enum tk_status status = tk_peer_transport(copy->real)->am.send_reserved(reservation, message);
    reservation->peer = (struct tk_peer *)&copy->peer;
    return status;
}

static void ep_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    reservation->peer = copy->real;
    tk_peer_transport(copy->real)->am.release(reservation, keep_credit);
    reservation->peer = (struct tk_peer *)&copy->peer;
}

/* The payload of a Long, into the segment of the peer's endpoint. */
static enum tk_status ep_rma(struct tk_peer *peer, const struct tk_rma *rma,
                             struct tk_rma_state *state)
{
    const struct tk_ep_peer *copy = copy_of(peer);
    struct tk_rma pair = *rma; /* the same value in each call */
    if (copy->theirs != 0) {
        pair.is_pair = true;
        pair.endpoint = copy->theirs;
        pair.remote_keys = tk_bound_of(peer->rank, copy->theirs).keys;
    }
    return tk_peer_transport(copy->real)->rma.post(copy->real, &pair, state);
}

/* The peer's connection may have changed since this copy was made. */
static void ep_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket)
{
    const struct tk_ep_peer *copy = copy_of(peer);
    tk_peer_transport(copy->real)->am.leave_queue(copy->real, ticket);
}

static void ep_replies(struct tk_peer *peer)
{
    const struct tk_ep_peer *copy = copy_of(peer);
    const struct tk_transport *transport = tk_peer_transport(copy->real);
    if (transport->am.before_reply)
        transport->am.before_reply(copy->real);
}

struct tk_peer *tk_ep_peer_open(struct tk_ep_peer *copy, struct tk_peer *real, unsigned ours,
                                unsigned theirs)
{
    const struct tk_bound bound = tk_bound_of(real->rank, theirs);
    copy->real = real;
    copy->ours = (uint8_t)ours;
    copy->theirs = (uint8_t)theirs;
    copy->is_on_device = bound.kind != NULL;
    copy->transport = *tk_peer_transport(real);
    copy->transport.am.send = ep_send;
    copy->transport.am.send_short = tk_send_short_whole;
    copy->transport.am.send_small = tk_send_small_short;
    copy->transport.am.send_medium = NULL;
    copy->transport.am.medium_below = 0;
    copy->transport.am.reserve = ep_reserve;
    copy->transport.am.reserve_place = ep_reserve_place;
    copy->transport.am.send_reserved = ep_send_reserved;
    copy->transport.am.release = ep_release;
    copy->transport.am.send_long = NULL; /* rma.post() does it: the keys may differ */
    copy->transport.rma.post = ep_rma;
    copy->transport.am.leave_queue = ep_leave_queue;
    copy->transport.am.before_reply = ep_replies;
    copy->peer = *real;
    copy->peer.transport = &copy->transport;
    copy->peer.segment_base = bound.base;
    copy->peer.segment_size = bound.size;
    return &copy->peer;
}
