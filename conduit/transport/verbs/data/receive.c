/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that come through receive queues of single connections. Handlers run without the lock of
 * the completion queue, so several run at the same time in PAR. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
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
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/receive.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* A greeting uses a buffer for requests, which can come only after the greeting is answered, or the
 * extra buffer. */
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

/* The first byte is no kind of active message. */
TK_FIRST_USE static void __attribute__((noinline))
handle_unknown_kind(struct tk_buffer *buffer, size_t size)
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
    if (tk_credit_comes_back(head->kind))
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

/* Not inline, so that the common path saves no registers for it. */
static void __attribute__((noinline)) keep_buffer(struct tk_conn *conn, struct tk_buffer *buffer)
{
    tk_pool_give(&tk_rail_of(conn)->recv_pool, buffer);
}

/* The same for most Shorts, whose heads were checked in a register. Reads the members from the
 * copy, where they need no shifts. A reply, whose kind is 1, returns a credit. Called with the
 * connection's lock; releases it. */
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

/* A large message stays in its buffer, and another buffer is posted instead. If no buffer is free,
 * copies the message and returns the copy. */
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
    if (!tk_is_datagram(buffer) &&
        !tk_pair_flushed(buffer)) /* then the buffer is not posted again */
        tk_recv_failed(buffer->conn, wc);
}

static inline void __attribute__((always_inline)) received(const struct ibv_wc *wc)
{
    struct tk_buffer *buffer = (struct tk_buffer *)(uintptr_t)wc->wr_id;
    tk_if_likely(wc->status == IBV_WC_SUCCESS) arrived(buffer->conn, buffer, wc->byte_len);
    else recv_failed(buffer, wc);
}

/* Two functions, so that a poll of one message saves no registers for a loop. */
void tk_receive_one(const struct ibv_wc *wc)
{
    received(wc);
}

void tk_receive_batch(const struct ibv_wc *wc, int n)
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

/* ---- the same in a failover group, which counts the messages of each connection ---- */

/* Counts the message now, so that the connection may be closed; only its handler is deferred. */
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
        tk_lanes_reap(); /* the cause is on the send side */
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
    if (TK_THREADED) /* no lock is held, unlike in tk_srq_take() */
        __atomic_add_fetch(&conn->tx_log->arrived, 1, __ATOMIC_RELAXED);
    else
        conn->tx_log->arrived++;
    tk_if_unlikely(((const struct tk_message_head *)buffer->data)->kind == TK_NOTICE)
        notice_came(buffer, wc->byte_len);
    else if (in_handler) defer(buffer, wc->byte_len);
    else arrived(conn, buffer, wc->byte_len);
}

void tk_receive_later(const struct ibv_wc *wc)
{
    one_came(wc, true);
}

static inline void __attribute__((always_inline))
one_came_now(struct tk_device *device, struct tk_conn *conn, const struct ibv_wc *wc)
{
    (void)device, (void)conn; /* the buffer names its connection */
    one_came(wc, false);
}

void tk_receive_counted(struct tk_device *device, struct ibv_wc *wc, bool expects_more)
{
    tk_receive_singly(device, NULL, wc, expects_more, one_came_now, tk_receive_take);
}
