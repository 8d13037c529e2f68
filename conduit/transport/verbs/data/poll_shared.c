/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that come through shared queues (srq.h). A buffer is given back to its queue before the
 * credit of its message can be used again: before a request's handler runs, and before what a
 * reply gives back is counted. Takes a connection's lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "stats/stats.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/data/housekeeping.h"
#include "transport/verbs/data/loan.h"
#include "transport/verbs/data/receive.h"

static void __attribute__((noinline)) control_came(struct tk_conn *conn)
{
    tk_lock(&conn->lock);
    conn->control_expected = 0;
    tk_unlock(&conn->lock);
}

static inline void count_credits(struct tk_conn *conn, int credits)
{
    if (credits == 0)
        return;
    tk_lock(&conn->lock);
    tk_credit_return(conn, credits);
    tk_if_unlikely(tk_borrower_is_busy(&conn->loan->borrower)) tk_loan_step(conn);
    tk_unlock(&conn->lock);
}

static void count(struct tk_conn *conn, const struct tk_message_head *head)
{
    tk_if_unlikely(head->kind == TK_CONTROL) control_came(conn);
    count_credits(conn, head->credits + (head->kind == TK_REPLY || head->kind == TK_ACK));
}

static void pass(struct tk_conn *conn, struct tk_message_head *head, void *payload, size_t nbytes)
{
    count(conn, head);
    if (head->kind != TK_ACK)
        tk_message_hand_up(conn, head, payload, nbytes);
}

static inline void tagged_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                               uint64_t head)
{
    _Alignas(16) char copy[tk_first_bytes];
    memcpy(copy, buffer->data, sizeof(copy));
    tk_srq_give(srq, buffer);
    count_credits(conn, tk_head_credits(head));
    tk_short_hand_up(conn, head, copy);
}

static void small_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                       size_t front, size_t size)
{
    _Alignas(8) char copy[tk_small_message];
    struct tk_message_head *head = memcpy(copy, buffer->data, size);
    tk_srq_give(srq, buffer);
    pass(conn, head, copy + front, size - front);
}

static void copied_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                        size_t front, size_t size)
{
    char *copy = malloc(size);
    if (!copy)
        tk_panic("out of memory for a message of %zu bytes", size);
    memcpy(copy, buffer->data, size);
    tk_srq_give(srq, buffer);
    pass(conn, (struct tk_message_head *)copy, copy + front, size - front);
    free(copy);
}

static void large_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                       size_t front, size_t size)
{
    struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (!tk_srq_hold(srq)) {
        copied_came(conn, srq, buffer, front, size);
        return;
    }
    pass(conn, head, buffer->data + front, size - front);
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

static void stranger_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer,
                          size_t size)
{
    const struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (tk_is_datagram_conn(conn))
        tk_demand_came(buffer, (uint32_t)size);
    else if (head->kind == TK_LOAN)
        loan_came(conn, srq, buffer, size);
    else
        tk_wire_error(conn, "a malformed message came");
}

static void __attribute__((noinline))
other_came(struct tk_conn *conn, struct tk_srq *srq, struct tk_buffer *buffer, size_t size)
{
    const struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    if (head->kind > TK_CONTROL) {
        stranger_came(conn, srq, buffer, size);
        return;
    }
    size_t front = tk_message_check(conn, head, size);
    if (size <= tk_small_message)
        small_came(conn, srq, buffer, front, size);
    else
        large_came(conn, srq, buffer, front, size);
}

static void __attribute__((noinline))
failed(struct tk_conn *conn, struct tk_srq *srq, const struct ibv_wc *wc)
{
    if (tk_is_datagram_conn(conn)) /* one buffer fewer: others are left */
        return;
    if (conn->is_closing)
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
    tk_if_likely(tk_message_is_tagged(head, wc->byte_len)) tagged_came(conn, srq, buffer, head);
    else other_came(conn, srq, buffer, wc->byte_len);
}

static void __attribute__((noinline)) all_came(struct tk_srq *srq, const struct ibv_wc *wc, int n)
{
    do {
        one_came(srq, wc);
        wc++;
    } while (--n > 0);
}

static inline bool receive_shared(struct tk_device *device)
{
    struct ibv_wc wc[tk_poll_batch];
    int n =
        tk_cq_take(device->recv_cq, &device->recv_cq_lock, TK_DEVICE_RECEIVES, wc, tk_poll_batch);
    if (n <= 0)
        return tk_count_empty_poll(tk_counter_empty_polls_network);
    all_came(device->srq, wc, n);
    return true;
}

static bool receive_all(void)
{
    bool any = receive_shared(&tk_verbs.device);
    for (struct tk_device *device = tk_verbs.device.next; device; device = device->next)
        any |= receive_shared(device);
    return any;
}

static bool __attribute__((noinline)) poll_all_shared(void)
{
    bool any = tk_work_is_pending();
    any |= tk_devices_reap();
    return receive_all() || any;
}

bool tk_shared_poll(void)
{
    tk_if_unlikely(tk_counter_read(&tk_verbs.tx_out) |
                   tk_counter_read(&tk_verbs.pending_work)) return poll_all_shared();
    return receive_all();
}
