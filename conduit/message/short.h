/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shortest way for messages without payload: from the call that a client makes to the transport
 * in one function. No lock. */
#ifndef TK_SHORT_H
#define TK_SHORT_H

#include "message/message.h"
#include "progress/progress.h"

static inline enum tk_status tk_short_send(struct tk_peer *peer, enum tk_message_kind kind,
                                           uint8_t handler, bool immediate, unsigned nargs,
                                           const gex_AM_Arg_t *args)
{
    struct tk_message_head head = {
        .kind = (uint8_t)kind, .category = TK_SHORT, .nargs = (uint8_t)nargs, .handler = handler};
    tk_if_likely(peer->transport->send_short(peer, head, args) == TK_OK) return TK_OK;
    return immediate ? TK_BUSY : tk_wait_send_short(peer, head, args);
}

/* 0, or 1 when nothing was sent (immediate only). */
static inline int tk_short_request(struct tk_peer *peer, uint8_t handler, bool immediate,
                                   unsigned nargs, const gex_AM_Arg_t *args)
{
    return tk_short_send(peer, TK_REQUEST, handler, immediate, nargs, args) != TK_OK;
}

static inline int tk_short_reply(gex_Token_t token, uint8_t handler, bool immediate, unsigned nargs,
                                 const gex_AM_Arg_t *args)
{
    if (tk_short_send(token->arrival.peer, TK_REPLY, handler, immediate, nargs, args) != TK_OK)
        return 1;
    token->arrival.replied = true;
    return 0;
}

#endif
