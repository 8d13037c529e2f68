/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See neighbour.h: the word in which each rank records how it ends. No state. */
#include "config.h"

#include "transport/neighbour.h"
#include "transport/transport.h"

void tk_liveness_set(enum tk_rank_liveness liveness)
{
    const struct tk_transport_neighbour *node_local =
        __atomic_load_n(&tk_transports.node_local, __ATOMIC_ACQUIRE);
    if (node_local)
        node_local->set_liveness(liveness);
}

const _Atomic uint32_t *tk_liveness_of(uint32_t index)
{
    return tk_transports.node_local->liveness_of(index);
}
