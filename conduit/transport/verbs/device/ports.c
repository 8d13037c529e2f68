/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Can a port be used, and how: its state, its rate, its partition key and, on Ethernet, the choice
 * of the GID. No lock: start-up only. */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "settings/settings.h"
#include "transport/verbs/verbs_private.h"

/* Higher is better; -1 for an unusable entry. Link-local addresses come last: they do not cross
 * routers and their neighbour discovery often fails between rails of one host. */
static int gid_rank(const struct ibv_gid_entry *entry)
{
    static const uint8_t zero[16], mapped[12] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *raw = entry->gid.raw;
    int rank = entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? 10 : 0;
    if (!memcmp(raw, zero, sizeof(zero)))
        return -1;
    if (!memcmp(raw, mapped, sizeof(mapped)))
        return rank + 3;
    if (raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80)
        return rank + 1;
    return rank + 2;
}

static int choose_gid(struct ibv_context *context, int port, const struct ibv_port_attr *attr,
                      struct ibv_gid_entry *best)
{
    int best_rank = -1, wanted = (int)tk_settings.gid_index;
    for (int i = 0; i < attr->gid_tbl_len; i++) {
        struct ibv_gid_entry entry;
        if ((wanted >= 0 && i != wanted) ||
            ibv_query_gid_ex(context, (uint32_t)port, (uint32_t)i, &entry, 0))
            continue;
        int rank = gid_rank(&entry);
        if (rank > best_rank) {
            best_rank = rank;
            *best = entry;
        }
    }
    return best_rank;
}

/* The index of GASNET_IBV_PKEY; -1: the port does not have it. Two limited members of a partition
 * do not hear each other (IBA 10.9.1.1), so a full membership is better. */
static int choose_pkey(struct ibv_context *context, int port, const struct ibv_port_attr *attr)
{
    enum { key_bits = 0x7fff, full_member = 0x8000 };
    int best = -1, wanted = (int)tk_settings.ibv_pkey & key_bits;
    if (!wanted)
        return 0;
    for (int i = 0; i < attr->pkey_tbl_len; i++) {
        __be16 raw;
        if (ibv_query_pkey(context, (uint8_t)port, i, &raw) || (ntohs(raw) & key_bits) != wanted)
            continue;
        if (ntohs(raw) & full_member)
            return i;
        best = i;
    }
    return best;
}

static enum ibv_mtu mtu_of(const struct ibv_port_attr *attr)
{
    enum ibv_mtu mtu = attr->active_mtu;
    int64_t most = tk_settings.max_mtu;
    while (most > 0 && mtu > IBV_MTU_256 && (128 << mtu) > most)
        mtu--;
    return mtu;
}

/* active_speed is a bit for each generation, active_width one for each number of lanes
 * (IBA 14.2.5.6). */
uint32_t tk_port_rate(const struct ibv_port_attr *attr)
{
    static const uint32_t speed[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};
    static const uint32_t lanes[] = {1, 4, 8, 12, 2};
    uint32_t mbps = 0, width = 1;
    for (unsigned i = 0; i < 8; i++)
        if (attr->active_speed & (1u << i))
            mbps = speed[i];
    for (unsigned i = 0; i < 5; i++)
        if (attr->active_width & (1u << i))
            width = lanes[i];
    return mbps * width;
}

static void describe_device(struct tk_rail *rail, const struct ibv_device_attr *device)
{
    int reads_in = device->max_qp_rd_atom, reads_out = device->max_qp_init_rd_atom;
    int wanted = (int)tk_settings.qp_rd_atom;
    if (wanted > 0 && wanted < reads_in)
        reads_in = wanted;
    rail->address.reads = (uint8_t)(reads_in > 255 ? 255 : reads_in < 1 ? 1 : reads_in);
    rail->reads_out = reads_out > 255 ? 255 : reads_out;
    rail->address.atomics = (uint8_t)device->atomic_cap;
}

const char *tk_port_take(struct tk_rail *rail, struct ibv_context *context, int port)
{
    struct ibv_port_attr attr;
    struct ibv_device_attr device;
    struct ibv_gid_entry gid = {.gid_index = 0};
    if (ibv_query_port(context, (uint8_t)port, &attr) || ibv_query_device(context, &device))
        return "can't be queried";
    if (attr.state != IBV_PORT_ACTIVE)
        return "is down";
    if (attr.link_layer == IBV_LINK_LAYER_ETHERNET || attr.lid == 0) {
        if (choose_gid(context, port, &attr, &gid) < 0)
            return "has no usable GID (GASNET_IBV_GID_INDEX chooses one)";
        memcpy(rail->address.gid, gid.gid.raw, sizeof(rail->address.gid));
    }
    rail->pkey_index = choose_pkey(context, port, &attr);
    if (rail->pkey_index < 0)
        return "is not in the partition of GASNET_IBV_PKEY";
    rail->context = context;
    rail->gid_index = (int)gid.gid_index;
    rail->address.is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    rail->address.lid = attr.lid;
    rail->address.mtu = (uint8_t)mtu_of(&attr);
    rail->address.port = (uint8_t)port;
    rail->message_max = attr.max_msg_sz;
    rail->address.rate_mbps = tk_port_rate(&attr);
    snprintf(rail->address.device, sizeof(rail->address.device), "%.31s",
             ibv_get_device_name(context->device));
    describe_device(rail, &device);
    return NULL;
}
