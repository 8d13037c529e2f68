/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages by which connections over shared queues request credits, get them, and give them back.
 * The rules are in credit_loan.h. */
#ifndef TK_VERBS_CREDIT_LOAN_MESSAGES_H
#define TK_VERBS_CREDIT_LOAN_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

struct tk_conn;
struct tk_peer;
struct tk_short;

/* Before the connection is connected: its peer grants us `base` credits for good. */
void tk_loan_open(struct tk_conn *conn, int base);

/* A message of kind TK_LOAN came. Its buffer is replaced already, and nothing of it is counted yet;
 * without a lock. */
void tk_loan_came(struct tk_conn *conn, const struct tk_short *message, size_t size);

/* A credit came back, and the borrower needs it; with the connection's lock. */
void tk_loan_step(struct tk_conn *conn);

/* Sends what found no space before, if anything is due; takes the lock of the primary
 * connection. */
void tk_loan_retry(const struct tk_peer *peer);

/* Succeeds if no request, answer or reclaim is in flight, and then prevents new ones until the
 * release; with the connection's lock. False: something is in flight, or about to be. */
bool tk_loan_hold(struct tk_conn *conn);
void tk_loan_release(struct tk_conn *conn);

/* Reclaims credits from some peers, for a connection whose buffers can't be reserved. */
void tk_loan_reclaim(const struct tk_conn *conn);

#endif
