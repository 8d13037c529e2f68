/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All connections to one rank: they are made, connected and closed together. Owns tk_verbs.conns_of
 * and .nobody, which stands for the connections to a rank that there are none to: it has no queue
 * pair and never any room, so that who asks for room or goes through all ranks need not ask first.
 * Single-threaded at start-up and exit, with the lock of demands (demand.c) in between. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/stripe.h"
#include "transport/verbs/verbs_private.h"

static struct tk_conn *conns_allocate(void)
{
    size_t size = tk_conns_bytes(tk_verbs.conns_pp);
    struct tk_conn *conns = aligned_alloc(TK_CACHE_LINE, size);
    if (conns)
        memset(conns, 0, size);
    else
        tk_log_error("out of memory for %u connections", tk_verbs.conns_pp);
    return conns;
}

enum tk_status tk_nobody_open(void)
{
    tk_verbs.nobody = conns_allocate();
    tk_verbs.conns_of = malloc(tk_conns_of_bytes(tk_peers.size));
    tk_verbs.fenced = calloc(1, tk_fenced_bytes(tk_peers.size));
    if (!tk_verbs.nobody || !tk_verbs.conns_of || !tk_verbs.fenced) {
        tk_log_error("out of memory for a table of %u ranks", tk_peers.size);
        return TK_FAIL;
    }
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        tk_lock_init(&tk_verbs.nobody[k].lock);
        tk_verbs.nobody[k].rail = k % tk_verbs.rail_count;
    }
    for (uint32_t r = 0; r < tk_peers.size; r++)
        tk_verbs.conns_of[r] = tk_verbs.nobody;
    return TK_OK;
}

static enum tk_status fill(struct tk_conn *conn)
{
    while (conn->rx_extra < 0) {
        struct tk_buffer *buffer = tk_recv_buffer_take(tk_rail_of(conn));
        if (!buffer)
            return TK_FAIL;
        tk_recv_post(conn, buffer);
    }
    return TK_OK;
}

enum tk_status tk_pair_fill(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (fill(&conns[k]) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

void tk_pair_drop(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_conn_close(&conns[k]);
    free(conns);
}

static enum tk_status make_room(uint32_t rank)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_rail *rail = &tk_verbs.rails[k % tk_verbs.rail_count];
        rail->conns_open++;
        rail->primaries += k == tk_primary_number(rank);
    }
    if (tk_verbs.is_static)
        return TK_OK;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_recv_pool_fit(&tk_verbs.rails[i]) != TK_OK)
            return TK_FAIL;
    return tk_devices_fit();
}

struct tk_conn *tk_pair_open(uint32_t rank)
{
    struct tk_conn *conns = make_room(rank) == TK_OK ? conns_allocate() : NULL;
    for (uint32_t k = 0; conns && k < tk_verbs.conns_pp; k++) {
        struct tk_conn *conn = &conns[k];
        uint32_t rail = k % tk_verbs.rail_count;
        if (tk_conn_open(conn, tk_peer(rank), rail, k == tk_primary_number(rank)) == TK_OK)
            continue;
        tk_pair_drop(conns);
        conns = NULL;
    }
    return conns;
}

void tk_pair_hold(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_counter_set(&conns[k].room, 0);
}

void tk_pair_release(struct tk_conn *conns)
{
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        tk_counter_add(&conns[k].room, tk_verbs.depth_pp);
}

enum tk_status tk_pair_open_for_atomics(struct tk_peer *peer)
{
    struct tk_conn *conn = conns_allocate();
    if (!conn)
        return TK_FAIL;
    conn->is_for_atomics = true; /* before others see that it has a queue pair */
    if (tk_conn_open(conn, peer, 0, false) != TK_OK) {
        tk_pair_drop(conn);
        return TK_FAIL;
    }
    __atomic_store_n(&tk_verbs.conns_of[peer->rank], conn, __ATOMIC_RELEASE);
    return TK_OK;
}

void tk_pair_publish(uint32_t rank, struct tk_conn *conns)
{
    __atomic_store_n(&tk_verbs.conns_of[rank], conns, __ATOMIC_RELEASE);
    __atomic_store_n(&tk_peer(rank)->connection, conns + tk_primary_number(rank), __ATOMIC_RELEASE);
}

enum tk_status tk_pair_connect(struct tk_conn *conns, const uint32_t *qps)
{
    uint32_t rank = conns->peer->rank;
    bool is_fenced = tk_verbs.fenced[rank];
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++) {
        struct tk_conn *conn = &conns[k];
        const struct tk_port_address *to = tk_address_of(rank, conn->rail);
        conn->is_fenced = is_fenced;
        conn->short_put_max = is_fenced ? 0 : tk_verbs.inline_limit;
        if (tk_conn_connect(conn, to, qps ? qps[k] : 0) != TK_OK)
            return TK_FAIL;
        tk_stripe_open(conn, to->rate_mbps);
    }
    return TK_OK;
}

void tk_pair_close(uint32_t rank)
{
    struct tk_conn *conns = tk_conns_to(rank);
    if (conns == tk_verbs.nobody)
        return;
    tk_verbs.conns_of[rank] = tk_verbs.nobody;
    tk_pair_drop(conns);
}
