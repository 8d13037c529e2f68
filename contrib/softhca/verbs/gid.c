/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queries of the tables of GIDs and P_Keys (fabric/gid.c). Owns nothing. */
#include "config.h"

#include <endian.h>

#include "verbs/verbs.h"

static enum ibv_gid_type type_of(uint32_t fabric_port, uint32_t index)
{
    if (!shca_is_ethernet(shca_hca_at(fabric_port)))
        return IBV_GID_TYPE_IB;
    return shca_gid_v2(fabric_port, index) ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
}

/* Programs that ask for one row use it, and with an empty row they would publish an invalid
 * address. */
static void report_empty(uint32_t fabric_port, const union ibv_gid *gid)
{
    static _Atomic bool reported;
    const struct shca_inet *own = shca.seg->inet[fabric_port];
    char at[SHCA_INET_TEXT];

    if (gid->global.subnet_prefix != 0 || gid->global.interface_id != 0)
        return;
    for (int i = 0; i < SHCA_INET_KINDS; i++)
        if (own[i].port != 0 && own[i].port != SHCA_INET_PLAIN && !atomic_exchange(&reported, true))
            shca_log(
                "a GID of this process is empty: another one of this host has UDP port 4791, to "
                "which cards and rdma_rxe send, so that only softhcas reach this one, by GID 0 "
                "(%s)",
                shca_inet_text(&own[i], at));
}

static uint32_t fabric_port_of(struct ibv_context *ctx, uint32_t port)
{
    return shca_fabric_port(shca_ctx(ctx)->hca, (int)port);
}

static bool has_row(struct ibv_context *ctx, uint32_t port, uint32_t index)
{
    return shca_valid_port(shca_hca_of(ctx), port) &&
           index < shca_gid_count(fabric_port_of(ctx, port));
}

/* As with rdma-core, an empty entry is all zeros here. */
SHCA_PUBLIC int ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
    typedef int fn(struct ibv_context *, uint8_t, int, union ibv_gid *);
    uint32_t fabric_port;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_gid", -1, ctx, port, index, gid);
    if (index < 0 || !has_row(ctx, port, (uint32_t)index)) {
        errno = EINVAL;
        return -1;
    }
    fabric_port = fabric_port_of(ctx, port);
    memset(gid, 0, sizeof *gid); /* an empty row, as the kernel shows it */
    if (!shca_gid_empty(fabric_port, (uint32_t)index))
        shca_gid_of(fabric_port, (uint32_t)index, gid);
    if (shca_config.udp)
        report_empty(fabric_port, gid);
    return 0;
}

/* False: the row is empty. */
static bool fill_entry(struct ibv_context *ctx, uint32_t port, uint32_t index,
                       struct ibv_gid_entry *e)
{
    uint32_t fabric_port = fabric_port_of(ctx, port);

    memset(e, 0, sizeof *e);
    shca_gid_of(fabric_port, index, &e->gid);
    e->gid_index = index;
    e->port_num = port;
    e->gid_type = type_of(fabric_port, index);
    return !shca_gid_empty(fabric_port, index);
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
    if (!has_row(ctx, port, index) || size == 0)
        return EINVAL;
    if (!fill_entry(ctx, port, index, &e))
        return ENODATA;
    memcpy(entry, &e, size < sizeof e ? size : sizeof e);
    return 0;
}

SHCA_PUBLIC ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
                                         size_t max, uint32_t flags, size_t size)
{
    typedef ssize_t fn(struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t, size_t);
    size_t n = 0, all = 0;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "_ibv_query_gid_table", -ENOSYS, ctx, entries, max, flags, size);
    if (flags != 0)
        return -EOPNOTSUPP;
    /* A partial table could be mistaken for a whole one. */
    for (uint32_t port = 1; port <= shca_profile_of(ctx)->ports; port++)
        all += shca_gid_count(fabric_port_of(ctx, port));
    if (max < all)
        return -EINVAL;
    for (uint32_t port = 1; port <= shca_profile_of(ctx)->ports; port++)
        for (uint32_t i = 0; i < shca_gid_count(fabric_port_of(ctx, port)); i++) {
            struct ibv_gid_entry e;

            if (!fill_entry(ctx, port, i, &e))
                continue;
            memcpy((char *)entries + n++ * size, &e, size < sizeof e ? size : sizeof e);
        }
    return (ssize_t)n;
}

/* Private to libibverbs and its tools, with its values: 0 is IB or RoCE v1, 1 is RoCE v2. */
SHCA_PUBLIC int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index,
                                   int *type);

SHCA_PUBLIC int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type)
{
    typedef int fn(struct ibv_context *, uint8_t, unsigned, int *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_gid_type", -1, ctx, port, index, type);
    if (!has_row(ctx, port, index) || shca_gid_empty(fabric_port_of(ctx, port), index)) {
        errno = EINVAL;
        return -1;
    }
    *type = type_of(fabric_port_of(ctx, port), index) == IBV_GID_TYPE_ROCE_V2;
    return 0;
}

SHCA_PUBLIC int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
    typedef int fn(struct ibv_context *, uint8_t, int, __be16 *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_pkey", -1, ctx, port, index, pkey);
    if (!shca_valid_port(shca_hca_of(ctx), port) || index < 0 ||
        index >= (int)shca_profile_of(ctx)->pkeys) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(shca_pkey_at(shca_hca_of(ctx), (uint32_t)index));
    return 0;
}

SHCA_PUBLIC int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
    typedef int fn(struct ibv_context *, uint8_t, __be16);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_get_pkey_index", -1, ctx, port, pkey);
    for (int i = 0; shca_valid_port(shca_hca_of(ctx), port) && i < SHCA_PKEYS; i++)
        if (pkey != 0 && be16toh(pkey) == shca_pkey_at(shca_hca_of(ctx), (uint32_t)i))
            return i;
    errno = EINVAL;
    return -1;
}
