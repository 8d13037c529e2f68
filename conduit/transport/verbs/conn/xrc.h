/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Extended reliable connections (XRC, IBA annex A14): one send queue pair reaches all ranks of a
 * neighbourhood, and ends at one target queue pair there; each request names the shared receive
 * queue of the rank that it addresses. A process has one send queue pair for each remote
 * neighbourhood instead of one for each rank, and a target for each remote process serves all ranks
 * here.
 *
 *     sender       the send queue pair of this process to one group
 *
 *     target       the receiving end of another process's sender, shared by our group; its number
 *                  says which process a message came from
 *
 *     group        ranks that share targets: those of a neighbourhood that use the same ports
 *
 * There is still one connection (struct tk_conn) for each pair of ranks, with credits, space and
 * order of its own; a sender has space for all its connections. Memory that the group shares
 * records which target serves a process (xrc_table.h).
 *
 * With the lock of demands, except at start-up and exit. */
#ifndef TK_VERBS_XRC_H
#define TK_VERBS_XRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/xrc_table.h"
#include "transport/verbs/library.h"

struct tk_peer_info;

/* The ends of a connection send each other three numbers: of the sender, of the target for the
 * other end, and of the shared receive queue. In an array each kind has conns_pp entries in a
 * row. */
enum { TK_XRC_SENDER, TK_XRC_TARGET, TK_XRC_QUEUE, tk_xrc_numbers };
enum {
    tk_xrc_conns_max = tk_conns_max / tk_xrc_numbers
}; /* connections of a pair: one datagram has all numbers */

struct tk_xrc {
    struct tk_xrc_table table;
    uint32_t *group_of;      /* by rank: the first rank of its group */
    struct ibv_qp **senders; /* by group and connection; NULL: not made yet */
    size_t table_size;
    uint32_t sending, made, opened; /* senders; targets that we made, and those of neighbours */
};

static inline size_t tk_xrc_private_bytes(size_t ranks, size_t conns)
{
    return sizeof(struct tk_xrc) + ranks * (sizeof(uint32_t) + conns * sizeof(struct ibv_qp *));
}

/* Fills in what this rank offers. Call it when devices have protection domains, before receive
 * queues are made. */
void tk_xrc_offer(struct tk_peer_info *info);

/* Decides whether XRC is used. All ranks derive the same answer from the peer infos of all. */
enum tk_status tk_xrc_agree(void);

/* After connections are closed, before devices are. */
void tk_xrc_close(void);

static inline bool tk_xrc_in_use(void)
{
    return tk_conns.xrc != NULL;
}

static inline bool tk_xrc_is_shared(const struct tk_conn *conn)
{
    return tk_conns.xrc && !conn->is_for_atomics;
}

/* Take and release the rank's row around steps that make or connect targets. False: a neighbour has
 * it; try again later. Always true if nothing is shared. */
bool tk_xrc_take(uint32_t rank);
void tk_xrc_give(uint32_t rank);

/* With the rank taken: makes the queue pairs of the connection, in INIT. Returns 0 or an errno;
 * *what names the call that failed. */
int tk_xrc_conn_open(struct tk_conn *conn, const char **what);

/* With the rank taken: makes them ready, by the numbers of the other end, which are conns_pp
 * entries apart. */
int tk_xrc_conn_ready(struct tk_conn *conn, const uint32_t *numbers, const char **what);

/* This process gives up the target; others may still use it. */
void tk_xrc_conn_close(struct tk_conn *conn);

/* The numbers of all connections of a pair, as they are sent. */
void tk_xrc_numbers_of(const struct tk_conn *conns, uint32_t *numbers);

/* For logs: whether XRC is used, and if not, why. */
const char *tk_xrc_describe(void);

#endif
