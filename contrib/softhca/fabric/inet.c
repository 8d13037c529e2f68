/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of ports on the UDP wire as GIDs. The plain forms are those of RoCE v2 and have no
 * place for a UDP port, which is always 4791; the softhca forms have one, so that the processes of
 * a host share its address without steering. Owns nothing. */
#include "config.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdio.h>

#include "fabric/fabric.h"

/* A unique local address (RFC 4193) that is never routed: "SHCA", and a version. */
static const uint64_t softhca_prefix = UINT64_C(0xfd53484341000001);
static const uint64_t plain_id = UINT64_C(0x0000ffff00000000);
/* Of a link-local prefix 54 bits are zero (RFC 4291, 2.5.6): the last 16 can hold a port. */
static const uint64_t link_prefix = UINT64_C(0xfe80000000000000);

void shca_inet_ipv4(struct shca_inet *a, uint32_t ipv4)
{
    uint64_t id = htobe64(plain_id | ipv4);

    memset(a->ip, 0, sizeof a->ip);
    memcpy(a->ip + sizeof id, &id, sizeof id);
}

static void halves(const uint8_t ip[16], uint64_t *prefix, uint64_t *id)
{
    memcpy(prefix, ip, sizeof *prefix);
    memcpy(id, ip + sizeof *prefix, sizeof *id);
    *prefix = be64toh(*prefix);
    *id = be64toh(*id);
}

enum shca_inet_kind shca_inet_kind(const struct shca_inet *a)
{
    uint64_t prefix, id;

    halves(a->ip, &prefix, &id);
    if (prefix == 0 && id >> 32 == plain_id >> 32)
        return SHCA_INET_IPV4;
    return prefix == link_prefix ? SHCA_INET_LINK_LOCAL : SHCA_INET_IPV6;
}

bool shca_inet_loopback(const struct shca_inet *a)
{
    uint64_t prefix, id;

    halves(a->ip, &prefix, &id);
    return prefix == 0 && (id == 1 || id >> 24 == (plain_id >> 24 | 127));
}

bool shca_inet_own_loopback(const struct shca_inet *a)
{
    return shca_inet_kind(a) == SHCA_INET_IPV4 && shca_inet_loopback(a) && a->ip[13] >= 128;
}

void shca_inet_gid(const struct shca_inet *a, bool with_port, union ibv_gid *gid)
{
    enum shca_inet_kind kind = shca_inet_kind(a);

    memcpy(gid->raw, a->ip, sizeof gid->raw);
    if (!with_port || kind == SHCA_INET_IPV6)
        return;
    if (kind == SHCA_INET_LINK_LOCAL) {
        if (a->port != SHCA_INET_PLAIN)
            gid->global.subnet_prefix = htobe64(link_prefix | a->port);
        return;
    }
    gid->global.subnet_prefix = htobe64(softhca_prefix);
    gid->global.interface_id =
        htobe64(be64toh(gid->global.interface_id) << 32 | (uint64_t)a->port << 16);
}

void shca_inet_row(const struct shca_inet own[SHCA_INET_KINDS], uint32_t row, union ibv_gid *gid)
{
    static const enum shca_inet_kind kinds[] = {SHCA_INET_IPV4, SHCA_INET_IPV4,
                                                SHCA_INET_LINK_LOCAL, SHCA_INET_IPV6};
    enum shca_inet_kind kind = kinds[row % SHCA_INET_GIDS];
    bool with_port = row == 0 || kind == SHCA_INET_LINK_LOCAL;

    memset(gid, 0, sizeof *gid);
    while (row == 0 && own[kind].port == 0 && kind < SHCA_INET_IPV6)
        kind++;
    if (own[kind].port == SHCA_INET_PLAIN ||
        (own[kind].port != 0 && with_port && kind != SHCA_INET_IPV6))
        shca_inet_gid(&own[kind], with_port, gid);
}

bool shca_inet_of(const union ibv_gid *gid, struct shca_inet *out)
{
    uint64_t prefix = be64toh(gid->global.subnet_prefix), id = be64toh(gid->global.interface_id);

    memset(out, 0, sizeof *out);
    if (prefix == softhca_prefix) {
        shca_inet_ipv4(out, (uint32_t)(id >> 32));
        out->port = (uint16_t)(id >> 16);
        return out->port != 0 && (uint16_t)id == 0;
    }
    memcpy(out->ip, gid->raw, sizeof out->ip);
    if (prefix >> 54 == link_prefix >> 54) {
        memset(out->ip + 6, 0, 2);
        out->port = (uint16_t)prefix;
        return (prefix & ~UINT64_C(0xffff)) == link_prefix;
    }
    if (prefix == 0)
        return id == 1 || id >> 32 == plain_id >> 32;
    return gid->raw[0] != 0xff; /* a group */
}

bool shca_inet_softhca(uint16_t port)
{
    return port == SHCA_INET_PLAIN || (port >= SHCA_INET_FIRST && port <= SHCA_INET_LAST);
}

uint32_t shca_inet_payload(uint32_t fabric_port)
{
    const struct shca_inet *own = shca.seg->inet[fabric_port];
    uint32_t most = 0;

    for (int i = 0; i < SHCA_INET_KINDS; i++)
        if (own[i].port != 0)
            most = own[i].mtu; /* the same for all */
    return most;
}

enum ibv_mtu shca_inet_mtu(uint32_t fabric_port)
{
    uint32_t most = shca_inet_payload(fabric_port);
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && most >= 256u << mtu)
        mtu++;
    return mtu;
}

const char *shca_inet_text(const struct shca_inet *a, char text[SHCA_INET_TEXT])
{
    bool ipv4 = shca_inet_kind(a) == SHCA_INET_IPV4;
    char ip[INET6_ADDRSTRLEN];

    inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? a->ip + 12 : a->ip, ip, sizeof ip);
    snprintf(text, SHCA_INET_TEXT, ipv4 ? "%s:%u" : "[%s]:%u", ip,
             (unsigned)(a->port ? a->port : SHCA_INET_PLAIN));
    return text;
}
