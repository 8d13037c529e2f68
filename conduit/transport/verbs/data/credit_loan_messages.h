/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages by which connections over shared queues ask for credits, get them, and give them back.
 * The rules are in credit_loan.h. */
#ifndef TK_VERBS_CREDIT_LOAN_MESSAGES_H
#define TK_VERBS_CREDIT_LOAN_MESSAGES_H

#include "transport/verbs/data/srq.h"

/* Before the connection is connected: its peer gives us `base` credits for good. */
void tk_loan_open(struct tk_conn *conn, int base);

/* A message of kind TK_LOAN came, its buffer is replaced, and nothing of it is counted yet; without
 * a lock. */
void tk_loan_came(struct tk_conn *conn, const struct tk_short *message, size_t size);

/* A credit came back, and the borrower has something to do with it; with the connection's lock. */
void tk_loan_step(struct tk_conn *conn);

/* Sends what found no room before, if there is something; takes the lock of the primary one. */
void tk_loan_retry(const struct tk_peer *peer);

/* Nothing is asked, answered or called back, and none of that begins until it is released; with the
 * connection's lock. False: something is under way, or about to be. */
bool tk_loan_hold(struct tk_conn *conn);
void tk_loan_release(struct tk_conn *conn);

/* Asks some peers to give back what they were lent, for a connection that can't be reserved. */
void tk_loan_reclaim(const struct tk_conn *conn);

#endif
