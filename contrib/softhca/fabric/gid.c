/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of ports: LIDs, the GID table, the P_Key table, and the lookup from an address to a
 * port. All HCAs of the simulated machine are on one subnet; a "fabric port" numbers all their
 * ports consecutively. An InfiniBand port has a LID and one GID; a process may have its ports on
 * another subnet (SOFTHCA_SUBNET). A RoCE port has four GIDs, those of its link-local and of its
 * IPv4 address (10.83.<hca>.<port>), each for RoCE v1 and v2, in the order of Linux; a process may
 * have those of one type only (SOFTHCA_ROCE). Owns nothing; gid_rows.c has the rows of the GID
 * tables. */
#include "config.h"

#include <endian.h>

#include "fabric/fabric.h"

enum {
    first_lid = 0x10,
    first_ipv4 = 2, /* GIDs before it are link-local */
    roce_v2_only = 2,
    roce_both = 3,     /* SOFTHCA_ROCE */
    subnet_shift = 17, /* in what shca_network_of() returns */
    link_shift = 25,
};
/* GUIDs are locally administered: "SH", "CA". GIDs are of the default subnet, link-local, or
 * ::ffff:10.83.0.0. */
static const uint64_t guid_base = UINT64_C(0x0253480043410000);
static const uint64_t gid_prefix = UINT64_C(0xfe80000000000000);
static const uint64_t ipv4_gid = UINT64_C(0x0000ffff0a530000);
static const uint64_t site_prefix = UINT64_C(0xfec0000000000000); /* other subnets, by number */

uint64_t shca_guid_of(int hca, int port)
{
    return guid_base | (uint64_t)hca << 8 | (uint64_t)port;
}

uint16_t shca_lid_of(uint32_t fabric_port)
{
    return shca_is_ethernet(shca_hca_at(fabric_port)) ? 0 : (uint16_t)(first_lid + fabric_port - 1);
}

/* Converts the number of an address to the row of a table with both types. */
static uint32_t full_row(int hca, uint32_t address)
{
    uint32_t types = shca_config.device[hca].gid_types;

    return types == roce_both ? address : 2 * address + (types == roce_v2_only);
}

bool shca_gid_v2(uint32_t fabric_port, uint32_t index)
{
    int hca = shca_hca_at(fabric_port), address = shca_gid_address_at(fabric_port, index);

    return shca_config.udp ||
           (shca_is_ethernet(hca) && address >= 0 && full_row(hca, (uint32_t)address) % 2 == 1);
}

static uint64_t own_prefix(int hca)
{
    bool other = !shca_is_ethernet(hca) && shca_config.subnet > 0;

    return other ? site_prefix | shca_config.subnet : gid_prefix;
}

void shca_gid_of(uint32_t fabric_port, uint32_t index, union ibv_gid *gid)
{
    int hca = shca_hca_at(fabric_port);
    int port = (int)(fabric_port - 1) % shca_config.ports + 1;
    int address = shca_gid_address_at(fabric_port, index);
    bool ipv4 = shca_is_ethernet(hca) && full_row(hca, (uint32_t)address) >= first_ipv4;

    if (address < 0) {
        memset(gid, 0, sizeof *gid);
        return;
    }
    if (shca_config.udp) {
        shca_inet_row(shca.seg->inet[fabric_port], (uint32_t)address, gid);
        return;
    }
    gid->global.subnet_prefix = ipv4 ? 0 : htobe64(own_prefix(hca));
    gid->global.interface_id =
        htobe64(ipv4 ? ipv4_gid | (uint64_t)hca << 8 | (uint64_t)port : shca_guid_of(hca, port));
}

static uint32_t route_gid(const union ibv_gid *gid)
{
    uint64_t prefix = be64toh(gid->global.subnet_prefix), id = be64toh(gid->global.interface_id);
    int hca = (int)(id >> 8 & 0xff), port = (int)(id & 0xff);
    uint64_t base = id & ~UINT64_C(0xffff);

    if (hca >= shca_config.hcas || port < 1 || port > shca_config.ports)
        return 0;
    if (!shca_is_ethernet(hca))
        return base == guid_base ? shca_fabric_port(hca, port) : 0;
    if ((prefix != gid_prefix || base != guid_base) && (prefix != 0 || base != ipv4_gid))
        return 0;
    return shca_fabric_port(hca, port);
}

uint32_t shca_ipv4_of(uint32_t fabric_port)
{
    uint32_t at = fabric_port - 1, ports = (uint32_t)shca_config.ports;

    return (uint32_t)ipv4_gid | (at / ports) << 8 | (at % ports + 1);
}

uint32_t shca_ipv4_route(uint32_t ipv4)
{
    int hca = (int)(ipv4 >> 8 & 0xff), port = (int)(ipv4 & 0xff);

    if (ipv4 >> 16 != (uint32_t)ipv4_gid >> 16 || hca >= shca_config.hcas || port < 1 ||
        port > shca_config.ports)
        return 0;
    return shca_fabric_port(hca, port);
}

uint32_t shca_route(const struct ibv_ah_attr *attr)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports), port;

    if (shca_config.udp) /* not all of the address: shca_udp_select */
        return 0;
    /* A router: it finds the port by the GUID, whatever the subnet. */
    if (attr->is_global && !shca_gid_multicast(&attr->grh.dgid))
        return route_gid(&attr->grh.dgid);
    if (attr->dlid < first_lid || attr->dlid >= first_lid + last)
        return 0;
    port = attr->dlid - first_lid + 1u;
    return shca_is_ethernet(shca_hca_at(port)) ? 0 : port;
}

bool shca_gid_multicast(const union ibv_gid *gid)
{
    uint64_t ipv4 = be64toh(gid->global.interface_id);

    if (gid->raw[0] == 0xff)
        return true;
    /* RoCE v2 carries IPv4 groups (224.0.0.0/4) as mapped addresses. */
    return gid->global.subnet_prefix == 0 && ipv4 >> 28 == 0xffffe;
}

uint32_t shca_network_of(int hca, uint32_t pkey_index, const struct ibv_ah_attr *path)
{
    uint32_t v2 =
        path->is_global && shca_gid_v2(shca_fabric_port(hca, path->port_num), path->grh.sgid_index);
    /* A LID reaches ports of its own subnet. */
    bool local = !shca_is_ethernet(hca) && !path->is_global && path->dlid != 0;

    return shca_config.device[hca].link << link_shift |
           (local ? shca_config.subnet << subnet_shift : 0) | v2 << 16 |
           shca_config.pkeys[pkey_index % SHCA_PKEYS];
}

uint16_t shca_pkey_at(int hca, uint32_t index)
{
    return index < shca_config.device[hca].pkeys && index < SHCA_PKEYS ? shca_config.pkeys[index]
                                                                       : 0;
}

bool shca_valid_port(int hca, uint32_t port)
{
    return port >= 1 && port <= shca_config.device[hca].ports;
}

bool shca_valid_path(int hca, const struct ibv_ah_attr *a)
{
    /* An Ethernet port can be reached by GID only. */
    if (shca_is_ethernet(hca) && !a->is_global)
        return false;
    return !a->is_global ||
           (shca_valid_port(hca, a->port_num) &&
            shca_gid_is_there(shca_fabric_port(hca, a->port_num), a->grh.sgid_index));
}
