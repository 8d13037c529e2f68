/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fast path for messages without payload: from the client's call to the transport in one function.
 * No lock. */
#ifndef TK_SHORT_H
#define TK_SHORT_H

#include "message/message.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "trace/trace.h"

/* Also the result of clients' calls: 0, or 1 if nothing was sent (immediate only). */
_Static_assert(TK_OK == 0 && TK_BUSY == 1, "a status is a result");

/* Called instead of a wait if a message must be immediate. The message was counted before the
 * attempt, because that costs least. */
tk_short_busy tk_short_refused TK_HIDDEN;

/* With a whole head, which carries the message's trace number. */
enum tk_status tk_short_send_traced(struct tk_peer *peer, struct tk_message_head head,
                                    bool immediate, const gex_AM_Arg_t *args);

/* Counts a request. */
static inline void tk_short_take_turn(bool immediate)
{
    tk_if_unlikely(!tk_stats_take_turn())
    {
        tk_request_poll(immediate);
        tk_stats_take_turn();
    }
}

static inline enum tk_status tk_short_send(struct tk_peer *peer, enum tk_message_kind kind,
                                           uint8_t handler, bool immediate, unsigned nargs,
                                           const gex_AM_Arg_t *args)
{
    struct tk_message_head head = {
        .kind = (uint8_t)kind, .category = TK_SHORT, .nargs = (uint8_t)nargs, .handler = handler};
    if (kind == TK_REPLY)
        tk_count(tk_counter_short_replies);
    else
        tk_short_take_turn(immediate);
    tk_if_unlikely(tk_trace_has(tk_trace_bit_request_short)) return tk_short_send_traced(
        peer, head, immediate, args);
    return tk_peer_transport(peer)->am.send_short(
        peer, head, args, immediate ? tk_short_refused : tk_wait_send_short);
}

static inline int tk_short_request(struct tk_peer *peer, uint8_t handler, bool immediate,
                                   unsigned nargs, const gex_AM_Arg_t *args)
{
    return (int)tk_short_send(peer, TK_REQUEST, handler, immediate, nargs, args);
}

static inline int tk_short_reply(gex_Token_t token, uint8_t handler, bool immediate, unsigned nargs,
                                 const gex_AM_Arg_t *args)
{
    enum tk_status status =
        tk_short_send(token->arrival.peer, TK_REPLY, handler, immediate, nargs, args);
    token->arrival.replied = status == TK_OK;
    return (int)status;
}

/* ---- Up to two arguments, the second one in the upper half ---- */

tk_small_busy tk_small_refused TK_HIDDEN;

/* The same when it is this request's turn to poll, or for a thread that has not counted a message.
 */
int tk_small_request_poll(struct tk_peer *peer, unsigned tag, uint64_t args, tk_small_busy *busy);

/* The same for a thread that has not counted the message. */
int tk_small_reply_first(gex_Token_t token, uint8_t handler, unsigned nargs, uint64_t args);

/* `busy` is a constant: tk_wait_send_small() or, if it must be immediate, tk_small_refused(). */
static inline int tk_small_request(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy)
{
    tk_if_unlikely(!tk_stats_take_turn()) return tk_small_request_poll(peer, tag, args, busy);
    tk_if_unlikely(tk_trace_has(tk_trace_bit_request_short))
    {
        const gex_AM_Arg_t both[] = {(gex_AM_Arg_t)args, (gex_AM_Arg_t)(args >> 32)};
        return (int)tk_short_send_traced(peer, tk_tag_head(tag), busy == tk_small_refused, both);
    }
    return (int)tk_peer_transport(peer)->am.send_small(peer, tag, args, busy);
}

/* `replied` is set first: sending, which cannot fail, is a tail call. */
static inline int tk_small_reply(gex_Token_t token, uint8_t handler, unsigned nargs, uint64_t args)
{
    struct tk_peer *peer = token->arrival.peer;
    tk_if_unlikely(!tk_count_mine(tk_counter_short_replies)) return tk_small_reply_first(
        token, handler, nargs, args);
    token->arrival.replied = true;
    tk_if_unlikely(tk_trace_has(tk_trace_bit_reply_short))
    {
        const gex_AM_Arg_t both[] = {(gex_AM_Arg_t)args, (gex_AM_Arg_t)(args >> 32)};
        return (int)tk_short_send_traced(peer, tk_tag_head(tk_tag(true, nargs, handler)), false,
                                         both);
    }
    return (int)tk_peer_transport(peer)->am.send_small(peer, tk_tag(true, nargs, handler), args,
                                                       tk_wait_send_small);
}

#endif
