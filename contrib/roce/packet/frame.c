/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads and writes whole frames. Pure functions. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "packet/bytes.h"
#include "packet/frame.h"
#include "packet/headers.h"
#include "packet/icrc.h"

enum { fragment_mask = 0x3fff /* more fragments, offset */ };

/* ---- reading ---- */

/* Result: the Ethernet type behind the tags; *at is moved to what follows it. */
static uint16_t parse_ethernet(const uint8_t *b, size_t length, struct roce_frame *f, size_t *at)
{
    uint16_t type;

    memcpy(f->destination_mac, b, mac_bytes);
    memcpy(f->source_mac, b + mac_bytes, mac_bytes);
    *at = ethernet_bytes;
    type = roce_get16(b + *at - 2);
    while ((type == type_vlan || type == type_service_vlan) && f->vlans < ROCE_VLANS &&
           length >= *at + vlan_bytes) {
        f->vlan_type[f->vlans] = type;
        f->vlan[f->vlans++] = roce_get16(b + *at);
        type = roce_get16(b + *at + 2);
        *at += vlan_bytes;
    }
    return type;
}

static enum roce_verdict parse_ipv4(const uint8_t *ip, size_t length, struct roce_frame *f,
                                    size_t *end)
{
    if (length < ipv4_bytes)
        return ROCE_TOO_SHORT;
    *end = roce_get16(ip + 2);
    if (ip[0] != 0x45 || ip[9] != udp_protocol || (roce_get16(ip + 6) & fragment_mask))
        return ROCE_NOT_ROCE;
    if (ipv4_checksum(ip) != 0)
        return ROCE_BAD_CHECKSUM;
    f->ip_version = 4;
    f->traffic_class = ip[1];
    f->id = roce_get16(ip + 4);
    f->fragment = roce_get16(ip + 6);
    f->hops = ip[8];
    memcpy(f->source, ip + 12, 4);
    memcpy(f->destination, ip + 16, 4);
    return ROCE_GOOD;
}

static enum roce_verdict parse_ipv6(const uint8_t *ip, size_t length, struct roce_frame *f,
                                    size_t *end)
{
    if (length < ipv6_bytes)
        return ROCE_TOO_SHORT;
    *end = ipv6_bytes + (size_t)roce_get16(ip + 4);
    if (ip[0] >> 4 != 6 || ip[6] != udp_protocol)
        return ROCE_NOT_ROCE;
    f->ip_version = 6;
    f->traffic_class = (uint8_t)(ip[0] << 4 | ip[1] >> 4);
    f->flow_label = roce_get32(ip) & 0xfffff;
    f->hops = ip[7];
    memcpy(f->source, ip + 8, 16);
    memcpy(f->destination, ip + 24, 16);
    return ROCE_GOOD;
}

static enum roce_verdict parse_udp(const uint8_t *udp, size_t length, struct roce_frame *f)
{
    if (length < udp_bytes)
        return ROCE_TOO_SHORT;
    f->source_port = roce_get16(udp);
    f->destination_port = roce_get16(udp + 2);
    f->udp_checksum = roce_get16(udp + 6);
    if (f->destination_port != ROCE_UDP_PORT)
        return ROCE_NOT_ROCE;
    return roce_get16(udp + 4) == length ? ROCE_GOOD : ROCE_BAD_LENGTH;
}

/* ip: the packet of length bytes, as its header says. */
static enum roce_verdict parse_transport(const uint8_t *ip, size_t length, struct roce_frame *f)
{
    size_t transport = (f->ip_version == 4 ? ipv4_bytes : ipv6_bytes) + udp_bytes;
    enum roce_verdict v;

    if (length < transport + ROCE_BTH_BYTES + ROCE_ICRC_BYTES)
        return ROCE_TOO_SHORT;
    length -= ROCE_ICRC_BYTES;
    f->bth_at = (uint16_t)(f->ip_at + transport);
    f->packet_length = (uint16_t)(length - transport);
    f->icrc = roce_get_icrc(ip + length);
    v = roce_packet_parse(ip + transport, f->packet_length, &f->packet);
    if (v != ROCE_GOOD)
        return v;
    return roce_icrc_ip(ip, transport, length) == f->icrc ? ROCE_GOOD : ROCE_BAD_ICRC;
}

enum roce_verdict roce_frame_parse(const uint8_t *data, size_t length, struct roce_frame *frame)
{
    enum roce_verdict v;
    size_t at, end = 0;
    uint16_t type;

    memset(frame, 0, sizeof *frame);
    if (length < ethernet_bytes)
        return ROCE_TOO_SHORT;
    type = parse_ethernet(data, length, frame, &at);
    if (type != type_ipv4 && type != type_ipv6)
        return ROCE_NOT_ROCE;
    frame->ip_at = (uint16_t)at;
    data += at;
    length -= at;
    v = type == type_ipv4 ? parse_ipv4(data, length, frame, &end)
                          : parse_ipv6(data, length, frame, &end);
    if (v != ROCE_GOOD)
        return v;
    at = type == type_ipv4 ? ipv4_bytes : ipv6_bytes;
    if (end < at || end > length || length - end > UINT16_MAX)
        return ROCE_BAD_LENGTH;
    frame->trailing = (uint16_t)(length - end);
    v = parse_udp(data + at, end - at, frame);
    return v == ROCE_GOOD ? parse_transport(data, end, frame) : v;
}

/* ---- writing ---- */

static size_t build_ethernet(const struct roce_frame *f, uint8_t *out)
{
    size_t at = 2 * mac_bytes;

    memcpy(out, f->destination_mac, mac_bytes);
    memcpy(out + mac_bytes, f->source_mac, mac_bytes);
    for (unsigned i = 0; i < f->vlans; i++, at += vlan_bytes) {
        roce_put16(out + at, f->vlan_type[i]);
        roce_put16(out + at + 2, f->vlan[i]);
    }
    roce_put16(out + at, f->ip_version == 4 ? type_ipv4 : type_ipv6);
    return at + 2;
}

static size_t build_ipv4(const struct roce_frame *f, size_t behind, uint8_t *ip)
{
    ip[0] = 0x45;
    ip[1] = f->traffic_class;
    roce_put16(ip + 2, (uint16_t)(ipv4_bytes + behind));
    roce_put16(ip + 4, f->id);
    roce_put16(ip + 6, f->fragment);
    ip[8] = f->hops;
    ip[9] = udp_protocol;
    roce_put16(ip + 10, 0);
    memcpy(ip + 12, f->source, 4);
    memcpy(ip + 16, f->destination, 4);
    roce_put16(ip + 10, ipv4_checksum(ip));
    return ipv4_bytes;
}

static size_t build_ipv6(const struct roce_frame *f, size_t behind, uint8_t *ip)
{
    roce_put32(ip, 6u << 28 | (uint32_t)f->traffic_class << 20 | (f->flow_label & 0xfffff));
    roce_put16(ip + 4, (uint16_t)behind);
    ip[6] = udp_protocol;
    ip[7] = f->hops;
    memcpy(ip + 8, f->source, 16);
    memcpy(ip + 24, f->destination, 16);
    return ipv6_bytes;
}

static void build_udp(const struct roce_frame *f, size_t behind, uint8_t *udp)
{
    roce_put16(udp, f->source_port);
    roce_put16(udp + 2, f->destination_port);
    roce_put16(udp + 4, (uint16_t)behind);
    roce_put16(udp + 6, f->udp_checksum);
}

/* The size of the frame; 0: it cannot be built. */
static size_t frame_bytes(const struct roce_frame *f)
{
    size_t ip = f->ip_version == 4 ? ipv4_bytes : ipv6_bytes;

    if ((f->ip_version != 4 && f->ip_version != 6) || f->vlans > ROCE_VLANS ||
        f->packet.payload_length > ROCE_MTU_MAX)
        return 0;
    return ethernet_bytes + f->vlans * vlan_bytes + ip + udp_bytes +
           roce_opcode_bytes(f->packet.opcode) + f->packet.payload_length +
           roce_pad(f->packet.payload_length) + ROCE_ICRC_BYTES + f->trailing;
}

size_t roce_frame_build(const struct roce_frame *frame, uint8_t *out, size_t room)
{
    size_t total = frame_bytes(frame), at, behind, length;
    uint8_t *ip, *udp, *bth;

    if (total == 0 || total > room)
        return 0;
    ip = out + build_ethernet(frame, out);
    at = frame->ip_version == 4 ? ipv4_bytes : ipv6_bytes;
    udp = ip + at;
    bth = udp + udp_bytes;
    length = roce_packet_build(&frame->packet, bth, room - (size_t)(bth - out));
    behind = udp_bytes + length + ROCE_ICRC_BYTES;
    if (frame->ip_version == 4)
        build_ipv4(frame, behind, ip);
    else
        build_ipv6(frame, behind, ip);
    build_udp(frame, behind, udp);
    roce_put_icrc(bth + length, roce_icrc_ip(ip, at + udp_bytes, at + udp_bytes + length));
    memset(bth + length + ROCE_ICRC_BYTES, 0, frame->trailing);
    return total;
}

const char *roce_verdict_name(enum roce_verdict v)
{
    static const char *const names[ROCE_VERDICTS] = {
        [ROCE_GOOD] = "good",
        [ROCE_TOO_SHORT] = "too short",
        [ROCE_BAD_OPCODE] = "unknown operation code",
        [ROCE_BAD_VERSION] = "unknown transport version",
        [ROCE_BAD_PAD] = "more padding than payload",
        [ROCE_BAD_PAYLOAD] = "a payload that may not be",
        [ROCE_NOT_ROCE] = "not RoCE v2",
        [ROCE_BAD_LENGTH] = "lengths that contradict each other",
        [ROCE_BAD_CHECKSUM] = "wrong IP checksum",
        [ROCE_BAD_ICRC] = "wrong ICRC",
    };

    return v < ROCE_VERDICTS ? names[v] : "unknown";
}
