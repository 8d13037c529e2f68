/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opens and connects one queue pair, and holds and closes its connection. No lock, except
 * where a comment says so: no other thread sees a connection before it is ready. */
#ifndef TK_VERBS_CONNECT_H
#define TK_VERBS_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct tk_conn;
struct tk_peer;
struct tk_port_address;

/* conn/connect.c. tk_conn_ready() and tk_conn_init() return 0 or an errno; `incarnation`: how often
 * the connection was connected before */
enum tk_status tk_conn_open(struct tk_conn *conn, struct tk_peer *peer, uint32_t number,
                            bool is_primary);
/* Opens the queue pair before the peer is known. A failure is no error here: it recurs, and is
 * logged, when a peer needs a queue pair. */
bool tk_conn_open_ahead(struct tk_conn *conn);
void tk_conn_give(struct tk_conn *conn, struct tk_peer *peer);  /* assigns it to the peer */
bool tk_conn_suits(const struct tk_conn *ahead, uint32_t rank); /* is it in the rank's lane? */
/* `qp`: the number of the other end's queue pair, or the numbers that conn/xrc.h describes. */
enum tk_status tk_conn_connect(struct tk_conn *conn, const struct tk_port_address *to,
                               const uint32_t *qp);
int tk_conn_ready(struct tk_conn *conn, uint32_t qp, uint32_t incarnation, const char **what);
int tk_conn_init(struct tk_conn *conn);
/* hold() prevents sending over the connection, release() allows it again; with its lock, or while
 * no other thread sees it. Work in flight continues. */
void tk_conn_hold(struct tk_conn *conn);
void tk_conn_release(struct tk_conn *conn);
void tk_conn_hold_credits(struct tk_conn *conn); /* also those that came back meanwhile */
void tk_conn_close(struct tk_conn *conn);
/* Finds out how large send queues may be (inline data, lists, depth), before any connection is
 * made. */
enum tk_status tk_conn_probe(void);

#endif
