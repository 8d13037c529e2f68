/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start and end of the verbs transport. Owns tk_verbs. No lock: start-up and exit are
 * single-threaded. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/verbs_credit.h"
#include "transport/verbs/verbs_private.h"

struct tk_verbs tk_verbs;

/* Threads of a PAR client that may run handlers at the same time; more only cost a copy of the
 * message. */
enum { spares_threaded = 8, spares_single = 1 };

static int total_or_all(int64_t setting, int all)
{
    return setting > 0 && setting < all ? (int)setting : all;
}

/* The manual's rules, and the highest slack that can't stop a job: a peer must never hold all of
 * our credits. */
static void derive_limits(uint32_t peers)
{
    struct tk_verbs *v = &tk_verbs;
    int64_t total = tk_settings.am_credits_total;
    v->credits_pp = (int)tk_settings.am_credits_pp;
    int all = v->credits_pp * (int)peers;
    int credits = total < 0 ? (int)tk_min(256, (size_t)all) : total_or_all(total, all);
    tk_counter_set(&v->credits_total, credits);
    v->slack = (int)tk_settings.am_credits_slack;
    v->slack = (int)tk_min((size_t)v->slack, (size_t)v->credits_pp - 1);
    v->slack = (int)tk_min((size_t)v->slack, (size_t)(credits - 1) / peers);
    v->depth_pp = (int)tk_settings.networkdepth_pp;
    v->quiet_max = v->depth_pp / 4;
    v->depth_total = total_or_all(tk_settings.networkdepth_total, v->depth_pp * (int)peers);
    /* An immediate Long has to find room for its payload and its head at once. */
    v->depth_total = (int)tk_max((size_t)v->depth_total, 2);
}

static enum tk_status fit_device(struct tk_rail *rail)
{
    struct ibv_device_attr attr;
    int error = ibv_query_device(rail->context, &attr);
    if (error) {
        tk_complain("%s can't be queried: %s", rail->address.device, strerror(error));
        return TK_FAIL;
    }
    if (tk_verbs.depth_pp > attr.max_qp_wr || 2 * tk_verbs.credits_pp + 1 > attr.max_qp_wr) {
        tk_complain("%s allows %d work requests in a queue: lower GASNET_NETWORKDEPTH_PP (%d) or "
                    "GASNET_AM_CREDITS_PP (%d)",
                    rail->address.device, attr.max_qp_wr, tk_verbs.depth_pp, tk_verbs.credits_pp);
        return TK_FAIL;
    }
    tk_verbs.depth_total = (int)tk_min((size_t)tk_verbs.depth_total, (size_t)attr.max_cqe);
    return TK_OK;
}

static enum tk_status open_queues(struct tk_rail *rail, uint32_t peers)
{
    int recv_depth = (2 * tk_verbs.credits_pp + 1) * (int)peers;
    tk_lock_init(&rail->send_cq_lock);
    tk_lock_init(&rail->recv_cq_lock);
    rail->pd = ibv_alloc_pd(rail->context);
    if (rail->pd)
        rail->send_cq = ibv_create_cq(rail->context, tk_verbs.depth_total, NULL, NULL, 0);
    if (rail->send_cq)
        rail->recv_cq = ibv_create_cq(rail->context, recv_depth, NULL, NULL, 0);
    if (rail->recv_cq)
        return TK_OK;
    tk_complain("%s:%u: no protection domain or completion queue of %d entries: %s; lower "
                "GASNET_AM_CREDITS_PP or "
                "GASNET_NETWORKDEPTH_TOTAL",
                rail->address.device, rail->address.port, recv_depth, strerror(errno));
    return TK_FAIL;
}

static enum tk_status open_works(void)
{
    tk_pool_init(&tk_verbs.work_pool);
    tk_verbs.works = calloc((size_t)tk_verbs.depth_total, sizeof(*tk_verbs.works));
    if (!tk_verbs.works) {
        tk_complain("out of memory for %d work requests", tk_verbs.depth_total);
        return TK_FAIL;
    }
    for (int i = tk_verbs.depth_total; i-- > 0;)
        tk_pool_give(&tk_verbs.work_pool, &tk_verbs.works[i]);
    return TK_OK;
}

static unsigned spare_count(void)
{
    if (tk_settings.rbuf_spares > 0)
        return (unsigned)tk_settings.rbuf_spares;
    return TK_THREADED ? spares_threaded : spares_single;
}

/* Requests from all peers and their exit notices are always posted; buffers for replies as credits
 * allow. */
static enum tk_status open_buffers(struct tk_rail *rail, uint32_t peers)
{
    unsigned replies = (unsigned)tk_counter_read(&tk_verbs.credits_total);
    unsigned kept = peers; /* the one more that small messages leave posted */
    unsigned recvs = (unsigned)(tk_verbs.credits_pp + 1) * peers + kept + replies + spare_count();
    unsigned bounces = (unsigned)total_or_all(tk_settings.bbuf_count, tk_verbs.depth_total);
    tk_verbs.bounces = (int)bounces;
    return tk_buffers_open(rail, recvs, bounces);
}

static enum tk_status open_links(struct tk_rail *rail, struct tk_card *card)
{
    tk_verbs.links = aligned_alloc(TK_CACHE_LINE, tk_peers.size * sizeof(*tk_verbs.links));
    if (!tk_verbs.links) {
        tk_complain("out of memory for %u connections", tk_peers.size);
        return TK_FAIL;
    }
    memset(tk_verbs.links, 0, tk_peers.size * sizeof(*tk_verbs.links));
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (r == tk_peers.me)
            continue;
        struct tk_link *link = &tk_verbs.links[r];
        if (tk_link_open(rail, link, tk_peer(r)) != TK_OK)
            return TK_FAIL;
        while (link->surplus < 0)
            tk_recv_post(link, tk_pool_take(&tk_verbs.recv_pool));
        card->qp[r] = link->qp->qp_num;
    }
    return TK_OK;
}

static size_t inline_limit(void)
{
    int64_t limit = tk_settings.inlinesend_limit;
    return limit < 0 || limit > tk_inline_most ? tk_inline_most : (size_t)limit;
}

enum tk_status tk_verbs_open(struct tk_card *card)
{
    struct tk_rail *rail = &tk_verbs.rail;
    uint32_t peers = tk_peers.size - 1;
    derive_limits(peers);
    if (tk_port_choose(rail) != TK_OK || fit_device(rail) != TK_OK ||
        open_queues(rail, peers) != TK_OK)
        return TK_FAIL;
    rail->inline_limit = inline_limit();
    if (open_works() != TK_OK || open_buffers(rail, peers) != TK_OK ||
        open_links(rail, card) != TK_OK)
        return TK_FAIL;
    card->address = rail->address;
    return TK_OK;
}

enum tk_status tk_verbs_connect(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_card *card = tk_card_of(r);
        if (r == tk_peers.me || tk_peer(r)->transport) {
            tk_link_close(&tk_verbs.links[r]);
            continue;
        }
        if (tk_link_connect(&tk_verbs.rail, &tk_verbs.links[r], &card->address,
                            card->qp[tk_peers.me]) != TK_OK)
            return TK_FAIL;
        tk_peer(r)->transport = &tk_transport_verbs;
        tk_peer(r)->connection = &tk_verbs.links[r];
    }
    return TK_OK;
}

void tk_verbs_describe(char *text, size_t size)
{
    const struct tk_rail *rail = &tk_verbs.rail;
    const struct tk_port_address *a = &rail->address;
    char where[64];
    if (tk_address_needs_gid(a))
        snprintf(where, sizeof(where), "GID index %d", rail->gid_index);
    else
        snprintf(where, sizeof(where), "LID %u", a->lid);
    snprintf(text, size, "%s:%u (%s, %s, %u Mb/s, MTU %d, inline %zu B; %s)", a->device, a->port,
             a->is_ethernet ? "Ethernet" : "InfiniBand", where, rail->rate_mbps, 128 << a->mtu,
             rail->inline_limit, rail->why);
}

bool tk_verbs_is_open(void)
{
    return tk_verbs.rail.context != NULL;
}

void tk_verbs_close(void)
{
    struct tk_rail *rail = &tk_verbs.rail;
    if (!rail->context)
        return;
    for (uint32_t r = 0; tk_verbs.links && r < tk_peers.size; r++)
        tk_link_close(&tk_verbs.links[r]);
    if (tk_verbs.segment_mr)
        ibv_dereg_mr(tk_verbs.segment_mr);
    tk_verbs.segment_mr = NULL;
    tk_buffers_close();
    if (rail->recv_cq)
        ibv_destroy_cq(rail->recv_cq);
    if (rail->send_cq)
        ibv_destroy_cq(rail->send_cq);
    if (rail->pd)
        ibv_dealloc_pd(rail->pd);
    ibv_close_device(rail->context);
    free(tk_verbs.works);
    free(tk_verbs.links);
    tk_verbs = (struct tk_verbs){.segment_mr = NULL};
}

const struct tk_transport tk_transport_verbs = {
    .name = "verbs",
    .packed_max = tk_buffer_size - tk_message_head_max,
    .send = tk_verbs_send,
    .send_short = tk_verbs_send_short,
    .reserve = tk_verbs_reserve,
    .send_reserved = tk_verbs_send_reserved,
    .release = tk_verbs_release,
    .put = tk_verbs_put,
    .get = tk_verbs_get,
    .rma = tk_verbs_rma,
    .poll = tk_verbs_poll,
    .reap = tk_verbs_reap,
    .reap_in_handler = tk_verbs_reap,
};
