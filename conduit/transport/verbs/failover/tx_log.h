/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notes of what was posted, from which it can be posted again over another connection: a ring for
 * each connection, in the order of its send queue and as long, so that the place of what is posted
 * next is free. Kept only where connections stand in for each other. */
#ifndef TK_VERBS_TX_LOG_H
#define TK_VERBS_TX_LOG_H

#include <string.h>

#include "base/bits.h"
#include "transport/verbs/verbs_private.h"

/* By rail, and they stay until the work is complete. */
struct tk_tx_entry_keys {
    const uint32_t *local, *remote;
};

struct tk_tx_entry {
    struct tk_tx *tx; /* NULL: a quiet message */
    uint64_t remote;
    const uint32_t *remote_keys;
    uint64_t part[2];
    uint32_t size[2];
    const uint32_t *keys[2];
    uint8_t opcode; /* enum ibv_wr_opcode */
    uint8_t parts;
    bool is_inline;                            /* all of it is in `bytes`, size[0] of them */
    _Alignas(8) char bytes[tk_unsignaled_max]; /* may be a struct tk_short */
};

/* Of a connection that dies and comes back (failover/reconnect.c). The lock of moves guards it,
 * except where a member says otherwise. */
struct tk_log_incarnation {
    uint32_t number; /* how often it was opened again, and in its upper half how often all to the
                        peer were closed for others; written with the connection's lock, and
                        atomically */
    uint32_t before; /* messages that came over it in the incarnation before */
    uint64_t ended;  /* when it died last; written with the connection's lock */
    bool is_wanted;  /* it is to be opened again */
    bool is_asked;   /* the other end is open for the next incarnation */
    bool
        is_passed; /* the other end opened it for the next incarnation, and it died before we did */
    bool is_pending_work; /* it is counted among the pending work for one of these, or for
                             `notice_due` */
    uint32_t to_qp;
    /* Name the connection in errors of unsignaled messages, in one incarnation this and in the next
     * that: an error that a thread still holds from the incarnation before is recognised by that.
     */
    uint32_t name; /* which of them; atomic. Stays, with them, when all else begins anew. */
    struct tk_tx unsignaled[2];
};

enum { tk_incarnations_max = 1 << 16 }; /* between two times that all to a peer are closed */

/* Of a connection that is closed, where it receives through a shared queue: see
 * tk_srq_is_drained(). */
struct tk_last_receive {
    bool is_noted; /* what the device's completions were by then: */
    uint64_t taken, emptied;
};

/* Of a connection: what failover has to know. In the order of the send queue, and as long. */
struct tk_tx_log {
    struct tk_log_incarnation incarnation;
    uint32_t next;           /* where in the ring the next one goes */
    uint32_t sent, arrived;  /* messages that were posted; that came */
    uint32_t delivered;      /* messages of ours that the other end got before it closed */
    int failed;              /* slots of the send queue whose works came back with an error */
    bool is_delivered_known; /* the other end has closed, and reported `delivered` */
    bool notice_due;         /* a notice of this connection is to be sent */
    bool is_connected;       /* its queue pair was; with the connection's lock */
    bool is_left_out;        /* it was not, for its port was down: see failover/failover_group.h */
    struct tk_last_receive last_receive;
    struct tk_tx_entry ring[];
};

static inline size_t tk_tx_log_bytes(size_t depth)
{
    return sizeof(struct tk_tx_log) + depth * sizeof(struct tk_tx_entry);
}

/* A message came; by one thread at a time for each connection. */
static inline void tk_count_arrived(struct tk_tx_log *tx_log)
{
    uint32_t arrived = __atomic_load_n(&tx_log->arrived, __ATOMIC_RELAXED);
    __atomic_store_n(&tx_log->arrived, arrived + 1, __ATOMIC_RELAXED);
}

/* One that is there stays: another thread may hold an error that names it. */
enum tk_status tk_tx_log_open(struct tk_conn *conn);
/* Of a connection that is closed, with the lock of moves: as it was at first. */
void tk_tx_log_reset(struct tk_conn *conn);
void tk_tx_log_close(struct tk_conn *conn);

static inline struct tk_tx_entry *tk_tx_entry_next(struct tk_conn *conn, enum ibv_wr_opcode opcode)
{
    struct tk_tx_log *tx_log = conn->tx_log;
    struct tk_tx_entry *entry = &tx_log->ring[tx_log->next];
    tx_log->next = tx_log->next + 1 == (uint32_t)tk_verbs.depth_pp ? 0 : tx_log->next + 1;
    tx_log->sent += opcode == IBV_WR_SEND;
    entry->opcode = (uint8_t)opcode;
    return entry;
}

/* What is about to be posted, with the connection's lock held. */
void tk_tx_entry_work(struct tk_tx *tx, const struct ibv_send_wr *wr,
                      const struct tk_tx_entry_keys *keys);

/* The same for a put or a get in one piece, of which nothing else has to be remembered. The usual
 * word of one inline is copied without a call. */
static inline void __attribute__((always_inline))
tk_tx_entry_plain(struct tk_tx *tx, uint64_t remote, const struct ibv_sge *sge,
                  enum ibv_wr_opcode opcode, bool is_inline, const struct tk_tx_entry_keys *keys)
{
    struct tk_tx_entry *entry = tk_tx_entry_next(tx->conn, opcode);
    const void *local = (const void *)(uintptr_t)sge->addr;
    entry->tx = tx;
    entry->remote = remote;
    entry->remote_keys = keys->remote;
    entry->size[0] = sge->length;
    entry->is_inline = is_inline;
    if (!is_inline) {
        entry->parts = 1;
        entry->part[0] = sge->addr;
        entry->keys[0] = keys->local;
    } else if (sge->length == sizeof(uint64_t)) {
        memcpy(entry->bytes, local, sizeof(uint64_t));
    } else {
        memcpy(entry->bytes, local, sge->length);
    }
}

/* The message in unsignaled_data. Most of it is a few words: copied by a few instructions in line.
 */
static inline void tk_tx_entry_unsignaled(struct tk_conn *conn, size_t size)
{
    enum { few = 32 };
    struct tk_tx_entry *entry = tk_tx_entry_next(conn, IBV_WR_SEND);
    entry->tx = NULL;
    entry->is_inline = true;
    entry->size[0] = (uint32_t)size;
    tk_if_likely(size <= few) memcpy(entry->bytes, conn->unsignaled_data.bytes, few);
    else memcpy(entry->bytes, conn->unsignaled_data.bytes, sizeof(entry->bytes));
}

/* The `back`-th log entry before the next one. */
struct tk_tx_entry *tk_tx_entry_back(const struct tk_conn *conn, uint32_t back);

/* If it is a notice between transports (failover/failover.c); else NULL. */
const struct tk_short *tk_tx_entry_as_notice(const struct tk_tx_entry *entry);

#endif
