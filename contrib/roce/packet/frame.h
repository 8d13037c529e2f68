/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A whole RoCE v2 frame: Ethernet with up to two VLAN tags, IPv4 without options or IPv6 without
 * extension headers, UDP to port 4791, the transport packet, the ICRC. Pure functions. */
#ifndef ROCE_FRAME_H
#define ROCE_FRAME_H

#include "packet/packet.h"

enum {
    ROCE_VLANS = 2,
    ROCE_FRAME_MAX = 14 + 4 * ROCE_VLANS + 40 + 8 + ROCE_PACKET_MAX,
};

struct roce_frame {
    uint8_t destination_mac[6], source_mac[6];
    unsigned vlans;
    uint16_t vlan_type[ROCE_VLANS], vlan[ROCE_VLANS]; /* 0x8100 or 0x88a8; tag */
    uint8_t ip_version;
    uint8_t traffic_class; /* DSCP and ECN */
    uint32_t flow_label;   /* IPv6 */
    uint16_t id, fragment; /* IPv4: identification; flags and offset */
    uint8_t hops;
    uint8_t source[16], destination[16]; /* IPv4: the first four */
    uint16_t source_port, destination_port;
    uint16_t udp_checksum; /* 0: none; not verified */
    struct roce_packet packet;
    uint32_t icrc;          /* as received */
    uint16_t trailing;      /* bytes behind the IP packet, as Ethernet pads */
    uint16_t ip_at, bth_at; /* offsets in the frame */
    uint16_t packet_length; /* of the transport packet, without ICRC */
};

/* Reads a frame; *frame points into data. ROCE_NOT_ROCE is not an error: other traffic.
 * ROCE_BAD_ICRC: everything else is valid, and *frame is complete. */
enum roce_verdict roce_frame_parse(const uint8_t *data, size_t length, struct roce_frame *frame);

/* Writes it, with lengths, the IPv4 checksum and the ICRC computed, and zeros as trailing bytes.
 * Result: bytes; 0: the buffer is too small, or too many VLAN tags or an unknown IP version. */
size_t roce_frame_build(const struct roce_frame *frame, uint8_t *out, size_t room);

/* In words, for logs and tests. */
const char *roce_verdict_name(enum roce_verdict v);

#endif
