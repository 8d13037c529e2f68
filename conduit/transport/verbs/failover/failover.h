/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections in failover groups: what the other files report to failover, and what they
 * request. */
#ifndef TK_VERBS_FAILOVER_H
#define TK_VERBS_FAILOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "transport/verbs/library.h"

struct tk_buffer;
struct tk_conn;
struct tk_tx;

enum tk_status tk_failover_open(void);
void tk_failover_close(void);

/* A descriptor completed with an error. False: its connection can't or must not be replaced. */
bool tk_failover(struct tk_tx *tx, const struct ibv_wc *wc);

/* A receive buffer of the connection completed with an error; if true it is free. If the connection
 * is open, the caller has polled for the cause before, which is on the send side. */
bool tk_failover_receive(struct tk_conn *conn, const struct ibv_wc *wc);

/* An event says that its queue pair broke. A shared queue flushes nothing, and no thread waits for
 * the completion of a failed unsignaled message. */
void tk_failover_broken(struct tk_conn *conn);

/* Its port is down: gives up its connections to peers that have others. */
void tk_failover_rail(uint32_t rail);

/* Puts the queue pair into ERR if it is not; logs why if the connection was live. */
void tk_conn_give_up(struct tk_conn *conn, const char *why);

/* Continues pending moves; runs no handler. */
void tk_failover_step(void);

/* A notice came in this buffer, which belongs to the caller again on return. */
void tk_notice_came(const struct tk_buffer *buffer, uint32_t size);

/* failover/port_events.c */
void tk_events_look(void);

#endif
