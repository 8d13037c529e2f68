/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The network of a port, as far as a host can know: InfiniBand ports with the same subnet prefix
 * share a network (IBA 4.1.1), as do RoCE ports, or iWARP ports, whose interfaces have addresses of
 * one subnet. Ports of several networks can't be distributed among ranks, because ports of one
 * network would not reach those of another. No state. */
#include "config.h"

#include <string.h>

#include "peer/peer.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"

void tk_network_of(struct tk_network *network, const struct tk_rail *rail)
{
    const struct tk_gid *gid = &rail->address.gids[0];
    *network = (struct tk_network){.is_ethernet = rail->address.is_ethernet,
                                   .is_iwarp = rail->address.is_iwarp};
    for (unsigned bit = 0; rail->address.gid_count > 0 && bit < gid->network_bits; bit++)
        network->prefix[bit / 8] |= gid->raw[bit / 8] & 0x80u >> bit % 8;
}

bool tk_network_is_same(const struct tk_network *a, const struct tk_network *b)
{
    return a->is_ethernet == b->is_ethernet && a->is_iwarp == b->is_iwarp &&
           !memcmp(a->prefix, b->prefix, tk_gid_size);
}
