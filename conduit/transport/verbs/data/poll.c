/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completions: of our own work (reap) and of what peers sent (poll). One thread at a time takes
 * completions from a queue, others return at once. The thread handles them without that lock, so
 * handlers run at the same time in PAR. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/data/ack.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/deferred.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/housekeeping.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/receive.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/connection_state.h"
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

/* What plain work that completed together gives back: giving back each alone would take a lock in
 * PAR. Until then the connection seems fuller than it is, which is safe. All are of one lane.
 */
struct batch {
    struct tk_pool_item *first, *last;
    struct tk_conn *conn; /* whose slots these are */
    int txs, slots;
};

static inline void gather(struct batch *batch, struct tk_tx *tx)
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
    tk_counter_add(&op->pending, -1);
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
    do {
        struct tk_tx *tx = (struct tk_tx *)(uintptr_t)wc->wr_id;
        tk_if_unlikely(tx->kind != TK_TX_PLAIN || wc->status != IBV_WC_SUCCESS) tx_done(tx, wc);
        else gather(&batch, tx);
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
static inline bool one_done(struct tk_lane *lane, const struct ibv_wc *wc)
{
    struct tk_tx *tx = (struct tk_tx *)(uintptr_t)wc->wr_id;
    tk_if_unlikely(tx->kind != TK_TX_PLAIN || wc->status != IBV_WC_SUCCESS) return false;
    return tk_tx_complete_at_once(lane, tx);
}

static inline bool __attribute__((always_inline))
reap_from(struct tk_lane *lane, struct tk_sends *sends)
{
    struct ibv_wc wc[tk_poll_batch];
    int n = tk_cq_take_unchecked(sends->cq, &sends->lock, TK_DEVICE_SENDS, wc, tk_poll_batch);
    tk_if_likely(n == 1 && one_done(lane, wc)) return true;
    if (n == 0)
        return false;
    any_done(wc, n);
    return true;
}

static bool reap_lane(struct tk_lane *lane)
{
    bool any = false;
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        any |= reap_from(lane, tk_sends_of(device, lane));
    return any;
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

/* Not inline: the common path needs no registers for it. */
static bool __attribute__((noinline)) reap_others_if_due(void)
{
    return tk_lanes_are_due() && tk_lanes_reap_others();
}

bool tk_verbs_reap(void)
{
    struct tk_lane *lane = tk_lane_hint();
    tk_if_likely(tk_lane_out(lane) != 0 && reap_from(lane, &lane->sends)) return true;
    return TK_THREADED && reap_others_if_due();
}

/* A greeting takes a buffer of requests, which can come only after it is answered, or the extra
 * one. */
static void greeting_came(struct tk_conn *conn, struct tk_buffer *buffer)
{
    tk_lock(&conn->lock);
    conn->rx_extra--;
    if (conn->rx_extra < -conn->held_credits)
        tk_recv_post(conn, buffer);
    else
        tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
    tk_unlock(&conn->lock);
    tk_cm_greeting_came(conn);
}

/* Its first byte names no kind of active message. */
static void __attribute__((noinline)) handle_unknown_kind(struct tk_buffer *buffer, size_t size)
{
    const struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (head->kind == TK_GREETING && tk_cm_greets()) {
        greeting_came(buffer->conn, buffer);
        return;
    }
    if (!tk_is_datagram(buffer))
        tk_wire_error(buffer->conn, "a malformed message came");
    tk_demand_came(buffer, (uint32_t)size);
}

static inline void account(struct tk_conn *conn, const struct tk_message_head *head)
{
    int credits = head->credits;
    conn->rx_extra--;
    if (head->kind == TK_REPLY || head->kind == TK_ACK)
        credits++;
    else
        tk_if_unlikely(head->kind == TK_CONTROL)
        {
            conn->control_expected = 0;
            conn->rx_extra++;
        }
    if (credits)
        tk_credit_return(conn, credits);
}

/* The contents of `buffer` are copied, or no longer needed: posts it again. One buffer more than
 * needed stays posted; see data/credit.c. */
static inline void post_again(struct tk_conn *conn, struct tk_buffer *buffer)
{
    tk_if_likely(conn->rx_extra <= 0) tk_recv_post(conn, buffer);
    else tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
}

/* Copies a small message: its buffer can receive the next one before any handler returns the
 * sender's credit. */
static void __attribute__((noinline))
small_arrived(struct tk_conn *conn, struct tk_buffer *buffer, size_t front, size_t size)
{
    _Alignas(16) char copy[tk_small_message];
    struct tk_message_head *head = tk_message_copy_small(copy, buffer->data, size);
    tk_lock(&conn->lock);
    account(conn, head);
    post_again(conn, buffer);
    tk_unlock(&conn->lock);
    if (head->kind != TK_ACK)
        tk_message_hand_up(conn, head, copy + front, size - front);
}

/* Not inline: the common path needs no registers for it. */
static void __attribute__((noinline)) keep_buffer(struct tk_conn *conn, struct tk_buffer *buffer)
{
    tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
}

/* The same for most Shorts, whose heads were checked in a register. The members are read from the
 * copy, where they need no shifts. A reply, whose kind is 1, returns a credit. Called with the
 * connection's lock, which it releases. */
static inline void __attribute__((always_inline))
tagged_arrived_locked(struct tk_conn *conn, struct tk_buffer *buffer, const char *data)
{
    _Alignas(16) char copy[tk_first_bytes];
    const struct tk_message_head *head = (struct tk_message_head *)copy;
    memcpy(copy, data, sizeof(copy));
    tk_keep_in_memory(copy);
    int credits = head->credits + head->kind, posted = conn->rx_extra + credits;
    if (credits)
        tk_credit_give(conn, credits);
    tk_if_likely(posted <= 1) tk_recv_post_again(conn, buffer, posted - 1);
    else
    {
        conn->rx_extra = posted - 1;
        keep_buffer(conn, buffer);
    }
    tk_unlock(&conn->lock);
    tk_short_hand_up(conn, tk_head_tag(head), copy);
}

static void __attribute__((noinline))
tagged_arrived_later(struct tk_conn *conn, struct tk_buffer *buffer)
{
    tk_lock(&conn->lock);
    tagged_arrived_locked(conn, buffer, buffer->data);
}

static inline void __attribute__((always_inline))
tagged_arrived(struct tk_conn *conn, struct tk_buffer *buffer, const char *data)
{
    tk_if_likely(tk_trylock_free(&conn->lock)) tagged_arrived_locked(conn, buffer, data);
    else tagged_arrived_later(conn, buffer);
}

/* A large message stays in its buffer, and another buffer replaces that one; without a free buffer
 * it is copied after all. Returns the copy. */
static void *replace_buffer(struct tk_conn *conn, struct tk_buffer *buffer, size_t size)
{
    if (conn->rx_extra >= 0)
        return NULL;
    struct tk_buffer *spare = tk_pool_take(&tk_rail_of(conn)->recv_pool);
    if (spare) {
        tk_recv_post(conn, spare);
        return NULL;
    }
    void *copy = malloc(size);
    if (!copy)
        tk_panic("out of memory for a message of %zu bytes", size);
    memcpy(copy, buffer->data, size);
    tk_recv_post(conn, buffer);
    return copy;
}

static void __attribute__((noinline))
large_arrived(struct tk_conn *conn, struct tk_buffer *buffer, size_t front, size_t size)
{
    tk_lock(&conn->lock);
    account(conn, (struct tk_message_head *)buffer->data);
    void *copy = replace_buffer(conn, buffer, size);
    tk_unlock(&conn->lock);
    char *bytes = copy ? copy : buffer->data;
    tk_message_hand_up(conn, (struct tk_message_head *)bytes, bytes + front, size - front);
    if (!copy)
        tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
    free(copy);
}

static void __attribute__((noinline))
other_arrived(struct tk_conn *conn, struct tk_buffer *buffer, size_t size)
{
    tk_if_unlikely(((struct tk_message_head *)buffer->data)->kind > TK_CONTROL)
    {
        handle_unknown_kind(buffer, size);
        return;
    }
    size_t front = tk_message_check(conn, (struct tk_message_head *)buffer->data, size);
    if (size <= tk_small_message)
        small_arrived(conn, buffer, front, size);
    else
        large_arrived(conn, buffer, front, size);
}

static inline void __attribute__((always_inline))
arrived(struct tk_conn *conn, struct tk_buffer *buffer, size_t size)
{
    const char *data = buffer->data;
    uint64_t head = tk_head_number((const struct tk_message_head *)(const void *)data);
    tk_if_likely(tk_message_is_tagged(head, size)) tagged_arrived(conn, buffer, data);
    else other_arrived(conn, buffer, size);
}

static void __attribute__((noinline)) recv_failed(struct tk_buffer *buffer, const struct ibv_wc *wc)
{
    if (!tk_is_datagram(buffer) && !tk_pair_flushed(buffer)) /* one fewer is left */
        tk_recv_failed(buffer->conn, wc);
}

static inline void __attribute__((always_inline)) received(const struct ibv_wc *wc)
{
    struct tk_buffer *buffer = (struct tk_buffer *)(uintptr_t)wc->wr_id;
    tk_if_likely(wc->status == IBV_WC_SUCCESS) arrived(buffer->conn, buffer, wc->byte_len);
    else recv_failed(buffer, wc);
}

/* Not inline, these two: an empty poll saves no registers for them, and a poll of one message none
 * for a loop. */
static void __attribute__((noinline)) received_one(const struct ibv_wc *wc)
{
    received(wc);
}

static void __attribute__((noinline)) received_all(const struct ibv_wc *wc, int n)
{
    struct tk_ack_batch batch;
    tk_cq_check(n);
    tk_ack_batch_begin(&batch);
    do {
        received(wc);
        wc++;
    } while (--n > 0);
    tk_ack_batch_end(&batch);
}

static inline bool __attribute__((always_inline)) receive_from(struct tk_device *device)
{
    struct ibv_wc wc[tk_poll_batch];
    int n = tk_cq_take_unchecked(device->recv_cq, &device->recv_cq_lock, TK_DEVICE_RECEIVES, wc,
                                 tk_poll_batch);
    if (n == 0)
        return tk_count_empty_poll(tk_counter_empty_polls_network);
    if (n == 1)
        received_one(wc);
    else
        received_all(wc, n);
    return true;
}

static bool poll_recv(void)
{
    return receive_from(&tk_verbs.device);
}

/* Separate from the common path, so that that path need not remember what it found here. */
static bool __attribute__((noinline)) poll_all(void)
{
    bool any = tk_work_is_pending();
    any |= tk_verbs_reap();
    return poll_recv() || any;
}

static bool __attribute__((noinline)) poll_others(void)
{
    bool any = tk_lanes_reap_others();
    return poll_recv() || any;
}

bool tk_verbs_poll(void)
{
    tk_if_unlikely(tk_lane_out(tk_lane_hint()) |
                   tk_counter_read(&tk_verbs.pending_work)) return poll_all();
    tk_if_unlikely(tk_lanes_are_due()) return poll_others();
    return receive_from(&tk_verbs.device);
}

/* ---- the same for several devices ---- */

bool tk_devices_reap(void)
{
    struct tk_lane *lane = tk_lane_hint();
    if (tk_lane_out(lane) != 0 && reap_lane(lane))
        return true;
    return tk_lanes_are_due() && tk_lanes_reap_others();
}

bool tk_devices_poll(void)
{
    bool any = tk_work_is_pending();
    any |= tk_devices_reap();
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        any |= receive_from(device);
    return any;
}

/* ---- the same in a failover group: messages that come over each connection are counted ---- */

/* Accounts the message now, so that the connection may be closed; only its handler is deferred. */
static void defer(struct tk_buffer *buffer, uint32_t size)
{
    struct tk_conn *conn = buffer->conn;
    struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    tk_if_unlikely(head->kind > TK_CONTROL)
    {
        handle_unknown_kind(buffer, size);
        return;
    }
    tk_message_check(conn, head, size);
    tk_lock(&conn->lock);
    account(conn, head);
    if (conn->rx_extra < 0)
        tk_credit_post_buffer(conn);
    tk_unlock(&conn->lock);
    if (head->kind == TK_ACK) {
        tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
        return;
    }
    tk_deferred_put(buffer, size);
}

static void __attribute__((noinline)) notice_came(struct tk_buffer *buffer, uint32_t size)
{
    struct tk_conn *conn = buffer->conn;
    tk_notice_came(buffer, size);
    tk_lock(&conn->lock);
    conn->rx_extra--;
    post_again(conn, buffer);
    tk_unlock(&conn->lock);
}

static void __attribute__((noinline))
receive_failed(struct tk_buffer *buffer, const struct ibv_wc *wc)
{
    if (tk_is_datagram(buffer) || tk_pair_flushed(buffer))
        return;
    if (tk_is_failure(wc) && tk_conn_is_open(buffer->conn))
        tk_lanes_reap(); /* the cause is there */
    if (!tk_failover_receive(buffer->conn, wc)) {
        tk_recv_failed(buffer->conn, wc);
        return;
    }
    tk_lock(&buffer->conn->lock);
    buffer->conn->rx_extra--;
    tk_unlock(&buffer->conn->lock);
    tk_pool_give(&tk_rail_of(buffer->conn)->recv_pool, buffer);
}

static inline void __attribute__((always_inline)) one_came(const struct ibv_wc *wc, bool in_handler)
{
    struct tk_buffer *buffer = (struct tk_buffer *)(uintptr_t)wc->wr_id;
    tk_if_unlikely(wc->status != IBV_WC_SUCCESS)
    {
        receive_failed(buffer, wc);
        return;
    }
    struct tk_conn *conn = buffer->conn;
    if (TK_THREADED)
        __atomic_add_fetch(&conn->tx_log->arrived, 1, __ATOMIC_RELAXED);
    else
        conn->tx_log->arrived++;
    tk_if_unlikely(((const struct tk_message_head *)buffer->data)->kind == TK_NOTICE)
        notice_came(buffer, wc->byte_len);
    else if (in_handler) defer(buffer, wc->byte_len);
    else arrived(conn, buffer, wc->byte_len);
}

static void __attribute__((noinline)) comes_later(const struct ibv_wc *wc)
{
    one_came(wc, true);
}

/* One message at a time: while a handler waits, no thread may hold messages behind it, or the
 * connection that delivered them could never be drained. After a first message that was waited for,
 * the device is not asked for another: mostly there is none. */
static void __attribute__((noinline))
counted_came(struct tk_device *device, struct ibv_wc *wc, bool expects_more)
{
    int count = 0;
    expects_more |= wc->status != IBV_WC_SUCCESS;
    do {
        one_came(wc, false);
        tk_deferred_hand_up();
    } while (expects_more && ++count < tk_poll_batch &&
             tk_cq_take(device->recv_cq, &device->recv_cq_lock, TK_DEVICE_RECEIVES, wc, 1) > 0);
}

/* Whether the previous poll found something, on whatever device: a flood comes over one of them.
 * Read only after a message: kept over the call of the device it would cost each empty poll a
 * register.
 */
static TK_PER_THREAD_NEAR bool found_before;

static inline bool __attribute__((always_inline)) receive_counted(struct tk_device *device)
{
    struct ibv_wc wc;
    if (tk_cq_take(device->recv_cq, &device->recv_cq_lock, TK_DEVICE_RECEIVES, &wc, 1) <= 0)
        return tk_count_empty_poll(tk_counter_empty_polls_network);
    counted_came(device, &wc, found_before);
    return true;
}

static bool receive_deferred(struct tk_device *device)
{
    struct ibv_wc wc;
    int count = 0;
    while (count < tk_poll_batch &&
           tk_cq_take(device->recv_cq, &device->recv_cq_lock, TK_DEVICE_RECEIVES, &wc, 1) > 0) {
        comes_later(&wc);
        count++;
    }
    return count > 0;
}

static bool __attribute__((noinline)) receive_from_others(void)
{
    bool any = false;
    for (struct tk_device *device = tk_verbs.device.next; device; device = device->next)
        any |= receive_counted(device);
    return any;
}

static inline bool receive_from_all(void)
{
    bool any = receive_counted(&tk_verbs.device);
    tk_if_unlikely(tk_verbs.device.next != NULL) any |= receive_from_others();
    found_before = any;
    return any;
}

static bool __attribute__((noinline)) poll_all_logged(void)
{
    if (tk_counter_read(&tk_verbs.pending_work) > 0)
        tk_acks_send();
    bool any = tk_devices_reap();
    any |= tk_deferred_hand_up();
    return receive_from_all() || any;
}

static bool __attribute__((noinline)) poll_others_logged(void)
{
    bool any = tk_lanes_reap_others();
    return receive_from_all() || any;
}

bool tk_logged_poll(void)
{
    tk_if_unlikely(tk_lane_out(tk_lane_hint()) | tk_counter_read(&tk_verbs.pending_work) |
                   tk_deferred_has_some()) return poll_all_logged();
    tk_if_unlikely(tk_lanes_are_due()) return poll_others_logged();
    return receive_from_all();
}

/* A handler that waits for space may wait for a connection to be moved, which needs messages from
 * the other end: messages for handlers are deferred. */
static bool __attribute__((noinline)) reap_moving(void)
{
    bool any = tk_devices_reap();
    tk_acks_send();
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        any |= receive_deferred(device);
    return any;
}

static bool __attribute__((noinline)) reap_all(struct tk_lane *lane)
{
    bool any = reap_from(lane, &lane->sends);
    for (struct tk_device *device = tk_verbs.device.next; device; device = device->next)
        any |= reap_from(lane, tk_sends_of(device, lane));
    return any;
}

static bool __attribute__((noinline)) reap_pending(void)
{
    return tk_work_is_open() ? reap_moving() : tk_devices_reap();
}

bool tk_logged_reap(void)
{
    tk_if_unlikely(tk_counter_read(&tk_verbs.pending_work) != 0) return reap_pending();
    struct tk_lane *lane = tk_lane_hint();
    if (tk_lane_out(lane) != 0 && reap_all(lane))
        return true;
    return tk_lanes_are_due() && tk_lanes_reap_others();
}
