/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets of the table of this transport: see put, put_from, get and post in
 * transport.h. The "logged" ones are for failover groups: what they post is logged. The "xrc" ones
 * are for connections that share queue pairs. */
#ifndef TK_VERBS_RMA_POST_H
#define TK_VERBS_RMA_POST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "transport/transport.h"

struct tk_peer;

bool tk_verbs_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                  size_t nbytes);
bool tk_verbs_put_from(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                       size_t nbytes);
bool tk_verbs_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                  size_t nbytes);
bool tk_logged_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                   size_t nbytes);
bool tk_logged_put_from(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                        size_t nbytes);
bool tk_logged_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                   size_t nbytes);
bool tk_xrc_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                size_t nbytes);
bool tk_xrc_put_from(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                     size_t nbytes);
bool tk_xrc_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                size_t nbytes);
bool tk_spread_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                   size_t nbytes);
bool tk_spread_put_from(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                        size_t nbytes);
bool tk_spread_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                   size_t nbytes);
enum tk_status tk_verbs_rma(struct tk_peer *peer, const struct tk_rma *rma,
                            struct tk_rma_state *state);

#endif
