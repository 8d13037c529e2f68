/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers ARP requests (RFC 826) and IPv6 neighbour solicitations (RFC 4861) for the switch's
 * addresses, which hosts resolve before they connect a queue pair. Owns nothing. */
#include "config.h"

#include <string.h>

#include "core/private.h"
#include "packet/bytes.h"

enum {
    arp_bytes = 28,
    icmp6 = 58,
    solicitation = 135,
    advertisement = 136,
    solicitation_bytes = 24,
    answer_bytes = 32, /* with the option that states the MAC */
};

static bool is_ours(const struct mcsw_vips *v, const uint8_t *ip, size_t bytes)
{
    return v->on && (memcmp(ip, v->requests, bytes) == 0 || memcmp(ip, v->copies, bytes) == 0);
}

static void begin(const struct mcsw *w, const uint8_t *frame, size_t at, uint8_t *out)
{
    memcpy(out, frame, at);
    memcpy(out, frame + mac_bytes, mac_bytes);
    memcpy(out + mac_bytes, w->c.mac, mac_bytes);
}

static void send(struct mcsw *w, unsigned port, uint8_t *out, size_t length)
{
    w->count.neighbours++;
    w->c.calls.emit(w->c.calls.context, port, out, length);
}

static bool arp(struct mcsw *w, unsigned port, const uint8_t *frame, size_t length, size_t at)
{
    static const uint8_t request[8] = {0, 1, 8, 0, 6, 4, 0, 1};
    const uint8_t *a = frame + at;
    uint8_t out[ethernet_bytes + vlan_bytes + arp_bytes];

    if (length < at + arp_bytes || memcmp(a, request, sizeof request) != 0 ||
        !is_ours(&w->c.v4, a + 24, 4))
        return false;
    begin(w, frame, at, out);
    memcpy(out + at, request, sizeof request);
    out[at + 7] = 2;
    memcpy(out + at + 8, w->c.mac, mac_bytes);
    memcpy(out + at + 14, a + 24, 4);
    memcpy(out + at + 18, a + 8, mac_bytes + 4);
    send(w, port, out, at + arp_bytes);
    return true;
}

static uint16_t checksum(const uint8_t *ip, const uint8_t *packet, size_t bytes)
{
    uint32_t sum = icmp6 + (uint32_t)bytes;

    for (size_t i = 8; i < ipv6_bytes; i += 2)
        sum += roce_get16(ip + i);
    for (size_t i = 0; i < bytes; i += 2)
        sum += roce_get16(packet + i);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static bool neighbour(struct mcsw *w, unsigned port, const uint8_t *frame, size_t length, size_t at)
{
    const uint8_t *ip = frame + at, *s = ip + ipv6_bytes;
    uint8_t out[ethernet_bytes + vlan_bytes + ipv6_bytes + answer_bytes] = {0};
    uint8_t *to = out + at, *a = to + ipv6_bytes;

    if (length < at + ipv6_bytes + solicitation_bytes || ip[6] != icmp6 || s[0] != solicitation ||
        ip[7] != 255 || ip[8] == 0 || !is_ours(&w->c.v6, s + 8, 16))
        return false;
    begin(w, frame, at, out);
    to[0] = 0x60;
    roce_put16(to + 4, answer_bytes);
    to[6] = icmp6;
    to[7] = 255;
    memcpy(to + 8, s + 8, 16);
    memcpy(to + 24, ip + 8, 16);
    a[0] = advertisement;
    a[4] = 0x60; /* solicited, overrides */
    memcpy(a + 8, s + 8, 16);
    a[24] = 2;
    a[25] = 1;
    memcpy(a + 26, w->c.mac, mac_bytes);
    roce_put16(a + 2, checksum(to, a, answer_bytes));
    send(w, port, out, at + ipv6_bytes + answer_bytes);
    return true;
}

bool mcsw_neighbour(struct mcsw *w, unsigned port, const uint8_t *frame, size_t length)
{
    size_t at = ethernet_bytes;
    uint16_t type;

    if (length < ethernet_bytes + vlan_bytes)
        return false;
    type = roce_get16(frame + 12);
    if (type == type_vlan) {
        type = roce_get16(frame + 16);
        at += vlan_bytes;
    }
    if (type == type_arp)
        return arp(w, port, frame, length, at);
    return type == type_ipv6 && neighbour(w, port, frame, length, at);
}
