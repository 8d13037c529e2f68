/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Longs whose payload is read from or written to memory of a device. The payload is a transfer of
 * kind_rma/; the message follows when that is complete, so the handler finds the data there, and
 * flushed where the device needs it. Both are queued: a handler that replies waits for no other
 * process. Thread-safe in PAR. */
#ifndef TK_KIND_LONG_H
#define TK_KIND_LONG_H

#include "message/endpoint.h"

/* Before anything can arrive. */
void tk_kind_long_open(void);

/* Whether our endpoint or the peer's is bound to memory of a device. `peer` is a copy made by
 * message/endpoint.h, not a plain one. */
bool tk_kind_long_is_on_device(const struct tk_peer *peer);

/* Whether this Long has such a payload. */
static inline bool tk_kind_long_is(const struct tk_message *m)
{
    return !tk_ep_peer_is_plain(m->peer) && m->nbytes > 0 && tk_kind_long_is_on_device(m->peer);
}

/* As tk_request() and tk_reply(). */
int tk_kind_long_request(struct tk_message *m);
int tk_kind_long_reply(gex_Token_t token, struct tk_message *m);

#endif
