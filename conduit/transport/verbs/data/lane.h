/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lanes (struct tk_lane): free work requests, slots of send queues, and when to reap. In SEQ there
 * is one lane, and all of this is a few plain instructions. Inline because every operation passes
 * here. */
#ifndef TK_VERBS_LANE_H
#define TK_VERBS_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool_type.h"
#include "process/alone.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static inline unsigned tk_lane_count(void)
{
    return TK_THREADED ? tk_verbs.lane_count : 1;
}

/* May the caller leave out the locks of connections, lanes and queues? In SEQ there is nothing to
 * leave out. */
static inline bool tk_is_only_thread(void)
{
    return TK_THREADED && tk_is_only_inside();
}

static inline struct tk_lane *tk_lane_of(const struct tk_conn *conn)
{
    return TK_THREADED ? conn->lane : tk_verbs.lanes;
}

static inline struct tk_sends *tk_sends_of(const struct tk_device *device, struct tk_lane *lane)
{
    return device->sends ? &device->sends[lane - tk_verbs.lanes] : &lane->sends;
}

/* By the number of a lane. */
static inline struct ibv_cq *tk_send_cq(const struct tk_device *device, unsigned lane)
{
    return tk_sends_of(device, &tk_verbs.lanes[lane])->cq;
}

/* Of this thread: the lane from which it last took a work request, and the number of polls
 * since that changed. The other lanes are due at every eighth poll, when one addition wraps
 * `polls` to 0. */
enum { tk_lane_poll_step = 256 / 8, tk_lanes_due_next = 256 - tk_lane_poll_step };
struct tk_lane_place {
    struct tk_lane *lane;
    uint8_t polls;      /* times tk_lane_poll_step */
    uint8_t own_number; /* of its connection to each peer, plus 1; 0: not chosen yet */
};
extern TK_HIDDEN TK_PER_THREAD_NEAR struct tk_lane_place tk_lane_mine;

/* Several connections to a peer, each in a lane of its own: threads then use different ones for
 * puts and gets that go by one request. Where connections replace each other, all of them are in
 * the lane of their rank. */
static inline bool tk_lanes_spread(void)
{
    return TK_THREADED && tk_verbs.conns_pp > 1 && !tk_verbs.failover_enabled;
}

/* Chooses this thread's number. */
unsigned tk_lane_choose_own(void);

/* This thread's connection to the peer; like the primary one, it may lack a queue pair. */
static inline struct tk_conn *tk_lane_own_conn(const struct tk_peer *peer)
{
    unsigned number = tk_lane_mine.own_number;
    tk_if_unlikely(number == 0) number = tk_lane_choose_own();
    return tk_conns_to(peer->rank) + (number - 1);
}

/* Distributes the depth_total work requests over the lanes. */
void tk_lanes_open(void);

/* In PAR slots are taken with the connection's lock and given back with the lane's, in separate
 * words, so that neither needs an atomic addition. */
static inline bool tk_slot_take(struct tk_conn *conn)
{
    tk_if_unlikely(tk_conn_space(conn) <= 0) return false;
    tk_counter_add_locked(&conn->space, -1);
    return true;
}

/* With the lock of its lane. */
static inline void tk_slots_give_locked(struct tk_conn *conn, int slots)
{
    tk_counter_add_locked(TK_THREADED ? &conn->returned : &conn->space, slots);
}

static inline void tk_slots_give(struct tk_conn *conn, int slots)
{
    struct tk_lane *lane = tk_lane_of(conn);
    tk_lock(&lane->lock);
    tk_slots_give_locked(conn, slots);
    tk_unlock(&lane->lock);
}

/* Work requests posted next complete in this lane. */
static inline void tk_lane_use(struct tk_lane *lane)
{
    tk_if_unlikely(TK_THREADED && tk_lane_mine.lane != lane)
    {
        tk_lane_mine.lane = lane;
        tk_lane_mine.polls = tk_lanes_due_next;
    }
}

/* With the lane's lock. */
static inline struct tk_tx *tk_lane_pop(struct tk_lane *lane)
{
    struct tk_pool_item *item = lane->free;
    tk_if_unlikely(!item) return NULL;
    lane->free = item->next;
    tk_counter_add_locked(&lane->out, 1);
    return (struct tk_tx *)item;
}

static inline void tk_lane_push(struct tk_lane *lane, struct tk_tx *tx)
{
    tx->item.next = lane->free;
    lane->free = &tx->item;
    tk_counter_add_locked(&lane->out, -1);
}

/* NULL: no lane has a free work request. */
struct tk_tx *tk_lane_borrow(struct tk_lane *lane);

static inline struct tk_tx *tk_lane_take(struct tk_lane *lane)
{
    tk_lock(&lane->lock);
    struct tk_tx *tx = tk_lane_pop(lane);
    tk_unlock(&lane->lock);
    tk_if_unlikely(TK_THREADED && !tx) return tk_lane_borrow(lane);
    return tx;
}

/* Gives the work request back with so many slots of its connection. */
static inline void tk_lane_give(struct tk_lane *lane, struct tk_tx *tx, int slots)
{
    tk_lock(&lane->lock);
    tk_slots_give_locked(tx->conn, slots);
    tk_lane_push(lane, tx);
    tk_unlock(&lane->lock);
}

/* From now on the lane never counts as idle. */
static inline void tk_lane_stay_busy(struct tk_lane *lane)
{
    tk_lock(&lane->lock);
    tk_counter_add_locked(&lane->out, 1);
    tk_unlock(&lane->lock);
}

/* The lane in which this thread's last work request completes. */
static inline struct tk_lane *tk_lane_hint(void)
{
    return TK_THREADED ? tk_lane_mine.lane : tk_verbs.lanes;
}

static inline int tk_lane_out(const struct tk_lane *lane)
{
    return tk_counter_read(&lane->out);
}

static inline struct tk_lane *tk_lanes_end(void)
{
    return tk_verbs.lanes + tk_lane_count();
}

/* Other lanes have work that this thread posted before, or that no other thread polls for. Polls
 * look at them only now and then: reading words that other threads write makes their next writes
 * slow. */
static inline bool tk_lanes_are_due(void)
{
    return TK_THREADED && (tk_lane_mine.polls += tk_lane_poll_step) == 0 && tk_lane_count() > 1;
}

/* Is no lane busy? */
static inline bool tk_lanes_are_idle(void)
{
    int out = 0;
    for (const struct tk_lane *lane = tk_verbs.lanes; lane < tk_lanes_end(); lane++)
        out |= tk_lane_out(lane);
    return out == 0;
}

#endif
