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
    return tk_peer_transport(copy->real)->send(copy->real, message);
}

static enum tk_status ep_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    reservation->peer = copy->real;
    enum tk_status status = tk_peer_transport(copy->real)->reserve(reservation, place, buffer);
    reservation->peer = (struct tk_peer *)&copy->peer;
    return status;
}

static enum tk_status ep_reserve_place(struct tk_am_reservation *reservation)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    reservation->peer = copy->real;
    enum tk_status status = tk_peer_transport(copy->real)->reserve_place(reservation);
    reservation->peer = (struct tk_peer *)&copy->peer;
    return status;
}

static enum tk_status ep_send_reserved(struct tk_am_reservation *reservation,
                                       struct tk_outgoing *message)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    mark(copy, message->head);
    reservation->peer = copy->real;
    enum tk_status status = tk_peer_transport(copy->real)->send_reserved(reservation, message);
    reservation->peer = (struct tk_peer *)&copy->peer;
    return status;
}

static void ep_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    const struct tk_ep_peer *copy = copy_of(reservation->peer);
    reservation->peer = copy->real;
    tk_peer_transport(copy->real)->release(reservation, keep_credit);
    reservation->peer = (struct tk_peer *)&copy->peer;
}

/* The payload of a Long, into the segment of the peer's endpoint. */
static enum tk_status ep_rma(struct tk_peer *peer, const struct tk_rma *rma,
                             struct tk_rma_state *state)
{
    const struct tk_ep_peer *copy = copy_of(peer);
    struct tk_rma pair = *rma; /* an equal one in each call */
    if (copy->theirs != 0) {
        pair.is_pair = true;
        pair.endpoint = copy->theirs;
        pair.remote_keys = tk_bound_of(peer->rank, copy->theirs).keys;
    }
    return tk_peer_transport(copy->real)->rma(copy->real, &pair, state);
}

/* The peer's connection may have changed since this copy was made. */
static void ep_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket)
{
    const struct tk_ep_peer *copy = copy_of(peer);
    tk_peer_transport(copy->real)->leave_queue(copy->real, ticket);
}

static void ep_replies(struct tk_peer *peer)
{
    const struct tk_ep_peer *copy = copy_of(peer);
    const struct tk_transport *transport = tk_peer_transport(copy->real);
    if (transport->replies)
        transport->replies(copy->real);
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
    copy->transport.send = ep_send;
    copy->transport.send_short = tk_send_short_whole;
    copy->transport.send_small = tk_send_small_short;
    copy->transport.send_medium = NULL;
    copy->transport.medium_below = 0;
    copy->transport.reserve = ep_reserve;
    copy->transport.reserve_place = ep_reserve_place;
    copy->transport.send_reserved = ep_send_reserved;
    copy->transport.release = ep_release;
    copy->transport.payload_from = NULL; /* rma() does it: the keys may differ */
    copy->transport.rma = ep_rma;
    copy->transport.leave_queue = ep_leave_queue;
    copy->transport.replies = ep_replies;
    copy->peer = *real;
    copy->peer.transport = &copy->transport;
    copy->peer.segment_base = bound.base;
    copy->peer.segment_size = bound.size;
    return &copy->peer;
}
