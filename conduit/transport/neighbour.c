/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See neighbour.h: memory shared with neighbours, through the table of the transport that shares
 * it. No state. */
#include "config.h"

#include "transport/neighbour.h"
#include "transport/transport.h"

void *tk_neighbour_flags(uint32_t neighbour)
{
    return tk_transports.node_local->flags(neighbour);
}

void *tk_neighbour_scratch(uint32_t neighbour)
{
    return tk_transports.node_local->scratch(neighbour);
}

void tk_neighbour_wake(uint32_t rank)
{
    if (tk_transports.node_local)
        tk_transports.node_local->wake(rank);
}

uintptr_t tk_neighbour_addr_offset(struct tk_peer *peer, uint32_t endpoint)
{
    return tk_transports.node_local->offset(peer, endpoint);
}

enum tk_status tk_neighbour_try_segment(struct tk_peer *peer, const struct tk_bound *bound)
{
    return tk_transports.node_local->try_segment(peer, bound);
}

void tk_neighbours_admit(void)
{
    tk_transports.node_local->admit();
}
