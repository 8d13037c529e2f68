/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of functions for peers that are not connected: they begin to connect the peer and
 * return TK_BUSY. A connected peer gets the usual table, so the functions in that need no check. */
#ifndef TK_VERBS_UNCONNECTED_H
#define TK_VERBS_UNCONNECTED_H

#include "base/bits.h"
#include "transport/transport.h"

extern TK_HIDDEN struct tk_transport tk_transport_unconnected;

/* Call after tk_demand_open(); `connected` is the table of connected peers. Peers get the table of
 * unconnected ones. */
void tk_unconnected_open(const struct tk_transport *connected);

/* See struct tk_transport. */
void tk_unconnected_use_tables(const struct tk_transport *connected,
                               const struct tk_transport *unconnected);

#endif
