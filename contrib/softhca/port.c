/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports and addresses. All HCAs of the fake machine hang on one subnet; a "fabric port" numbers
 * their ports through. With SOFTHCA_LINK=ib a port has a LID and one GID; with roce it has LID 0,
 * an Ethernet link layer and a GID for RoCE v1 and v2, and only a GRH can address it. Owns nothing.
 */
#include "config.h"

#include <endian.h>

#include "shca.h"

#define FIRST_LID     0x10
#define GUID_BASE     UINT64_C(0x0253480043410000) /* locally administered, "SH", "CA" */
#define GID_PREFIX    UINT64_C(0xfe80000000000000) /* link-local, the default subnet */
#define WIDTH_4X      2
#define SPEED_EDR     32
#define PHYS_DISABLED 3
#define PHYS_LINK_UP  5
#define GRH_REQUIRED  1 /* in ibv_port_attr.flags; newer headers name it IBV_QPF_GRH_REQUIRED */

uint64_t shca_guid_of(int hca, int port)
{
    return GUID_BASE | (uint64_t)hca << 8 | (uint64_t)port;
}

uint16_t shca_lid_of(uint32_t fabric_port)
{
    return shca_config.roce ? 0 : (uint16_t)(FIRST_LID + fabric_port - 1);
}

void shca_gid_of(uint32_t fabric_port, union ibv_gid *gid)
{
    int hca = (int)(fabric_port - 1) / shca_config.ports;
    int port = (int)(fabric_port - 1) % shca_config.ports + 1;

    gid->global.subnet_prefix = htobe64(GID_PREFIX);
    gid->global.interface_id = htobe64(shca_guid_of(hca, port));
}

static uint32_t route_gid(const union ibv_gid *gid)
{
    uint64_t guid = be64toh(gid->global.interface_id);
    int hca = (int)(guid >> 8 & 0xff), port = (int)(guid & 0xff);

    if (be64toh(gid->global.subnet_prefix) != GID_PREFIX ||
        (guid & ~UINT64_C(0xffff)) != GUID_BASE || hca >= shca_config.hcas || port < 1 ||
        port > shca_config.ports)
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

static bool valid_port(uint32_t port)
{
    return port >= 1 && port <= (uint32_t)shca_config.ports;
}

static int gid_count(void)
{
    return shca_config.roce ? 2 : 1;
}

static enum ibv_gid_type type_of(uint32_t index)
{
    if (!shca_config.roce)
        return IBV_GID_TYPE_IB;
    return index == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
}

static void fill_port(int hca, int port, struct ibv_port_attr *a)
{
    bool down = shca_link_down(hca, port);

    a->state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    a->max_mtu = a->active_mtu = IBV_MTU_4096;
    a->gid_tbl_len = gid_count();
    a->max_msg_sz = shca_config.max_msg;
    a->pkey_tbl_len = 1;
    a->lid = shca_lid_of(shca_fabric_port(hca, port));
    a->sm_lid = shca_config.roce ? 0 : 1;
    a->max_vl_num = 1;
    a->active_width = WIDTH_4X;
    a->active_speed = SPEED_EDR;
    a->phys_state = down ? PHYS_DISABLED : PHYS_LINK_UP;
    a->link_layer = shca_config.roce ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    a->port_cap_flags = shca_config.roce ? IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS
                                         : IBV_PORT_CM_SUP | IBV_PORT_EXTENDED_SPEEDS_SUP;
    /* A RoCE address needs a GRH; says so as drivers do. */
    a->flags = shca_config.roce ? GRH_REQUIRED : 0;
}

int shca_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
    struct ibv_port_attr full;

    if (!valid_port(port))
        return EINVAL;
    memset(&full, 0, sizeof full);
    fill_port(shca_ctx(ctx)->hca, port, &full);
    memset(attr, 0, len);
    memcpy(attr, &full, len < sizeof full ? len : sizeof full);
    return 0;
}

SHCA_PUBLIC int ibv_query_port(struct ibv_context *ctx, uint8_t port,
                               struct _compat_ibv_port_attr *attr)
{
    typedef int fn(struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_port", ENOSYS, ctx, port, attr);
    /* The old structure ends before port_cap_flags2. */
    return shca_query_port(ctx, port, (struct ibv_port_attr *)attr,
                           offsetof(struct ibv_port_attr, port_cap_flags2));
}

SHCA_PUBLIC int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
    typedef int fn(struct ibv_context *, uint8_t, int, union ibv_gid *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_gid", -1, ctx, port, index, gid);
    if (!valid_port(port) || index < 0 || index >= gid_count()) {
        errno = EINVAL;
        return -1;
    }
    shca_gid_of(shca_fabric_port(shca_ctx(ctx)->hca, port), gid);
    return 0;
}

static void fill_entry(struct ibv_context *ctx, uint32_t port, uint32_t index,
                       struct ibv_gid_entry *e)
{
    memset(e, 0, sizeof *e);
    shca_gid_of(shca_fabric_port(shca_ctx(ctx)->hca, (int)port), &e->gid);
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
    if (!valid_port(port) || index >= (uint32_t)gid_count() || size == 0)
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
    for (int port = 1; port <= shca_config.ports; port++)
        for (int i = 0; i < gid_count() && n < max; i++) {
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
    if (!valid_port(port) || index >= (unsigned)gid_count()) {
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
    if (!valid_port(port) || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(0xffff);
    return 0;
}

SHCA_PUBLIC int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
    typedef int fn(struct ibv_context *, uint8_t, __be16);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_get_pkey_index", -1, ctx, port, pkey);
    if (valid_port(port) && (be16toh(pkey) & 0x7fff) == 0x7fff)
        return 0;
    errno = EINVAL;
    return -1;
}
