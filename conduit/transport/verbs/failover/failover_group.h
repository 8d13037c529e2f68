/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A failover group: all connections to a peer, each of which can replace the others. On demand they
 * are opened together, and perhaps closed for other peers (conn/incarnation.h).
 *
 * While the group is held for closing it is frozen: no connection is moved or reopened. If one dies
 * meanwhile, its pending work stays until the release; if the group is closed instead, nothing was
 * in flight over it. The group is closed only when all connections that ever died are moved, at
 * both ends; a connection that waits to be reopened has carried nothing, and is closed with the
 * others.
 *
 * Connections of ports that are down at either end are left out when the group is opened: both ends
 * treat them as dead from the beginning, so they are reopened when their ports are back. */
#ifndef TK_VERBS_FAILOVER_GROUP_H
#define TK_VERBS_FAILOVER_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/conn/conn.h"
#include "transport/verbs/failover/tx_log.h"

/* The queue pairs exist: freezes the group and marks connections whose ports are down. */
void tk_failover_group_open(const struct tk_conn *conns);

/* Queue pair numbers have 24 bits (IBA 9.2.4): in what is sent to the peer, the upper bits carry
 * the mark. */
enum { tk_qp_left_out = 1 << 24 };
static inline uint32_t tk_failover_group_number(const struct tk_conn *conn)
{
    bool is_left_out = conn->tx_log && conn->tx_log->is_left_out;
    return conn->qp ? conn->qp->qp_num | (is_left_out ? tk_qp_left_out : 0) : 0;
}

/* Applies the marks that the peer sent. If the peer asks, leaves out what either end marked, unless
 * that would be all connections; an answer is applied as it is. */
void tk_failover_group_agree(const struct tk_conn *conns, const uint32_t *numbers, bool asks);

/* False if this rail probably loses what is sent to the other ends of `conns`, which may be
 * NULL. */
bool tk_failover_group_reaches(const struct tk_conn *conns, uint32_t rail);

/* It was connected, or left out; with its lock. */
void tk_failover_group_connected(struct tk_conn *conn);

/* Freezes the group, if no connection is being moved. */
bool tk_failover_group_freeze(uint32_t rank);
void tk_failover_group_thaw(uint32_t rank);

/* The queue pairs are in ERR. If nothing more comes over them, resets the group's state, and holds
 * the lock of moves until tk_failover_group_ended(). False: something may still come. */
bool tk_failover_group_end(struct tk_conn *conns);
void tk_failover_group_ended(void);

#endif
