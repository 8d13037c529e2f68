/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Returning credits without a reply. */
#ifndef TK_VERBS_ACK_H
#define TK_VERBS_ACK_H

#include "peer/peer.h"
#include "transport/verbs/data/lane_type.h"

struct tk_conn;

/* The handler of a request has ended and sent no reply; takes the connection's lock. */
void tk_credit_owe_to(const struct tk_peer *peer);

/* While a thread runs the handlers of several messages that came together, it may hold back more
 * credits than `slack`, but not more than `batch_slack` (limits.h); one ACK returns them, at the
 * end of the batch at the latest. The batch always ends: a handler waits only for space to send, or
 * for the answer of a peer whose connection is being closed, and neither needs these credits. */
struct tk_ack_batch {
    struct tk_ack_batch *outer; /* the batch that this one interrupted, because a handler polled */
    unsigned count;
    const struct tk_peer *peers[tk_poll_batch];
};
void tk_ack_batch_begin(struct tk_ack_batch *batch);
void tk_ack_batch_end(struct tk_ack_batch *batch);

/* Sends an ACK that found no space before; takes the connection's lock. */
void tk_ack_retry(struct tk_conn *conn);

/* Drops a due ACK, because the connection is closed; with its lock held. */
void tk_ack_forget(struct tk_conn *conn);

#endif
