/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decision which functions a job uses. No state: open.c asks once, when all ranks have agreed
 * on what they share, and fills the transport's table from the answer.
 *
 *     failover  shared queues  XRC  devices | sends   RMA     poll           reap
 *     no        no             no   one     | plain   plain   verbs          verbs
 *     no        no             no   several | plain   plain   devices        devices
 *     no        yes            no   one     | plain   plain   shared         verbs
 *     no        yes            no   several | plain   plain   shared         devices
 *     no        yes            yes  one     | plain   XRC     shared         verbs
 *     no        yes            yes  several | plain   XRC     shared         devices
 *     yes       no             no   any     | logged  logged  logged         logged
 *     yes       yes            no   any     | logged  logged  shared_logged  shared_logged
 *
 * The other combinations do not occur; conn/xrc_agree.c prevents them. XRC requires shared receive
 * queues: a request names the queue of its receiver. XRC excludes failover: a shared queue pair
 * could not be drained for one peer. */
#include "config.h"

#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/rma_post.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/variants.h"
#include "transport/verbs/verbs_private.h"

enum {
    FAILOVER = TK_VARIANT_FAILOVER,
    SHARED = TK_VARIANT_SHARED,
    XRC = TK_VARIANT_XRC,
    DEVICES = TK_VARIANT_DEVICES
};

#define SENDS(name)                                                                                \
    .send_short = name##_send_short, .send_small = name##_send_small,                              \
    .send_medium = name##_send_medium
#define RMA(name)                                                                                  \
    .put = name##_put, .put_from = name##_put_from, .payload_from = name##_payload_from,           \
    .get = name##_get
#define POLLS(polls, reaps) .poll = polls, .reap = reaps

#define PLAIN    SENDS(tk_verbs), RMA(tk_verbs)
#define OVER_XRC SENDS(tk_verbs), RMA(tk_xrc)
#define LOGGED   SENDS(tk_logged), RMA(tk_logged)

/* The polls of shared queues and of failover groups serve one device and several. */
static const struct tk_verbs_variant variants[tk_variants] = {
    [0] = {PLAIN, POLLS(tk_verbs_poll, tk_verbs_reap)},
    [DEVICES] = {PLAIN, POLLS(tk_devices_poll, tk_devices_reap)},
    [SHARED] = {PLAIN, POLLS(tk_shared_poll, tk_verbs_reap)},
    [SHARED | DEVICES] = {PLAIN, POLLS(tk_shared_poll, tk_devices_reap)},
    [SHARED | XRC] = {OVER_XRC, POLLS(tk_shared_poll, tk_verbs_reap)},
    [SHARED | XRC | DEVICES] = {OVER_XRC, POLLS(tk_shared_poll, tk_devices_reap)},
    [FAILOVER] = {LOGGED, POLLS(tk_logged_poll, tk_logged_reap)},
    [FAILOVER | DEVICES] = {LOGGED, POLLS(tk_logged_poll, tk_logged_reap)},
    [FAILOVER | SHARED] = {LOGGED, POLLS(tk_shared_logged_poll, tk_shared_logged_reap)},
    [FAILOVER | SHARED | DEVICES] = {LOGGED, POLLS(tk_shared_logged_poll, tk_shared_logged_reap)},
};

const struct tk_verbs_variant *tk_verbs_variant_of(unsigned conditions)
{
    return conditions < tk_variants && variants[conditions].poll ? &variants[conditions] : NULL;
}

unsigned tk_verbs_conditions(void)
{
    return (tk_verbs.failover_enabled ? TK_VARIANT_FAILOVER : 0u) |
           (tk_srq_in_use() ? TK_VARIANT_SHARED : 0u) | (tk_xrc_in_use() ? TK_VARIANT_XRC : 0u) |
           (tk_verbs.device_count > 1 ? TK_VARIANT_DEVICES : 0u);
}
