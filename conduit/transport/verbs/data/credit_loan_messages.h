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

/* Call it before the connection is connected: its peer grants us `base` credits permanently. */
void tk_loan_open(struct tk_conn *conn, int base);

/* Handles a message of kind TK_LOAN. Its buffer is replaced already, and its credits are not
 * counted yet. Call it without a lock. */
void tk_loan_came(struct tk_conn *conn, const struct tk_short *message, size_t size);

/* Call it when a credit came back and tk_borrower_is_busy(); with the connection's lock. */
void tk_loan_step(struct tk_conn *conn);

/* Sends messages that found no space before; takes the lock of the primary connection. */
void tk_loan_retry(const struct tk_peer *peer);

/* Prevents new requests and reclaims until the release; with the connection's lock. False: a
 * request, answer or reclaim is in flight, or about to be. */
bool tk_loan_hold(struct tk_conn *conn);
void tk_loan_release(struct tk_conn *conn);

/* Reclaims credits from some peers for a connection for which no buffers could be reserved. */
void tk_loan_reclaim(const struct tk_conn *conn);

#endif
