/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Choice of the port: the first active one that GASNET_IBV_PORTS admits; on Ethernet also the
 * choice of the GID. When there is none, says what was found and why it would not do. No lock:
 * start-up only. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/verbs_private.h"

/* "softhca0:1 down, mlx5_0:1 not in GASNET_IBV_PORTS": what stood in the way, for the one line that
 * a user gets. */
struct refusals {
    char text[1024];
    size_t length;
};

static void refuse(struct refusals *r, const char *device, int port, const char *why)
{
    int n = snprintf(r->text + r->length, sizeof(r->text) - r->length, "%s%s:%d %s",
                     r->length ? ", " : "", device, port, why);
    if (n > 0 && r->length + (size_t)n < sizeof(r->text))
        r->length += (size_t)n;
}

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
}

static const char *take_port(struct tk_rail *rail, struct ibv_context *context, int port)
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
    rail->rate_mbps = tk_port_rate(&attr);
    snprintf(rail->address.device, sizeof(rail->address.device), "%.31s",
             ibv_get_device_name(context->device));
    describe_device(rail, &device);
    return NULL;
}

/* True when one of the device's ports was taken. */
static bool try_device(struct tk_rail *rail, struct ibv_device *device, struct refusals *refusals)
{
    const char *name = ibv_get_device_name(device);
    struct ibv_device_attr attr;
    struct ibv_context *context = ibv_open_device(device);
    if (!context) {
        refuse(refusals, name, 0, "can't be opened (permission for /dev/infiniband?)");
        return false;
    }
    int ports = ibv_query_device(context, &attr) ? 0 : attr.phys_port_cnt;
    for (int port = 1; port <= ports; port++) {
        const char *why = tk_port_filter_admits(tk_settings.ibv_ports, name, port)
                              ? take_port(rail, context, port)
                              : "is not in GASNET_IBV_PORTS";
        if (!why)
            return true;
        refuse(refusals, name, port, why);
    }
    ibv_close_device(context);
    return false;
}

static enum tk_status none(const struct refusals *refusals, int devices)
{
    if (devices == 0)
        tk_complain(
            "no RDMA device on this host; load its driver, or run over the software device: "
            "gasnetrun_ibv does so unless GASNET_SOFTHCA=never (under another launcher preload "
            "libsofthca.so)");
    else
        tk_complain("no usable RDMA port: %s", refusals->text);
    return TK_FAIL;
}

enum tk_status tk_port_choose(struct tk_rail *rail)
{
    struct refusals refusals = {.length = 0};
    int count = 0;
    if (tk_port_filter_check(tk_settings.ibv_ports) != TK_OK)
        return TK_FAIL;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (!list)
        return none(&refusals, 0);
    bool found = false;
    for (int i = 0; i < count && !found; i++)
        found = try_device(rail, list[i], &refusals);
    ibv_free_device_list(list);
    rail->why =
        *tk_settings.ibv_ports ? "first active port of GASNET_IBV_PORTS" : "first active port";
    return found ? TK_OK : none(&refusals, count);
}
