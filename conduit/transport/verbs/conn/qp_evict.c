/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See qp_evict.h. Owns the list of ranks that have queue pairs, with as many entries as there may
 * be connections. Each scan starts to watch the ranks that were used since the last scan, and
 * numbers them; the lowest number marks the rank that was found in use longest ago. */
#include "config.h"

#include <stdlib.h>

#include "base/first_use.h"
#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/evict_choice.h"
#include "transport/verbs/conn/qp_evict.h"

static struct {
    const struct tk_transport *connected, *watched;
    uint32_t *ranks;
    uint32_t count, max;
    uint32_t looks;
} evict;

enum tk_status tk_evict_open(uint32_t max)
{
    evict.max = max;
    evict.count = evict.looks = 0;
    evict.ranks = max ? calloc(max, sizeof(*evict.ranks)) : NULL;
    if (max && !evict.ranks) {
        tk_log_error("out of memory for a list of %u connections", max);
        return TK_FAIL;
    }
    return TK_OK;
}

void tk_evict_close(void)
{
    free(evict.ranks);
    evict.ranks = NULL;
    evict.count = evict.max = 0;
}

TK_FIRST_USE bool tk_evict_is_bounded(void)
{
    return evict.max > 0;
}

void tk_evict_use_tables(const struct tk_transport *connected, const struct tk_transport *watched)
{
    evict.connected = connected;
    evict.watched = watched;
}

TK_FIRST_USE bool tk_evict_has_space(void)
{
    return tk_evict_fits(evict.count, evict.max);
}

uint32_t tk_evict_count(void)
{
    return evict.count;
}

TK_FIRST_USE void tk_evict_add(uint32_t rank)
{
    if (evict.max > 0)
        evict.ranks[evict.count] = rank;
    evict.count++;
}

void tk_evict_remove(uint32_t rank)
{
    evict.count--;
    for (uint32_t i = 0; evict.max > 0 && i < evict.count; i++)
        if (evict.ranks[i] == rank)
            evict.ranks[i] = evict.ranks[evict.count];
}

static bool swap_table(struct tk_peer *peer, const struct tk_transport *from,
                       const struct tk_transport *to)
{
    return __atomic_compare_exchange_n(&peer->transport, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

bool tk_evict_watch(struct tk_peer *peer)
{
    if (!swap_table(peer, evict.connected, evict.watched))
        return false;
    tk_conns_to(peer->rank)->last_used = ++evict.looks;
    return true;
}

void tk_evict_used(struct tk_peer *peer)
{
    if (__atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE) != evict.watched)
        return;
    __atomic_store_n(&tk_conns_to(peer->rank)->spared, 0, __ATOMIC_RELAXED);
    swap_table(peer, evict.watched, evict.connected);
}

bool tk_evict_is_idle(const struct tk_peer *peer)
{
    bool is_watched = __atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE) == evict.watched;
    uint64_t spared = __atomic_load_n(&tk_conns_to(peer->rank)->spared, __ATOMIC_RELAXED);
    return tk_evict_may(is_watched, spared, tk_now());
}

/* Moves the returned peer to the end of the list: if it can't be closed now, the others are tried
 * first. */
struct tk_peer *tk_evict_next(bool (*is_open)(const struct tk_peer *peer))
{
    struct tk_evict_choice choice = {.is_made = false};
    for (uint32_t i = 0; evict.max > 0 && i < evict.count; i++) {
        struct tk_peer *peer = tk_peer(evict.ranks[i]);
        if (!is_open(peer))
            continue;
        tk_evict_watch(peer);
        if (tk_evict_is_idle(peer))
            tk_evict_consider(&choice, peer->rank, tk_conns_to(peer->rank)->last_used);
    }
    if (!choice.is_made)
        return NULL;
    tk_conns_to(choice.rank)->last_used = ++evict.looks;
    return tk_peer(choice.rank);
}
