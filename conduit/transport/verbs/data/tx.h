/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests in flight: taking one with its slot in the send queue, posting it, giving it back.
 * Inline because every operation passes here.
 *
 * Small messages whose completion has no waiter are posted unsignaled (IBA 10.7.3.1): a send queue
 * completes in order, so the next completion on the connection covers them too. Less than half of
 * the queue is unsignaled (open.c), so a full queue always holds something that completes.
 *
 * Larger messages, which are sent from bounce buffers, are unsignaled too, up to
 * tk_verbs.unsignaled_bounces_max in a row: the device writes one completion for several messages,
 * and one is handled. The connection keeps their buffers until its next message from a bounce
 * buffer, which is signaled and takes them over. Idle connections keep at most half of all bounce
 * buffers (open.c), so a thread that waits for one gets one of the other half. */
#ifndef TK_VERBS_TX_H
#define TK_VERBS_TX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "op/op.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* Takes a work request with a slot in the send queue and, if wanted, a bounce buffer. NULL: no
 * space now.
 */
static inline struct tk_tx *tk_tx_take(struct tk_conn *conn, bool with_bounce)
{
    if (!tk_slot_take(conn))
        return NULL;
    struct tk_lane *lane = tk_lane_of(conn);
    struct tk_tx *tx = tk_lane_take(lane);
    tk_if_unlikely(!tx) goto no_tx;
    tk_lane_use(lane);
    tx->conn = conn;
    tx->kind = TK_TX_GENERAL;
    tx->op = NULL;
    tx->get_to = NULL;
    tx->sources = NULL;
    tx->is_held = false;
    tx->more_bounces = 0;
    tx->bounce = NULL;
    if (with_bounce && !(tx->bounce = tk_pool_take(&tk_verbs.bounce_pool)))
        goto no_bounce;
    return tx;
no_bounce:
    tk_lane_give(lane, tx, 1);
    return NULL;
no_tx:
    tk_counter_add_locked(&conn->space, 1);
    return NULL;
}

/* The same for work whose completion only decrements its operation's count. NULL also if only
 * another lane has a free work request: callers then take the slow path. `is_only`, a constant
 * where it saves time: no other thread takes locks (process/alone.h). */
static inline struct tk_tx *__attribute__((always_inline))
tk_tx_take_plain(struct tk_conn *conn, struct tk_op *op, enum ibv_wr_opcode opcode, bool is_only)
{
    struct tk_lane *lane = tk_lane_of(conn);
    tk_if_unlikely(tk_conn_space(conn) <= 0) return NULL;
    tk_if_unlikely(!is_only && !tk_trylock_free(&lane->lock)) return NULL;
    struct tk_tx *tx = tk_lane_pop(lane);
    if (!is_only)
        tk_unlock(&lane->lock);
    tk_if_unlikely(!tx) return NULL;
    tk_counter_add_locked(&conn->space, -1);
    tk_lane_use(lane);
    tx->conn = conn;
    tx->opcode = (uint8_t)opcode;
    tx->kind = TK_TX_PLAIN;
    tx->op = op;
    return tx;
}

/* The work request keeps a reference to local memory that is registered on the fly. */
static inline void tk_tx_hold(struct tk_tx *tx, struct tk_pinned *region)
{
    tx->kind = TK_TX_HELD;
    tx->held = region;
}

static inline void tk_tx_give_plain(struct tk_lane *lane, struct tk_tx *tx)
{
    tk_lane_give(lane, tx, 1 + tx->covers);
}

/* Gives back the first of `count` linked bounce buffers, and the others. */
void tk_bounces_give(struct tk_buffer *first, unsigned count);

static inline void tk_tx_give(struct tk_tx *tx)
{
    if (tx->bounce)
        tk_bounces_give(tx->bounce, 1u + tx->more_bounces);
    tk_lane_give(tk_lane_of(tx->conn), tx, 1 + tx->covers);
}

/* The device has completed it. */
static inline void tk_tx_complete_plain(struct tk_lane *lane, struct tk_tx *tx)
{
    struct tk_op *op = tx->op;
    tk_tx_give_plain(lane, tx);
    tk_counter_add(&op->pending, -1);
}

/* The same, but tries the lane's lock, since waiting would require saved registers. False: nothing
 * was done. */
static inline bool __attribute__((always_inline))
tk_tx_complete_at_once(struct tk_lane *lane, struct tk_tx *tx, bool is_only)
{
    tk_if_unlikely(!is_only && !tk_trylock_free(&lane->lock)) return false;
    struct tk_op *op = tx->op;
    tk_slots_give_locked(tx->conn, 1 + tx->covers);
    tk_lane_push(lane, tx);
    if (!is_only)
        tk_unlock(&lane->lock);
    tk_op_complete_piece(op, is_only);
    return true;
}

/* With extended reliable connections (XRC) each work request names the queue of the rank that it
 * addresses. */
static inline void tk_tx_name_queue(const struct tk_conn *conn, struct ibv_send_wr *wr)
{
    wr->qp_type.xrc.remote_srqn = conn->unsignaled_wr.qp_type.xrc.remote_srqn;
}

/* Fills in fields that only some jobs need (tk_verbs.needs_more). */
void tk_tx_more(struct tk_tx *tx, struct ibv_send_wr *wr, const struct tk_tx_entry_keys *keys);

/* Posts a request that is filled in except for the fields here. */
static inline void __attribute__((always_inline))
tk_tx_post_filled(struct tk_tx *tx, struct ibv_send_wr *wr)
{
    struct tk_conn *conn = tx->conn;
    struct ibv_send_wr *bad;
    wr->wr_id = (uintptr_t)tx;
    tx->covers = conn->unsignaled;
    conn->unsignaled = 0;
    int error = ibv_post_send(conn->qp, wr, &bad);
    /* uses wr_id, so that the common path keeps no register for `tx` over the call */
    tk_if_unlikely(error) tk_post_failed((struct tk_tx *)(uintptr_t)wr->wr_id, error);
}

/* Fills in the fields that all work requests have, and posts. The rest of wr, 128 bytes, is left as
 * it is, because no device reads fields of other opcodes. `needs_more` is a constant where that
 * saves time. The keys by rail, for local memory outside of bounce buffers and for remote memory,
 * are for the log. */
static inline void __attribute__((always_inline))
tk_tx_post_more(struct tk_tx *tx, struct ibv_send_wr *wr, enum ibv_wr_opcode opcode, unsigned flags,
                bool needs_more, const struct tk_tx_entry_keys *keys)
{
    wr->next = NULL;
    wr->opcode = opcode;
    wr->send_flags = flags | IBV_SEND_SIGNALED;
    tx->opcode = (uint8_t)opcode;
    tk_if_unlikely(needs_more) tk_tx_more(tx, wr, keys);
    tk_tx_post_filled(tx, wr);
}

static inline void tk_tx_post(struct tk_tx *tx, struct ibv_send_wr *wr, enum ibv_wr_opcode opcode,
                              unsigned flags, const uint32_t *local_keys,
                              const uint32_t *remote_keys)
{
    struct tk_tx_entry_keys keys = {.local = local_keys, .remote = remote_keys};
    tk_tx_post_more(tx, wr, opcode, flags, tk_verbs.needs_more, &keys);
}

/* A write of 0 bytes, which takes no buffer at the other end and has a completion. */
void tk_tx_post_nothing(struct tk_tx *tx);

/* Completes the operation and gives the work request back; also for work whose success is known
 * without a completion. */
void tk_tx_complete(struct tk_tx *tx);

/* Is there a slot for an unsignaled message, of which `max` may be posted in a row? If not, the
 * message takes a work request. */
static inline bool tk_unsignaled_fits(const struct tk_conn *conn, int max)
{
    return conn->unsignaled < max && tk_conn_space(conn) > 0;
}

/* Takes the slot. */
static inline void tk_unsignaled_count(struct tk_conn *conn)
{
    tk_counter_add_locked(&conn->space, -1);
    conn->unsignaled++;
}

static inline bool tk_unsignaled_take(struct tk_conn *conn)
{
    if (!tk_unsignaled_fits(conn, tk_verbs.unsignaled_max))
        return false;
    tk_unsignaled_count(conn);
    return true;
}

/* The same in a failover group, where messages are logged. */
static inline bool tk_logged_unsignaled_take(struct tk_conn *conn)
{
    if (!tk_unsignaled_fits(conn, tk_verbs.logged_unsignaled_max))
        return false;
    tk_unsignaled_count(conn);
    return true;
}

#endif
