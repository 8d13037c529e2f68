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

/* conn/connect.c; the last two return 0 or an errno; `incarnation`: how often it was connected
 * before */
enum tk_status tk_conn_open(struct tk_conn *conn, struct tk_peer *peer, uint32_t number,
                            bool is_primary);
/* Opens its queue pair before its peer is known. A failure is no error: it recurs, and is
 * explained, when a peer needs one. */
bool tk_conn_open_ahead(struct tk_conn *conn);
void tk_conn_give(struct tk_conn *conn, struct tk_peer *peer);  /* it is this peer's */
bool tk_conn_suits(const struct tk_conn *ahead, uint32_t rank); /* it is of the rank's lane */
/* `qp`: the number of the other end's, or what conn/xrc.h describes. */
enum tk_status tk_conn_connect(struct tk_conn *conn, const struct tk_port_address *to,
                               const uint32_t *qp);
int tk_conn_ready(struct tk_conn *conn, uint32_t qp, uint32_t incarnation, const char **what);
int tk_conn_init(struct tk_conn *conn);
/* Prevents, or again allows, sending over it; with its lock, or while no other thread sees it. Work
 * in flight continues. */
void tk_conn_hold(struct tk_conn *conn);
void tk_conn_release(struct tk_conn *conn);
void tk_conn_hold_credits(struct tk_conn *conn); /* also those that came back meanwhile */
void tk_conn_close(struct tk_conn *conn);
/* How much the devices take inline, before any connection is made. */
enum tk_status tk_conn_probe_inline(void);

#endif
