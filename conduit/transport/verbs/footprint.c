/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that the verbs transport uses in a job of a given shape, computed from the sizes that
 * open.c and its callees allocate. The launcher contains this file too, so it uses no state of a
 * job. Memory that a driver allocates for queue pairs and completion queues is not included. */
#include "config.h"

#include <limits.h>
#include <string.h>

#include "base/bits.h"
#include "settings/settings.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/datagram_private.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/conn/xrc_table.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

static bool fails_over(const struct tk_job_shape *shape)
{
    return tk_verbs_fails_over(shape->conns);
}

/* How many of the peers are connected at once (GASNET_CONNECT_MAX). */
static uint32_t open_peers(const struct tk_job_shape *shape)
{
    return tk_verbs_peers_at_once(shape->connected, shape->conns, shape->is_static);
}

/* A slab of message buffers, and its descriptors. */
static void add_buffers(struct tk_footprint *total, const struct tk_job_shape *shape, size_t count,
                        size_t size)
{
    total->registered += tk_align_up(tk_slab_area_bytes(count, size), tk_page_size());
    total->private_bytes +=
        tk_slab_bytes(count) + tk_registration_bytes(shape->rails, shape->devices);
}

/* Buffers wanted by a rank with so many connected peers that expects so many more; primary
 * connections are distributed by rank number. */
static unsigned wanted(const struct tk_job_shape *shape, const struct tk_verbs_limits *limits,
                       uint32_t rail, uint32_t peers, uint32_t more)
{
    uint32_t primaries = tk_verbs_conns_on(peers, shape->rails, rail) + more;
    uint32_t most = tk_verbs_conns_on(tk_shape_peers(shape), shape->rails, rail);
    const struct tk_verbs_receivers receivers = {
        .primaries = (uint32_t)tk_min(primaries, most),
        .conns = (peers + more) * tk_verbs_conns_on(shape->conns, shape->rails, rail),
        .notices = fails_over(shape) ? tk_notice_buffers_max : 0,
        .is_threaded = shape->is_threaded};
    return tk_verbs_receive_buffers(limits, &receivers);
}

/* Do all connections of a device, which allows `most` buffers in a queue, share its pool? */
static bool is_shared(const struct tk_job_shape *shape, const struct tk_verbs_limits *limits,
                      int most, struct tk_loan_plan *plan)
{
    uint32_t conns = tk_verbs_peers_at_once(tk_shape_peers(shape), shape->conns, shape->is_static);
    struct tk_loan_input input = {.conns = (int)conns,
                                  .credits_pp = limits->credits_pp,
                                  .credits_total = limits->credits_total,
                                  .notices = tk_srq_notices(shape->conns, fails_over(shape), false),
                                  .held = (int)tk_verbs_spares(shape->is_threaded),
                                  .bounded = tk_srq_bounded(shape->ranks, fails_over(shape))};
    return tk_verbs_srq_wish(&input, shape->ranks) &&
           tk_verbs_srq_fits(&input, (int)conns, most, plan);
}

/* How many of `peers` send to a device: all of them in a failover group. */
static uint32_t peers_on(const struct tk_job_shape *shape, uint32_t peers, uint32_t device)
{
    return fails_over(shape) ? peers : tk_verbs_conns_on(peers, shape->devices, device);
}

static void add_shared(struct tk_footprint *total, const struct tk_job_shape *shape,
                       const struct tk_loan_plan *plan, uint32_t device)
{
    uint32_t devices = shape->devices, all = open_peers(shape);
    size_t size = tk_verbs_shared_buffer(fails_over(shape));
    unsigned have = 0;
    for (uint32_t peers = shape->is_static ? all : 0; peers <= all; peers++) {
        int conns = (int)peers_on(shape, peers, device);
        unsigned stock = (unsigned)tk_loan_stock(plan, conns).buffers;
        unsigned more = tk_verbs_pool_growth(have, tk_verbs_shared_pool(stock, size));
        if (more > 0)
            add_buffers(total, shape, more, size);
        have += more;
    }
    uint32_t joined = all / devices, loans = all / devices;
    if (fails_over(shape)) {
        joined = all * tk_verbs_conns_on(shape->conns, devices, device);
        loans = device == 0 ? all : 0;
    }
    joined += shape->is_static ? 0 : tk_verbs_conns_on(shape->rails, devices, device);
    total->private_bytes += tk_srq_bytes(joined) + loans * sizeof(struct tk_loan);
}

/* Receive buffers are made all at once or, on demand, as peers are connected one after the other,
 * with those for the next peer. */
static void add_receive_buffers(struct tk_footprint *total, const struct tk_job_shape *shape,
                                const struct tk_verbs_limits *limits, uint32_t rail)
{
    uint32_t peers = shape->is_static ? shape->connected : 0, all = open_peers(shape);
    uint32_t most =
        shape->is_static ? 0 : tk_verbs_peers_at_once(tk_shape_peers(shape), shape->conns, false);
    unsigned have = wanted(shape, limits, rail, peers, peers < most);
    if (have > 0)
        add_buffers(total, shape, have, tk_buffer_size);
    while (peers++ < all) {
        unsigned more =
            tk_verbs_pool_growth(have, wanted(shape, limits, rail, peers, peers < most));
        if (more > 0)
            add_buffers(total, shape, more, tk_buffer_size);
        have += more;
    }
}

static void add_datagrams(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    int receives = (int)tk_verbs_datagram_receives(tk_shape_peers(shape));
    int sends = (int)tk_settings.connect_snds;
    if (shape->is_static)
        return;
    total->queue_pairs += shape->rails;
    total->registered += shape->rails * tk_datagrams_registered(receives, sends);
    total->private_bytes +=
        sizeof(struct tk_datagrams) + shape->rails * tk_datagrams_bytes(receives, sends);
}

/* Tables by rank, connected or not. The ranks of a host mostly have the same ports, with one GID
 * or, with IPv4 and IPv6, two. */
enum { gids_usual = 2 };
static void add_tables(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    uint32_t ranks = shape->ranks, rails = shape->rails;
    total->private_bytes += tk_conns_of_bytes(ranks) + tk_kinds_bytes(ranks) +
                            (fails_over(shape) ? tk_pairs_bytes(ranks) : 0);
    tk_footprint_add_table(total, shape,
                           tk_places_bytes(ranks, rails) + shape->hosts * rails *
                                                               tk_address_units(gids_usual) *
                                                               sizeof(uint32_t));
}

static uint64_t of_a_peer(const struct tk_job_shape *shape, const struct tk_verbs_limits *limits)
{
    return tk_conns_bytes(shape->conns) +
           (fails_over(shape) ? shape->conns * tk_tx_log_bytes((size_t)limits->depth_pp) : 0);
}

/* Do neighbours share queue pairs, provided that the devices support it? */
static bool has_xrc(const struct tk_job_shape *shape)
{
    return shape->nbrhd > 1 && tk_verbs_xrc_wish(shape->is_static) &&
           shape->conns <= tk_xrc_conns_max;
}

/* A process has a sender to each neighbourhood, for each connection of a pair. A neighbourhood has
 * a target for each connected process, and each of its processes makes its share. */
static uint64_t shared_queue_pairs(const struct tk_job_shape *shape)
{
    uint64_t groups = (shape->connected + shape->nbrhd - 1) / shape->nbrhd;
    return 2 * groups * shape->conns;
}

static void add_queue_pairs(struct tk_footprint *total, const struct tk_job_shape *shape,
                            bool shares)
{
    if (!shares || !has_xrc(shape)) {
        bool ahead = !shape->is_static &&
                     tk_verbs_makes_ahead(tk_shape_peers(shape), shape->connected, shape->conns);
        total->queue_pairs += (uint64_t)open_peers(shape) * shape->conns + ahead;
        total->private_bytes += ahead ? tk_conns_bytes(1) : 0;
        return;
    }
    total->queue_pairs += shared_queue_pairs(shape);
    total->private_bytes += tk_xrc_private_bytes(shape->ranks, shape->conns);
    total->shared +=
        tk_align_up(tk_xrc_table_bytes(shape->ranks, shape->conns), tk_page_size()) / shape->nbrhd;
}

bool tk_verbs_shares(const struct tk_job_shape *shape, int most, struct tk_verbs_limits *limits,
                     struct tk_loan_plan *plan)
{
    tk_verbs_limits_find(limits, tk_shape_peers(shape), shape->conns);
    return is_shared(shape, limits, most, plan);
}

bool tk_verbs_offers_xrc(const struct tk_job_shape *shape)
{
    struct tk_verbs_limits limits;
    struct tk_loan_plan plan;
    if (tk_shape_peers(shape) == 0)
        return false;
    return tk_verbs_shares(shape, INT_MAX, &limits, &plan) && tk_verbs_xrc_wish(shape->is_static) &&
           shape->conns <= tk_xrc_conns_max;
}

void tk_verbs_footprint(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    struct tk_verbs_limits limits;
    struct tk_loan_plan plan;
    if (tk_shape_peers(shape) == 0)
        return;
    bool shares = tk_verbs_shares(shape, INT_MAX, &limits, &plan);
    for (uint32_t i = 0; shares && i < shape->devices; i++)
        add_shared(total, shape, &plan, i);
    total->private_bytes += sizeof(struct tk_rndv_state);
    if (shares && tk_verbs_shared_buffer(fails_over(shape)) < tk_buffer_size)
        add_buffers(total, shape, tk_verbs_landings(shape->is_threaded), tk_buffer_size);
    for (uint32_t i = 0; !shares && i < shape->rails; i++)
        add_receive_buffers(total, shape, &limits, i);
    add_buffers(total, shape, (size_t)limits.bounces, tk_buffer_size);
    add_datagrams(total, shape);
    add_queue_pairs(total, shape, shares);
    add_tables(total, shape);
    total->private_bytes += shape->connected * of_a_peer(shape, &limits) +
                            tk_conns_bytes(shape->conns) + /* those of `nobody` */
                            tk_txs_bytes((size_t)limits.depth_total) +
                            shape->rails * sizeof(struct tk_rail);
}
