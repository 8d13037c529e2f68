/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting by librdmacm, start-up and end: chooses the rails, opens their listeners, publishes
 * their addresses and reads those of others. Owns tk_verbs.cm. Single-threaded, no lock. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/lock.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static const char published[] = "tk.cm";

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

/* Followed by the addresses of the rails. */
struct card {
    uint32_t rails;
    uint32_t credits;                  /* that we always grant each peer */
    uint8_t secret[tk_cm_secret_size]; /* rank 0's becomes the job's */
};

static size_t card_size(void)
{
    return sizeof(struct card) + tk_verbs.rail_count * sizeof(struct tk_cm_place);
}

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

static enum tk_status cm_publish(void)
{
    struct card *card = calloc(1, card_size());
    enum tk_status status = TK_FAIL;
    if (!card) {
        tk_log_error("out of memory for the addresses of ports (%zu bytes)", card_size());
        return TK_FAIL;
    }
    struct tk_cm_place *places = (struct tk_cm_place *)(card + 1);
    card->rails = tk_verbs.rail_count;
    card->credits = (uint32_t)tk_srq_credits_base();
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        places[i] = tk_verbs.cm->listeners[i].place;
    if (getrandom(card->secret, sizeof(card->secret), 0) != (ssize_t)sizeof(card->secret))
        tk_log_error("no random bytes for the job's secret: %s", strerror(errno));
    else
        status = tk_bootstrap_put(published, card, card_size());
    if (tk_peers.me == 0)
        memcpy(tk_verbs.cm->secret, card->secret, sizeof(card->secret));
    free(card);
    return status;
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
    return cm_publish();
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

static enum tk_status learn_of(uint32_t rank)
{
    struct tk_cm *cm = tk_verbs.cm;
    struct card *card;
    size_t size;
    if (tk_bootstrap_get(rank, published, (void **)&card, &size) != TK_OK)
        return TK_FAIL;
    bool is_sound = size == card_size() && card->rails == tk_verbs.rail_count &&
                    card->credits >= 1 && card->credits <= (uint32_t)tk_verbs.credits_pp;
    if (is_sound) {
        cm->credits[rank] = card->credits;
        memcpy(&cm->places[rank * tk_verbs.rail_count], card + 1, size - sizeof(*card));
        if (rank == 0)
            memcpy(cm->secret, card->secret, sizeof(cm->secret));
    } else {
        tk_log_error("rank %u published addresses for librdmacm that make no sense (%zu bytes)",
                     rank, size);
    }
    free(card);
    return is_sound ? TK_OK : TK_FAIL;
}

static bool is_ours(const struct tk_conn *conn)
{
    return conn->qp && !conn->is_for_atomics && tk_rail_of(conn)->by_cm;
}

static enum tk_status cm_learn(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        bool is_peer = tk_verbs.is_static ? tk_conns_to(r)->qp != NULL : tk_is_verbs_peer(r);
        if (r != tk_peers.me && (r == 0 || is_peer) && learn_of(r) != TK_OK)
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
