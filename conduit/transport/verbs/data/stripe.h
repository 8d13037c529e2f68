/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large transfers over all connections of a pair, and the reads behind puts. */
#ifndef TK_VERBS_STRIPE_H
#define TK_VERBS_STRIPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/status.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/verbs_state.h"

/* Chooses the connection for a piece of so many bytes, by the load and the speed of each that has
 * space. NULL: none has space. */
struct tk_conn *tk_stripe_conn(const struct tk_peer *peer, size_t nbytes);

/* Counts bytes that the connection carries; the second takes the count back. */
void tk_stripe_count(struct tk_conn *conn, size_t nbytes);
void tk_stripe_uncount(struct tk_conn *conn, size_t nbytes);

/* Sets the connection's cost per byte when the rate of the other end is known. */
void tk_stripe_open(struct tk_conn *conn, uint32_t remote_rate);

/* Records in tk_rma_state.unfenced that a write of this put went over the connection. */
static inline void tk_fence_want(struct tk_rma_state *state, const struct tk_conn *conn)
{
    if (!state->unfenced)
        state->returns = tk_counter_read(&tk_verbs.returns);
    state->unfenced |= UINT64_C(1) << (conn - tk_conns_to(conn->peer->rank));
}

/* Posts a read behind all such writes. TK_BUSY when some are left. */
enum tk_status tk_fence(const struct tk_peer *peer, const struct tk_rma *rma,
                        struct tk_rma_state *state);

static inline const uint32_t *tk_remote_keys(const struct tk_peer *peer, const struct tk_rma *rma)
{
    return rma->is_pair ? rma->remote_keys : tk_peers.keys[peer->rank];
}

#endif
