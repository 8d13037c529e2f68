/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completions of our own work. One thread at a time takes completions from a queue, others return
 * at once. The thread handles them without that lock. */
#include "config.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "process/alone.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/receive.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* Not inline: keeps the loop around it short for the common case. */
static void __attribute__((noinline)) tx_done(struct tk_tx *tx, const struct ibv_wc *wc)
{
    tk_if_likely(wc->status == IBV_WC_SUCCESS) tk_tx_complete(tx);
    else if (tk_is_datagram_sent(tx))
    {
        tk_datagram_failed(tx, wc);
        tk_tx_complete(tx); /* treated as lost */
    }
    else if (tk_cm_is_greeting(tx)) tk_tx_complete(tx);
    else if (!tk_failover(tx, wc)) tk_tx_failed(tx, wc);
}

/* Work requests and slots of plain work that completed together, all of one lane: giving each back
 * alone would take a lock each time in PAR. Until then the connection seems fuller than it is,
 * which is safe. */
struct batch {
    struct tk_pool_item *first, *last;
    struct tk_conn *conn; /* whose slots these are */
    int txs, slots;
};

static inline void gather(struct batch *batch, struct tk_tx *tx, bool is_only)
{
    struct tk_op *op = tx->op;
    tk_if_unlikely(tx->conn != batch->conn)
    {
        if (batch->conn)
            tk_slots_give(batch->conn, batch->slots);
        batch->conn = tx->conn;
        batch->slots = 0;
    }
    batch->slots += 1 + tx->covers;
    batch->txs++;
    if (!batch->first)
        batch->last = &tx->item;
    tx->item.next = batch->first;
    batch->first = &tx->item;
    tk_op_complete_piece(op, is_only);
}

static inline void batch_release(const struct batch *batch)
{
    tk_if_unlikely(!batch->first) return;
    struct tk_lane *lane = tk_lane_of(batch->conn);
    tk_lock(&lane->lock);
    batch->last->next = lane->free;
    lane->free = batch->first;
    tk_slots_give_locked(batch->conn, batch->slots);
    tk_counter_add_locked(&lane->out, -batch->txs);
    tk_unlock(&lane->lock);
}

/* Not inline, so that a caller that waits for one operation at a time saves no registers for it. */
static void __attribute__((noinline)) all_done(const struct ibv_wc *wc, int n)
{
    struct batch batch = {.first = NULL};
    const bool is_only = tk_is_only_thread();
    do {
        struct tk_tx *tx = (struct tk_tx *)(uintptr_t)wc->wr_id;
        tk_if_unlikely(tx->kind != TK_TX_PLAIN || wc->status != IBV_WC_SUCCESS) tx_done(tx, wc);
        else gather(&batch, tx, is_only);
        wc++;
    } while (--n > 0);
    batch_release(&batch);
}

/* Handles all completions of a look; n < 0 is an error. */
static void __attribute__((noinline)) any_done(const struct ibv_wc *wc, int n)
{
    if (n == 1) {
        tx_done((struct tk_tx *)(uintptr_t)wc->wr_id, wc);
        return;
    }
    tk_cq_check(n);
    all_done(wc, n);
}

/* Handles the only completion of a look. False: nothing was done. */
static inline bool __attribute__((always_inline))
one_done(struct tk_lane *lane, const struct ibv_wc *wc, bool is_only)
{
    struct tk_tx *tx = (struct tk_tx *)(uintptr_t)wc->wr_id;
    tk_if_unlikely(tx->kind != TK_TX_PLAIN || wc->status != IBV_WC_SUCCESS) return false;
    return tk_tx_complete_at_once(lane, tx, is_only);
}

static inline bool __attribute__((always_inline))
reap_some(struct tk_lane *lane, struct tk_sends *sends, bool is_only)
{
    struct ibv_wc wc[tk_poll_batch];
    int n = is_only
                ? ibv_poll_cq(sends->cq, tk_poll_batch, wc)
                : tk_cq_take_unchecked(sends->cq, &sends->lock, TK_DEVICE_SENDS, wc, tk_poll_batch);
    tk_if_likely(n == 1 && one_done(lane, wc, is_only)) return true;
    if (n == 0)
        return false;
    any_done(wc, n);
    return true;
}

/* Not inline: both bodies in one function would share its registers and stack. After the client
 * has started a process, this finds out that it is alone still. */
static bool __attribute__((noinline)) reap_locked(struct tk_lane *lane, struct tk_sends *sends)
{
    tk_if_unlikely(tk_may_be_only_inside()) tk_is_alone();
    return reap_some(lane, sends, false);
}

static inline bool __attribute__((always_inline))
reap_from(struct tk_lane *lane, struct tk_sends *sends)
{
    if (!TK_THREADED)
        return reap_some(lane, sends, false);
    tk_if_likely(tk_is_only_thread()) return reap_some(lane, sends, true);
    return reap_locked(lane, sends);
}

static inline bool __attribute__((always_inline)) reap_from_all(struct tk_lane *lane)
{
    bool any = reap_from(lane, &lane->sends);
    for (struct tk_device *device = tk_verbs.device.next; device; device = device->next)
        any |= reap_from(lane, tk_sends_of(device, lane));
    return any;
}

/* For any lane. This thread's lane (in SEQ the only one) is cheaper to reap inline. */
static bool __attribute__((noinline)) reap_lane(struct tk_lane *lane)
{
    return reap_from_all(lane);
}

bool tk_lanes_reap_others(void)
{
    bool any = false;
    for (struct tk_lane *lane = tk_verbs.lanes; lane < tk_lanes_end(); lane++)
        if (lane != tk_lane_hint() && tk_lane_out(lane) != 0)
            any |= reap_lane(lane);
    return any;
}

void tk_lanes_reap(void)
{
    for (struct tk_lane *lane = tk_verbs.lanes; lane < tk_lanes_end(); lane++)
        reap_lane(lane);
}

/* Not inline, so that the common path saves no registers for it. */
static bool __attribute__((noinline)) reap_others_if_due(void)
{
    return tk_lanes_are_due() && tk_lanes_reap_others();
}

static inline bool __attribute__((always_inline)) reap(bool is_several)
{
    struct tk_lane *lane = tk_lane_hint();
    tk_if_likely(tk_lane_out(lane) != 0 &&
                 (is_several ? reap_from_all(lane) : reap_from(lane, &lane->sends))) return true;
    return TK_THREADED && reap_others_if_due();
}

bool tk_verbs_reap(void)
{
    return reap(false);
}

bool tk_devices_reap(void)
{
    return reap(true);
}
