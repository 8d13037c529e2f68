/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shortest way for messages without payload: from the call that a client makes to the transport
 * in one function. No lock. */
#ifndef TK_SHORT_H
#define TK_SHORT_H

#include "base/bits.h"
#include "message/message.h"

static inline size_t tk_front_size(unsigned nargs, bool is_long)
{
    return tk_align_up(sizeof(struct tk_message_head) +
                           (is_long ? sizeof(struct tk_long_head) : 0) + 4u * nargs,
                       8);
}

/* There is no room now. */
enum tk_status tk_short_wait(struct tk_peer *peer, struct tk_outgoing *out, bool immediate);

static inline enum tk_status tk_short_send(struct tk_peer *peer, enum tk_message_kind kind,
                                           uint8_t handler, bool immediate, unsigned nargs,
                                           const gex_AM_Arg_t *args)
{
    struct {
        struct tk_message_head head;
        int32_t args[tk_max_args];
    } front;
    struct tk_outgoing out = {.head = &front.head, .head_size = tk_front_size(nargs, false)};
    front.head = (struct tk_message_head){
        .kind = (uint8_t)kind, .category = TK_SHORT, .nargs = (uint8_t)nargs, .handler = handler};
    for (unsigned i = 0; i < nargs; i++)
        front.args[i] = args[i];
    if (nargs & 1)
        front.args[nargs] = 0; /* padding must not carry stack contents to others */
    tk_if_likely(peer->transport->send(peer, &out) == TK_OK) return TK_OK;
    return tk_short_wait(peer, &out, immediate);
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
    struct tk_arrival *arrival = token->arrival;
    if (tk_short_send(arrival->peer, TK_REPLY, handler, immediate, nargs, args) != TK_OK)
        return 1;
    arrival->replied = true;
    return 0;
}

#endif
