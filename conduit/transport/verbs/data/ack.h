/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Credits that go back by themselves. */
#ifndef TK_VERBS_ACK_H
#define TK_VERBS_ACK_H

#include "transport/verbs/verbs_private.h"

/* The handler of a request is through and sent no reply; takes the connection's lock. */
void tk_credit_owe_to(const struct tk_peer *peer);

/* While a thread runs the handlers of several messages that came together, more credits than
 * `slack` may be held back, but not more than `batch_slack` (limits.h): one ACK then gives them
 * back, at the end at the latest. The end comes: what a handler waits for, room to send or the
 * answer of a peer whose connection is being closed, needs none of these credits. */
struct tk_ack_batch {
    struct tk_ack_batch *outer; /* of the handler that polls: an exit from there does */
    unsigned count;
    const struct tk_peer *peers[tk_poll_batch];
};
void tk_ack_batch_begin(struct tk_ack_batch *batch);
void tk_ack_batch_end(struct tk_ack_batch *batch);

/* Sends the ACK that found no room before, if there is one; takes the connection's lock. */
void tk_ack_retry(struct tk_conn *conn);

/* There is none from now on: the connection is closed; with its lock held. */
void tk_ack_forget(struct tk_conn *conn);

#endif
