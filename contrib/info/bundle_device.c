/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sections of a bundle that describe a device: all attributes of the device and of each port,
 * named as in libibverbs, all GIDs and P_Keys. softhca reads them (support/bundle.c). No state. */
#include "config.h"

#include "contrib/info/bundle.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { object_max = 80 };

struct attr_field {
    const char *name;
    size_t offset, size;
    bool is_flags; /* written in hexadecimal digits */
};

#define ATTR_FIELD(type, name, is_flags)                                                           \
    {                                                                                              \
#        name, offsetof(struct type, name), sizeof(((struct type *)NULL)->name), is_flags          \
    }
#define DEVICE(name)   ATTR_FIELD(ibv_device_attr, name, false)
#define PORT(name)     ATTR_FIELD(ibv_port_attr, name, false)
#define MORE(name)     ATTR_FIELD(ibv_device_attr_ex, name, false)
#define MORE_HEX(name) ATTR_FIELD(ibv_device_attr_ex, name, true)

static const struct attr_field device_fields[] = {
    ATTR_FIELD(ibv_device_attr, max_mr_size, true),
    ATTR_FIELD(ibv_device_attr, page_size_cap, true),
    ATTR_FIELD(ibv_device_attr, vendor_id, true),
    DEVICE(vendor_part_id),
    DEVICE(hw_ver),
    DEVICE(max_qp),
    DEVICE(max_qp_wr),
    ATTR_FIELD(ibv_device_attr, device_cap_flags, true),
    DEVICE(max_sge),
    DEVICE(max_sge_rd),
    DEVICE(max_cq),
    DEVICE(max_cqe),
    DEVICE(max_mr),
    DEVICE(max_pd),
    DEVICE(max_qp_rd_atom),
    DEVICE(max_ee_rd_atom),
    DEVICE(max_res_rd_atom),
    DEVICE(max_qp_init_rd_atom),
    DEVICE(max_ee_init_rd_atom),
    DEVICE(atomic_cap),
    DEVICE(max_ee),
    DEVICE(max_rdd),
    DEVICE(max_mw),
    DEVICE(max_raw_ipv6_qp),
    DEVICE(max_raw_ethy_qp),
    DEVICE(max_mcast_grp),
    DEVICE(max_mcast_qp_attach),
    DEVICE(max_total_mcast_qp_attach),
    DEVICE(max_ah),
    DEVICE(max_fmr),
    DEVICE(max_map_per_fmr),
    DEVICE(max_srq),
    DEVICE(max_srq_wr),
    DEVICE(max_srq_sge),
    DEVICE(max_pkeys),
    DEVICE(local_ca_ack_delay),
    DEVICE(phys_port_cnt)};

static const struct attr_field more_fields[] = {MORE_HEX(odp_caps.general_caps),
                                                MORE_HEX(odp_caps.per_transport_caps.rc_odp_caps),
                                                MORE_HEX(odp_caps.per_transport_caps.uc_odp_caps),
                                                MORE_HEX(odp_caps.per_transport_caps.ud_odp_caps),
                                                MORE_HEX(xrc_odp_caps),
                                                MORE_HEX(completion_timestamp_mask),
                                                MORE(hca_core_clock),
                                                MORE_HEX(device_cap_flags_ex),
                                                MORE(tso_caps.max_tso),
                                                MORE_HEX(tso_caps.supported_qpts),
                                                MORE_HEX(rss_caps.supported_qpts),
                                                MORE(rss_caps.max_rwq_indirection_tables),
                                                MORE(rss_caps.max_rwq_indirection_table_size),
                                                MORE_HEX(rss_caps.rx_hash_fields_mask),
                                                MORE(max_wq_type_rq),
                                                MORE(packet_pacing_caps.qp_rate_limit_min),
                                                MORE(packet_pacing_caps.qp_rate_limit_max),
                                                MORE_HEX(packet_pacing_caps.supported_qpts),
                                                MORE_HEX(raw_packet_caps),
                                                MORE(tm_caps.max_rndv_hdr_size),
                                                MORE(tm_caps.max_num_tags),
                                                MORE_HEX(tm_caps.flags),
                                                MORE(tm_caps.max_ops),
                                                MORE(tm_caps.max_sge),
                                                MORE(cq_mod_caps.max_cq_count),
                                                MORE(cq_mod_caps.max_cq_period),
                                                MORE(max_dm_size),
                                                MORE_HEX(pci_atomic_caps.fetch_add),
                                                MORE_HEX(pci_atomic_caps.swap),
                                                MORE_HEX(pci_atomic_caps.compare_swap),
                                                MORE(phys_port_cnt_ex)};

static const struct attr_field port_fields[] = {PORT(state),
                                                PORT(max_mtu),
                                                PORT(active_mtu),
                                                PORT(gid_tbl_len),
                                                ATTR_FIELD(ibv_port_attr, port_cap_flags, true),
                                                PORT(max_msg_sz),
                                                PORT(bad_pkey_cntr),
                                                PORT(qkey_viol_cntr),
                                                PORT(pkey_tbl_len),
                                                PORT(lid),
                                                PORT(sm_lid),
                                                PORT(lmc),
                                                PORT(max_vl_num),
                                                PORT(sm_sl),
                                                PORT(subnet_timeout),
                                                PORT(init_type_reply),
                                                PORT(active_width),
                                                PORT(active_speed),
                                                PORT(phys_state),
                                                PORT(link_layer),
                                                ATTR_FIELD(ibv_port_attr, flags, true),
                                                ATTR_FIELD(ibv_port_attr, port_cap_flags2, true)};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static uint64_t value_of(const struct attr_field *field, const void *from)
{
    const char *at = (const char *)from + field->offset;
    uint64_t value = 0;
    uint32_t word;
    uint16_t half;
    switch (field->size) {
    case sizeof(uint8_t):
        return *(const uint8_t *)at;
    case sizeof(half):
        memcpy(&half, at, sizeof(half));
        return half;
    case sizeof(word):
        memcpy(&word, at, sizeof(word));
        return word;
    default:
        memcpy(&value, at, sizeof(value));
        return value;
    }
}

static void print_fields(const struct attr_field *fields, size_t count, const void *from)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = value_of(&fields[i], from);
        if (fields[i].is_flags)
            bundle_fact(fields[i].name, "0x%" PRIx64, value);
        else
            bundle_fact(fields[i].name, "%" PRIu64, value);
    }
}

static void print_gid(const struct ibv_gid_entry *entry)
{
    struct tk_gid gid = {.type = (uint8_t)entry->gid_type};
    char key[16], text[tk_gid_text_size], interface[IF_NAMESIZE] = "";
    memcpy(gid.raw, entry->gid.raw, sizeof(gid.raw));
    tk_gid_text(&gid, text);
    if (entry->ndev_ifindex > 0)
        if_indextoname(entry->ndev_ifindex, interface);
    snprintf(key, sizeof(key), "%u", entry->gid_index);
    bundle_fact(key, "%u %s %s", entry->gid_type, text, *interface ? interface : "-");
}

/* Empty rows are omitted, as tables have hundreds of them. */
static void print_gids(struct ibv_context *context, const char *object, int port, int length)
{
    static const union ibv_gid none;
    struct ibv_gid_entry entry;
    bundle_section("gids", object);
    for (int i = 0; i < length; i++)
        if (ibv_query_gid_ex(context, (uint32_t)port, (uint32_t)i, &entry, 0) == 0 &&
            memcmp(&entry.gid, &none, sizeof(none)) != 0)
            print_gid(&entry);
}

static void print_pkeys(struct ibv_context *context, const char *object, int port, int length)
{
    bundle_section("pkeys", object);
    for (int i = 0; i < length; i++) {
        __be16 pkey;
        char index[16];
        if (ibv_query_pkey(context, (uint8_t)port, i, &pkey) || pkey == 0)
            continue;
        snprintf(index, sizeof(index), "%d", i);
        bundle_fact(index, "0x%04x", be16toh(pkey));
    }
}

static void print_port(struct ibv_context *context, int port)
{
    struct ibv_port_attr attr;
    char object[object_max];
    snprintf(object, sizeof(object), "%s:%d", ibv_get_device_name(context->device), port);
    memset(&attr, 0, sizeof(attr));
    int error = ibv_query_port(context, (uint8_t)port, &attr);
    bundle_section("port", object);
    if (error) {
        bundle_fact("error", "ibv_query_port: %s", strerror(error));
        return;
    }
    print_fields(port_fields, COUNT(port_fields), &attr);
    print_gids(context, object, port, attr.gid_tbl_len);
    print_pkeys(context, object, port, attr.pkey_tbl_len);
}

void bundle_device(struct ibv_context *context)
{
    struct ibv_device_attr_ex attr;
    const struct ibv_device_attr *basic = &attr.orig_attr;
    memset(&attr, 0, sizeof(attr));
    bundle_section("device", ibv_get_device_name(context->device));
    int error = ibv_query_device_ex(context, NULL, &attr);
    if (error) {
        bundle_fact("error", "ibv_query_device_ex: %s", strerror(error));
        return;
    }
    bundle_fact("node_type", "%u", (unsigned)context->device->node_type);
    bundle_fact("transport_type", "%u", (unsigned)context->device->transport_type);
    bundle_fact("fw_ver", "%.*s", (int)sizeof(basic->fw_ver), basic->fw_ver);
    bundle_fact("node_guid", "0x%016" PRIx64, be64toh(basic->node_guid));
    bundle_fact("sys_image_guid", "0x%016" PRIx64, be64toh(basic->sys_image_guid));
    print_fields(device_fields, COUNT(device_fields), basic);
    print_fields(more_fields, COUNT(more_fields), &attr);
    for (int port = 1; port <= basic->phys_port_cnt; port++)
        print_port(context, port);
    bundle_probe(context, basic);
}
