/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of the ranks' ports, for connections that are made after the peer infos are freed.
 * Ranks of a host mostly use the same ports, so each address is kept once per host, with its GIDs,
 * plus eight bytes per rank and rail. The table is the same in all ranks of the job, so those of a
 * host share it. Owns tk_places.table and the pointers into it, which are written at start-up
 * only: no lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/verbs_state.h"

enum { no_address = UINT32_MAX };

/* Used while collecting: for each host a list of its addresses. */
struct lists {
    struct tk_port_address *all;
    uint32_t *first, *next; /* by host; by address */
    uint32_t count, space;  /* of addresses */
};

static bool lists_grow(struct lists *lists)
{
    uint32_t space = lists->space ? 2 * lists->space : 16;
    void *all = realloc(lists->all, space * sizeof(*lists->all));
    if (all)
        lists->all = all;
    void *next = realloc(lists->next, space * sizeof(*lists->next));
    if (next)
        lists->next = next;
    lists->space = space;
    return all && next;
}

static uint32_t find_address(const struct lists *lists, uint32_t host,
                             const struct tk_port_address *wanted)
{
    uint32_t i = lists->first[host];
    while (i != no_address && memcmp(&lists->all[i], wanted, sizeof(*wanted)) != 0)
        i = lists->next[i];
    return i;
}

/* no_address: out of memory. */
static uint32_t keep_address(struct lists *lists, uint32_t host,
                             const struct tk_port_address *address)
{
    uint32_t i = find_address(lists, host, address);
    if (i != no_address)
        return i;
    if (lists->count == lists->space && !lists_grow(lists))
        return no_address;
    i = lists->count++;
    lists->all[i] = *address;
    lists->next[i] = lists->first[host];
    lists->first[host] = i;
    return i;
}

static bool keep_rank(struct lists *lists, uint32_t host, uint32_t rank, struct tk_place *places)
{
    const struct tk_peer_info *info = tk_peer_info_of(rank);
    bool is_kept = true;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        places[i].address = keep_address(lists, host, tk_peer_info_rail(info, i));
        places[i].datagram_qp = tk_peer_info_datagram_qps(info)[i];
        is_kept &= places[i].address != no_address;
    }
    return is_kept;
}

static bool keep_all(struct lists *lists, const uint32_t *host_of, struct tk_place *places)
{
    for (uint32_t r = 0; r < tk_peers.size; r++)
        lists->first[r] = no_address;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (!keep_rank(lists, host_of[r], r, &places[(size_t)r * tk_verbs.rail_count]))
            return false;
    return true;
}

/* Packs the addresses, because few ports have as many GIDs as the peer infos can carry. Reuses
 * `next` for the position of each address. Returns the units that all addresses take. */
static uint32_t begin_addresses(struct lists *lists)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < lists->count; i++) {
        lists->next[i] = used;
        used += tk_address_units(lists->all[i].gid_count);
    }
    return used;
}

static void pack(const struct lists *lists, struct tk_place *places, uint32_t *addresses)
{
    for (uint32_t i = 0; i < lists->count; i++)
        memcpy(addresses + lists->next[i], &lists->all[i],
               tk_address_units(lists->all[i].gid_count) * sizeof(*addresses));
    for (size_t i = 0; i < (size_t)tk_peers.size * tk_verbs.rail_count; i++)
        places[i].address = lists->next[places[i].address];
}

/* The places, followed by the addresses; NULL: out of memory. */
static void *make_table(struct lists *lists, const uint32_t *host_of, size_t *size)
{
    size_t front = tk_places_bytes(tk_peers.size, tk_verbs.rail_count);
    struct tk_place *places = lists->first ? malloc(front) : NULL;
    if (!places || !keep_all(lists, host_of, places)) {
        free(places);
        return NULL;
    }
    *size = front + begin_addresses(lists) * sizeof(*tk_places.addresses);
    char *table = realloc(places, *size);
    if (table)
        pack(lists, (void *)table, (void *)(table + front));
    else
        free(places);
    return table;
}

static enum tk_status make_places(const uint32_t *host_of)
{
    size_t size = 0;
    struct lists lists = {.first = malloc(tk_peers.size * sizeof(*lists.first))};
    void *table = make_table(&lists, host_of, &size);
    free(lists.all);
    free(lists.first);
    free(lists.next);
    if (!table) {
        tk_log_error("out of memory for the addresses of %u ranks", tk_peers.size);
        return TK_FAIL;
    }
    tk_host_table_show(&tk_places.table, table, size);
    return TK_OK;
}

enum tk_status tk_places_learn(const uint32_t *host_of)
{
    size_t front = tk_places_bytes(tk_peers.size, tk_verbs.rail_count);
    if (!tk_host_table_find(&tk_places.table, front) && make_places(host_of) != TK_OK)
        return TK_FAIL;
    tk_places.by_rank = tk_places.table.at;
    tk_places.addresses = (const void *)((const char *)tk_places.table.at + front);
    return TK_OK;
}

void tk_places_forget(void)
{
    tk_host_table_drop(&tk_places.table);
    tk_places.addresses = NULL;
    tk_places.by_rank = NULL;
}
