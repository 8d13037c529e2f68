/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The invariant CRC of RoCE v2 (annex A17.3): CRC-32 over eight bytes of ones in place of the LRH,
 * the IP and UDP headers, and the transport packet; fields that routers may change count as ones.
 * It is stored little-endian. Pure functions. */
#ifndef ROCE_ICRC_H
#define ROCE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The part of IP and UDP in the ICRC of a packet; addresses in network order. An IPv4 packet has
 * address bytes 0..3 and no options. */
struct roce_path {
    uint8_t version; /* 4 or 6 */
    uint8_t source[16], destination[16];
    uint16_t source_port, destination_port;
    /* IPv4 only. The kernel sends 0 and "don't fragment" from unconnected UDP sockets with
     * IP_PMTUDISC_DO. */
    uint16_t id;
    bool may_fragment;
};

/* The ICRC of a transport packet (from the BTH to the padding) on this path. */
uint32_t roce_icrc(const struct roce_path *path, const uint8_t *transport, size_t length);

/* The same in two steps, for packets of equal length on one path: the state behind the UDP header
 * does not change. length: of the transport packet, without the ICRC. */
uint32_t roce_icrc_path(const struct roce_path *path, size_t length);
uint32_t roce_icrc_rest(uint32_t state, const uint8_t *transport, size_t length);

/* The ICRC of a packet that lies in memory from its IP header on, without the ICRC's own bytes;
 * transport: offset of the BTH, 28 or 48. */
uint32_t roce_icrc_ip(const uint8_t *ip, size_t transport, size_t length);

/* The ICRC after the first `changed` bytes of an IP packet were rewritten (from old to now; at
 * least up to the end of the BTH, same length), with `behind` unchanged bytes up to the ICRC. The
 * payload is not read, and a damaged packet stays damaged. */
uint32_t roce_icrc_rewrite(uint32_t icrc, const uint8_t *old, const uint8_t *now, size_t changed,
                           size_t behind);
/* What such a rewrite changes, still in front of the unchanged bytes: icrc ^ shift of this. */
uint32_t roce_icrc_change(const uint8_t *old, const uint8_t *now, size_t changed);

/* For an IPv4 packet with unknown identification: whether some identification makes the ICRC right.
 * computed: the ICRC with path->id = 0; received: the one in the packet; length: of the transport
 * packet. Of the 32 bits of check 16 remain. *id: what it must have been. */
bool roce_icrc_solve_id(uint32_t computed, uint32_t received, size_t length, uint16_t *id);

#endif
