/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of ports: LIDs, the GID table, the P_Key table, and the lookup from an address to a
 * port. A "fabric port" numbers the ports of all HCAs of the simulated machine consecutively. An
 * InfiniBand port has 2^SOFTHCA_LMC LIDs and one GID, and is on a subnet (SOFTHCA_SUBNET). A RoCE
 * port usually has four GIDs, those of its link-local and of its IPv4 address (10.83.<hca>.<port>),
 * each for RoCE v1 and v2, in the order of Linux. A process may have others (SOFTHCA_GIDS): VLANs,
 * IPv6 addresses, empty entries. Without a router (SOFTHCA_ROUTER) subnets and VLANs are separate.
 * Owns nothing; gid_rows.c says which address is in which row of a GID table. */
#include "config.h"

#include <endian.h>

#include "fabric/fabric.h"

enum {
    first_lid = 0x10,
    network_shift = 17, /* of subnet or VLAN, in what shca_network_of() returns */
    link_shift = 25,
    plain_net = 83, /* 10.<net>.<hca>.<port> */
    vlan_net = 100, /* of VLAN 0, which there is not */
};
/* GUIDs are locally administered: "SH", "CA". GIDs are of the default subnet, link-local,
 * ::ffff:10.83.0.0 or fd53:4843:4100:100::, which has the VLAN in its last bits. */
static const uint64_t guid_base = UINT64_C(0x0253480043410000);
static const uint64_t gid_prefix = UINT64_C(0xfe80000000000000);
static const uint64_t ipv4_gid = UINT64_C(0x0000ffff0a000000);
static const uint64_t ipv6_prefix = UINT64_C(0xfd53484341000100);
static const uint64_t site_prefix = UINT64_C(0xfec0000000000000); /* other subnets, by number */

uint64_t shca_guid_of(int hca, int port)
{
    return guid_base | (uint64_t)hca << 8 | (uint64_t)port;
}

uint16_t shca_lid_of(uint32_t fabric_port)
{
    return shca_is_ethernet(shca_hca_at(fabric_port))
               ? 0
               : (uint16_t)((first_lid + fabric_port - 1) << shca_config.lmc);
}

bool shca_gid_v2(uint32_t fabric_port, uint32_t index)
{
    return shca_config.udp || shca_gid_row_at(fabric_port, index)->v2;
}

static uint64_t subnet_prefix(uint32_t subnet)
{
    return subnet > 0 ? site_prefix | subnet : gid_prefix;
}

static uint64_t own_prefix(uint32_t fabric_port)
{
    return shca_is_ethernet(shca_hca_at(fabric_port))
               ? gid_prefix
               : subnet_prefix(shca_port_config_at(fabric_port)->subnet);
}

static uint64_t ipv4_id(uint32_t vlan, int hca, int port)
{
    uint32_t net = vlan > 0 ? vlan_net + vlan : plain_net;

    return ipv4_gid | net << 16 | (uint32_t)hca << 8 | (uint32_t)port;
}

void shca_gid_of(uint32_t fabric_port, uint32_t index, union ibv_gid *gid)
{
    const struct shca_gid_row *row = shca_gid_row_at(fabric_port, index);
    int hca = shca_hca_at(fabric_port), port = shca_port_at(fabric_port);
    int address = shca_gid_address_at(fabric_port, index);
    uint64_t prefix = 0, id = 0;

    if (shca_config.udp && address >= 0) {
        shca_inet_row(shca.seg->inet[fabric_port], (uint32_t)address, gid);
        return;
    }
    if (row->kind == SHCA_GID_LINK) {
        prefix = own_prefix(fabric_port);
        id = shca_guid_of(hca, port);
    } else if (row->kind == SHCA_GID_IPV4) {
        id = ipv4_id(row->vlan, hca, port);
    } else if (row->kind == SHCA_GID_IPV6) {
        prefix = ipv6_prefix | row->vlan;
        id = (uint64_t)hca << 8 | (uint64_t)port;
    }
    gid->global.subnet_prefix = htobe64(prefix);
    gid->global.interface_id = htobe64(id);
}

/* What the address in a GID says, whichever ports there are. */
struct place {
    struct shca_gid_row row; /* `v2` is not in it */
    uint64_t prefix;
    int hca, port;
};

static bool read_gid(const union ibv_gid *gid, struct place *p)
{
    uint64_t prefix = be64toh(gid->global.subnet_prefix), id = be64toh(gid->global.interface_id);
    uint32_t net = (uint32_t)(id >> 16 & 0xff);

    *p = (struct place){.prefix = prefix, .hca = (int)(id >> 8 & 0xff), .port = (int)(id & 0xff)};
    if ((id & ~UINT64_C(0xffff)) == guid_base) {
        p->row.kind = SHCA_GID_LINK;
    } else if (prefix == 0 && (id & ~UINT64_C(0xffffff)) == ipv4_gid) {
        p->row.kind = SHCA_GID_IPV4;
        if (net != plain_net && (net <= vlan_net || net > vlan_net + SHCA_VLAN_MAX))
            return false;
        p->row.vlan = net == plain_net ? 0 : (uint8_t)(net - vlan_net);
    } else if ((prefix & ~UINT64_C(0xff)) == ipv6_prefix && id >> 16 == 0) {
        p->row.kind = SHCA_GID_IPV6;
        p->row.vlan = (uint8_t)prefix;
    }
    return p->row.kind != SHCA_GID_NONE && p->hca < shca_config.hcas && p->port >= 1 &&
           p->port <= shca_config.ports;
}

/* Routers pass on packets of RoCE v2 between routable addresses, and none of v1. */
static bool is_routed(const struct shca_gid_row *row)
{
    return !shca_config.no_router && row->v2 && row->kind != SHCA_GID_LINK;
}

/* The sender's kind of network decides, because the other process may have other devices: ends of
 * two kinds do not meet (shca_network_of). */
static uint32_t route_gid(uint32_t from, uint32_t index, const union ibv_gid *gid)
{
    const struct shca_gid_row *own = shca_gid_row_at(from, index);
    struct place to;

    if (!read_gid(gid, &to))
        return 0;
    if (!shca_is_ethernet(shca_hca_at(from)))
        return to.row.kind == SHCA_GID_LINK &&
                       (!shca_config.no_router || to.prefix == own_prefix(from))
                   ? shca_fabric_port(to.hca, to.port)
                   : 0;
    if (to.row.kind == SHCA_GID_LINK && to.prefix != gid_prefix)
        return 0;
    /* A link-local address is the same in each VLAN: the receiver's entry decides. */
    if (to.row.kind != SHCA_GID_LINK && to.row.vlan != own->vlan && !is_routed(own))
        return 0;
    return shca_fabric_port(to.hca, to.port);
}

uint32_t shca_ipv4_of(uint32_t fabric_port)
{
    return (uint32_t)ipv4_id(0, shca_hca_at(fabric_port), shca_port_at(fabric_port));
}

uint32_t shca_ipv4_route(uint32_t ipv4)
{
    int hca = (int)(ipv4 >> 8 & 0xff), port = (int)(ipv4 & 0xff);

    if (ipv4 >> 16 != (uint32_t)ipv4_id(0, 0, 0) >> 16 || hca >= shca_config.hcas || port < 1 ||
        port > shca_config.ports)
        return 0;
    return shca_fabric_port(hca, port);
}

uint32_t shca_address_route(const union ibv_gid *gid)
{
    struct place to;

    return shca_config.gid_list && read_gid(gid, &to) && to.row.kind != SHCA_GID_LINK
               ? shca_fabric_port(to.hca, to.port)
               : 0;
}

uint32_t shca_route(uint32_t from, const struct ibv_ah_attr *attr)
{
    uint32_t last = (uint32_t)(shca_config.hcas * shca_config.ports), lid;

    if (shca_config.udp) /* not all of the address: shca_udp_select */
        return 0;
    /* A router: it finds the port by the GUID, whatever the subnet. */
    if (attr->is_global && !shca_gid_multicast(&attr->grh.dgid))
        return route_gid(from, attr->grh.sgid_index, &attr->grh.dgid);
    lid = attr->dlid >> shca_config.lmc;
    if (lid < first_lid || lid >= first_lid + last || shca_is_ethernet(shca_hca_at(from)))
        return 0;
    return lid - first_lid + 1u;
}

bool shca_gid_multicast(const union ibv_gid *gid)
{
    uint64_t ipv4 = be64toh(gid->global.interface_id);

    if (gid->raw[0] == 0xff)
        return true;
    /* RoCE v2 carries IPv4 groups (224.0.0.0/4) as mapped addresses. */
    return gid->global.subnet_prefix == 0 && ipv4 >> 28 == 0xffffe;
}

/* A LID reaches ports of its own subnet; what a router passes on reaches those of others. */
static uint32_t separate_network(uint32_t fabric_port, const struct ibv_ah_attr *path)
{
    const struct shca_port_config *config = shca_port_config_at(fabric_port);
    const struct shca_gid_row *row = shca_gid_row_at(fabric_port, path->grh.sgid_index);

    if (!shca_is_ethernet(shca_hca_at(fabric_port)))
        return path->is_global ? (shca_config.no_router ? config->subnet : 0)
               : path->dlid    ? config->subnet
                               : 0;
    return path->is_global && !is_routed(row) ? row->vlan : 0;
}

uint32_t shca_network_of(uint32_t fabric_port, uint32_t pkey_index, const struct ibv_ah_attr *path)
{
    uint32_t v2 = path->is_global && shca_gid_v2(fabric_port, path->grh.sgid_index);
    uint32_t separate = shca_config.udp ? 0 : separate_network(fabric_port, path);

    return shca_config.device[shca_hca_at(fabric_port)].link << link_shift |
           separate << network_shift | v2 << 16 | shca_config.pkeys[pkey_index % SHCA_PKEYS];
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
    uint32_t port = shca_fabric_port(hca, a->port_num);

    /* An Ethernet port can be reached by GID only. */
    if (!a->is_global)
        return !shca_is_ethernet(hca);
    return shca_valid_port(hca, a->port_num) && !shca_gid_empty(port, a->grh.sgid_index);
}
