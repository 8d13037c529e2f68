/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ibv_query_port. With SOFTHCA_LINK=ib a port is an InfiniBand port with a LID; with roce it has
 * LID 0 and an Ethernet link layer, and only a GRH can address it. Addresses are in gid.c. Owns
 * nothing. */
#include "config.h"

#include "verbs/verbs.h"

enum {
    phys_disabled = 3,
    phys_link_up = 5,
    grh_required = 1, /* in ibv_port_attr.flags; newer headers name it IBV_QPF_GRH_REQUIRED */
};

static const uint8_t layers[] = {[SHCA_LINK_IB] = IBV_LINK_LAYER_INFINIBAND,
                                 [SHCA_LINK_ROCE] = IBV_LINK_LAYER_ETHERNET,
                                 [SHCA_LINK_IWARP] = IBV_LINK_LAYER_ETHERNET,
                                 [SHCA_LINK_UNKNOWN] = IBV_LINK_LAYER_UNSPECIFIED};

static void fill_port(int hca, int port, struct ibv_port_attr *a)
{
    /* The ports of a broken HCA are down. */
    bool down = shca_link_down(hca, port) || (shca.fatal >> hca & 1);
    const struct shca_port_config *own = &shca_config.port[hca][port];
    bool inactive = down && shca_link_unplugged(hca, port) && own->state != 0;
    bool ethernet = shca_is_ethernet(hca);
    const struct shca_profile *p = &shca_config.device[hca];

    a->state = inactive ? own->state : down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    a->max_mtu = p->mtu;
    a->active_mtu = ethernet ? p->ethernet_mtu : p->ib_mtu ? p->ib_mtu : p->mtu;
    if (shca_config.udp)
        a->active_mtu = shca_inet_mtu(shca_fabric_port(hca, port));
    if (own->mtu != 0 && own->mtu < a->active_mtu)
        a->active_mtu = own->mtu;
    a->gid_tbl_len = (int)shca_gid_count(shca_fabric_port(hca, port));
    a->max_msg_sz = p->max_msg;
    a->pkey_tbl_len = (uint16_t)p->pkeys;
    a->lid = shca_lid_of(shca_fabric_port(hca, port));
    if (a->lid == 0)
        a->lid = (uint16_t)p->lid;
    a->lmc = ethernet ? 0 : (uint8_t)shca_config.lmc;
    a->sm_lid = ethernet ? 0 : 1;
    if (own->state == SHCA_PORT_NO_LID || inactive)
        a->lid = a->sm_lid = 0;
    a->max_vl_num = 1;
    a->active_width = shca_config.port[hca][port].width;
    a->active_speed = shca_config.port[hca][port].speed;
    a->phys_state = down && !inactive ? phys_disabled : phys_link_up;
    a->link_layer = layers[p->link];
    a->port_cap_flags = ethernet ? IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS
                                 : IBV_PORT_CM_SUP | IBV_PORT_EXTENDED_SPEEDS_SUP;
    /* A RoCE address needs a GRH; reported as drivers do. */
    a->flags = p->link == SHCA_LINK_ROCE ? grh_required : 0;
}

int shca_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
    struct ibv_port_attr full;

    if (!shca_valid_port(shca_hca_of(ctx), port))
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
