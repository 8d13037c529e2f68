/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How polls handle the completions of receives, and the parts of all receive paths: taking
 * completions from a queue, checking a message's head, running its handler. Inline because every
 * message passes here. */
#ifndef TK_VERBS_RECEIVE_H
#define TK_VERBS_RECEIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/report.h"
#include "transport/device_events.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/ack.h"
#include "transport/verbs/data/deferred.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/events.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"

enum {
    tk_small_message = 256, /* copying this much costs less than swapping buffers */
    tk_first_bytes = 32,    /* most Shorts (up to 6 arguments): a few instructions copy them */
    tk_few_bytes = 64       /* of a small message; copied likewise */
};

/* A receive buffer is larger than either. */
static inline void *tk_message_copy_small(char *copy, const char *from, size_t size)
{
    tk_if_likely(size <= tk_few_bytes) return memcpy(copy, from, tk_few_bytes);
    return memcpy(copy, from, size);
}

static inline void tk_cq_check(int n)
{
    tk_if_unlikely(n < 0) tk_panic("ibv_poll_cq failed with error %d", n);
}

/* One thread at a time polls; for others the result is 0, unless they insist. The caller must check
 * results other than 0 and 1 for errors. */
static inline int __attribute__((always_inline))
tk_cq_take_unchecked(struct ibv_cq *cq, tk_lock_t *lock, unsigned role, struct ibv_wc *wc, int max)
{
    if (!tk_trylock(lock))
        return TK_THREADED ? tk_cq_take_insisting(cq, role, wc, max) : 0;
    int n = ibv_poll_cq(cq, max, wc);
    tk_unlock(lock);
    return n;
}

static inline int __attribute__((always_inline))
tk_cq_take(struct ibv_cq *cq, tk_lock_t *lock, unsigned role, struct ibv_wc *wc, int max)
{
    int n = tk_cq_take_unchecked(cq, lock, role, wc, max);
    tk_cq_check(n);
    return n;
}

/* Checks the head, except its kind. Returns the offset of the payload. */
static inline size_t tk_message_check(struct tk_conn *conn, const struct tk_message_head *head,
                                      size_t size)
{
    tk_if_unlikely(size < sizeof(*head) || head->nargs > tk_max_args || head->category > TK_LONG)
        tk_wire_error(conn, "a malformed message came");
    size_t front = tk_message_front(head->category == TK_LONG, head->nargs);
    tk_if_unlikely(size < front)
        tk_wire_error(conn, "a message came that is shorter than its head says");
    return front;
}

/* Is it a Short for a client's handler with few arguments, as most messages are? False also if the
 * head claims more bytes than arrived: the general path reports that. */
static inline bool tk_message_is_tagged(uint64_t head, size_t size)
{
    size_t nargs = head >> tk_head_nargs_shift & UINT8_MAX;
    return tk_head_has_tag(head) && size >= sizeof(struct tk_message_head) + 4 * nargs &&
           size <= tk_first_bytes;
}

/* The credits that come back with such a Short. */
static inline int tk_head_credits(uint64_t head)
{
    return (int)(head >> tk_head_credits_shift & UINT8_MAX) + tk_head_is_reply(head);
}

/* `bytes`: a copy of the whole message; its kind is read only if no reply was sent. */
static inline void tk_short_hand_up(struct tk_conn *conn, unsigned tag, const char *bytes)
{
    const struct tk_message_head *head = (const struct tk_message_head *)(const void *)bytes;
    bool is_replied = tk_deliver_short(conn->peer, tag, (const int32_t *)(head + 1));
    tk_if_unlikely(!is_replied && head->kind == TK_REQUEST) tk_credit_owe_to(conn->peer);
}

static inline void tk_message_hand_up(struct tk_conn *conn, struct tk_message_head *head,
                                      void *payload, size_t nbytes)
{
    const uint64_t credits = (uint64_t)UINT8_MAX << tk_head_credits_shift;
    struct tk_arrival arrival = {
        .peer = conn->peer, .head = head, .payload = payload, .nbytes = nbytes};
    tk_if_likely(tk_head_is_medium(tk_head_number(head) & ~credits)) tk_deliver_medium(&arrival);
    else tk_deliver(&arrival);
    tk_if_unlikely(!arrival.replied && head->kind == TK_REQUEST) tk_credit_owe_to(conn->peer);
}

/* ---- what polls call: none is inline, so that an empty poll saves no registers for it ---- */

/* receive.c: the queue of a single connection. `n` < 0 is an error. */
void tk_receive_one(const struct ibv_wc *wc);
void tk_receive_batch(const struct ibv_wc *wc, int n);

/* receive_shared.c: a shared queue. The last one continues rendezvous messages; true if one was
 * delivered. */
struct tk_srq;
void tk_shared_receive_batch(struct tk_srq *srq, const struct ibv_wc *wc, int n);
bool tk_shared_read_on(void);

/* The same in failover groups, for a message that was taken alone and counted. The functions
 * "later" are for a handler that waits: they defer messages for handlers. */
void tk_receive_counted(struct tk_device *device, struct ibv_wc *wc, bool expects_more);
void tk_receive_later(const struct ibv_wc *wc);
void tk_shared_receive_counted(struct tk_device *device, struct tk_conn *conn, struct ibv_wc *wc,
                               bool expects_more);
void tk_shared_receive_later(struct tk_conn *conn, struct tk_srq *srq, const struct ibv_wc *wc);

/* The counterpart of tk_srq_take(), without counting. The buffer names the connection. */
static inline int __attribute__((always_inline))
tk_receive_take(struct tk_device *device, struct ibv_wc *wc, struct tk_conn **conn)
{
    (void)conn;
    return tk_cq_take(device->recv_cq, &device->recv_cq_lock, TK_DEVICE_RECEIVES, wc, 1);
}

/* Types of the last two arguments below, which are constants. */
typedef void tk_receive_handle(struct tk_device *device, struct tk_conn *conn,
                               const struct ibv_wc *wc);
typedef int tk_receive_next(struct tk_device *device, struct ibv_wc *wc, struct tk_conn **conn);

/* Handles one message at a time: while a handler waits, no thread may hold later messages, or the
 * connection that delivered them could never be drained. If the previous poll found nothing
 * (expects_more is false), does not ask the device for a second message: mostly there is none. */
static inline void __attribute__((always_inline))
tk_receive_singly(struct tk_device *device, struct tk_conn *conn, struct ibv_wc *wc,
                  bool expects_more, tk_receive_handle *handle, tk_receive_next *next)
{
    int count = 0;
    expects_more |= wc->status != IBV_WC_SUCCESS;
    do {
        handle(device, conn, wc);
        tk_deferred_hand_up();
    } while (expects_more && ++count < tk_poll_batch && next(device, wc, &conn) > 0);
}

#endif
