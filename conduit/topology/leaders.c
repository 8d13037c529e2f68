/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See leaders.h. Owns nothing. */
#include "config.h"

#include "topology/leaders.h"
#include "topology/topology.h"

static uint32_t leader_of(uint32_t nbrhd)
{
    uint32_t rank = 0;
    while (tk_topology.nbrhd_of[rank] != nbrhd)
        rank++;
    return rank;
}

void tk_leaders_open(struct tk_leaders *leaders)
{
    uint32_t nbrhds = tk_topology.nbrhds;
    leaders->rounds = 0;
    if (tk_topology.nbrhd_rank != 0)
        return;
    while ((UINT64_C(1) << leaders->rounds) < nbrhds) {
        uint64_t to = tk_topology.my_nbrhd + (UINT64_C(1) << leaders->rounds);
        leaders->targets[leaders->rounds++] = leader_of((uint32_t)(to % nbrhds));
    }
}
