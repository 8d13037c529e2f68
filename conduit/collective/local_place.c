/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory of a member that the others read in place: memory in its published segments, if these are
 * files. Owns nothing. */
#include "config.h"

#include "collective/local_private.h"
#include "peer/peer.h"
#include "transport/transport.h"

bool tk_local_place_of(const void *address, size_t nbytes, struct tk_local_place *place)
{
    struct tk_bound bound;
    if (!tk_bound_find_published((uintptr_t)address, nbytes, &bound) || bound.fd < 0)
        return false;
    *place = (struct tk_local_place){
        .address = (uintptr_t)address, .inode = bound.inode, .endpoint = bound.endpoint};
    return true;
}

/* The reason was logged. */
static void place_lose(uint32_t rank)
{
    void (*lost)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    if (lost)
        lost(rank);
}

/* The owner may have returned from publishing its segment before us: if it names another file than
 * the one known here, we are about to learn of it. */
const char *tk_local_place_map(const struct tk_local_member *member,
                               const struct tk_local_place *place)
{
    const struct tk_bound bound = tk_bound_of(member->rank, place->endpoint);
    if (bound.inode != place->inode)
        return NULL;
    uintptr_t offset = tk_neighbour_addr_offset(tk_peer(member->rank), place->endpoint);
    if (offset == tk_unmapped)
        place_lose(member->rank);
    return offset == tk_unmapped ? NULL : (const char *)(uintptr_t)(place->address + offset);
}
