/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Address handles: an address resolved once to a fabric port. Owns the handles; they are immutable,
 * so no lock is needed. */
#include "config.h"

#include <endian.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdlib.h>

#include "verbs/verbs.h"

static bool ah_valid(int hca, const struct ibv_ah_attr *a)
{
    return shca_valid_port(hca, a->port_num) && shca_valid_path(hca, a);
}

SHCA_PUBLIC struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    typedef struct ibv_ah *fn(struct ibv_pd *, struct ibv_ah_attr *);
    struct shca_ah *ah;
    uint32_t from;

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_create_ah", NULL, pd, attr);
    if (!ah_valid(shca_hca_of(pd->context), attr)) {
        errno = EINVAL;
        return NULL;
    }
    ah = shca_handle_alloc(pd->context, SHCA_CALL_CREATE_AH, sizeof *ah);
    if (!ah) {
        errno = ENOMEM;
        return NULL;
    }
    ah->ah.context = pd->context;
    ah->ah.pd = pd;
    ah->attr = *attr;
    from = shca_fabric_port(shca_ctx(pd->context)->hca, attr->port_num);
    ah->dest_port = shca_route(from, attr);
    ah->slid = shca_lid_of(from);
    if (ah->slid)
        ah->slid |= attr->src_path_bits & ((1u << shca_config.lmc) - 1);
    shca_container(pd, struct shca_pd, pd)->users++;
    return &ah->ah;
}

SHCA_PUBLIC int ibv_destroy_ah(struct ibv_ah *ibah)
{
    typedef int fn(struct ibv_ah *);

    if (!shca_owns(ibah->context))
        SHCA_PASS(fn, "ibv_destroy_ah", ENOSYS, ibah);
    shca_container(ibah->pd, struct shca_pd, pd)->users--;
    free(shca_container(ibah, struct shca_ah, ah));
    return 0;
}

static void map_ipv4(const void *address, union ibv_gid *gid)
{
    memset(gid, 0, sizeof *gid);
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, address, 4);
}

/* The index of the GID table entry that a message of this kind was sent to. Messages to a group
 * were sent to no entry: any entry of that kind will do. */
static int index_of(struct ibv_context *ctx, uint8_t port, const union ibv_gid *gid, bool v2)
{
    uint32_t fabric_port = shca_fabric_port(shca_ctx(ctx)->hca, port);
    union ibv_gid own;

    for (uint32_t i = 0; i < shca_gid_count(fabric_port); i++) {
        shca_gid_of(fabric_port, i, &own);
        if (!shca_gid_empty(fabric_port, i) && shca_gid_v2(fabric_port, i) == v2 &&
            (shca_gid_multicast(gid) || memcmp(&own, gid, sizeof own) == 0))
            return (int)i;
    }
    errno = ENOENT;
    return -1;
}

/* Reverses the header of a received message. RoCE v2 over IPv4 has its header in the second half of
 * the 40 bytes; otherwise UDP as the next header identifies v2. */
static int answer_grh(struct ibv_context *ctx, uint8_t port, const struct ibv_grh *grh,
                      struct ibv_ah_attr *attr)
{
    uint32_t word = be32toh(grh->version_tclass_flow);
    const char *ip = (const char *)grh + sizeof *grh - sizeof(struct iphdr);
    union ibv_gid to = grh->dgid;
    bool ipv4 = word >> 28 != 6;
    int index;

    attr->is_global = 1;
    attr->grh.hop_limit = 64;
    attr->grh.dgid = grh->sgid;
    attr->grh.flow_label = ipv4 ? 0 : word & 0xfffff;
    if (ipv4) {
        map_ipv4(ip + offsetof(struct iphdr, saddr), &attr->grh.dgid);
        map_ipv4(ip + offsetof(struct iphdr, daddr), &to);
    }
    index = index_of(ctx, port, &to, ipv4 || grh->next_hdr == IPPROTO_UDP);
    attr->grh.sgid_index = (uint8_t)index;
    return index < 0 ? -1 : 0;
}

SHCA_PUBLIC int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
                                    struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    typedef int fn(struct ibv_context *, uint8_t, struct ibv_wc *, struct ibv_grh *,
                   struct ibv_ah_attr *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_init_ah_from_wc", -1, ctx, port, wc, grh, attr);
    memset(attr, 0, sizeof *attr);
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->port_num = port;
    return wc->wc_flags & IBV_WC_GRH ? answer_grh(ctx, port, grh, attr) : 0;
}

SHCA_PUBLIC struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                                 struct ibv_grh *grh, uint8_t port)
{
    typedef struct ibv_ah *fn(struct ibv_pd *, struct ibv_wc *, struct ibv_grh *, uint8_t);
    struct ibv_ah_attr attr;

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_create_ah_from_wc", NULL, pd, wc, grh, port);
    if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0)
        return NULL;
    return ibv_create_ah(pd, &attr);
}
