/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of a connection that another one may stand in for, and of its pair of ranks: what the
 * other files of failover/ and those of data/ ask before they act. Calls none of them. */
#ifndef TK_VERBS_CONNECTION_STATE_H
#define TK_VERBS_CONNECTION_STATE_H

#include "transport/verbs/verbs_private.h"

/* Of a connection. Closing and drained ones belong to a pair that is being moved. */
enum tk_connection_state {
    TK_LIVE,
    TK_OPENING, /* its queue pair is open again, the other end is not known to be: nothing is sent
                 */
    TK_CLOSING, /* its queue pair is in ERR, and gives back what it had */
    TK_DRAINED, /* that is done: what has come over it is known, and reported to the other end */
    TK_SETTLED, /* the other end has reported that too: what was lost waits to be posted again */
    TK_CLOSED   /* that is posted */
};

enum {
    /* One for what a connection's end reports of another connection, one for what it answers. Where
     * many connections fail at once more may be under way: the device tries again then, without
     * limit. */
    tk_notice_buffers_max = 2,
    /* Taken from the room of a connection that is not live, and given to it as spare buffers: it
     * neither sends nor receives then. */
    tk_space_closed = 1 << 30
};

static inline int tk_notice_buffers(void)
{
    return tk_verbs.failover_enabled ? tk_notice_buffers_max : 0;
}

/* Buffers that a primary connection has at most. */
static inline int tk_receives_max(void)
{
    return 2 * tk_verbs.credits_pp + 1 + tk_notice_buffers();
}

static inline bool tk_conn_is_live(const struct tk_conn *conn)
{
    return tk_counter_read(&conn->state) == TK_LIVE;
}

/* Live, or as good as that for a pair of ranks that has no other. */
static inline bool tk_conn_is_open(const struct tk_conn *conn)
{
    return tk_counter_read(&conn->state) <= TK_OPENING;
}

/* What it may have lost was posted again over the primary connection. */
static inline bool tk_conn_is_closed(const struct tk_conn *conn)
{
    int state = tk_counter_read(&conn->state);
    return state == TK_CLOSED || state == TK_OPENING;
}

/* What is to be posted again. */
struct tk_replay;

struct tk_rank_pair {
    struct tk_replay *replay; /* in the order in which it was posted once */
    bool is_frozen;           /* nothing of it goes on: see failover/failover_group.h; atomic */
    tk_counter_t moving;      /* connections that died and are not closed */
    int pending_work;         /* connections of which there is something else to do */
    int next_primary;         /* number of the connection that will be primary; -1: the present
                                 one is live */
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

/* It died, and what went over it is not all posted again. */
static inline bool tk_conn_is_moving(const struct tk_conn *conn)
{
    return !tk_conn_is_open(conn) && tk_counter_read(&conn->state) != TK_CLOSED;
}

/* Puts the queue pair into ERR; with the connection's lock, where it is open. True if it was live.
 */
bool tk_conn_close_end(struct tk_conn *conn);

/* Messages and small transfers go over it from now on. */
void tk_primary_set(struct tk_conn *conn);

/* Protects moves and what comes back; taken before a connection's. */
extern TK_HIDDEN tk_lock_t tk_moves_lock;

/* Lost peers are no error any more. */
bool tk_is_leaving(void);

/* Work requests that it took and did not complete. */
int tk_conn_unfinished(const struct tk_conn *conn);

/* The first error, or what was flushed behind it: threads may see the one before the other. */
static inline bool tk_is_failure(const struct ibv_wc *wc)
{
    return wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR;
}

/* Names the connection in quiet messages of this incarnation; start-up, or with the connection's
 * lock. */
void tk_log_incarnation_name(struct tk_conn *conn);

/* Its first incarnation, of all that it will ever have; start-up, or with its lock. */
void tk_log_incarnation_begin(struct tk_conn *conn);

/* Does the work only name its connection in errors of quiet messages; of an incarnation that is
 * over? No lock. */
bool tk_log_incarnation_names(const struct tk_tx *tx);
bool tk_log_incarnation_is_over(const struct tk_tx *tx);

/* Counts the connection among those of which there is something to do, and out again; with the lock
 * of moves. */
void tk_pending_work_add(struct tk_conn *conn);
void tk_pending_work_remove(struct tk_conn *conn);

/* There is something to report of it; with the lock of moves. */
void tk_notice_request(struct tk_conn *conn);

#endif
