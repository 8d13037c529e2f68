/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages between endpoints, at least one of which is not endpoint 0. They go to a copy of the
 * peer: its transport marks the head with both endpoints and then does what the real one does. So
 * other messages need no check for them. On the wire such a message is for a handler of the
 * library, from tk_handler_endpoint on, by the receiving endpoint; the client's handler index is in
 * the lower byte of head.reserved, the sending endpoint in the upper one.
 *
 * Owns nothing: a copy belongs to its user, on the stack or for each thread. No lock. */
#ifndef TK_ENDPOINT_H
#define TK_ENDPOINT_H

#include "message/message.h"

struct tk_ep_peer {
    struct tk_peer peer; /* has the segment of the peer's endpoint */
    struct tk_transport transport;
    struct tk_peer *real;
    uint8_t ours, theirs; /* endpoint indices */
    bool is_on_device;    /* the segment is memory of a device */
};

/* Fills in the copy and returns its peer, which is valid as long as the copy is. */
struct tk_peer *tk_ep_peer_open(struct tk_ep_peer *copy, struct tk_peer *real, unsigned ours,
                                unsigned theirs);

/* No copy: both endpoints are endpoint 0. */
static inline bool tk_ep_peer_is_plain(const struct tk_peer *peer)
{
    return peer == tk_peer(peer->rank);
}

/* Our endpoint of a message from or to this peer. */
static inline unsigned tk_ep_peer_ours(const struct tk_peer *peer)
{
    if (tk_ep_peer_is_plain(peer))
        return 0;
    return ((const struct tk_ep_peer *)(const void *)peer)->ours;
}

#endif
