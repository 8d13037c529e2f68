/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared receive queues: one for each device in use, for all connections of its rails, instead of
 * receive buffers of each connection. Used buffers are posted again in batches. credit_loan.h
 * divides the queue among connections; credit_loan_messages.c lends credits.
 *
 * In a failover group all connections to a peer receive through the queues of their devices, and
 * share one loan: a peer's credits are valid for any of them that is primary. So each queue has
 * buffers for all peers, and the queue of the first device keeps the accounts of all. The same
 * holds where each connection is greeted (cm/iwarp_first_send.c). A shared queue flushes nothing
 * when a queue pair dies; tk_srq_is_drained() describes how we learn that nothing more comes.
 *
 * The lock of a queue is taken last, under a connection's. */
#ifndef TK_VERBS_SRQ_H
#define TK_VERBS_SRQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/status.h"
#include "topology/leaders.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

struct tk_conn;
struct tk_device;

/* For a peer whose messages come through a shared queue. */
struct tk_loan {
    struct tk_borrower borrower; /* our credits for the peer's buffers; the primary's lock */
    struct tk_account account;   /* the peer's credits for our buffers; the lender's lock */
    bool is_held;                /* no credits are reclaimed: it may be closed; the same lock */
    uint32_t conns;              /* connections that share it */
    /* Answers that found no space in the send queue; the primary's lock. */
    int granted, returned;
    bool is_grant_due, is_return_due, is_request_due;
    bool is_pending; /* counted among the pending work */
    /* TK_BOUNDED: sent, and handled; the connection is closed only when the other end has the same
     * numbers. The primary's lock. */
    uint32_t bounded_sent, bounded_came;
};

struct tk_srq_entry {
    uint32_t qp;
    struct tk_conn *conn; /* NULL: none; set last */
};

/* Connections by the number of their queue pair. When a table is half full, a larger one replaces
 * it; the old one is kept for threads that still read it. */
struct tk_srq_table {
    struct tk_srq_table *before;
    uint32_t mask;
    struct tk_srq_entry entries[]; /* mask + 1 of them */
};

enum { tk_srq_table_first = 64 /* entries */ };

static inline size_t tk_srq_table_bytes(size_t size)
{
    return sizeof(struct tk_srq_table) + size * sizeof(struct tk_srq_entry);
}

struct tk_srq {
    struct ibv_srq *queue;
    struct tk_srq_table *table;
    _Alignas(TK_CACHE_LINE) tk_lock_t lock;
    struct tk_lender lender;
    uint32_t next_victim;             /* entry at which the next search for lent credits begins */
    int held;                         /* buffers that handlers read */
    int used;                         /* in the chain */
    struct ibv_recv_wr *first, *last; /* used buffers, not posted again yet */
    int buffers;                      /* posted, or in use */
    uint32_t joined;                  /* connections in the table */

    /* In a failover group: guards the next two, and the counts of messages of each connection. */
    tk_lock_t take_lock;
    uint64_t taken, emptied; /* completions so far; polls that found none */
};

/* Buffers of each peer for messages that take no credit: its exit notice; and notices about dead
 * connections, which use any of the other connections: as many for each of these as without shared
 * queues. Over iWARP also a greeting for each connection on demand. */
static inline int tk_srq_notices(uint32_t conns_pp, bool fails_over, bool greets)
{
    return 1 + (fails_over ? tk_notice_buffers_max * (int)(conns_pp - 1) : 0) +
           (greets ? (int)conns_pp : 0);
}

/* Buffers for messages of barriers and of the end of a job of so many ranks. In a failover group
 * these messages take credits like others: what is in flight over a dead connection is counted by
 * credits there. */
static inline int tk_srq_bounded(uint32_t ranks, bool fails_over)
{
    return fails_over ? 0 : tk_leaders_messages_max(ranks);
}

/* Bytes of a queue that so many connections joined one after the other, with all its tables. */
static inline size_t tk_srq_bytes(size_t joined)
{
    size_t size = tk_srq_table_first, bytes = sizeof(struct tk_srq) + tk_srq_table_bytes(size);
    while (2 * joined > size - 1)
        bytes += tk_srq_table_bytes(size *= 2);
    return bytes;
}

/* Decides whether queues are shared, and how: tk_verbs.srq_plan, whose `buffers` is 0 if they are
 * not, and tk_verbs.recv_min. Call before devices have objects. */
void tk_srq_choose(uint32_t peers, int credits_total);

/* Call after protection domains exist; posts buffers for connections made at start-up. */
enum tk_status tk_srqs_open(void);
/* Makes the queues if tk_srqs_open() could not, because XRC was not agreed on yet. */
enum tk_status tk_srqs_make(void);
void tk_srq_close(struct tk_device *device);

/* Posts buffers for the existing connections and the one that is being made. */
enum tk_status tk_srqs_fit(void);

/* Reserves buffers for the connections to a peer before their queue pairs are made; `primary` is
 * one of them. Only with shared queues. For TK_RESERVE_BUSY and TK_RESERVE_FULL see credit_loan.h;
 * with the first, tk_loan_reclaim() reclaims lent credits. tk_srq_leave(): the queue pair with this
 * number is gone, or was never made. */
enum tk_reserve_result tk_srq_reserve(struct tk_conn *conns, struct tk_conn *primary);
void tk_srq_leave(struct tk_conn *conn, uint32_t qp);

/* The queue that keeps the account of the connection's peer. */
struct tk_srq *tk_srq_lender(const struct tk_conn *conn);

/* Call it when the queue pair exists: from now on its messages belong to the connection. For
 * datagrams too. */
void tk_srq_join(struct tk_conn *conn);

static inline bool tk_srq_in_use(void)
{
    return tk_verbs.srq_plan.buffers > 0;
}

/* Requests that each peer may always have in flight to us. */
static inline int tk_srq_credits_base(void)
{
    return tk_srq_in_use() ? tk_verbs.srq_plan.base : tk_verbs.credits_pp;
}

static inline struct tk_conn *tk_srq_conn(const struct tk_srq *srq, uint32_t qp)
{
    const struct tk_srq_table *table = __atomic_load_n(&srq->table, __ATOMIC_ACQUIRE);
    for (uint32_t at = qp;; at++) {
        const struct tk_srq_entry *entry = &table->entries[at & table->mask];
        tk_if_likely(entry->qp == qp) return __atomic_load_n(&entry->conn, __ATOMIC_ACQUIRE);
    }
}

void tk_srq_post(struct tk_srq *srq);

/* Frees the buffer, whose contents are copied or no longer needed. */
static inline void tk_srq_give(struct tk_srq *srq, struct tk_buffer *buffer)
{
    tk_lock(&srq->lock);
    buffer->wr.next = srq->first;
    if (!srq->first)
        srq->last = &buffer->wr;
    srq->first = &buffer->wr;
    tk_if_unlikely(++srq->used >= tk_verbs.srq_plan.batch) tk_srq_post(srq);
    tk_unlock(&srq->lock);
}

/* In a failover group: takes a completion and counts it; *conn is its connection. Returns 0 or
 * 1. */
int tk_srq_take(struct tk_device *device, struct ibv_wc *wc, struct tk_conn **conn);

/* The connection's queue pair is in ERR. True if nothing more comes over it, and all messages that
 * came are counted. After IBV_EVENT_QP_LAST_WQE_REACHED the queue pair takes no more buffers of the
 * queue, and all its completions are in the completion queue: all of them are taken when a poll
 * found that queue empty, or when as many completions were taken as it holds (IBA 10.3.1, on
 * resetting queue pairs). With the lock of moves. */
bool tk_srq_is_drained(struct tk_conn *conn);

/* Records that event. Needs no lock: the queue pair exists until the event is acknowledged. */
void tk_srq_last_wqe(const struct ibv_qp *qp);

/* May a handler read this payload in its receive buffer? tk_srq_release() gives the buffer back. */
bool tk_srq_hold(struct tk_srq *srq);
void tk_srq_release(struct tk_srq *srq, struct tk_buffer *buffer);

#endif
