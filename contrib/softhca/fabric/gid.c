/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses of ports: LIDs, the GID table, the P_Key table, and the way back from an address to a
 * port. All HCAs of the fake machine hang on one subnet; a "fabric port" numbers their ports
 * through. An InfiniBand port has a LID and one GID. A RoCE port has four GIDs, those of its
 * link-local and of its IPv4 address (10.83.<hca>.<port>), each for RoCE v1 and v2, in the order
 * of Linux. Owns nothing; the tables never change. */
#include "config.h"

#include <endian.h>

#include "shca.h"

#define FIRST_LID  0x10
#define GUID_BASE  UINT64_C(0x0253480043410000) /* locally administered, "SH", "CA" */
#define GID_PREFIX UINT64_C(0xfe80000000000000) /* link-local, the default subnet */
#define IPV4_GID   UINT64_C(0x0000ffff0a530000) /* ::ffff:10.83.0.0 */
#define ROCE_GIDS  4
#define FIRST_IPV4 2 /* GIDs before it are link-local */

/* Full member of the default partition, and full member of another one. */
static const uint16_t pkeys[SHCA_PKEYS] = {0xffff, 0x8001};

uint64_t shca_guid_of(int hca, int port)
{
    return GUID_BASE | (uint64_t)hca << 8 | (uint64_t)port;
}

uint16_t shca_lid_of(uint32_t fabric_port)
{
    return shca_config.roce ? 0 : (uint16_t)(FIRST_LID + fabric_port - 1);
}

uint32_t shca_gid_count(void)
{
    return shca_config.roce ? ROCE_GIDS : 1;
}

bool shca_gid_v2(uint32_t index)
{
    return shca_config.roce && index % 2 == 1;
}

void shca_gid_of(uint32_t fabric_port, uint32_t index, union ibv_gid *gid)
{
    int hca = (int)(fabric_port - 1) / shca_config.ports;
    int port = (int)(fabric_port - 1) % shca_config.ports + 1;
    bool ipv4 = index >= FIRST_IPV4;

    gid->global.subnet_prefix = ipv4 ? 0 : htobe64(GID_PREFIX);
    gid->global.interface_id =
        htobe64(ipv4 ? IPV4_GID | (uint64_t)hca << 8 | (uint64_t)port : shca_guid_of(hca, port));
}

static uint32_t route_gid(const union ibv_gid *gid)
{
    uint64_t prefix = be64toh(gid->global.subnet_prefix), id = be64toh(gid->global.interface_id);
    int hca = (int)(id >> 8 & 0xff), port = (int)(id & 0xff);
    uint64_t base = id & ~UINT64_C(0xffff);

    if (hca >= shca_config.hcas || port < 1 || port > shca_config.ports)
        return 0;
    if ((prefix != GID_PREFIX || base != GUID_BASE) && (prefix != 0 || base != IPV4_GID))
        return 0;
    return shca_fabric_port(hca, port);
}

uint32_t shca_route(const struct ibv_ah_attr *attr)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports);

    if (shca_config.roce)
        return attr->is_global ? route_gid(&attr->grh.dgid) : 0;
    if (attr->dlid < FIRST_LID || attr->dlid >= FIRST_LID + last)
        return 0;
    return attr->dlid - FIRST_LID + 1u;
}

bool shca_gid_multicast(const union ibv_gid *gid)
{
    uint64_t ipv4 = be64toh(gid->global.interface_id);

    if (gid->raw[0] == 0xff)
        return true;
    /* RoCE v2 carries IPv4 groups (224.0.0.0/4) as mapped addresses. */
    return gid->global.subnet_prefix == 0 && ipv4 >> 28 == 0xffffe;
}

uint32_t shca_network_of(uint32_t pkey_index, const struct ibv_ah_attr *path)
{
    uint32_t v2 = path->is_global && shca_gid_v2(path->grh.sgid_index);

    return v2 << 16 | pkeys[pkey_index % SHCA_PKEYS];
}

bool shca_valid_port(uint32_t port)
{
    return port >= 1 && port <= (uint32_t)shca_config.ports;
}

bool shca_valid_path(const struct ibv_ah_attr *a)
{
    /* An Ethernet port can be reached by GID only. */
    if (shca_config.roce && !a->is_global)
        return false;
    return !a->is_global || a->grh.sgid_index < shca_gid_count();
}

static enum ibv_gid_type type_of(uint32_t index)
{
    if (!shca_config.roce)
        return IBV_GID_TYPE_IB;
    return shca_gid_v2(index) ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
}

SHCA_PUBLIC int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
    typedef int fn(struct ibv_context *, uint8_t, int, union ibv_gid *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_gid", -1, ctx, port, index, gid);
    if (!shca_valid_port(port) || index < 0 || (uint32_t)index >= shca_gid_count()) {
        errno = EINVAL;
        return -1;
    }
    shca_gid_of(shca_fabric_port(shca_ctx(ctx)->hca, port), (uint32_t)index, gid);
    return 0;
}

static void fill_entry(struct ibv_context *ctx, uint32_t port, uint32_t index,
                       struct ibv_gid_entry *e)
{
    memset(e, 0, sizeof *e);
    shca_gid_of(shca_fabric_port(shca_ctx(ctx)->hca, (int)port), index, &e->gid);
    e->gid_index = index;
    e->port_num = port;
    e->gid_type = type_of(index);
}

SHCA_PUBLIC int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
                                  struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    typedef int fn(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t,
                   size_t);
    struct ibv_gid_entry e;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "_ibv_query_gid_ex", ENOSYS, ctx, port, index, entry, flags, size);
    if (flags != 0)
        return EOPNOTSUPP;
    if (!shca_valid_port(port) || index >= shca_gid_count() || size == 0)
        return EINVAL;
    fill_entry(ctx, port, index, &e);
    memcpy(entry, &e, size < sizeof e ? size : sizeof e);
    return 0;
}

SHCA_PUBLIC ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
                                         size_t max, uint32_t flags, size_t size)
{
    typedef ssize_t fn(struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t);
    size_t n = 0;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "_ibv_query_gid_table", -ENOSYS, ctx, entries, max, flags, size);
    if (flags != 0)
        return -EOPNOTSUPP;
    /* Half a table would pass for a whole one. */
    if (max < (size_t)shca_config.ports * shca_gid_count())
        return -EINVAL;
    for (int port = 1; port <= shca_config.ports; port++)
        for (int i = 0; i < (int)shca_gid_count(); i++) {
            struct ibv_gid_entry e;

            fill_entry(ctx, (uint32_t)port, (uint32_t)i, &e);
            memcpy((char *)entries + n++ * size, &e, size < sizeof e ? size : sizeof e);
        }
    return (ssize_t)n;
}

/* Private to libibverbs and its tools; its values: 0 is IB or RoCE v1, 1 is RoCE v2. */
SHCA_PUBLIC int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index,
                                   int *type);

SHCA_PUBLIC int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type)
{
    typedef int fn(struct ibv_context *, uint8_t, unsigned, int *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_gid_type", -1, ctx, port, index, type);
    if (!shca_valid_port(port) || index >= shca_gid_count()) {
        errno = EINVAL;
        return -1;
    }
    *type = type_of(index) == IBV_GID_TYPE_ROCE_V2;
    return 0;
}

SHCA_PUBLIC int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
    typedef int fn(struct ibv_context *, uint8_t, int, __be16 *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_pkey", -1, ctx, port, index, pkey);
    if (!shca_valid_port(port) || index < 0 || index >= SHCA_PKEYS) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(pkeys[index]);
    return 0;
}

SHCA_PUBLIC int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
    typedef int fn(struct ibv_context *, uint8_t, __be16);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_get_pkey_index", -1, ctx, port, pkey);
    for (int i = 0; shca_valid_port(port) && i < SHCA_PKEYS; i++)
        if (be16toh(pkey) == pkeys[i])
            return i;
    errno = EINVAL;
    return -1;
}
