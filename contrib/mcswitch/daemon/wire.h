/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The port of softhca's wire. The switch receives UDP at two addresses, and adds Ethernet, IP and
 * UDP headers to the packets, so that the core gets only frames. A member is an address and a UDP
 * port. Several members may share a host's address, so a member with a port other than RoCE's gets
 * its own IPv4 address of class E in those headers. The ICRC covers the headers and is updated.
 * Owns the sockets and the table of members. */
#ifndef MCD_WIRE_H
#define MCD_WIRE_H

#include "daemon/bridge.h"

/* Opens the port: "REQUESTS,COPIES", each A.B.C.D[:PORT]. False with a sentence on stderr. vips:
 * the switch's addresses in the frames that the core sees; filled in where requests[0] is 0. */
bool mcd_wire_open(const char *text, struct mcd_vips *vips);
void mcd_wire_close(void);
struct mcd_port *mcd_wire_port(void); /* NULL: there is none */
/* The two addresses as GIDs of softhca's form. */
void mcd_wire_gids(uint8_t requests[16], uint8_t copies[16]);

/* Returns a member's address in frames in *in_frames; from then on its packets are accepted. False:
 * the table is full. Each join needs one leave. */
bool mcd_wire_join(const uint8_t ip[4], uint16_t port, uint8_t in_frames[4]);
void mcd_wire_leave(const uint8_t in_frames[4]);

/* Sends a packet of the core to a member. */
void mcd_wire_send(const uint8_t *frame, size_t length);

#endif
