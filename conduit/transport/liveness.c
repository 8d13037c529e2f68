/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See neighbour.h: the word that each rank leaves about its end. No state. */
#include "config.h"

#include "transport/neighbour.h"
#include "transport/transport.h"

void tk_liveness_set(enum tk_rank_liveness liveness)
{
    const struct tk_transport *near = __atomic_load_n(&tk_transports.near, __ATOMIC_ACQUIRE);
    if (near)
        near->set_liveness(liveness);
}

const _Atomic uint32_t *tk_liveness_of(uint32_t index)
{
    return tk_transports.near->liveness_of(index);
}
