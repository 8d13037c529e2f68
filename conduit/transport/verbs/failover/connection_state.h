/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a connection in a failover group, and of its pair of ranks: what the other files of
 * failover/ and those of data/ check before they act. Calls none of them. */
#ifndef TK_VERBS_CONNECTION_STATE_H
#define TK_VERBS_CONNECTION_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

struct tk_tx;

/* The state of a connection. Closing and drained connections belong to a pair that is being
 * moved. */
enum tk_connection_state {
    TK_LIVE,
    TK_OPENING, /* our queue pair is open again, perhaps not the other end's: we send nothing */
    TK_CLOSING, /* its queue pair is in ERR and flushes its work requests */
    TK_DRAINED, /* flushed: we know, and report to the other end, which messages came over it */
    TK_SETTLED, /* the other end has reported too: lost work waits to be posted again */
    TK_CLOSED   /* lost work was posted again */
};

enum {
    /* One for a report about another connection, one for an answer. If many connections fail at
     * once more notices may be in flight: the device then retries without limit. */
    tk_notice_buffers_max = 2,
    /* Subtracted from the space of a connection that is not live, and added to its spare buffers:
     * it then neither sends nor receives. */
    tk_space_closed = 1 << 30
};

static inline int tk_notice_buffers(void)
{
    return tk_verbs.failover_enabled ? tk_notice_buffers_max : 0;
}

/* The largest number of buffers of a primary connection. */
static inline int tk_receives_max(void)
{
    return 2 * tk_verbs.credits_pp + 1 + tk_notice_buffers();
}

static inline bool tk_conn_is_live(const struct tk_conn *conn)
{
    return tk_counter_read(&conn->state) == TK_LIVE;
}

/* Live, or opening: a pair without a live connection may use that. */
static inline bool tk_conn_is_open(const struct tk_conn *conn)
{
    return tk_counter_read(&conn->state) <= TK_OPENING;
}

/* Work that it may have lost was posted again over the primary connection. */
static inline bool tk_conn_is_closed(const struct tk_conn *conn)
{
    int state = tk_counter_read(&conn->state);
    return state == TK_CLOSED || state == TK_OPENING;
}

/* Work that must be posted again. */
struct tk_replay;

struct tk_rank_pair {
    struct tk_replay *replay; /* in the order of the first posting */
    bool is_frozen; /* no connection is moved or opened: see failover/failover_group.h; atomic */
    tk_counter_t moving; /* connections that died and are not closed */
    int pending_work;    /* connections that have pending work */
    int next_primary; /* number of the connection that will be primary; -1: the primary is live */
};

static inline size_t tk_pairs_bytes(size_t ranks)
{
    return ranks * sizeof(struct tk_rank_pair);
}

static inline struct tk_rank_pair *tk_pair_of(const struct tk_conn *conn)
{
    return &tk_verbs.pairs[conn->peer->rank];
}

static inline uint32_t tk_conn_number(const struct tk_conn *conn)
{
    return (uint32_t)(conn - tk_conns_to(conn->peer->rank));
}

/* It died, and not all of its work is posted again. */
static inline bool tk_conn_is_moving(const struct tk_conn *conn)
{
    return !tk_conn_is_open(conn) && tk_counter_read(&conn->state) != TK_CLOSED;
}

/* Puts the queue pair into ERR, if it is open; with the connection's lock. True if it was live.
 */
bool tk_conn_close_end(struct tk_conn *conn);

/* From now on messages and small transfers use this connection. */
void tk_primary_set(struct tk_conn *conn);

/* Protects moves and connections that come back; taken before a connection's lock. */
extern TK_HIDDEN tk_lock_t tk_moves_lock;

/* From now on lost peers are no error. */
bool tk_is_leaving(void);

/* The number of posted work requests that did not complete. */
int tk_conn_unfinished(const struct tk_conn *conn);

/* The first error, or what was flushed behind it: threads may see them in either order. */
static inline bool tk_is_failure(const struct ibv_wc *wc)
{
    return wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR;
}

/* Names the connection in unsignaled messages of this incarnation; start-up, or with the
 * connection's lock. */
void tk_log_incarnation_name(struct tk_conn *conn);

/* Its very first incarnation; start-up, or with its lock. */
void tk_log_incarnation_begin(struct tk_conn *conn);

/* Does this descriptor only name its connection in errors of unsignaled messages? And is it of an
 * incarnation that is over? No lock. */
bool tk_log_incarnation_names(const struct tk_tx *tx);
bool tk_log_incarnation_is_over(const struct tk_tx *tx);

/* Counts the connection among those with pending work, and removes it; with the lock of moves. */
void tk_pending_work_add(struct tk_conn *conn);
void tk_pending_work_remove(struct tk_conn *conn);

/* A notice about it must be sent; with the lock of moves. */
void tk_notice_request(struct tk_conn *conn);

#endif
