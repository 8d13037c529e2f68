/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that stand in for each other: what the other files report to failover, and what they
 * ask of it. */
#ifndef TK_VERBS_FAILOVER_H
#define TK_VERBS_FAILOVER_H

#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/verbs_private.h"

enum tk_status tk_failover_open(void);
void tk_failover_close(void);

/* A work came back with an error. False: its connection is not to be replaced, or can't be. */
bool tk_failover(struct tk_tx *tx, const struct ibv_wc *wc);

/* So did a receive buffer of the connection; if true it is free. Where the connection is open the
 * caller has looked for the cause before: it is on the send side. */
bool tk_failover_receive(struct tk_conn *conn, const struct ibv_wc *wc);

/* Its queue pair broke, as an event says. Nothing is flushed from a shared queue, and a quiet
 * message that failed has no completion that is waited for. */
void tk_failover_broken(struct tk_conn *conn);

/* Its port is down: gives up its connections to peers that have others. */
void tk_failover_rail(uint32_t rail);

/* Puts the queue pair into ERR unless it is there; says why if the connection was live. */
void tk_conn_give_up(struct tk_conn *conn, const char *why);

/* Goes on with what is under way; runs no handler. */
void tk_failover_step(void);

/* A notice came in this buffer, which is the caller's again on return. */
void tk_notice_came(const struct tk_buffer *buffer, uint32_t size);

/* failover/port_events.c */
void tk_events_look(void);

#endif
