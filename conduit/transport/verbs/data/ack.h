/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Credits that go back by themselves. */
#ifndef TK_VERBS_ACK_H
#define TK_VERBS_ACK_H

#include "transport/verbs/verbs_private.h"

/* The handler of a request is through and sent no reply; with the connection's lock held. */
void tk_credit_owe(struct tk_conn *conn);

/* The same without the lock. */
void tk_credit_owe_to(const struct tk_peer *peer);

/* While a thread runs the handlers of several messages that came together, more credits than
 * `slack` may be held back, but not a third of the peer's: one ACK then gives them back, at the end
 * at the latest. A handler waits for nothing that another rank does, so the end comes. */
struct tk_ack_batch {
    struct tk_ack_batch *outer;
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
