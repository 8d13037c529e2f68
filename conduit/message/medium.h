/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fast path for Mediums whose payload is copied before the call returns: from the client's call to
 * the transport in one function. It waits only for space, not for an operation. No lock. */
#ifndef TK_MEDIUM_H
#define TK_MEDIUM_H

#include "message/message.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "trace/trace.h"

/* For traces: what the head carries. */
uint16_t tk_message_number(const struct tk_peer *peer, uint8_t handler);

/* The bytes of its payload are counted by the kind of destination. */
static inline enum tk_counter tk_message_bytes_by(const struct tk_transport *transport)
{
    static const enum tk_counter bytes[] = {[TK_REACH_NETWORK] = tk_counter_message_bytes_network,
                                            [TK_REACH_NEIGHBOUR] =
                                                tk_counter_message_bytes_neighbours,
                                            [TK_REACH_SELF] = tk_counter_message_bytes_self};
    return bytes[transport->reach];
}

static inline enum tk_counter tk_message_bytes(const struct tk_peer *peer)
{
    return tk_message_bytes_by(tk_peer_transport(peer));
}

/* ---- Peers whose transport has a fast path for this size ---- */

/* Called instead of a wait if a message must be immediate. */
tk_medium_busy tk_medium_refused TK_HIDDEN;

/* Indexed by `immediate`: a look-up is faster than a branch. */
extern TK_HIDDEN tk_medium_busy *const tk_medium_if_busy[2];

/* The same for a thread that has not counted the message. */
int tk_medium_direct_first(struct tk_peer *peer, uint64_t head, const gex_AM_Arg_t *args,
                           const void *payload, size_t nbytes, tk_medium_busy *busy);

static inline enum tk_counter tk_medium_counter(uint64_t head)
{
    return tk_head_is_reply(head) ? tk_counter_medium_replies : tk_counter_medium_requests;
}

static inline bool tk_medium_is_direct(const struct tk_peer *peer, size_t nbytes)
{
    return nbytes < tk_peer_transport(peer)->am.medium_below;
}

/* Counted before it is tried: sending is then a tail call. */
static inline int tk_medium_direct(struct tk_peer *peer, uint64_t head, const gex_AM_Arg_t *args,
                                   const void *payload, size_t nbytes, tk_medium_busy *busy)
{
    const struct tk_transport *transport = tk_peer_transport(peer);
    tk_if_unlikely(!tk_count_mine(tk_medium_counter(head))) return tk_medium_direct_first(
        peer, head, args, payload, nbytes, busy);
    tk_count_more(tk_message_bytes_by(transport), nbytes);
    tk_if_unlikely(tk_trace_has(tk_trace_bit_request_short)) head |=
        (uint64_t)tk_message_number(peer, tk_head_handler(head)) << tk_head_reserved_shift;
    return (int)transport->am.send_medium(peer, head, args, payload, nbytes, busy);
}

/* ---- Other peers, below tk_medium_lent_min ---- */

/* Also the result of clients' calls: 0, or 1 if nothing was sent (immediate only). */
static inline int tk_medium_send(struct tk_peer *peer, uint64_t head, const gex_AM_Arg_t *args,
                                 const void *payload, size_t nbytes, bool immediate)
{
    struct tk_short front;
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_short_size(tk_head_nargs(head)),
                              .payload = payload,
                              .nbytes = nbytes};
    tk_if_unlikely(tk_trace_has(tk_trace_bit_request_short)) head |=
        (uint64_t)tk_message_number(peer, tk_head_handler(head)) << tk_head_reserved_shift;
    tk_short_build(&front, tk_head_of_number(head), args);
    tk_if_unlikely(tk_wait_send(peer, &out, immediate) != TK_OK)
    {
        if (tk_is_traced)
            tk_trace_unsent();
        return 1;
    }
    tk_count(tk_medium_counter(head));
    tk_count_add(tk_message_bytes(peer), nbytes);
    return 0;
}

#endif
