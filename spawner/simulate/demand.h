/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections where a process may have fewer than partners (GASNET_CONNECT_MAX): opened on demand,
 * closed for others when both ends agree, and opened again, as conduit/transport/verbs/conn does
 * it. The states of a connection, its datagrams and the choice of the one to close are functions of
 * the library. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_DEMAND_H
#define TRUNKLINE_SPAWNER_SIMULATE_DEMAND_H

#include "connections.h"

/* Kinds of events. */
enum { SIM_DATAGRAM = 128, SIM_TIMER };

/* `from` wants to send now. False: not yet; its messages are tried again when it may. */
bool sim_demand_use(struct simulation *s, uint32_t from, uint32_t to, uint64_t now);

/* Takes an event of these kinds. */
void sim_demand_came(struct simulation *s, const struct sim_event *event);

#endif
