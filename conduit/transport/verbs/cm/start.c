/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting by librdmacm, start-up and end: chooses the rails, opens their listeners, adds
 * their addresses to the peer info and takes those of others from theirs. Owns tk_verbs.cm.
 * Single-threaded, no lock. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* ---- which rails ---- */

enum tk_status tk_cm_choose(void)
{
    bool is_asked = !strcmp(tk_settings.ibv_connect, "rdmacm");
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct tk_rail *rail = &tk_verbs.rails[i];
        const struct tk_port_address *a = &rail->address;
        rail->is_iwarp = rail->context->device->transport_type == IBV_TRANSPORT_IWARP;
        rail->by_cm = is_asked || rail->is_iwarp;
        tk_verbs.has_iwarp |= rail->is_iwarp;
        if (rail->is_iwarp && !strcmp(tk_settings.ibv_connect, "verbs")) {
            tk_log_error("%s:%u is an iWARP port, which only librdmacm connects: set "
                         "GASNET_IBV_CONNECT to auto or rdmacm instead of verbs",
                         a->device, a->port);
            return TK_FAIL;
        }
    }
    return TK_OK;
}

static bool any_by_cm(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].by_cm)
            return true;
    return false;
}

/* ---- opening ---- */

static enum tk_status allocate(void)
{
    struct tk_cm *cm = calloc(1, sizeof(*cm));
    if (cm) {
        cm->end_count = tk_peers.size * tk_verbs.conns_pp;
        cm->listeners = calloc(tk_verbs.rail_count, sizeof(*cm->listeners));
        cm->places = calloc((size_t)tk_peers.size * tk_verbs.rail_count, sizeof(*cm->places));
        cm->ends = calloc(cm->end_count, sizeof(*cm->ends));
        cm->credits = calloc(tk_peers.size, sizeof(*cm->credits));
        tk_lock_init(&cm->lock);
    }
    tk_verbs.cm = cm;
    if (cm && cm->listeners && cm->places && cm->ends && cm->credits)
        return TK_OK;
    tk_log_error("out of memory for %u connections by librdmacm",
                 tk_peers.size * tk_verbs.conns_pp);
    return TK_FAIL;
}

static enum tk_status open_channel(void)
{
    if (tk_cm_library_open() != TK_OK)
        return TK_FAIL;
    tk_verbs.cm->channel = rdma_create_event_channel();
    int fd = tk_verbs.cm->channel ? tk_verbs.cm->channel->fd : -1;
    int flags = fd == -1 ? -1 : fcntl(fd, F_GETFL);
    if (flags != -1 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        return TK_OK;
    tk_log_error("librdmacm can't be used: %s; is the kernel's module rdma_ucm loaded, and may "
                 "this user open /dev/infiniband/rdma_cm?",
                 strerror(errno));
    return TK_FAIL;
}

enum tk_status tk_cm_open(void)
{
    if (!any_by_cm())
        return TK_OK;
    if (allocate() != TK_OK || open_channel() != TK_OK)
        return TK_FAIL;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].by_cm &&
            tk_cm_listen(&tk_verbs.cm->listeners[i], &tk_verbs.rails[i]) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

void tk_cm_publish(struct tk_peer_info *info)
{
    for (uint32_t i = 0; i < info->cm_places; i++)
        tk_peer_info_cm_places(info)[i] = tk_verbs.cm->listeners[i].place;
}

void tk_cm_describe(uint32_t rail, char *text, size_t size)
{
    char where[tk_cm_text_max];
    tk_cm_place_text(&tk_verbs.cm->listeners[rail].place, where, sizeof(where));
    snprintf(text, size, "connected by librdmacm from %s", where);
}

void tk_cm_close(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    if (!cm)
        return;
    for (uint32_t i = 0; cm->ends && i < cm->end_count; i++) {
        tk_cm_conn_request_end(&cm->ends[i]);
        tk_cm_connect_drop(&cm->ends[i]);
        if (cm->ends[i].id)
            rdma_destroy_id(cm->ends[i].id);
    }
    if (cm->listeners)
        tk_cm_close_listeners();
    if (cm->channel)
        rdma_destroy_event_channel(cm->channel);
    free(cm->listeners);
    free(cm->places);
    free(cm->ends);
    free(cm->credits);
    free(cm);
    tk_verbs.cm = NULL;
}

/* ---- start-up ---- */

/* A peer without rails of librdmacm has published no address; check_place() names it. */
static enum tk_status learn_of(uint32_t rank)
{
    struct tk_cm *cm = tk_verbs.cm;
    const struct tk_peer_info *info = tk_peer_info_of(rank);
    uint32_t rails = tk_verbs.rail_count;
    if ((info->cm_places != 0 && info->cm_places != rails) || info->credits < 1 ||
        info->credits > (uint32_t)tk_verbs.credits_pp) {
        tk_log_error("rank %u published %u addresses for librdmacm and %u credits, which make no "
                     "sense with %u ports and %d credits at most",
                     rank, info->cm_places, info->credits, rails, tk_verbs.credits_pp);
        return TK_FAIL;
    }
    cm->credits[rank] = info->credits;
    memcpy(&cm->places[(size_t)rank * rails], tk_peer_info_cm_places(info),
           info->cm_places * sizeof(*cm->places));
    return TK_OK;
}

static bool is_ours(const struct tk_conn *conn)
{
    return conn->qp && !conn->is_for_atomics && tk_rail_of(conn)->by_cm;
}

static enum tk_status cm_learn(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        bool is_peer = tk_verbs.is_static ? tk_conns_to(r)->qp != NULL : tk_is_verbs_peer(r);
        if (r != tk_peers.me && is_peer && learn_of(r) != TK_OK)
            return TK_FAIL;
    }
    return TK_OK;
}

/* Checks that librdmacm connects the rail at the peer too: otherwise the peer published no
 * address. */
static enum tk_status check_place(const struct tk_peer *peer, uint32_t rail)
{
    const struct tk_port_address *a = &tk_verbs.rails[rail].address;
    if (tk_verbs.cm->places[peer->rank * tk_verbs.rail_count + rail].port)
        return TK_OK;
    tk_log_error("%s:%u is connected by librdmacm, its counterpart of rank %u (%s) is not: iWARP "
                 "does not reach other networks; choose the ports with GASNET_IBV_PORTS",
                 a->device, a->port, peer->rank, peer->host);
    return TK_FAIL;
}

static enum tk_status open_ends(void)
{
    uint64_t now = tk_now();
    for (uint32_t i = 0; i < tk_verbs.cm->end_count; i++) {
        struct tk_conn *conn = tk_cm_conn_of(&tk_verbs.cm->ends[i]);
        if (!is_ours(conn))
            continue;
        if (check_place(conn->peer, conn->rail) != TK_OK)
            return TK_FAIL;
        struct tk_cm_end *end = tk_cm_end_of(conn);
        tk_cm_end_open(end, 0);
        end->again = now;
        tk_verbs.cm->left++;
    }
    return TK_OK;
}

uint8_t *tk_cm_secret(void)
{
    return tk_verbs.cm ? tk_verbs.cm->secret : NULL;
}

enum tk_status tk_cm_open_ends(void)
{
    return cm_learn() == TK_OK ? open_ends() : TK_FAIL;
}

enum tk_status tk_cm_serve(void)
{
    if (cm_learn() != TK_OK)
        return TK_FAIL;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        for (uint32_t i = 0; i < tk_verbs.rail_count && tk_is_verbs_peer(r); i++)
            if (check_place(tk_peer(r), i) != TK_OK)
                return TK_FAIL;
    tk_verbs.cm->is_on_demand = true;
    return TK_OK;
}
