/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks whether a port can be used, and how: its state, its rate, its partition key, its GIDs. No
 * lock: start-up only. */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"

/* The first key of the table; entries may be empty. 0: there is none. */
static int first_pkey(struct ibv_context *context, int port, const struct ibv_port_attr *attr)
{
    __be16 raw;
    for (int i = 0; i < attr->pkey_tbl_len; i++)
        if (!ibv_query_pkey(context, (uint8_t)port, i, &raw) && (ntohs(raw) & tk_pkey_bits))
            return ntohs(raw) & tk_pkey_bits;
    return 0;
}

/* The index of GASNET_IBV_PKEY; -1: the port does not have that key. Its place in the table differs
 * between hosts. Two limited members of a partition can't receive from each other (IBA 10.9.1.1),
 * so a full membership is preferred. */
static int choose_pkey(struct ibv_context *context, int port, const struct ibv_port_attr *attr)
{
    enum { key_bits = tk_pkey_bits, full_member = tk_pkey_full };
    int best = -1, wanted = (int)tk_settings.ibv_pkey & key_bits;
    if (!wanted)
        wanted = first_pkey(context, port, attr);
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

static const char *no_pkey(struct tk_rail *rail, struct ibv_context *context, int port,
                           const struct ibv_port_attr *attr)
{
    size_t length = (size_t)snprintf(rail->why, sizeof(rail->why),
                                     "is not in the partition of GASNET_IBV_PKEY (0x%04x): it has",
                                     (unsigned)tk_settings.ibv_pkey);
    unsigned count = 0;
    for (int i = 0; i < attr->pkey_tbl_len; i++) {
        __be16 raw;
        if (ibv_query_pkey(context, (uint8_t)port, i, &raw) || !raw)
            continue;
        if (length + sizeof(", 0xffff and more") > sizeof(rail->why)) {
            snprintf(rail->why + length, sizeof(rail->why) - length, " and more");
            break;
        }
        length += (size_t)snprintf(rail->why + length, sizeof(rail->why) - length, "%s 0x%04x",
                                   count++ ? "," : "", ntohs(raw));
    }
    return rail->why;
}

static uint16_t pkey_of(struct ibv_context *context, int port, int index)
{
    __be16 raw;
    return ibv_query_pkey(context, (uint8_t)port, index, &raw) ? tk_pkey_default : ntohs(raw);
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

/* Soft-RoCE in the kernel (vendor number all ones) treats 7 retries as unlimited, and a job that
 * lost a peer would never end. */
static void set_retries(struct tk_rail *rail, const struct ibv_device_attr *device)
{
    enum { rxe_vendor = 0xffffff, for_ever = 7 };
    rail->retry_count = (uint8_t)tk_settings.qp_retry_count;
    rail->is_retry_capped = device->vendor_id == rxe_vendor && rail->retry_count == for_ever;
    rail->retry_count -= rail->is_retry_capped;
}

static void describe_device(struct tk_rail *rail, const struct ibv_device_attr *device)
{
    int reads_in = device->max_qp_rd_atom, reads_out = device->max_qp_init_rd_atom;
    int wanted = (int)tk_settings.qp_rd_atom;
    if (wanted > 0 && wanted < reads_in)
        reads_in = wanted;
    rail->address.reads = (uint8_t)(reads_in > 255 ? 255 : reads_in < 1 ? 1 : reads_in);
    rail->address.reads_out = (uint8_t)(reads_out > 255 ? 255 : reads_out);
    rail->address.atomics = (uint8_t)device->atomic_cap;
    rail->vendor = device->vendor_id;
    set_retries(rail, device);
}

/* A port without a LID, or one of a device that needs a global route header on each packet, can't
 * be addressed by LID. */
static const char *take_gids(struct tk_rail *rail, struct ibv_context *context, int port,
                             const struct ibv_port_attr *attr)
{
    struct tk_port_address *a = &rail->address;
    bool is_ethernet = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
    int wanted = tk_gid_index_of(ibv_get_device_name(context->device), port);
    bool is_first = !is_ethernet && wanted < 0; /* the others are its aliases */
    a->is_ethernet = is_ethernet;
    a->is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
    a->needs_gid = is_ethernet || attr->lid == 0 || (attr->flags & IBV_QPF_GRH_REQUIRED);
    a->gid_count = (uint8_t)tk_gid_table_offer(context, port, attr->gid_tbl_len,
                                               is_first ? 0 : wanted, a->gids);
    if (is_first && a->gid_count == 0) /* empty, as in some virtual functions */
        a->gid_count =
            (uint8_t)tk_gid_table_offer(context, port, attr->gid_tbl_len, wanted, a->gids);
    return a->needs_gid && a->gid_count == 0
               ? "has no usable GID (GASNET_IBV_GID_INDEX chooses one)"
               : NULL;
}

/* A port that is not active now is not used later either: jobs do not wait for it. */
static const char *why_inactive(struct tk_rail *rail, const struct ibv_port_attr *attr)
{
    bool is_managed = attr->link_layer != IBV_LINK_LAYER_ETHERNET;
    const char *state = attr->state == IBV_PORT_INIT    ? "Init"
                        : attr->state == IBV_PORT_ARMED ? "Armed"
                                                        : "Active Deferred";
    if (attr->state == IBV_PORT_DOWN || attr->state == IBV_PORT_NOP)
        return "is down";
    snprintf(rail->why, sizeof(rail->why), "is in state %s, not Active: %s", state,
             is_managed
                 ? "the subnet manager has not finished with it; start one (opensm), or wait "
                   "for it"
                 : "bring its network interface up");
    return rail->why;
}

/* A virtual port may be reached by GID alone, and says so (IBV_QPF_GRH_REQUIRED). */
static const char *without_lid(struct tk_rail *rail, struct ibv_context *context, int port,
                               const struct ibv_port_attr *attr)
{
    const char *device = ibv_get_device_name(context->device);
    if (attr->link_layer != IBV_LINK_LAYER_INFINIBAND || attr->lid != 0 ||
        (attr->flags & IBV_QPF_GRH_REQUIRED) || tk_gid_index_of(device, port) >= 0)
        return NULL;
    snprintf(rail->why, sizeof(rail->why),
             "is Active with LID 0: no subnet manager gave it one; start one (opensm), or use its "
             "GID: GASNET_IBV_GID_INDEX=%.31s:%d=0",
             device, port);
    return rail->why;
}

const char *tk_port_take(struct tk_rail *rail, struct ibv_context *context, int port)
{
    struct ibv_port_attr attr;
    struct ibv_device_attr device;
    if (ibv_query_port(context, (uint8_t)port, &attr) || ibv_query_device(context, &device))
        return "can't be queried";
    if (attr.state != IBV_PORT_ACTIVE)
        return why_inactive(rail, &attr);
    const char *why = without_lid(rail, context, port, &attr);
    if (!why)
        why = take_gids(rail, context, port, &attr);
    if (why)
        return why;
    rail->pkey_index = choose_pkey(context, port, &attr);
    if (rail->pkey_index < 0)
        return no_pkey(rail, context, port, &attr);
    rail->context = context;
    rail->address.pkey = pkey_of(context, port, rail->pkey_index);
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
