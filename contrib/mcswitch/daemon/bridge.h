/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A learning switch: sends a frame to the port where its destination was last seen, or to all
 * ports. The core gets each frame first and keeps those for its two addresses. Owns the tables of
 * addresses. */
#ifndef MCD_BRIDGE_H
#define MCD_BRIDGE_H

#include "daemon/port.h"

/* The two addresses of the switch: requests go to `requests`, copies come from `copies`. */
struct mcd_vips {
    uint8_t mac[6];
    uint8_t requests[4], copies[4];
};

struct mcd_bridge_counters {
    uint64_t forwarded, flooded, to_core, not_for_us, malformed, moved;
};
extern struct mcd_bridge_counters mcd_bridge_count;

void mcd_bridge_open(const struct mcd_vips *vips);
/* The mcd_take of ports of frames. */
void mcd_bridge_take(struct mcd_port *port, uint8_t *frame, size_t length);
/* The port and MAC of an IPv4 host, if it was seen. */
bool mcd_bridge_find(const uint8_t ip[4], uint8_t mac[6], unsigned *port);
/* Sends an ARP query for the host to all ports of frames. */
void mcd_bridge_ask(const uint8_t ip[4]);

#endif
