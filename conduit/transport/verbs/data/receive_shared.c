/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that come through shared queues (srq.h). A buffer goes back to its queue before the
 * credit of its message can be used again: for a request before its handler runs, for a reply
 * before the credits that it returns are counted. Takes a connection's lock.
 *
 * In a failover group (`is_counted`, a constant on the path of a Short) messages are counted per
 * connection, and credits are those of the primary one, whichever connection a message came
 * over. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/credit_loan_messages.h"
#include "transport/verbs/data/deferred.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/receive.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/rendezvous_queue.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static inline struct tk_conn *lock_account(struct tk_conn *conn, bool is_counted)
{
    if (is_counted)
        return tk_primary_lock(conn->peer);
    tk_lock(&conn->lock);
    return conn;
}

static void __attribute__((noinline)) control_came(struct tk_conn *conn)
{
    conn = tk_primary_lock(conn->peer);
    conn->control_expected = 0;
    tk_unlock(&conn->lock);
}

static inline void __attribute__((always_inline))
count_credits(struct tk_conn *conn, int credits, bool is_counted)
{
    if (credits == 0)
        return;
    conn = lock_account(conn, is_counted);
    tk_credit_return(conn, credits);
    tk_if_unlikely(tk_borrower_is_busy(&conn->loan->borrower)) tk_loan_step(conn);
    tk_unlock(&conn->lock);
}

static inline void __attribute__((always_inline))
count(struct tk_conn *conn, const struct tk_message_head *head, bool is_counted)
{
    tk_if_unlikely(head->kind == TK_CONTROL) control_came(conn);
    count_credits(conn, tk_credit_received(head->kind, head->credits), is_counted);
}

static inline void __attribute__((always_inline))
pass(struct tk_conn *conn, struct tk_message_head *head, void *payload, size_t nbytes,
     bool is_counted)
{
    count(conn, head, is_counted);
    if (head->kind != TK_ACK)
        tk_message_hand_up(conn, head, payload, nbytes);
}

static inline void __attribute__((always_inline))
tagged_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, uint64_t head,
            bool is_counted)
{
    _Alignas(16) char copy[tk_first_bytes];
    memcpy(copy, buffer->data, sizeof(copy));
    tk_srq_give(srq, buffer);
    count_credits(conn, tk_head_credits(head), is_counted);
    tk_short_hand_up(conn, tk_head_tag((struct tk_message_head *)copy), copy);
}

static inline void __attribute__((always_inline))
small_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, size_t front,
           size_t size, bool is_counted)
{
    _Alignas(16) char copy[tk_small_message];
    struct tk_message_head *head = tk_message_copy_small(copy, buffer->data, size);
    tk_srq_give(srq, buffer);
    pass(conn, head, copy + front, size - front, is_counted);
}

static inline void __attribute__((always_inline))
copied_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, size_t front,
            size_t size, bool is_counted)
{
    char *copy = malloc(size);
    if (!copy)
        tk_panic("out of memory for a message of %zu bytes", size);
    memcpy(copy, buffer->data, size);
    tk_srq_give(srq, buffer);
    pass(conn, (struct tk_message_head *)copy, copy + front, size - front, is_counted);
    free(copy);
}

static inline void __attribute__((always_inline))
large_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, size_t front,
           size_t size, bool is_counted)
{
    struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (!tk_srq_hold(srq)) {
        copied_came(conn, srq, buffer, front, size, is_counted);
        return;
    }
    pass(conn, head, buffer->data + front, size - front, is_counted);
    tk_srq_release(srq, buffer);
}

static void loan_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                      size_t size)
{
    struct tk_short copy;
    memcpy(&copy, buffer->data, sizeof(copy));
    tk_srq_give(srq, buffer);
    tk_loan_came(conn, &copy, size);
}

/* One of a barrier or of the end of the job. Counted when its buffer is back in the queue: then the
 * connection may be closed. */
static void bounded_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                         size_t size)
{
    struct tk_short copy;
    if (size > sizeof(copy) || !tk_verbs.has_bounded)
        tk_wire_error(conn, "a malformed message came");
    memcpy(&copy, buffer->data, size);
    size_t front = tk_message_check(conn, &copy.head, size);
    tk_srq_give(srq, buffer);
    tk_lock(&conn->lock);
    conn->loan->bounded_came++;
    tk_unlock(&conn->lock);
    tk_message_hand_up(conn, &copy.head, (char *)&copy + front, size - front);
}

/* The queue pair may be gone already. */
static void greeting_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer)
{
    tk_srq_give(srq, buffer);
    if (conn != tk_verbs.nobody)
        tk_cm_greeting_came(conn);
}

/* Frees the request's buffer before any credits of the message are counted. */
static void offer_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                       size_t size)
{
    struct tk_rndv_request copy;
    memcpy(&copy, buffer->data, sizeof(copy));
    tk_srq_give(srq, buffer);
    tk_rndv_request_came(conn, &copy, size);
}

static void handle_unknown_kind(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                                size_t size)
{
    const struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (head->kind == TK_GREETING && tk_cm_greets())
        greeting_came(conn, srq, buffer);
    else if (tk_is_datagram_conn(conn))
        tk_demand_came(buffer, (uint32_t)size);
    else if (head->kind == TK_BOUNDED)
        bounded_came(conn, srq, buffer, size);
    else if (head->kind == TK_LOAN)
        loan_came(conn, srq, buffer, size);
    else if (head->kind == TK_RENDEZVOUS)
        offer_came(conn, srq, buffer, size);
    else
        tk_wire_error(conn, "a malformed message came");
}

static inline void __attribute__((always_inline))
with_payload_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, size_t size,
                  bool is_counted)
{
    const struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (head->kind > TK_CONTROL) {
        handle_unknown_kind(conn, srq, buffer, size);
        return;
    }
    size_t front = tk_message_check(conn, head, size);
    if (size <= tk_small_message)
        small_came(conn, srq, buffer, front, size, is_counted);
    else
        large_came(conn, srq, buffer, front, size, is_counted);
}

static void __attribute__((noinline))
other_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, size_t size)
{
    with_payload_came(conn, srq, buffer, size, false);
}

static void __attribute__((noinline))
failed(struct tk_conn *conn, struct tk_srq *srq, const struct ibv_wc *wc)
{
    if (tk_is_datagram_conn(conn) &&
        conn != tk_verbs.nobody) /* then the buffer is not posted again */
        return;
    if (conn == tk_verbs.nobody || conn->is_closing || (conn->is_held && tk_cm_greets()))
        tk_srq_give(srq, (struct tk_buffer *)(uintptr_t)wc->wr_id);
    else
        tk_recv_failed(conn, wc);
}

static inline void one_came(struct tk_srq *srq, const struct ibv_wc *wc)
{
    struct tk_buffer *buffer = (struct tk_buffer *)(uintptr_t)wc->wr_id;
    struct tk_conn *conn = tk_srq_conn(srq, wc->qp_num);
    tk_if_unlikely(wc->status != IBV_WC_SUCCESS)
    {
        failed(conn, srq, wc);
        return;
    }
    uint64_t head = tk_head_number((struct tk_message_head *)buffer->data);
    tk_if_likely(tk_message_is_tagged(head, wc->byte_len))
        tagged_came(conn, srq, buffer, head, false);
    else other_came(conn, srq, buffer, wc->byte_len);
}

void tk_shared_receive_batch(struct tk_srq *srq, const struct ibv_wc *wc, int n)
{
    tk_cq_check(n);
    do {
        one_came(srq, wc);
        wc++;
    } while (--n > 0);
}

static void rndv_read(struct tk_rndv *rndv)
{
    struct tk_message_head *head = (struct tk_message_head *)rndv->buffer->data;
    if (rndv->size < sizeof(*head) || head->kind > TK_REPLY)
        tk_wire_error(rndv->conn, "a malformed message came");
    size_t front = tk_message_check(rndv->conn, head, rndv->size);
    pass(rndv->conn, head, rndv->buffer->data + front, rndv->size - front, false);
    tk_rndv_give(rndv);
}

/* Begins the next read as soon as a buffer is free, so that one is always in flight. */
bool tk_shared_read_on(void)
{
    bool any = false;
    tk_rndv_start();
    for (struct tk_rndv *rndv; (rndv = tk_rndv_take()) != NULL;) {
        rndv_read(rndv);
        tk_rndv_start();
        any = true;
    }
    return any;
}

/* ---- the same in a failover group ---- */

static void __attribute__((noinline))
other_counted_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, size_t size)
{
    const struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (head->kind != TK_NOTICE || tk_is_datagram_conn(conn)) {
        with_payload_came(conn, srq, buffer, size, true);
        return;
    }
    buffer->conn = conn;
    tk_notice_came(buffer, (uint32_t)size);
    tk_srq_give(srq, buffer);
}

static void __attribute__((noinline))
counted_failed(struct tk_conn *conn, struct tk_srq *srq, const struct ibv_wc *wc)
{
    if (tk_is_datagram_conn(conn))
        return;
    if (tk_is_failure(wc) && tk_conn_is_open(conn))
        tk_lanes_reap(); /* the cause is on the send side */
    if (tk_failover_receive(conn, wc))
        tk_srq_give(srq, (struct tk_buffer *)(uintptr_t)wc->wr_id);
    else
        tk_recv_failed(conn, wc);
}

static inline void one_counted_came(struct tk_conn *conn, struct tk_srq *srq,
                                    const struct ibv_wc *wc)
{
    struct tk_buffer *buffer = (struct tk_buffer *)(uintptr_t)wc->wr_id;
    tk_if_unlikely(wc->status != IBV_WC_SUCCESS)
    {
        counted_failed(conn, srq, wc);
        return;
    }
    uint64_t head = tk_head_number((struct tk_message_head *)buffer->data);
    tk_if_likely(tk_message_is_tagged(head, wc->byte_len))
        tagged_came(conn, srq, buffer, head, true);
    else other_counted_came(conn, srq, buffer, wc->byte_len);
}

/* In a handler: messages for handlers are deferred until it ends, but their buffers are freed
 * now. */
void tk_shared_receive_later(struct tk_conn *conn, struct tk_srq *srq, const struct ibv_wc *wc)
{
    struct tk_buffer *buffer = (struct tk_buffer *)(uintptr_t)wc->wr_id;
    const struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (wc->status != IBV_WC_SUCCESS || head->kind > TK_CONTROL) {
        one_counted_came(conn, srq, wc);
        return;
    }
    tk_message_check(conn, head, wc->byte_len);
    struct tk_message_head copy = *head;
    if (head->kind != TK_ACK)
        tk_deferred_put_copy(conn, buffer->data, wc->byte_len);
    tk_srq_give(srq, buffer);
    count(conn, &copy, true);
}

static inline void __attribute__((always_inline))
one_counted_came_now(struct tk_device *device, struct tk_conn *conn, const struct ibv_wc *wc)
{
    one_counted_came(conn, device->srq, wc);
}

void tk_shared_receive_counted(struct tk_device *device, struct tk_conn *conn, struct ibv_wc *wc,
                               bool expects_more)
{
    tk_receive_singly(device, conn, wc, expects_more, one_counted_came_now, tk_srq_take);
}
