/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All connections to a rank: made, published, held and closed together. With the lock of demands,
 * except at start-up and exit. */
#ifndef TK_VERBS_PAIR_H
#define TK_VERBS_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct tk_buffer;
struct tk_conn;
struct tk_peer;

/* conn/pair.c: all connections to a rank */
enum tk_status tk_nobody_open(void);
/* Makes the connections with their queue pairs. Other threads do not see them until they are
 * published. TK_FAIL: the cause was logged; TK_BUSY: lent receive buffers must come back first. */
enum tk_status tk_pair_open(uint32_t rank, struct tk_conn **conns);
enum tk_status tk_pair_fill(struct tk_conn *conns); /* posts receive buffers */
/* Makes receive buffers for the next peer: registering them takes longer than all other work for
 * its first message. */
enum tk_status tk_pair_make_ahead(void);
/* Also makes a queue pair for it, if one is made ahead (limits.h). */
void tk_pair_open_ahead(void);
bool tk_pair_is_ahead_for(uint32_t rank);
void tk_pair_drop(struct tk_conn *conns);
/* Allows sending: connections opened on demand are held until then. */
void tk_pair_release(struct tk_conn *conns);
/* Holds them again. False: something is in flight. */
bool tk_pair_freeze(struct tk_conn *conns);
/* Of held connections: our credits in use, and the peer's credits that we hold back. */
struct tk_pair_balance {
    int32_t out, owed;
};
struct tk_pair_balance tk_pair_balance(struct tk_conn *conns);
/* Close held connections. tk_pair_end() returns false until all their buffers have come back. Then
 * it destroys the queue pairs; the entries remain for the next connections to the peer. */
void tk_pair_shut(struct tk_conn *conns);
bool tk_pair_end(struct tk_conn *conns);
/* If the buffer belonged to a connection that is being closed: gives it back and returns true. */
bool tk_pair_flushed(struct tk_buffer *buffer);
void tk_pair_publish(uint32_t rank, struct tk_conn *conns);
/* Connects to the other end's queue pairs, by their numbers; the other end always grants us
 * `credits`. */
enum tk_status tk_pair_connect(struct tk_conn *conns, const uint32_t *qps, int credits);
void tk_pair_close(uint32_t rank);
/* A connection for atomics alone, to a rank that another transport serves. */
enum tk_status tk_pair_open_for_atomics(struct tk_peer *peer);

#endif
