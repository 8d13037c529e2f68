/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lengths and types of the headers below the transport packet (IEEE 802.3 and 802.1Q, RFC 791, 8200
 * and 768), and the checksum of IPv4 (RFC 1071), for code that reads, builds and rewrites
 * frames. */
#ifndef ROCE_HEADERS_H
#define ROCE_HEADERS_H

#include "packet/bytes.h"

enum {
    mac_bytes = 6,
    ethernet_bytes = 14,
    vlan_bytes = 4,
    ipv4_bytes = 20,
    ipv6_bytes = 40,
    udp_bytes = 8,
    udp_protocol = 17,
    type_ipv4 = 0x0800,
    type_arp = 0x0806,
    type_vlan = 0x8100,
    type_ipv6 = 0x86dd,
    type_service_vlan = 0x88a8,
};

/* Of a header without options, whose checksum field is 0. */
static inline uint16_t ipv4_checksum(const uint8_t *ip)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < ipv4_bytes; i += 2)
        sum += roce_get16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

#endif
