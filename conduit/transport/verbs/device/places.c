/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the ports of peers are, for connections that are made after the peer infos are gone. Ranks
 * of a host mostly use the same ports, so each address is kept once a host, with the GIDs that it
 * has, and eight bytes a rank and rail. Owns tk_verbs.addresses and .places, which are written at
 * start-up only: no lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "transport/verbs/verbs_private.h"

/* While they are collected: of each host a list of its addresses. */
struct lists {
    struct tk_port_address *all;
    uint32_t *first, *next; /* by host; by address */
    uint32_t count, room;   /* of addresses */
};

static bool lists_grow(struct lists *lists)
{
    uint32_t room = lists->room ? 2 * lists->room : 16;
    void *all = realloc(lists->all, room * sizeof(*lists->all));
    if (all)
        lists->all = all;
    void *next = realloc(lists->next, room * sizeof(*lists->next));
    if (next)
        lists->next = next;
    lists->room = room;
    return all && next;
}

static uint32_t find_address(const struct lists *lists, uint32_t host,
                             const struct tk_port_address *wanted)
{
    uint32_t i = lists->first[host];
    while (i != tk_no_address && memcmp(&lists->all[i], wanted, sizeof(*wanted)) != 0)
        i = lists->next[i];
    return i;
}

/* tk_no_address: out of memory. */
static uint32_t keep_address(struct lists *lists, uint32_t host,
                             const struct tk_port_address *address)
{
    uint32_t i = find_address(lists, host, address);
    if (i != tk_no_address)
        return i;
    if (lists->count == lists->room && !lists_grow(lists))
        return tk_no_address;
    i = lists->count++;
    lists->all[i] = *address;
    lists->next[i] = lists->first[host];
    lists->first[host] = i;
    return i;
}

static bool keep_rank(struct lists *lists, uint32_t host, uint32_t rank)
{
    const struct tk_peer_info *info = tk_peer_info_of(rank);
    bool is_ours = rank != tk_peers.me && !tk_peer(rank)->transport, is_kept = true;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct tk_place *place = &tk_verbs.places[(size_t)rank * tk_verbs.rail_count + i];
        *place = (struct tk_place){.address = tk_no_address};
        if (!is_ours)
            continue;
        place->address = keep_address(lists, host, tk_peer_info_rail(info, i));
        place->datagram_qp = tk_peer_info_datagram_qps(info)[i];
        is_kept &= place->address != tk_no_address;
    }
    return is_kept;
}

static bool keep_all(struct lists *lists, const uint32_t *host_of)
{
    for (uint32_t r = 0; r < tk_peers.size; r++)
        lists->first[r] = tk_no_address;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (!keep_rank(lists, host_of[r], r))
            return false;
    return true;
}

/* Few ports have as many GIDs as there is room for in the peer infos. `next` is of no use any more:
 * it becomes where each address begins. */
static bool pack(struct lists *lists)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < lists->count; i++) {
        lists->next[i] = used;
        used += tk_address_units(lists->all[i].gid_count);
    }
    tk_verbs.addresses = malloc(tk_max(used, 1) * sizeof(*tk_verbs.addresses));
    if (!tk_verbs.addresses)
        return false;
    for (uint32_t i = 0; i < lists->count; i++)
        memcpy(tk_verbs.addresses + lists->next[i], &lists->all[i],
               tk_address_units(lists->all[i].gid_count) * sizeof(*tk_verbs.addresses));
    for (size_t i = 0; i < (size_t)tk_peers.size * tk_verbs.rail_count; i++)
        if (tk_verbs.places[i].address != tk_no_address)
            tk_verbs.places[i].address = lists->next[tk_verbs.places[i].address];
    return true;
}

enum tk_status tk_places_learn(const uint32_t *host_of)
{
    struct lists lists = {.first = malloc(tk_peers.size * sizeof(*lists.first))};
    tk_verbs.places = malloc(tk_places_bytes(tk_peers.size, tk_verbs.rail_count));
    bool is_kept = lists.first && tk_verbs.places && keep_all(&lists, host_of) && pack(&lists);
    free(lists.all);
    free(lists.first);
    free(lists.next);
    if (!is_kept)
        tk_log_error("out of memory for the addresses of %u ranks", tk_peers.size);
    return is_kept ? TK_OK : TK_FAIL;
}

void tk_places_forget(void)
{
    free(tk_verbs.addresses);
    free(tk_verbs.places);
    tk_verbs.addresses = NULL;
    tk_verbs.places = NULL;
}
