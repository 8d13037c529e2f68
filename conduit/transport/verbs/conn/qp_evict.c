/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See qp_evict.h. Owns the list of ranks that have queue pairs, which is as long as there may be of
 * them. Each look at all of them makes those rest that were used since the last one and gives them
 * a number; the lowest number is the one that was found in use longest ago. */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/first_use.h"
#include "base/report.h"
#include "transport/verbs/conn/qp_evict.h"

static struct {
    const struct tk_transport *connected, *resting;
    uint32_t *ranks;
    uint32_t count, max;
    uint32_t looks;
} rest;

enum tk_status tk_rest_open(uint32_t max)
{
    rest.max = max;
    rest.count = rest.looks = 0;
    rest.ranks = max ? calloc(max, sizeof(*rest.ranks)) : NULL;
    if (max && !rest.ranks) {
        tk_log_error("out of memory for a list of %u connections", max);
        return TK_FAIL;
    }
    return TK_OK;
}

void tk_rest_close(void)
{
    free(rest.ranks);
    rest.ranks = NULL;
    rest.count = rest.max = 0;
}

TK_FIRST_USE bool tk_rest_is_bounded(void)
{
    return rest.max > 0;
}

void tk_rest_use_tables(const struct tk_transport *connected, const struct tk_transport *resting)
{
    rest.connected = connected;
    rest.resting = resting;
}

TK_FIRST_USE bool tk_rest_has_room(void)
{
    return rest.max == 0 || rest.count < rest.max;
}

uint32_t tk_rest_count(void)
{
    return rest.count;
}

TK_FIRST_USE void tk_rest_add(uint32_t rank)
{
    if (rest.max > 0)
        rest.ranks[rest.count] = rank;
    rest.count++;
}

void tk_rest_remove(uint32_t rank)
{
    rest.count--;
    for (uint32_t i = 0; rest.max > 0 && i < rest.count; i++)
        if (rest.ranks[i] == rank)
            rest.ranks[i] = rest.ranks[rest.count];
}

static bool swap_table(struct tk_peer *peer, const struct tk_transport *from,
                       const struct tk_transport *to)
{
    return __atomic_compare_exchange_n(&peer->transport, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

bool tk_rest_begin(struct tk_peer *peer)
{
    if (!swap_table(peer, rest.connected, rest.resting))
        return false;
    tk_conns_to(peer->rank)->last_used = ++rest.looks;
    return true;
}

void tk_rest_end(struct tk_peer *peer)
{
    if (__atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE) != rest.resting)
        return;
    __atomic_store_n(&tk_conns_to(peer->rank)->spared, 0, __ATOMIC_RELAXED);
    swap_table(peer, rest.resting, rest.connected);
}

bool tk_rest_is_idle(const struct tk_peer *peer)
{
    return __atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE) == rest.resting &&
           __atomic_load_n(&tk_conns_to(peer->rank)->spared, __ATOMIC_RELAXED) <= tk_now();
}

/* It goes behind the others: what can't be closed now is not asked again before them. */
struct tk_peer *tk_rest_next(bool (*is_open)(const struct tk_peer *peer))
{
    struct tk_peer *oldest = NULL;
    for (uint32_t i = 0; rest.max > 0 && i < rest.count; i++) {
        struct tk_peer *peer = tk_peer(rest.ranks[i]);
        if (!is_open(peer))
            continue;
        tk_rest_begin(peer);
        if (tk_rest_is_idle(peer) &&
            (!oldest || (int32_t)(tk_conns_to(peer->rank)->last_used -
                                  tk_conns_to(oldest->rank)->last_used) < 0))
            oldest = peer;
    }
    if (oldest)
        tk_conns_to(oldest->rank)->last_used = ++rest.looks;
    return oldest;
}
