/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections for atomics by the device between ranks that share memory, and of a rank with itself:
 * a domain that uses the device uses nothing else. Few programs have one, so the first such domain
 * requests them when it is created, and does not wait: in polls each end opens its half, sends its
 * address to the other, connects, and reports that. A device drops packets that arrive before both
 * ends are connected, so the transport has no space for atomics until then. An end that has not
 * created a domain answers too, because members of a team create theirs at different times.
 *
 * Owns the state of these connections by index in the neighbourhood. Handlers write what they
 * receive; a lock guards the rest. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "atomic/atomic_private.h"
#include "base/lock.h"
#include "base/report.h"
#include "message/message.h"
#include "progress/progress.h"
#include "topology/topology.h"
#include "transport/transport.h"

enum { IS_WANTED = 1, END_CAME = 2, READY_CAME = 4 };

struct connection {
    struct tk_atomic_end ours, theirs;
    _Atomic unsigned heard; /* a set of the above: the reasons for a step */
    bool is_open, has_sent_end, is_connected, has_sent_ready, is_ready;
};

static struct connection *connections;
static tk_lock_t connections_lock = TK_LOCK_INIT; /* guards the pointer, and its initialisation */
static tk_lock_t steps_lock = TK_LOCK_INIT;       /* held while sending, not while serving */
static tk_counter_t news;                         /* of `heard`, also in tk_deferred_work_wanted */

/* A neighbour's message may arrive before we have begun. */
static struct connection *connections_get(void)
{
    tk_lock(&connections_lock);
    if (!connections)
        connections = calloc(tk_topology.nbrhd_size, sizeof(*connections));
    if (!connections)
        tk_panic("out of memory for connections to %u neighbours", tk_topology.nbrhd_size);
    struct connection *all = connections;
    tk_unlock(&connections_lock);
    return all;
}

/* Threads of ours may handle the two messages of the other end in either order. */
static void hear(struct connection *c, unsigned what)
{
    atomic_fetch_or_explicit(&c->heard, what, memory_order_acq_rel);
    tk_counter_add(&news, 1);
    tk_counter_add(&tk_deferred_work_wanted, 1);
}

static void came(struct tk_arrival *arrival)
{
    struct connection *all = connections_get();
    uint32_t i = 0;
    while (i < tk_topology.nbrhd_size && tk_topology.nbrhd_ranks[i] != arrival->peer->rank)
        i++;
    bool is_end = arrival->nbytes == sizeof(struct tk_atomic_end);
    if (i == tk_topology.nbrhd_size || (!is_end && arrival->nbytes > 0) || !tk_atomic_device())
        tk_panic("rank %u asks for a connection in a way that makes no sense; the ranks of a job "
                 "must be built against one version of this library",
                 arrival->peer->rank);
    if (is_end)
        memcpy(&all[i].theirs, arrival->payload, sizeof(all[i].theirs));
    hear(&all[i], is_end ? END_CAME : READY_CAME);
}

static bool notify(struct tk_peer *peer, const struct tk_atomic_end *end)
{
    const struct tk_internal_medium medium = {
        .handler = TK_HANDLER_ATOMIC_CONNECT, .payload = end, .nbytes = end ? sizeof(*end) : 0};
    return tk_internal_request(peer, &medium) == TK_OK;
}

static _Noreturn void connect_failed(const struct tk_peer *peer)
{
    tk_panic("no connection for atomic operations to rank %u, which shares memory with this one "
             "(see above); GASNET_AD_METHOD=cpu goes without",
             peer->rank);
}

static void open_end(struct tk_peer *peer, struct connection *c)
{
    if (tk_atomic_device()->open(peer, &c->ours) != TK_OK)
        connect_failed(peer);
    c->is_open = true;
    if (peer->rank != tk_peers.me)
        return;
    c->theirs = c->ours;
    c->has_sent_end = c->has_sent_ready = true;
    atomic_fetch_or_explicit(&c->heard, END_CAME | READY_CAME, memory_order_relaxed);
}

static void connect_end(struct tk_peer *peer, struct connection *c)
{
    if (tk_atomic_device()->connect(peer, &c->theirs) != TK_OK)
        connect_failed(peer);
    c->is_connected = true;
}

/* With the lock held. Does as many steps as possible now; false: a message could not be sent, try
 * again. */
static bool advance(struct tk_peer *peer, struct connection *c)
{
    unsigned heard = atomic_load_explicit(&c->heard, memory_order_acquire);
    if (!c->is_open && heard)
        open_end(peer, c);
    if (c->is_open && !c->has_sent_end && !(c->has_sent_end = notify(peer, &c->ours)))
        return false;
    heard = atomic_load_explicit(&c->heard, memory_order_acquire);
    if (!c->is_connected && heard & END_CAME)
        connect_end(peer, c);
    if (c->is_connected && !c->has_sent_ready && !(c->has_sent_ready = notify(peer, NULL)))
        return false;
    if (c->is_connected && !c->is_ready && heard & READY_CAME) {
        tk_atomic_device()->ready(peer);
        c->is_ready = true;
    }
    return true;
}

/* True, because an operation may wait for any of them. */
static bool connections_progress(void)
{
    if (tk_counter_read(&news) == 0 || !tk_trylock(&steps_lock))
        return false;
    struct connection *all = connections_get();
    int32_t seen = tk_counter_read(&news);
    bool is_done = true;
    for (uint32_t i = 0; i < tk_topology.nbrhd_size; i++)
        is_done &= advance(tk_peer(tk_topology.nbrhd_ranks[i]), &all[i]);
    if (is_done) {
        tk_counter_add(&news, -seen);
        tk_counter_add(&tk_deferred_work_wanted, -seen);
    }
    tk_unlock(&steps_lock);
    return is_done && seen > 0;
}

void tk_atomic_connect(gex_TM_t tm)
{
    struct connection *all = connections_get();
    for (uint32_t i = 0; i < tk_topology.nbrhd_size; i++) {
        bool is_member =
            tk_team_rank_of_jobrank(tm, tk_topology.nbrhd_ranks[i]) != GEX_RANK_INVALID;
        if (is_member && !atomic_load_explicit(&all[i].heard, memory_order_relaxed))
            hear(&all[i], IS_WANTED);
    }
    connections_progress();
}

void tk_atomic_open_connections(void)
{
    tk_internal_register_whole(TK_HANDLER_ATOMIC_CONNECT, came);
    tk_progress_add(connections_progress);
}
