/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections in failover groups: the functions by which other files report to failover, and
 * request work from it. */
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

/* A descriptor completed with an error: moves its connection. False: the connection can't or must
 * not be replaced. */
bool tk_failover(struct tk_tx *tx, const struct ibv_wc *wc);

/* A receive buffer of the connection completed with an error. True: the buffer is free. The caller
 * polls for sends first if the connection is open, because the cause is on that side. */
bool tk_failover_receive(struct tk_conn *conn, const struct ibv_wc *wc);

/* An event reports that the queue pair broke. It may be the only sign: a shared queue flushes
 * nothing, and no thread waits for the completion of an unsignaled message. */
void tk_failover_broken(struct tk_conn *conn);

/* The rail's port is down: gives up its connections to peers that have others. */
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
