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

/* Sends the ACK that found no room before, if there is one; takes the connection's lock. */
void tk_ack_retry(struct tk_conn *conn);

/* There is none from now on: the connection is closed; with its lock held. */
void tk_ack_forget(struct tk_conn *conn);

#endif
