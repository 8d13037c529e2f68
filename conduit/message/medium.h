/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fast path for Mediums whose payload is copied before the call returns: from the client's call to
 * the transport in one function. There is no operation to wait for, only room. No lock. */
#ifndef TK_MEDIUM_H
#define TK_MEDIUM_H

#include "message/message.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "trace/trace.h"

/* For traces: what the head carries. */
uint16_t tk_message_number(const struct tk_peer *peer, uint8_t handler);

/* The bytes of its payload are counted by whom it went to. */
static inline enum tk_counter tk_message_bytes(const struct tk_peer *peer)
{
    static const enum tk_counter bytes[] = {[TK_REACH_NETWORK] = tk_counter_message_bytes_network,
                                            [TK_REACH_NEIGHBOUR] =
                                                tk_counter_message_bytes_neighbours,
                                            [TK_REACH_SELF] = tk_counter_message_bytes_self};
    return bytes[tk_peer_transport(peer)->reach];
}

/* With GEX_EVENT_NOW shorter payloads are copied behind their heads: lent to the device they would
 * be a second range of memory in the work request, which costs more up to about this size (over
 * softhca 70 ns, in which 4 KiB are copied). */
enum { tk_medium_lent_min = 8 << 10 };

/* Also the result of clients' calls: 0, or 1 if nothing was sent (immediate only). */
static inline int tk_medium_send(struct tk_peer *peer, enum tk_message_kind kind, uint8_t handler,
                                 bool immediate, const void *payload, size_t nbytes, unsigned nargs,
                                 const gex_AM_Arg_t *args)
{
    struct tk_short front;
    struct tk_message_head head = {
        .kind = (uint8_t)kind, .category = TK_MEDIUM, .nargs = (uint8_t)nargs, .handler = handler};
    tk_if_unlikely(tk_trace_has(tk_trace_bit_request_short)) head.reserved =
        tk_message_number(peer, handler);
    tk_short_build(&front, head, args);
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_short_size(nargs),
                              .payload = payload,
                              .nbytes = nbytes};
    tk_if_unlikely(tk_wait_send(peer, &out, immediate) != TK_OK)
    {
        if (tk_is_traced)
            tk_trace_unsent();
        return 1;
    }
    tk_count(kind == TK_REPLY ? tk_counter_medium_replies : tk_counter_medium_requests);
    tk_count_add(tk_message_bytes(peer), nbytes);
    return 0;
}

#endif
