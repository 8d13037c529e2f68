/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections for atomics by the device between ranks that share memory, and of a rank with itself:
 * a domain that uses the device uses nothing else. Made when the first such domain is created,
 * because few programs have one. Both ends send each other where they are, connect, and wait until
 * the other has: a device drops what arrives before. Owns the state of these connections by rank of
 * the job; a lock guards which thread makes which, the rest is written by that thread and by
 * handlers. */
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

enum { END_CAME = 1, READY_CAME = 2 };

struct connection {
    struct tk_atomic_end theirs;
    _Atomic unsigned heard; /* what has come from the other end: a set of the above */
    _Atomic bool is_ready;  /* both ends are */
    bool is_claimed;        /* a thread of ours makes it; under the lock */
};

static struct connection *connections; /* by index in the neighbourhood */
static tk_lock_t connections_lock = TK_LOCK_INIT;
static tk_lock_t opening_lock = TK_LOCK_INIT; /* of two threads, for different teams */

/* A neighbour may come before we have begun. */
static struct connection *connections_get(void)
{
    tk_lock(&connections_lock);
    if (!connections)
        connections = calloc(tk_topology.nbrhd_size, sizeof(*connections));
    if (!connections)
        tk_panic("out of memory for connections to %u neighbours", tk_topology.nbrhd_size);
    tk_unlock(&connections_lock);
    return connections;
}

static void came(struct tk_arrival *arrival)
{
    struct connection *all = connections_get();
    uint32_t i = 0;
    while (i < tk_topology.nbrhd_size && tk_topology.nbrhd_ranks[i] != arrival->peer->rank)
        i++;
    bool is_end = arrival->nbytes == sizeof(struct tk_atomic_end);
    if (i == tk_topology.nbrhd_size || (!is_end && arrival->nbytes > 0))
        tk_panic("rank %u asks for a connection in a way that makes no sense; the ranks of a job "
                 "must be built against one version of this library",
                 arrival->peer->rank);
    if (is_end)
        memcpy(&all[i].theirs, arrival->payload, sizeof(all[i].theirs));
    /* Threads of ours may handle the two messages in either order. */
    atomic_fetch_or_explicit(&all[i].heard, is_end ? END_CAME : READY_CAME, memory_order_acq_rel);
}

static void notify(struct tk_peer *peer, const struct tk_atomic_end *end)
{
    const struct tk_internal_medium medium = {
        .handler = TK_HANDLER_ATOMIC_CONNECT, .payload = end, .nbytes = end ? sizeof(*end) : 0};
    unsigned empty = 0;
    while (tk_internal_request(peer, &medium) == TK_BUSY)
        tk_wait_step_silent(&empty);
}

static bool end_came(const void *connection)
{
    const struct connection *c = connection;
    return atomic_load_explicit(&c->heard, memory_order_acquire) & END_CAME;
}

static bool ready_came(const void *connection)
{
    const struct connection *c = connection;
    return atomic_load_explicit(&c->heard, memory_order_acquire) & READY_CAME;
}

static bool is_ready(const void *connection)
{
    const struct connection *c = connection;
    return atomic_load_explicit(&c->is_ready, memory_order_acquire);
}

static _Noreturn void connect_failed(const struct tk_peer *peer)
{
    tk_panic("gex_AD_Create: no connection for atomic operations to rank %u, which shares memory "
             "with this one (see above); GASNET_AD_METHOD=cpu goes without",
             peer->rank);
}

static void open_end(struct tk_peer *peer)
{
    struct tk_atomic_end ours;
    memset(&ours, 0, sizeof(ours));
    tk_lock(&opening_lock);
    enum tk_status status = tk_atomic_device()->atomic_open(peer, &ours);
    tk_unlock(&opening_lock);
    if (status != TK_OK)
        connect_failed(peer);
    if (peer->rank == tk_peers.me) {
        struct connection *self = &connections[tk_topology.nbrhd_rank];
        self->theirs = ours;
        atomic_store_explicit(&self->heard, END_CAME, memory_order_relaxed);
    } else {
        notify(peer, &ours);
    }
}

static void connect_ends(struct tk_peer *peer, struct connection *c)
{
    tk_wait_until(end_came, c);
    if (tk_atomic_device()->atomic_connect(peer, &c->theirs) != TK_OK)
        connect_failed(peer);
    if (peer->rank != tk_peers.me) {
        notify(peer, NULL);
        tk_wait_until(ready_came, c);
    }
    atomic_store_explicit(&c->is_ready, true, memory_order_release);
}

/* False: another thread makes it, or has. */
static bool claim(struct connection *c)
{
    tk_lock(&connections_lock);
    bool is_ours = !c->is_claimed;
    c->is_claimed = true;
    tk_unlock(&connections_lock);
    return is_ours;
}

/* All of ours are opened before any is waited for, or members could wait in a circle. */
void tk_atomic_connect(gex_TM_t tm)
{
    struct connection *all = connections_get();
    uint32_t count = tk_topology.nbrhd_size;
    bool *is_ours = calloc(count, sizeof(*is_ours));
    if (!is_ours)
        tk_panic("out of memory for a list of %u neighbours", count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = tk_topology.nbrhd_ranks[i];
        if (tk_team_rank_of_jobrank(tm, rank) == GEX_RANK_INVALID || !claim(&all[i]))
            continue;
        is_ours[i] = true;
        open_end(tk_peer(rank));
    }
    for (uint32_t i = 0; i < count; i++)
        if (is_ours[i])
            connect_ends(tk_peer(tk_topology.nbrhd_ranks[i]), &all[i]);
    for (uint32_t i = 0; i < count; i++)
        if (tk_team_rank_of_jobrank(tm, tk_topology.nbrhd_ranks[i]) != GEX_RANK_INVALID)
            tk_wait_until(is_ready, &all[i]);
    free(is_ours);
}

void tk_atomic_open_connections(void)
{
    tk_internal_register_whole(TK_HANDLER_ATOMIC_CONNECT, came);
}
