/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds two ranks that must talk over the network and would not reach each other: their ports are
 * of different partitions, or have no GIDs in common. Pure functions of the addresses, no state. */
#ifndef TK_VERBS_SPLIT_H
#define TK_VERBS_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "peer/peer.h"

/* nbrhd_of: the neighbourhood of each rank, whose ranks share memory and need not reach each other;
 * NULL: each rank is its own. */
struct tk_split_job {
    uint32_t size, rails;
    const uint32_t *nbrhd_of;
    const struct tk_port_address *(*address_of)(uint32_t rank, uint32_t rail);
};

struct tk_split {
    uint32_t one, other, rail; /* other == 0: there is none */
    bool is_by_partition;
};

/* The first such pair, by rail, lower and higher rank. TK_FAIL: out of memory, which was logged. */
enum tk_status tk_split_find(const struct tk_split_job *job, struct tk_split *split);

#endif
