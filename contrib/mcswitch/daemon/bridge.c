/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The learning switch; see bridge.h. Tables are small and of fixed size. The newest address
 * replaces the oldest one of its row, so that a flood of senders cannot fill them. */
#include "config.h"

#include "daemon/bridge.h"

#include <string.h>

#include "daemon/switch.h"
#include "packet/bytes.h"

enum {
    rows = 256,
    ways = 4,
    age_s = 300, /* as IEEE 802.1D proposes */
    ethernet = 14,
    arp_bytes = 28,
    type_ipv4 = 0x0800,
    type_arp = 0x0806,
    type_vlan = 0x8100,
};

struct station {
    uint64_t seen; /* 0: free */
    uint8_t mac[6];
    uint16_t port;
};

struct neighbour {
    uint64_t seen;
    uint8_t ip[4], mac[6];
    uint16_t port;
};

static struct station stations[rows][ways];
static struct neighbour neighbours[rows][ways];
static struct mcd_vips own;
struct mcd_bridge_counters mcd_bridge_count;

void mcd_bridge_open(const struct mcd_vips *vips)
{
    own = *vips;
}

static bool too_old(uint64_t seen, uint64_t now)
{
    return seen == 0 || now - seen > (uint64_t)age_s * 1000000000;
}

static unsigned row_of(const uint8_t *bytes, size_t n)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 16777619u;
    return (h ^ h >> 16) & (rows - 1);
}

/* ---- stations, by MAC ---- */

static void learn(const uint8_t *mac, unsigned port, uint64_t now)
{
    struct station *row = stations[row_of(mac, 6)], *oldest = row;

    for (unsigned i = 0; i < ways; i++) {
        if (row[i].seen && memcmp(row[i].mac, mac, 6) == 0) {
            mcd_bridge_count.moved += row[i].port != port;
            row[i].port = (uint16_t)port;
            row[i].seen = now;
            return;
        }
        if (row[i].seen < oldest->seen)
            oldest = &row[i];
    }
    memcpy(oldest->mac, mac, 6);
    oldest->port = (uint16_t)port;
    oldest->seen = now;
}

static struct mcd_port *where(const uint8_t *mac, uint64_t now)
{
    const struct station *row = stations[row_of(mac, 6)];

    for (unsigned i = 0; i < ways; i++)
        if (!too_old(row[i].seen, now) && memcmp(row[i].mac, mac, 6) == 0)
            return &mcd_ports[row[i].port];
    return NULL;
}

/* ---- neighbours, by IPv4 address ---- */

static void note(const uint8_t *ip, const uint8_t *mac, unsigned port, uint64_t now)
{
    struct neighbour *row = neighbours[row_of(ip, 4)], *chosen = row;

    for (unsigned i = 0; i < ways; i++) {
        if (row[i].seen && memcmp(row[i].ip, ip, 4) == 0) {
            chosen = &row[i];
            break;
        }
        if (row[i].seen < chosen->seen)
            chosen = &row[i];
    }
    memcpy(chosen->ip, ip, 4);
    memcpy(chosen->mac, mac, 6);
    chosen->port = (uint16_t)port;
    chosen->seen = now;
}

bool mcd_bridge_find(const uint8_t ip[4], uint8_t mac[6], unsigned *port)
{
    const struct neighbour *row = neighbours[row_of(ip, 4)];

    for (unsigned i = 0; i < ways; i++)
        if (!too_old(row[i].seen, mcd_now()) && memcmp(row[i].ip, ip, 4) == 0) {
            memcpy(mac, row[i].mac, 6);
            *port = row[i].port;
            return true;
        }
    return false;
}

/* ---- ARP (RFC 826) ---- */

static bool is_vip(const uint8_t *ip)
{
    return memcmp(ip, own.requests, 4) == 0 || memcmp(ip, own.copies, 4) == 0;
}

static void write_arp(uint8_t *out, unsigned operation, const uint8_t *from_ip,
                      const uint8_t *to_mac, const uint8_t *to_ip)
{
    static const uint8_t head[6] = {0, 1, 8, 0, 6, 4}; /* Ethernet, IPv4, lengths */

    memcpy(out, head, sizeof head);
    roce_put16(out + 6, (uint16_t)operation);
    memcpy(out + 8, own.mac, 6);
    memcpy(out + 14, from_ip, 4);
    memcpy(out + 18, to_mac, 6);
    memcpy(out + 24, to_ip, 4);
}

/* Learns the ports of hosts from their ARP packets; body: offset of the ARP body. Ignores a station
 * that claims an address of the switch, or another's MAC. */
static void note_arp(const struct mcd_port *port, const uint8_t *frame, size_t length, size_t body,
                     uint64_t now)
{
    const uint8_t *arp = frame + body, *mac = arp + 8, *ip = arp + 14;

    if (length < body + arp_bytes || roce_get16(arp) != 1 || roce_get16(arp + 2) != type_ipv4)
        return;
    if (memcmp(mac, frame + 6, 6) == 0 && !is_vip(ip) && roce_get32(ip) != 0)
        note(ip, mac, port->number, now);
}

static void to_all_but(const struct mcd_port *from, const uint8_t *frame, size_t length)
{
    for (unsigned i = 0; i < mcd_port_count; i++)
        if (&mcd_ports[i] != from && mcd_ports[i].kind != MCD_WIRE)
            mcd_port_send(&mcd_ports[i], frame, length);
}

void mcd_bridge_ask(const uint8_t ip[4])
{
    static const uint8_t nobody[6];
    uint8_t frame[60] = {0}; /* the minimum of Ethernet */

    memset(frame, 0xff, 6);
    memcpy(frame + 6, own.mac, 6);
    roce_put16(frame + 12, type_arp);
    write_arp(frame + ethernet, 1, own.copies, nobody, ip);
    to_all_but(NULL, frame, sizeof frame);
}

/* ---- frames ---- */

static void forward(struct mcd_port *from, const uint8_t *frame, size_t length, uint64_t now)
{
    static const uint8_t reserved[5] = {0x01, 0x80, 0xc2, 0, 0}; /* between bridges, 802.1D */
    struct mcd_port *to = frame[0] & 1 ? NULL : where(frame, now);

    if (memcmp(frame, reserved, sizeof reserved) == 0 && frame[5] < 0x10)
        return;
    if (to == from)
        return;
    if (to) {
        mcd_bridge_count.forwarded++;
        mcd_port_send(to, frame, length);
    } else {
        mcd_bridge_count.flooded++;
        to_all_but(from, frame, length);
    }
}

void mcd_bridge_take(struct mcd_port *port, uint8_t *frame, size_t length)
{
    uint64_t now = mcd_now();
    size_t body = ethernet;
    unsigned type;

    if (length < ethernet || (frame[6] & 1) || memcmp(frame + 6, own.mac, 6) == 0) {
        mcd_bridge_count.malformed++;
        return;
    }
    learn(frame + 6, port->number, now);
    type = roce_get16(frame + 12);
    if (type == type_vlan && length >= ethernet + 4) {
        type = roce_get16(frame + 16);
        body += 4;
    }
    if (type == type_arp)
        note_arp(port, frame, length, body, now);
    /* The core also answers broadcast queries for the two addresses. */
    if (mcd_switch_take(port, frame, length))
        mcd_bridge_count.to_core++;
    else if (memcmp(frame, own.mac, 6) == 0)
        mcd_bridge_count.not_for_us++;
    else
        forward(port, frame, length, now);
}
