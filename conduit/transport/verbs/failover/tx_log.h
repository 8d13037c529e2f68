/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A log of posted work, from which work can be posted again over another connection. Each
 * connection in a failover group has a ring of entries, in the order of its send queue and of the
 * same length, so that the entry of the next post is always free. */
#ifndef TK_VERBS_TX_LOG_H
#define TK_VERBS_TX_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/status.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

struct tk_short;

/* By rail; valid until the work is complete. */
struct tk_tx_entry_keys {
    const uint32_t *local, *remote;
};

struct tk_tx_entry {
    struct tk_tx *tx; /* NULL: an unsignaled message */
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

/* The incarnation of a connection that dies and comes back (failover/reconnect.c). The lock of
 * moves guards it, except where a member says otherwise. */
struct tk_log_incarnation {
    uint32_t number; /* how often it was reopened, and in its upper half how often the group was
                        closed for others; written with the connection's lock, and atomically */
    uint32_t before; /* messages that came over it in the incarnation before */
    uint64_t ended;  /* when it last died; written with the connection's lock */
    bool is_wanted;  /* it should be reopened */
    bool is_asked;   /* the other end is open for the next incarnation */
    bool is_passed;  /* the other end opened the next one, and lost it */
    bool is_pending_work; /* counted as pending work, for one of these or `notice_due` */
    uint32_t to_qp;
    /* Two descriptors that name the connection in errors of unsignaled messages; incarnations use
     * them in turn. So an error that a thread still holds from the previous incarnation is
     * recognised. */
    uint32_t name; /* which one is used; atomic. A reset keeps it and the descriptors. */
    struct tk_tx unsignaled[2];
};

enum { tk_incarnations_max = 1 << 16 }; /* at most, before the group is closed */

/* Of a closed connection that receives through a shared queue: see tk_srq_is_drained(). */
struct tk_last_receive {
    bool is_noted; /* then the device's completions at that time: */
    uint64_t taken, emptied;
};

/* What failover records about a connection. The ring has the order and the length of the send
 * queue. */
struct tk_tx_log {
    struct tk_log_incarnation incarnation;
    uint32_t next;          /* ring index of the next entry */
    uint32_t sent, arrived; /* messages posted; messages received */
    uint32_t delivered;     /* our messages that the other end received before it closed */
    int failed; /* slots of the send queue whose work requests completed with an error */
    bool is_delivered_known; /* the other end has closed, and reported `delivered` */
    bool notice_due;         /* a notice about this connection must be sent */
    bool is_connected;       /* its queue pair was connected; with the connection's lock */
    bool is_left_out; /* not connected, as its port was down: see failover/failover_group.h */
    struct tk_last_receive last_receive;
    struct tk_tx_entry ring[];
};

static inline size_t tk_tx_log_bytes(size_t depth)
{
    return sizeof(struct tk_tx_log) + depth * sizeof(struct tk_tx_entry);
}

/* Counts a received message; one thread at a time for each connection. */
static inline void tk_count_arrived(struct tk_tx_log *tx_log)
{
    uint32_t arrived = __atomic_load_n(&tx_log->arrived, __ATOMIC_RELAXED);
    __atomic_store_n(&tx_log->arrived, arrived + 1, __ATOMIC_RELAXED);
}

/* Keeps an existing log: another thread may hold an error that names it. */
enum tk_status tk_tx_log_open(struct tk_conn *conn);
/* For a closed connection, with the lock of moves: resets it to its initial state. */
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

/* Logs work that is about to be posted, with the connection's lock held. */
void tk_tx_entry_work(struct tk_tx *tx, const struct ibv_send_wr *wr,
                      const struct tk_tx_entry_keys *keys);

/* The same for a put or a get in one piece. Copies the common single inline word without a call. */
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

/* Logs the message in unsignaled_data. Most messages have a few words, which a few inline
 * instructions copy. */
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

/* The entry as a notice (failover/control.c); NULL: it is none. */
const struct tk_short *tk_tx_entry_as_notice(const struct tk_tx_entry *entry);

#endif
