/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Places: the addresses of all ranks' ports, by rank and rail. Ranks of a host share them. Written
 * once, before the first connection is made; no lock. */
#ifndef TK_VERBS_PLACES_H
#define TK_VERBS_PLACES_H

#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/status.h"
#include "bootstrap/host_table.h"
#include "peer/peer.h"
#include "transport/verbs/verbs_state.h"

/* A rank's end of a rail. */
struct tk_place {
    uint32_t address;     /* where it begins */
    uint32_t datagram_qp; /* 0: none */
};

struct tk_places {
    struct tk_host_table table;     /* the memory of the two below; equal in all ranks */
    const struct tk_place *by_rank; /* and rail */
    const uint32_t *addresses;      /* each as long as its number of GIDs requires */
};
extern TK_HIDDEN struct tk_places tk_places;

/* device/places.c: keeps the addresses of all ranks from their infos, which may then be freed. */
enum tk_status tk_places_learn(const uint32_t *host_of);
void tk_places_forget(void);

static inline size_t tk_places_bytes(size_t ranks, size_t rails)
{
    return ranks * rails * sizeof(struct tk_place);
}

/* The size of an address with so many GIDs, in the units by which a place counts. */
static inline uint32_t tk_address_units(unsigned gids)
{
    size_t size = offsetof(struct tk_port_address, gids) + gids * sizeof(struct tk_gid);
    return (uint32_t)((size + sizeof(uint32_t) - 1) / sizeof(uint32_t));
}

static inline const struct tk_place *tk_place_of(uint32_t rank, uint32_t rail)
{
    return &tk_places.by_rank[(size_t)rank * tk_verbs.rail_count + rail];
}

static inline const struct tk_port_address *tk_address_of(uint32_t rank, uint32_t rail)
{
    return (const void *)(tk_places.addresses + tk_place_of(rank, rail)->address);
}

#endif
