/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All connections to a peer, where they stand in for each other and are opened on demand, and
 * perhaps closed for others (conn/incarnation.h): that is done to all of them together.
 *
 * While they are held for that they are frozen: none is moved or opened again. One that dies
 * meanwhile keeps what is to be done about it until they are released; if they are closed instead,
 * nothing was under way over it. None is closed before all that once died are moved, at both ends;
 * one that waits to be opened again has carried nothing, and goes with the others.
 *
 * Those of ports that are down here or there are left out when they are opened: both ends take them
 * for dead from the beginning, so they are opened again when their ports are back. */
#ifndef TK_VERBS_FAILOVER_GROUP_H
#define TK_VERBS_FAILOVER_GROUP_H

#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs_private.h"

/* Their queue pairs are made: they are frozen, and those of ports that are down marked. */
void tk_failover_group_open(const struct tk_conn *conns);

/* Queue pairs have numbers of 24 bits (IBA 9.2.4): in what is sent to the peer the upper ones have
 * room for the mark. */
enum { tk_qp_left_out = 1 << 24 };
static inline uint32_t tk_failover_group_number(const struct tk_conn *conn)
{
    bool is_left_out = conn->tx_log && conn->tx_log->is_left_out;
    return conn->qp ? conn->qp->qp_num | (is_left_out ? tk_qp_left_out : 0) : 0;
}

/* By what the peer sent. Of an asker's numbers: what either end marked is left out, unless that
 * would be all. Of an answer's: what it says. */
void tk_failover_group_agree(const struct tk_conn *conns, const uint32_t *numbers, bool asks);

/* Is there no sign that this rail loses what is sent to their other ends? They may be NULL. */
bool tk_failover_group_reaches(const struct tk_conn *conns, uint32_t rail);

/* It was connected, or left out; with its lock. */
void tk_failover_group_connected(struct tk_conn *conn);

/* Freezes them, if none is being moved. */
bool tk_failover_group_freeze(uint32_t rank);
void tk_failover_group_thaw(uint32_t rank);

/* Their queue pairs are in ERR. If nothing more comes over them they are forgotten, and the lock of
 * moves is held until tk_failover_group_ended(). False: not now. */
bool tk_failover_group_end(struct tk_conn *conns);
void tk_failover_group_ended(void);

#endif
