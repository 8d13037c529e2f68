/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of ports on the UDP wire as GIDs. The plain form is that of RoCE v2 and has no place
 * for a UDP port, which is always 4791; the softhca form has one, so that the processes of a host
 * share its address without steering. Owns nothing. */
#include "config.h"

#include <endian.h>

#include "fabric/fabric.h"

/* A unique local address (RFC 4193) that is never routed: "SHCA", and a version. */
static const uint64_t softhca_prefix = UINT64_C(0xfd53484341000001);
static const uint64_t plain_id = UINT64_C(0x0000ffff00000000);

void shca_inet_gid(const struct shca_inet *a, uint32_t row, union ibv_gid *gid)
{
    memset(gid, 0, sizeof *gid);
    if (row > 0) {
        if (a->port == SHCA_INET_PLAIN)
            gid->global.interface_id = htobe64(plain_id | a->ipv4);
        return;
    }
    gid->global.subnet_prefix = htobe64(softhca_prefix);
    gid->global.interface_id = htobe64((uint64_t)a->ipv4 << 32 | (uint64_t)a->port << 16);
}

bool shca_inet_of(const union ibv_gid *gid, struct shca_inet *out)
{
    uint64_t prefix = be64toh(gid->global.subnet_prefix), id = be64toh(gid->global.interface_id);

    memset(out, 0, sizeof *out);
    if (prefix == softhca_prefix) {
        out->ipv4 = (uint32_t)(id >> 32);
        out->port = (uint16_t)(id >> 16);
        return out->port != 0 && (uint16_t)id == 0;
    }
    out->ipv4 = (uint32_t)id;
    return prefix == 0 && id >> 32 == plain_id >> 32;
}

bool shca_inet_softhca(uint16_t port)
{
    return port == SHCA_INET_PLAIN || (port >= SHCA_INET_FIRST && port <= SHCA_INET_LAST);
}

enum ibv_mtu shca_inet_mtu(uint32_t fabric_port)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && shca.seg->inet[fabric_port].mtu >= 256u << mtu)
        mtu++;
    return mtu;
}
