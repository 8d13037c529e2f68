/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rule of the ICRC. Pure functions. */
#include "config.h"

#include <string.h>

#include "packet/bytes.h"
#include "packet/crc.h"
#include "packet/icrc.h"
#include "packet/packet.h"

enum {
    ipv4_bytes = 20,
    ipv6_bytes = 40,
    udp_bytes = 8,
    head_max = ipv6_bytes + udp_bytes + ROCE_BTH_BYTES,
    protocol_udp = 17,
    dont_fragment = 0x4000,
};

/* The state behind the eight bytes of ones. */
static const uint32_t start = 0xdebb20e3;

static void mask_bth(uint8_t *bth)
{
    bth[4] = 0xff;
}

/* Replaces the fields that may change on the path by ones. */
static void mask_ip(uint8_t *ip, size_t udp)
{
    if (ip[0] >> 4 == 4) {
        ip[1] = 0xff;
        ip[8] = 0xff;
        ip[10] = ip[11] = 0xff;
    } else {
        ip[0] |= 0x0f;
        memset(ip + 1, 0xff, 3);
        ip[7] = 0xff;
    }
    ip[udp + 6] = ip[udp + 7] = 0xff;
}

static size_t write_ipv4(const struct roce_path *path, size_t behind, uint8_t *ip)
{
    memset(ip, 0, ipv4_bytes);
    ip[0] = 0x45;
    roce_put16(ip + 2, (uint16_t)(ipv4_bytes + behind));
    roce_put16(ip + 4, path->id);
    roce_put16(ip + 6, path->may_fragment ? 0 : dont_fragment);
    ip[9] = protocol_udp;
    memcpy(ip + 12, path->source, 4);
    memcpy(ip + 16, path->destination, 4);
    return ipv4_bytes;
}

static size_t write_ipv6(const struct roce_path *path, size_t behind, uint8_t *ip)
{
    memset(ip, 0, 8);
    ip[0] = 0x60;
    roce_put16(ip + 4, (uint16_t)behind);
    ip[6] = protocol_udp;
    memcpy(ip + 8, path->source, 16);
    memcpy(ip + 24, path->destination, 16);
    return ipv6_bytes;
}

uint32_t roce_icrc_path(const struct roce_path *path, size_t length)
{
    size_t behind = udp_bytes + length + ROCE_ICRC_BYTES, udp;
    uint8_t head[head_max];

    udp = path->version == 4 ? write_ipv4(path, behind, head) : write_ipv6(path, behind, head);
    roce_put16(head + udp, path->source_port);
    roce_put16(head + udp + 2, path->destination_port);
    roce_put16(head + udp + 4, (uint16_t)behind);
    mask_ip(head, udp);
    return roce_crc(start, head, udp + udp_bytes);
}

uint32_t roce_icrc_rest(uint32_t state, const uint8_t *transport, size_t length)
{
    uint8_t bth[ROCE_BTH_BYTES];

    memcpy(bth, transport, sizeof bth);
    mask_bth(bth);
    state = roce_crc(state, bth, sizeof bth);
    return ~roce_crc(state, transport + sizeof bth, length - sizeof bth);
}

uint32_t roce_icrc(const struct roce_path *path, const uint8_t *transport, size_t length)
{
    return roce_icrc_rest(roce_icrc_path(path, length), transport, length);
}

uint32_t roce_icrc_ip(const uint8_t *ip, size_t transport, size_t length)
{
    uint8_t head[head_max];

    memcpy(head, ip, transport);
    mask_ip(head, transport - udp_bytes);
    return roce_icrc_rest(roce_crc(start, head, transport), ip + transport, length - transport);
}

uint32_t roce_icrc_change(const uint8_t *old, const uint8_t *now, size_t changed)
{
    size_t transport = (now[0] >> 4 == 4 ? ipv4_bytes : ipv6_bytes) + udp_bytes;
    uint8_t before[head_max], after[head_max], rest[64];
    size_t head = transport + ROCE_BTH_BYTES;
    uint32_t state;

    memcpy(before, old, head);
    memcpy(after, now, head);
    mask_ip(before, transport - udp_bytes);
    mask_ip(after, transport - udp_bytes);
    mask_bth(before + transport);
    mask_bth(after + transport);
    for (size_t i = 0; i < head; i++)
        after[i] ^= before[i];
    state = roce_crc(0, after, head);
    for (size_t at = head, n; at < changed; at += n) {
        n = changed - at < sizeof rest ? changed - at : sizeof rest;
        for (size_t i = 0; i < n; i++)
            rest[i] = old[at + i] ^ now[at + i];
        state = roce_crc(state, rest, n);
    }
    return state;
}

uint32_t roce_icrc_rewrite(uint32_t icrc, const uint8_t *old, const uint8_t *now, size_t changed,
                           size_t behind)
{
    return icrc ^ roce_crc_shift(roce_icrc_change(old, now, changed), behind);
}

bool roce_icrc_solve_id(uint32_t computed, uint32_t received, size_t length, uint16_t *id)
{
    /* From the end of the packet back to the identification's own two bytes: there its bits stand
     * alone, the first byte lowest. */
    size_t behind = ipv4_bytes - 4 + udp_bytes + length;
    uint32_t state = roce_crc_unshift(computed ^ received, behind);

    *id = (uint16_t)((state & 255) << 8 | (state >> 8 & 255));
    return state >> 16 == 0;
}
