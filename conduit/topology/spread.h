/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How the ports of a host are spread over its ranks (GASNET_IBV_PORTS_TYPE=auto). Pure: owns
 * nothing, takes no lock; the same tables give the same result in every process. */
#ifndef TK_SPREAD_H
#define TK_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

enum { tk_spread_never = -1 /* as a distance: the rank can't use the port */ };

/* Rows are ranks, columns ports. */
struct tk_spread {
    uint32_t ranks, ports;
    uint32_t wanted;     /* ports for each rank; fewer where it can use fewer */
    const int *distance; /* larger is farther */
    bool *is_taken;      /* the result */
};

/* Each rank gets its nearest ports, chosen so that the busiest port has as few ranks as possible
 * under that condition. If there are more ranks than near ports, ports that are nearest to no rank
 * take ranks from the near ones, the nearest ranks first, as long as that balances the load. False:
 * out of memory. */
bool tk_spread(const struct tk_spread *spread);

/* How many ranks of the result have the port. */
uint32_t tk_spread_load(const struct tk_spread *spread, uint32_t port);

#endif
