/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules for choosing GIDs, as functions of tables: this file uses no device, so tests can pass
 * tables of any machine. RoCE v2 is preferred to v1, routable addresses to link-local ones, and
 * both ends of a pair use the same type. No state. */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/first_use.h"
#include "peer/peer.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"

/* Families of addresses; a higher one is better. Both addresses of a packet have one family, and a
 * link-local address reaches only link-local ones. */
enum gid_family { link_local = 1, ip6_global, ip4_mapped, families };

static enum gid_family family_of(const struct tk_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}; /* RFC 4291 2.5.5.2 */
    if (!memcmp(gid->raw, mapped, sizeof(mapped)))
        return ip4_mapped;
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? link_local : ip6_global;
}

static bool is_v2(const struct tk_gid *gid)
{
    return gid->type == IBV_GID_TYPE_ROCE_V2;
}

static bool is_empty(const struct tk_gid *gid)
{
    static const uint8_t zero[sizeof(gid->raw)];
    return !memcmp(gid->raw, zero, sizeof(zero));
}

/* Link-local addresses come last: they do not cross routers, and their neighbour discovery often
 * fails between rails of one host. */
static int worth_of(const struct tk_gid *gid)
{
    return (is_v2(gid) ? families : 0) + (int)family_of(gid);
}

TK_FIRST_USE bool tk_gid_is_same_network(const struct tk_gid *a, const struct tk_gid *b)
{
    unsigned bits = (unsigned)tk_max(a->network_bits, b->network_bits), bytes = bits / 8;
    if (bits > 8 * sizeof(a->raw) || memcmp(a->raw, b->raw, bytes))
        return false;
    return bits % 8 == 0 || (a->raw[bytes] ^ b->raw[bytes]) >> (8 - bits % 8) == 0;
}

/* A second address of the same network reaches nothing more than the first. */
static bool is_offered(const struct tk_gid *gid, const struct tk_gid *offered, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (offered[i].type == gid->type && family_of(&offered[i]) == family_of(gid) &&
            tk_gid_is_same_network(&offered[i], gid))
            return true;
    return false;
}

/* Inserts behind all GIDs that are as good: among equals the first in the table is preferred. */
static unsigned insert(const struct tk_gid *gid, struct tk_gid *offered, unsigned count)
{
    unsigned at = 0;
    while (at < count && worth_of(&offered[at]) >= worth_of(gid))
        at++;
    if (at == tk_gids_max)
        return count;
    unsigned kept = (unsigned)tk_min(count, tk_gids_max - 1);
    memmove(&offered[at + 1], &offered[at], (kept - at) * sizeof(*offered));
    offered[at] = *gid;
    return kept + 1;
}

unsigned tk_gids_offer(const struct tk_gid_row *rows, unsigned count, struct tk_gid *offered)
{
    unsigned number = 0;
    for (unsigned i = 0; i < count; i++)
        if (!rows[i].is_down && !is_empty(&rows[i].gid) &&
            !is_offered(&rows[i].gid, offered, number))
            number = insert(&rows[i].gid, offered, number);
    return number;
}

/* All InfiniBand GIDs are of one kind: subnets differ by prefix, and routers connect them. */
unsigned tk_gid_kind(const struct tk_gid *gid)
{
    return gid->type == IBV_GID_TYPE_IB ? 0 : (unsigned)worth_of(gid);
}

uint32_t tk_gid_kinds(const struct tk_port_address *address)
{
    uint32_t kinds = 0;
    for (unsigned i = 0; i < address->gid_count; i++)
        kinds |= 1u << tk_gid_kind(&address->gids[i]);
    return kinds;
}

/* No router forwards RoCE v1. Link-local addresses are of one network, whichever it is. */
bool tk_gid_stays_in_network(const struct tk_gid *gid)
{
    return gid->type == IBV_GID_TYPE_ROCE_V1 && family_of(gid) != link_local;
}

static bool gids_meet(const struct tk_gid *a, const struct tk_gid *b)
{
    return tk_gid_kind(a) == tk_gid_kind(b) &&
           (!tk_gid_stays_in_network(a) || tk_gid_is_same_network(a, b));
}

bool tk_gids_stay_in_network(const struct tk_port_address *address)
{
    for (unsigned i = 0; i < address->gid_count; i++)
        if (!tk_gid_stays_in_network(&address->gids[i]))
            return false;
    return true;
}

/* Rates a pair of GIDs of one kind. A common network counts more than the family of the address;
 * for v1 it counts most, because no router forwards v1. */
static int worth_together(const struct tk_gid *a, const struct tk_gid *b)
{
    int same = tk_gid_is_same_network(a, b), far = family_of(a) != link_local;
    int mapped = family_of(a) == ip4_mapped;
    return is_v2(a) ? 8 | far << 2 | same << 1 | mapped : same << 2 | far << 1 | mapped;
}

bool tk_gid_pair_find(const struct tk_port_address *one, const struct tk_port_address *other,
                      struct tk_gid *from, struct tk_gid *to)
{
    int best = -1;
    for (unsigned i = 0; i < one->gid_count; i++)
        for (unsigned j = 0; j < other->gid_count; j++) {
            const struct tk_gid *a = &one->gids[i], *b = &other->gids[j];
            int worth = gids_meet(a, b) ? worth_together(a, b) : -1;
            if (worth <= best)
                continue;
            best = worth;
            *from = *a;
            *to = *b;
        }
    return best >= 0;
}

const char *tk_gid_type_text(const struct tk_gid *gid)
{
    if (gid->type == IBV_GID_TYPE_IB)
        return "InfiniBand";
    return is_v2(gid) ? "RoCE v2" : "RoCE v1";
}

void tk_gid_text(const struct tk_gid *gid, char text[tk_gid_text_size])
{
    if (!inet_ntop(AF_INET6, gid->raw, text, tk_gid_text_size))
        *text = 0;
}

const char *tk_gids_text(const struct tk_port_address *address, char text[tk_gids_text_size])
{
    char name[tk_gid_text_size];
    size_t length = 0;
    if (address->gid_count == 0)
        return "no GID";
    for (unsigned i = 0; i < address->gid_count && length < tk_gids_text_size; i++) {
        tk_gid_text(&address->gids[i], name);
        length += (size_t)snprintf(text + length, tk_gids_text_size - length, "%s%s %s",
                                   i ? ", " : "", tk_gid_type_text(&address->gids[i]), name);
    }
    return text;
}
