/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides which functions this rank uses. Owns the table that its peers get; it is written once, at
 * start-up, when all ranks have agreed on XRC. The columns of polls and reaps name functions
 * without tk_ and _poll or _reap.
 *
 * failover shared queues XRC devices |sends  RMA    poll                   reap
 * no       no            no  one     |plain  plain  verbs                  verbs
 * no       no            no  several |plain  plain  devices                devices
 * no       yes           no  one     |plain  plain  shared                 verbs
 * no       yes           no  several |plain  plain  shared_devices         devices
 * no       yes           yes one     |plain  XRC    shared                 verbs
 * no       yes           yes several |plain  XRC    shared_devices         devices
 * yes      no            no  one     |logged logged logged                 logged
 * yes      no            no  several |logged logged logged_devices         logged_devices
 * yes      yes           no  one     |logged logged shared_logged          shared_logged
 * yes      yes           no  several |logged logged shared_logged_devices  shared_logged_devices
 *
 * In PAR, with several connections to a peer and neither failover nor XRC, puts and gets are those
 * that spread: each thread uses a connection of its own.
 *
 * The other combinations do not occur; conn/xrc_agree.c prevents them. XRC requires shared receive
 * queues: a request names the queue of its receiver. XRC excludes failover: a shared queue pair
 * could not be drained for one peer. */
#include "config.h"

#include "base/bits.h"
#include "base/report.h"
#include "transport/transport.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/data/rma_post.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/variants.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

enum {
    FAILOVER = TK_VARIANT_FAILOVER,
    SHARED = TK_VARIANT_SHARED,
    XRC = TK_VARIANT_XRC,
    DEVICES = TK_VARIANT_DEVICES
};

#define SENDS(name)                                                                                \
    .send_short = name##_send_short, .send_small = name##_send_small,                              \
    .send_medium = name##_send_medium, .send_long = name##_send_long
#define RMA(name)           .put = name##_put, .put_from = name##_put_from, .get = name##_get
#define POLLS(polls, reaps) .poll = polls, .reap = reaps

#define PLAIN    SENDS(tk_verbs), RMA(tk_verbs)
#define OVER_XRC SENDS(tk_verbs), RMA(tk_xrc)
#define LOGGED   SENDS(tk_logged), RMA(tk_logged)

static const struct tk_verbs_variant variants[tk_variants] = {
    [0] = {PLAIN, POLLS(tk_verbs_poll, tk_verbs_reap)},
    [DEVICES] = {PLAIN, POLLS(tk_devices_poll, tk_devices_reap)},
    [SHARED] = {PLAIN, POLLS(tk_shared_poll, tk_verbs_reap)},
    [SHARED | DEVICES] = {PLAIN, POLLS(tk_shared_devices_poll, tk_devices_reap)},
    [SHARED | XRC] = {OVER_XRC, POLLS(tk_shared_poll, tk_verbs_reap)},
    [SHARED | XRC | DEVICES] = {OVER_XRC, POLLS(tk_shared_devices_poll, tk_devices_reap)},
    [FAILOVER] = {LOGGED, POLLS(tk_logged_poll, tk_logged_reap)},
    [FAILOVER | DEVICES] = {LOGGED, POLLS(tk_logged_devices_poll, tk_logged_devices_reap)},
    [FAILOVER | SHARED] = {LOGGED, POLLS(tk_shared_logged_poll, tk_shared_logged_reap)},
    [FAILOVER | SHARED |
        DEVICES] = {LOGGED, POLLS(tk_shared_logged_devices_poll, tk_shared_logged_devices_reap)},
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

struct tk_transport tk_verbs_chosen;

/* A Long of less than two pieces is not striped. */
static size_t stripe_min(void)
{
    const struct tk_rma_limits *limits = &tk_verbs.rma_limits;
    if (tk_verbs.conns_pp == 1)
        return 0;
    return tk_max(2 * limits->blocking_stripe, limits->stripe_above[true] + 1);
}

static void variants_spread(struct tk_transport *chosen)
{
    chosen->rma.put = tk_spread_put;
    chosen->rma.put_from = tk_spread_put_from;
    chosen->rma.get = tk_spread_get;
}

void tk_verbs_variant_choose(const struct tk_transport *plain)
{
    const struct tk_verbs_variant *variant = tk_verbs_variant_of(tk_verbs_conditions());
    struct tk_transport *chosen = &tk_verbs_chosen;
    if (!variant)
        tk_panic("no functions for failover %d, shared receive queues %d and XRC %d together",
                 tk_verbs.failover_enabled, tk_srq_in_use(), tk_xrc_in_use());
    *chosen = *plain;
    chosen->am.stripe_min = stripe_min();
    chosen->am.send_short = variant->send_short;
    chosen->am.send_small = variant->send_small;
    chosen->am.send_medium = variant->send_medium;
    chosen->am.send_long = variant->send_long;
    chosen->rma.put = variant->put;
    chosen->rma.put_from = variant->put_from;
    chosen->rma.get = variant->get;
    if (tk_lanes_spread() && !tk_xrc_in_use())
        variants_spread(chosen);
    chosen->poll = variant->poll;
    chosen->reap = chosen->reap_in_handler = variant->reap;
}

const struct tk_transport *tk_verbs_transport(void)
{
    return &tk_verbs_chosen;
}
