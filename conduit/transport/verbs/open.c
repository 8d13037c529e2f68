/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of the verbs transport: fills tk_verbs (verbs.c), and owns the plain table, from
 * which variants.c makes the table of this rank. No lock: start-up and exit are single-threaded. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "firehose/firehose.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "topology/topology.h"
#include "transport/connect_record.h"
#include "transport/transport.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/conn/psn.h"
#include "transport/verbs/conn/unconnected.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/data/atomic.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/events.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/queues.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/data/rma_post.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/failover/async_events.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/library.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/mcast/link.h"
#include "transport/verbs/variants.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

/* Where threads spread over connections, those that use different ones share no lane: which of them
 * run at the same time is not known. */
static uint32_t lanes_wanted(void)
{
    size_t wanted = tk_topology.cpus;
    if (tk_lanes_spread())
        wanted = tk_max(wanted, tk_verbs.conns_pp);
    return (uint32_t)tk_min(wanted, tk_lanes_max);
}

static void derive_limits(uint32_t peers)
{
    struct tk_verbs *v = &tk_verbs;
    struct tk_verbs_limits limits;
    tk_verbs_limits_find(&limits, peers, v->conns_pp);
    v->credits_pp = limits.credits_pp;
    v->peers = peers;
    tk_srq_choose(peers, limits.credits_total);
    size_t shared = tk_verbs_shared_buffer(v->failover_enabled);
    v->small_max = (uint32_t)shared; /* the same size in all ranks */
    v->recv_small = tk_srq_in_use() && shared < tk_buffer_size ? (uint32_t)shared : 0;
    const struct tk_verbs_credits credits =
        tk_verbs_credits_find(&limits, tk_srq_in_use() ? &v->srq_plan : NULL, peers);
    v->credits_all = credits.total;
    tk_counter_set(&v->credits_total, credits.total);
    v->is_total_bound = credits.is_total_bound;
    v->slack = credits.slack;
    v->batch_slack = credits.batch_slack;
    v->depth_pp = limits.depth_pp;
    v->depth_total = limits.depth_total;
    v->bounces = limits.bounces;
    v->lane_count = lanes_wanted();
}

static enum tk_status open_tx(void)
{
    size_t size = tk_txs_bytes((size_t)tk_verbs.depth_total);
    tk_verbs.txs = aligned_alloc(TK_CACHE_LINE, size);
    if (!tk_verbs.txs) {
        tk_log_error("out of memory for %d work requests", tk_verbs.depth_total);
        return TK_FAIL;
    }
    memset(tk_verbs.txs, 0, size);
    tk_lanes_open();
    return TK_OK;
}

/* On demand, buffers come with their connections, except for the first one. */
static enum tk_status open_recv_buffers(struct tk_rail *rail)
{
    uint32_t number = (uint32_t)(rail - tk_verbs.rails), peers = rail->peers;
    uint32_t conns =
        tk_verbs.peers * tk_verbs_conns_on(tk_verbs.conns_pp, tk_verbs.rail_count, number);
    if (!tk_verbs.is_static)
        conns = peers = 0;
    return tk_recv_pool_open(rail, tk_recv_buffers_wanted(conns, peers));
}

static enum tk_status open_buffers(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count && !tk_srq_in_use(); i++)
        if (open_recv_buffers(&tk_verbs.rails[i]) != TK_OK)
            return TK_FAIL;
    if (!tk_verbs.is_static && tk_pair_make_ahead() != TK_OK)
        return TK_FAIL;
    if (tk_srq_in_use() && tk_srqs_open() != TK_OK)
        return TK_FAIL;
    if (tk_rndv_open() != TK_OK)
        return TK_FAIL;
    return tk_bounce_pool_open((unsigned)tk_verbs.bounces);
}

static inline bool is_for_us(uint32_t rank)
{
    return rank != tk_peers.me && !tk_peer(rank)->transport;
}

static uint32_t count_peers(void)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        count += is_for_us(r);
    return count;
}

static uint32_t rail_of_conn(uint32_t number)
{
    return number % tk_verbs.rail_count;
}

/* Assigns each peer the rail of small transfers to it. */
static void deal_peers(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (!is_for_us(r))
            continue;
        tk_peers.rail_to[r] = rail_of_conn(tk_primary_number(r));
        tk_verbs.rails[tk_peers.rail_to[r]].peers++;
    }
}

static enum tk_status open_conns_to(uint32_t rank, struct tk_peer_info *info)
{
    struct tk_conn *conns;
    if (tk_pair_open(rank, &conns) != TK_OK)
        return TK_FAIL;
    tk_verbs.conns_of[rank] = conns; /* the peer may still get another transport */
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        if (tk_cm_expect_greeting(&conns[k]) != TK_OK)
            return TK_FAIL;
        if (info->numbers > 0)
            tk_peer_info_qps(info, rank)[k] = conns[k].qp->qp_num;
    }
    return tk_pair_fill(conns);
}

/* Almost half of the queue. The other half keeps a flood going until a completion comes. If nothing
 * else is in flight, no completion comes: work that takes several slots at once, such as an
 * immediate Long, must find them in the other half. */
static int unsignaled_max(int depth)
{
    enum { at_once = 2 };
    return (depth - at_once) / 2;
}

/* Enough to save most completions; more buffers in turn would leave the first level of the cache.
 * Connections without traffic keep the buffers, and must leave half of them to others. */
static int unsignaled_bounces_max(const struct tk_verbs *v)
{
    enum { at_most = 3, kept_of = 2 };
    size_t share = (size_t)v->bounces / kept_of / v->peers;
    return (int)tk_min(share, tk_min(at_most, (size_t)v->unsignaled_max));
}

/* Nearly all Shorts are small and go unsignaled, so their path compares with this number anyway. It
 * is 0 if the devices would not take them inline: so that path need not check the inline limit. */
static void allow_unsignaled(void)
{
    struct tk_verbs *v = &tk_verbs;
    v->logged_unsignaled_max = unsignaled_max(v->depth_pp);
    v->unsignaled_max = v->failover_enabled ? 0 : v->logged_unsignaled_max;
    if (v->inline_limit < tk_short_size(tk_small_args_max))
        v->unsignaled_max = v->logged_unsignaled_max = 0;
    v->unsignaled_bounces_max = unsignaled_bounces_max(v);
}

static enum tk_status open_conns(struct tk_peer_info *info)
{
    if (tk_psn_secret_draw(info) != TK_OK)
        return TK_FAIL;
    if (tk_conns.datagrams && tk_datagrams_open(info) != TK_OK)
        return TK_FAIL;
    if (tk_conn_probe() != TK_OK)
        return TK_FAIL;
    for (uint32_t r = 0; tk_verbs.is_static && r < tk_peers.size; r++)
        if (is_for_us(r) && open_conns_to(r, info) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

/* An inline message may have to be sent again: then it must fit into a log entry. */
static size_t inline_limit(void)
{
    int64_t limit = tk_settings.inlinesend_limit;
    int most = tk_verbs.failover_enabled ? tk_unsignaled_max : tk_inline_max;
    return limit < 0 || limit > most ? (size_t)most : (size_t)limit;
}

static bool any_by_cm(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].by_cm)
            return true;
    return false;
}

static bool all_by_cm(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (!tk_verbs.rails[i].by_cm)
            return false;
    return true;
}

/* There is only one method of connecting on demand. */
static bool cm_connects_all(void)
{
    return any_by_cm() && !all_by_cm();
}

/* Are all ranks connected by the queue pair numbers in the peer infos? */
static bool connects_all(void)
{
    return cm_connects_all() ||
           (tk_connect_is_static() && (any_by_cm() || !tk_verbs_static_asks(tk_verbs.conns_pp)));
}

static const char *when_connected(void)
{
    if (!tk_verbs.is_static && tk_connect_is_static())
        return "all are made at start-up, as ranks ask for them";
    if (!tk_verbs.is_static)
        return "each is made when one of its ranks first uses the other";
    return cm_connects_all() ? "all are made at start-up, as librdmacm makes them"
                             : "all are made at start-up";
}

static void describe_receives(char *text, size_t size)
{
    if (tk_verbs.recv_small)
        snprintf(text, size, "%u bytes, larger messages are read from their senders",
                 tk_verbs.recv_small);
    else
        snprintf(text, size, "any message%s",
                 tk_srq_in_use() && tk_verbs.failover_enabled && tk_settings.rbuf_size > 0
                     ? ", because ports fail over"
                     : "");
}

void tk_verbs_describe_connections(char *text, size_t size)
{
    char receives[80];
    describe_receives(receives, sizeof(receives));
    snprintf(text, size, "%s; %s; receive buffers hold %s", when_connected(), tk_xrc_describe(),
             receives);
}

/* most == 0: as many as the settings say */
static enum tk_status choose_rails(struct tk_choice *choice, uint32_t turn, uint32_t most)
{
    enum tk_status status = most > 0 ? tk_rails_choose_few(choice, turn, most)
                                     : tk_rails_choose(choice, turn, tk_rails_share);
    tk_verbs.rails = choice->rails;
    if (status != TK_OK || choice->count == 0)
        return status;
    tk_verbs.rail_count = tk_peers.rails = choice->count;
    tk_verbs.conns_pp = (uint32_t)tk_max(choice->count, (size_t)tk_settings.num_qps);
    if (tk_verbs.conns_pp > tk_conns_max) {
        tk_log_error("%u queue pairs to each peer (%u ports, GASNET_NUM_QPS=%u) are more than %d",
                     tk_verbs.conns_pp, choice->count, (unsigned)tk_settings.num_qps, tk_conns_max);
        return TK_FAIL;
    }
    if (tk_cm_choose() != TK_OK)
        return TK_FAIL;
    /* On iWARP a completion means that TCP has the data, not that it arrived (RFC 5040 5.5): we
     * can't know what a broken connection lost, so we can't send it again. */
    tk_verbs.failover_enabled = tk_verbs_fails_over(tk_verbs.conns_pp) && !tk_verbs.has_iwarp;
    tk_verbs.needs_more = tk_verbs.failover_enabled;
    tk_verbs.message_max = UINT32_MAX;
    for (uint32_t i = 0; i < choice->count; i++)
        tk_verbs.message_max = (uint32_t)tk_min(tk_verbs.message_max, choice->rails[i].message_max);
    tk_verbs.inline_limit = inline_limit();
    tk_paging_choose();
    tk_verbs.is_static = connects_all();
    tk_atomics_allow();
    return TK_OK;
}

/* Makes space in the peer info for the description of rails and connections; may reallocate it. */
static enum tk_status widen(struct tk_peer_info **info, const char *unused)
{
    struct tk_peer_info wide = **info;
    wide.rails = tk_verbs.rail_count;
    wide.conns = tk_verbs.conns_pp;
    /* librdmacm carries the numbers of queue pairs. */
    wide.numbers = tk_verbs.is_static && !all_by_cm() ? tk_verbs.conns_pp : 0;
    wide.cm_places = any_by_cm() ? tk_verbs.rail_count : 0;
    wide.unused_size = (uint32_t)strlen(unused) + 1;
    struct tk_peer_info *moved = realloc(*info, tk_peer_info_size(&wide));
    if (!moved) {
        tk_log_error("out of memory for the description of ports (%zu bytes)",
                     tk_peer_info_size(&wide));
        return TK_FAIL;
    }
    *moved = wide;
    memset(moved + 1, 0, tk_peer_info_size(moved) - sizeof(*moved));
    strcpy(tk_peer_info_unused(moved), unused);
    *info = moved;
    return TK_OK;
}

static enum tk_status check_bound(void)
{
    uint64_t max = (uint64_t)tk_settings.connect_max,
             all = (uint64_t)tk_verbs.peers * tk_verbs.conns_pp;
    if (max == 0)
        return TK_OK;
    if (tk_verbs.is_static && all > max)
        tk_log_error(
            "GASNET_CONNECT_MAX=%u is less than the %u queue pairs to %u peers that are all "
            "connected at start-up: with GASNET_CONNECT_STATIC=0, without rdmacm, it may be; "
            "else legal are 0 (no bound) and %u or more",
            (unsigned)max, (unsigned)all, tk_verbs.peers, (unsigned)all);
    else if (any_by_cm() && all > max)
        tk_log_error("GASNET_CONNECT_MAX=%u is less than the %u queue pairs to %u peers, and what "
                     "librdmacm connected is not closed for others: legal are 0 (no bound) and %u "
                     "or more, or GASNET_IBV_CONNECT=verbs",
                     (unsigned)max, (unsigned)all, tk_verbs.peers, (unsigned)all);
    else if (tk_verbs.conns_pp > max)
        tk_log_error(
            "GASNET_CONNECT_MAX=%u is less than the %u queue pairs to each peer (%u ports, "
            "GASNET_NUM_QPS=%u); legal are 0 (no bound) and %u or more",
            (unsigned)max, tk_verbs.conns_pp, tk_verbs.rail_count, (unsigned)tk_settings.num_qps,
            tk_verbs.conns_pp);
    else
        return TK_OK;
    return TK_FAIL;
}

static enum tk_status open_all(struct tk_peer_info **info, uint32_t turn, uint32_t most)
{
    struct tk_choice choice;
    if (choose_rails(&choice, turn, most) != TK_OK)
        return TK_FAIL;
    if (choice.count == 0) /* tk_verbs_agree() reports that from the peer infos */
        return widen(info, choice.unused);
    derive_limits(count_peers());
    if (check_bound() != TK_OK)
        return TK_FAIL;
    tk_devices_use();
    if (tk_queues_check() != TK_OK || widen(info, choice.unused) != TK_OK)
        return TK_FAIL;
    deal_peers();
    if (!tk_verbs.is_static && !any_by_cm() && tk_datagrams_prepare() != TK_OK)
        return TK_FAIL;
    if (tk_nobody_open() != TK_OK || tk_cm_open() != TK_OK || tk_queues_open() != TK_OK)
        return TK_FAIL;
    tk_xrc_offer(*info);
    if (open_tx() != TK_OK || tk_failover_open() != TK_OK || open_buffers() != TK_OK)
        return TK_FAIL;
    tk_events_open();
    if (open_conns(*info) != TK_OK)
        return TK_FAIL;
    allow_unsignaled();
    return TK_OK;
}

static enum tk_status open_few(struct tk_peer_info **info, uint32_t turn, uint32_t most)
{
    if (open_all(info, turn, most) != TK_OK)
        return TK_FAIL;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        *tk_peer_info_rail(*info, i) = tk_verbs.rails[i].address;
    tk_cm_publish(*info);
    (*info)->credits = (uint32_t)tk_srq_credits_base();
    (*info)->whole_max = tk_recv_size();
    (*info)->recv_min = tk_verbs.recv_min;
    (*info)->slack = (uint16_t)tk_verbs.slack;
    (*info)->has_bounded = tk_srq_in_use() && tk_verbs.srq_plan.bounded > 0;
    return TK_OK;
}

enum tk_status tk_verbs_open(struct tk_peer_info **info, uint32_t turn)
{
    return open_few(info, turn, 0);
}

static enum tk_status verbs_narrow(struct tk_peer_info **info, uint32_t turn, bool *is_again)
{
    uint32_t most = tk_rails_in_common();
    if (most == 0)
        return TK_OK;
    *is_again = true;
    tk_verbs_close();
    return open_few(info, turn, most);
}

static enum tk_status connect_to(uint32_t rank)
{
    const struct tk_peer_info *info = tk_peer_info_of(rank);
    struct tk_conn *conns = tk_conns_to(rank);
    const uint32_t *qps = info->numbers ? tk_peer_info_qps(info, tk_peers.me) : NULL;
    if (tk_pair_connect(conns, qps, (int)info->credits) != TK_OK)
        return TK_FAIL;
    tk_peer(rank)->transport = tk_verbs_transport();
    tk_pair_publish(rank, conns);
    return TK_OK;
}

/* For each host: does it use several devices? If so, two of its ranks that share memory may receive
 * through different devices. The caller frees the result. */
static bool *find_mixed(const uint32_t *host_of)
{
    bool *is_mixed = calloc(tk_peers.size, sizeof(*is_mixed));
    const char **first = calloc(tk_peers.size, sizeof(*first));
    if (!first || !is_mixed)
        tk_panic("out of memory for a table of %u hosts", tk_peers.size);
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_peer_info *info = tk_peer_info_of(r);
        uint32_t host = host_of[r];
        for (uint32_t i = 0; i < info->rails; i++) {
            const char *device = tk_peer_info_rail(info, i)->device;
            if (!first[host])
                first[host] = device;
            is_mixed[host] |= strcmp(first[host], device) != 0;
        }
    }
    free(first);
    return is_mixed;
}

/* 0: a piece is as large as the port's largest message, so that transfers are not cut; large ones
 * use the connections in turn. */
static void set_stripe(bool is_put, uint64_t setting)
{
    enum { least_in_turn = 16 << 10 /* takes longer on the wire than choosing a connection */ };
    struct tk_rma_limits *limits = &tk_verbs.rma_limits;
    limits->stripe[is_put] =
        setting > 0 ? tk_min(setting, limits->message_max) : limits->message_max;
    limits->stripe_above[is_put] = setting > 0 ? limits->stripe[is_put] : least_in_turn;
}

/* A payload whose Long's head waits for it is always cut into pieces, because its sender has
 * nothing else in flight. A piece is so large that it takes longer on the wire than handling its
 * completion. */
static void set_blocking_stripe(void)
{
    enum { blocking_piece = 64 << 10 };
    struct tk_rma_limits *limits = &tk_verbs.rma_limits;
    limits->blocking_stripe = tk_settings.put_stripe > 0
                                  ? limits->stripe[true]
                                  : tk_min(blocking_piece, limits->message_max);
}

/* Call it when all queue pairs exist: only then we know how much they take inline. */
static void set_rma_limits(void)
{
    tk_verbs.rma_limits =
        (struct tk_rma_limits){.inline_max = tk_verbs.inline_limit,
                               .message_max = tk_verbs.message_max,
                               .bounce_max = tk_buffer_size,
                               .copy_max = tk_settings.nonbulkput_bounce_limit,
                               .register_min = SIZE_MAX, /* until the cache is open */
                               .conns = tk_verbs.conns_pp,
                               .work_requests = (uint32_t)tk_verbs.depth_total,
                               .bounce_buffers = (uint32_t)tk_verbs.bounces,
                               .is_whole_judged = tk_is_on_demand};
    set_stripe(false, tk_settings.get_stripe);
    set_stripe(true, tk_settings.put_stripe);
    set_blocking_stripe();
    size_t short_get_max = tk_verbs.conns_pp > 1 ? tk_min(tk_verbs.message_max,
                                                          tk_verbs.rma_limits.stripe_above[false])
                                                 : tk_verbs.message_max;
    tk_verbs.put_from_max =
        tk_verbs.conns_pp > 1 ? tk_min(tk_verbs.message_max, tk_verbs.rma_limits.stripe_above[true])
                              : tk_verbs.message_max;
    tk_verbs.short_get_max = tk_verbs.failover_enabled ? 0 : short_get_max;
    tk_verbs.logged_get_max = tk_verbs.failover_enabled ? short_get_max : 0;
}

static enum tk_status note_kinds(const uint32_t *host_of)
{
    bool *is_mixed = find_mixed(host_of), any = false;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        bool is_fenced = is_mixed[host_of[r]] || tk_verbs.has_iwarp;
        if (!is_for_us(r))
            continue;
        bool is_small = tk_peer_info_of(r)->whole_max < tk_buffer_size;
        tk_verbs.kind_of[r] = (uint8_t)((is_fenced ? TK_RANK_FENCED : TK_RANK_PLAIN) |
                                        (is_small ? TK_RANK_SMALL : 0));
        any |= is_fenced;
    }
    free(is_mixed);
    return any && !tk_verbs.fence_sink ? tk_fence_sink_open() : TK_OK;
}

static enum tk_status connect_all(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (!is_for_us(r))
            tk_pair_close(r);
        else if (connect_to(r) != TK_OK)
            return TK_FAIL;
    }
    return tk_cm_connect();
}

/* With XRC a receive queue belongs to an XRC domain, so it is made after that. */
static enum tk_status share_queue_pairs(void)
{
    bool is_offered = tk_xrc_is_offered();
    if (tk_xrc_agree() != TK_OK)
        return TK_FAIL;
    tk_verbs.needs_more |= tk_xrc_in_use();
    return is_offered ? tk_srqs_make() : TK_OK;
}

static enum tk_status connect_on_demand(void)
{
    enum tk_status status = tk_verbs.cm ? tk_cm_serve() : tk_datagrams_connect();
    if (status != TK_OK || tk_demand_open() != TK_OK)
        return TK_FAIL;
    tk_unconnected_open(tk_verbs_transport());
    tk_conns.expected = (tk_peers.me + 1) % tk_peers.size;
    tk_pair_open_ahead();
    return TK_OK;
}

/* Ranks with shared receive queues grant fewer credits. The slack must be small enough for all
 * ranks, so that credits held back by others can't block any of them.
 * Bounded messages take no credit if all ranks have buffers for them. */
static void agree_on_credits(void)
{
    tk_verbs.has_bounded = true;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_peer_info *info = tk_peer_info_of(r);
        tk_verbs.slack = (int)tk_min((size_t)tk_verbs.slack, info->slack);
        tk_verbs.has_bounded &= info->has_bounded;
    }
}

enum tk_status tk_verbs_connect(const uint32_t *host_of)
{
    tk_psn_secret_agree();
    if (tk_cm_secret())
        tk_psn_cm_secret(tk_cm_secret(), tk_cm_secret_size);
    agree_on_credits();
    set_rma_limits();
    tk_atomics_agree();
    tk_paging_report();
    if (tk_places_learn(host_of) != TK_OK || note_kinds(host_of) != TK_OK ||
        share_queue_pairs() != TK_OK)
        return TK_FAIL;
    tk_verbs_variant_choose(&tk_transport_verbs);
    return tk_verbs.is_static ? connect_all() : connect_on_demand();
}

uint32_t tk_verbs_rails(void)
{
    return tk_verbs.rail_count;
}

uint32_t tk_verbs_rail_to(uint32_t rank)
{
    return tk_peers.rail_to[rank];
}

void tk_verbs_describe(uint32_t number, char *text, size_t size)
{
    const struct tk_rail *rail = &tk_verbs.rails[number];
    const struct tk_port_address *a = &rail->address;
    char where[256];
    if (rail->by_cm)
        tk_cm_describe(number, where, sizeof(where));
    else
        tk_path_describe(rail, where, sizeof(where));
    snprintf(text, size,
             "%s:%u (%s, %s, %u Mb/s, MTU %d, inline %zu B, lists of %d, queues of %d%s; %s)",
             a->device, a->port,
             rail->is_iwarp   ? "iWARP"
             : a->is_ethernet ? "Ethernet"
                              : "InfiniBand",
             where, a->rate_mbps, 128 << a->mtu, tk_verbs.inline_limit, tk_verbs.list_max,
             tk_verbs.depth_pp,
             rail->is_retry_capped ? ", 6 retries: 7 are without end on this device" : "",
             rail->why);
}

void tk_verbs_close(void)
{
    if (!tk_verbs_is_open()) {
        free(tk_verbs.rails);
        tk_verbs.rails = NULL;
        return;
    }
    if (tk_firehose_is_open())
        tk_firehose_close();
    tk_cm_close(); /* first: on iWARP an id holds its queue pair */
    tk_demand_close();
    for (uint32_t r = 0; tk_verbs.nobody && tk_verbs.conns_of && r < tk_peers.size; r++)
        if (tk_verbs.conns_of[r])
            tk_pair_close(r);
    tk_xrc_close();
    tk_datagrams_close();
    tk_segment_forget();
    tk_rndv_close();
    tk_buffers_close();
    tk_queues_close();
    tk_devices_close();
    tk_failover_close();
    free(tk_verbs.txs);
    free(tk_verbs.conns_of);
    free(tk_verbs.nobody);
    free(tk_verbs.kind_of);
    tk_places_forget();
    free(tk_verbs.rails);
    tk_conns = (struct tk_conns){.demand = NULL};
    tk_verbs = (struct tk_verbs){.rails = NULL};
}

static void describe_choice(const struct tk_peer *peer, char *text, size_t size)
{
    tk_verbs_describe(tk_verbs_rail_to(peer->rank), text, size);
}

/* Opens the firehose when the neighbours are known: the ranks of a host share the limit of
 * registered memory, and the first one warns. */
static const struct tk_transport *connect_peers(void)
{
    if (tk_verbs_connect(tk_topology.host_of) != TK_OK ||
        tk_verbs_open_firehose(tk_topology.local_size, tk_topology.local_rank == 0) != TK_OK)
        return NULL;
    tk_channels_serve(tk_verbs_transport());
    return tk_verbs_transport();
}

static void report_end(void)
{
    tk_verbs_report_end();
    tk_demand_report_end();
}

static const struct tk_transport_lifecycle verbs_lifecycle = {
    .open = tk_verbs_open,
    .narrow = verbs_narrow,
    .agree = tk_verbs_agree,
    .connect = connect_peers,
    .close = tk_verbs_close,
};

static const struct tk_transport_demand verbs_demand = {
    .is_connected = tk_demand_is_connected,
    .connect_ranks = tk_demand_connect_ranks,
    .use_tables = tk_unconnected_use_tables,
};

static const struct tk_transport_memory verbs_memory = {
    .register_region = tk_verbs_register,
    .unregister_region = tk_verbs_unregister,
    .pins = tk_verbs_pins,
    .use_segment = tk_verbs_use_segment,
    .remote_keys = tk_verbs_remote_keys,
};

static const struct tk_transport_atomics verbs_atomics = {
    .post = tk_verbs_atomic,
    .scope = tk_verbs_atomic_scope,
    .open = tk_verbs_atomic_open,
    .connect = tk_verbs_atomic_connect,
    .ready = tk_verbs_atomic_ready,
};

const struct tk_transport tk_transport_verbs = {
    .name = "verbs",
    .rma = {.put = tk_verbs_put,
            .get = tk_verbs_get,
            .put_from = tk_verbs_put_from,
            .post = tk_verbs_rma,
            .gather_max = tk_verbs_gather_max,
            .gather = tk_verbs_gather},
    .am = {.send_short = tk_verbs_send_short,
           .send_small = tk_verbs_send_small,
           .send_medium = tk_verbs_send_medium,
           .medium_below = tk_medium_lent_min,
           .send = tk_verbs_send,
           .send_long = tk_verbs_send_long,
           .reserve = tk_verbs_reserve,
           .reserve_place = tk_verbs_reserve_place,
           .send_reserved = tk_verbs_send_reserved,
           .release = tk_verbs_release,
           .leave_queue = tk_verbs_leave_queue,
           .packed_max = tk_buffer_size - tk_message_head_max},
    .poll = tk_verbs_poll,
    .reap = tk_verbs_reap,
    .reap_in_handler = tk_verbs_reap,
    .reports = {.describe = describe_choice,
                .stall = tk_verbs_report_stall,
                .waits = tk_verbs_describe_waits,
                .end = report_end},
    .lifecycle = &verbs_lifecycle,
    .demand = &verbs_demand,
    .unconnected = &tk_transport_unconnected,
    .memory = &verbs_memory,
    .atomics = &verbs_atomics,
    .multicast = &tk_verbs_multicast,
    .events = &tk_verbs_events,
};
