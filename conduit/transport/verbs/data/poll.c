/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Polls: receive messages (receive.h) and reap our own work (reap.c). One thread at a time takes
 * completions from a queue; others return at once.
 *
 * All variants (variants.h) have one body, whose argument `variant` is a constant in each of the
 * instances at the end. Polls take up to a batch of messages from each device. In failover groups
 * they take one message at a time, send due notices and ACKs, and run handlers of deferred
 * messages. */
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
#include "transport/verbs/data/deferred.h"
#include "transport/verbs/data/housekeeping.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/receive.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/variants.h"
#include "transport/verbs/verbs_state.h"

enum { FAILOVER = TK_VARIANT_FAILOVER, SHARED = TK_VARIANT_SHARED, DEVICES = TK_VARIANT_DEVICES };

/* ---- receiving ---- */

static inline bool __attribute__((always_inline))
receive_batch(struct tk_device *device, unsigned variant)
{
    struct ibv_wc wc[tk_poll_batch];
    int n = tk_cq_take_unchecked(device->recv_cq, &device->recv_cq_lock, TK_DEVICE_RECEIVES, wc,
                                 tk_poll_batch);
    if (n == 0)
        return tk_count_empty_poll(tk_counter_empty_polls_network);
    if (variant & SHARED)
        tk_shared_receive_batch(device->srq, wc, n);
    else if (n == 1)
        tk_receive_one(wc);
    else
        tk_receive_batch(wc, n);
    return true;
}

static inline int __attribute__((always_inline))
take(struct tk_device *device, struct ibv_wc *wc, struct tk_conn **conn, unsigned variant)
{
    return variant & SHARED ? tk_srq_take(device, wc, conn) : tk_receive_take(device, wc, conn);
}

/* Did the previous poll find something, on any device? During a flood it did. Read only after a
 * message came: a value kept across the call of the device would cost each empty poll a
 * register. */
static TK_PER_THREAD_NEAR bool found_before;

static inline bool __attribute__((always_inline))
receive_counted(struct tk_device *device, unsigned variant)
{
    struct tk_conn *conn;
    struct ibv_wc wc;
    if (take(device, &wc, &conn, variant) <= 0)
        return tk_count_empty_poll(tk_counter_empty_polls_network);
    if (variant & SHARED)
        tk_shared_receive_counted(device, conn, &wc, found_before);
    else
        tk_receive_counted(device, &wc, found_before);
    return true;
}

static inline bool __attribute__((always_inline)) receive(unsigned variant)
{
    bool any = false;
    struct tk_device *device = &tk_verbs.device;
    do {
        any |=
            variant & FAILOVER ? receive_counted(device, variant) : receive_batch(device, variant);
        device = device->next;
    } while (variant & DEVICES && device);
    if (variant & FAILOVER)
        found_before = any;
    return any;
}

/* ---- polls ---- */

static inline bool __attribute__((always_inline)) reap(unsigned variant)
{
    return variant & DEVICES ? tk_devices_reap() : tk_verbs_reap();
}

static inline bool __attribute__((always_inline)) work(unsigned variant)
{
    bool any = tk_work_is_pending();
    any |= reap(variant);
    if (variant & SHARED && tk_counter_read(&tk_verbs.rndv_count) > 0)
        any |= tk_shared_read_on();
    return any;
}

static inline bool __attribute__((always_inline)) work_logged(unsigned variant)
{
    if (tk_counter_read(&tk_verbs.pending_work) > 0)
        tk_acks_send();
    bool any = reap(variant);
    return any | tk_deferred_hand_up();
}

static inline bool __attribute__((always_inline)) poll_working(unsigned variant)
{
    bool any = variant & FAILOVER ? work_logged(variant) : work(variant);
    return receive(variant) || any;
}

static inline bool __attribute__((always_inline)) poll_others(unsigned variant)
{
    bool any = tk_lanes_reap_others();
    return receive(variant) || any;
}

typedef bool poll_function(void);

/* `working` and `others` are not inline, so that the common path saves no registers for their
 * results. */
static inline bool __attribute__((always_inline))
poll(unsigned variant, poll_function *working, poll_function *others)
{
    tk_if_unlikely(tk_lane_out(tk_lane_hint()) |
                   tk_counter_read(&tk_verbs.pending_work)) return working();
    tk_if_unlikely(variant & FAILOVER && tk_deferred_has_some()) return working();
    tk_if_unlikely(tk_lanes_are_due()) return others();
    return receive(variant);
}

/* ---- reaping in failover groups ---- */

static inline void __attribute__((always_inline))
receive_one_later(struct tk_device *device, struct tk_conn *conn, const struct ibv_wc *wc,
                  unsigned variant)
{
    if (variant & SHARED)
        tk_shared_receive_later(conn, device->srq, wc);
    else
        tk_receive_later(wc);
}

static inline bool __attribute__((always_inline))
receive_later(struct tk_device *device, unsigned variant)
{
    struct tk_conn *conn = NULL;
    struct ibv_wc wc;
    int count = 0;
    while (count < tk_poll_batch && take(device, &wc, &conn, variant) > 0) {
        receive_one_later(device, conn, &wc, variant);
        count++;
    }
    return count > 0;
}

/* A handler that waits for space may wait until a connection is moved, which needs messages from
 * the other end. So this receives, and defers messages for handlers. */
static inline bool __attribute__((always_inline)) reap_moving(unsigned variant)
{
    bool any = reap(variant);
    tk_acks_send();
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        any |= receive_later(device, variant);
    return any;
}

static inline bool __attribute__((always_inline)) reap_pending(unsigned variant)
{
    return variant & SHARED || tk_work_is_open() ? reap_moving(variant) : reap(variant);
}

static inline bool __attribute__((always_inline))
reap_logged(unsigned variant, poll_function *pending)
{
    tk_if_unlikely(tk_counter_read(&tk_verbs.pending_work) != 0) return pending();
    return reap(variant);
}

/* ---- the instances ---- */

#define POLL(name, variant)                                                                        \
    static bool __attribute__((noinline)) name##_poll_working(void)                                \
    {                                                                                              \
        return poll_working(variant);                                                              \
    }                                                                                              \
    static bool __attribute__((noinline)) name##_poll_others(void)                                 \
    {                                                                                              \
        return poll_others(variant);                                                               \
    }                                                                                              \
    bool name##_poll(void)                                                                         \
    {                                                                                              \
        return poll(variant, name##_poll_working, name##_poll_others);                             \
    }

#define POLL_AND_REAP(name, variant)                                                               \
    POLL(name, variant)                                                                            \
    static bool __attribute__((noinline)) name##_reap_pending(void)                                \
    {                                                                                              \
        return reap_pending(variant);                                                              \
    }                                                                                              \
    bool name##_reap(void)                                                                         \
    {                                                                                              \
        return reap_logged(variant, name##_reap_pending);                                          \
    }

POLL(tk_verbs, 0)
POLL(tk_devices, DEVICES)
POLL(tk_shared, SHARED)
POLL(tk_shared_devices, SHARED | DEVICES)
POLL_AND_REAP(tk_logged, FAILOVER)
POLL_AND_REAP(tk_logged_devices, FAILOVER | DEVICES)
POLL_AND_REAP(tk_shared_logged, FAILOVER | SHARED)
POLL_AND_REAP(tk_shared_logged_devices, FAILOVER | SHARED | DEVICES)
