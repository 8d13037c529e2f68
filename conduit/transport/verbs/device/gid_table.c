/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The GID table of a port in the form that gid_choose.c needs. The host's interfaces tell the
 * network of each entry, and whether its interface is up. Tables change while a job runs, when
 * addresses are removed and added; a GID may then be in another row. No state, no lock. */
#include "config.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

#include "base/first_use.h"
#include "peer/peer.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"

enum {
    ip4_bytes = 4,
    mapped_bits = 96,
    unknown_bits = mapped_bits + 16, /* of the software device: 10.83.0.0/16 */
    prefix_bits = 64,                /* of InfiniBand subnets (IBA 4.1.1), and usual for IPv6 */
    rows_max = 256                   /* sgid_index has 8 bits */
};

/* The bytes of an address that a GID contains (RFC 4291 2.5.5.2 for IPv4) and that IP masks cover.
 * NULL: another family. */
static const uint8_t *bytes_of(const struct sockaddr *address, size_t *size)
{
    if (address && address->sa_family == AF_INET) {
        *size = ip4_bytes;
        return (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    }
    if (address && address->sa_family == AF_INET6) {
        *size = sizeof(struct in6_addr);
        return (const uint8_t *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    }
    return NULL;
}

static unsigned ones_of(const uint8_t *mask, size_t size)
{
    unsigned bits = 0;
    while (bits < 8 * size && mask[bits / 8] & 0x80u >> bits % 8)
        bits++;
    return bits;
}

static bool has_address(const struct ifaddrs *interface, struct tk_gid *gid)
{
    size_t size = 0, mask_size = 0;
    const uint8_t *address = bytes_of(interface->ifa_addr, &size);
    const uint8_t *mask = bytes_of(interface->ifa_netmask, &mask_size);
    size_t before = sizeof(gid->raw) - size;
    if (!address || !mask || mask_size != size || memcmp(gid->raw + before, address, size))
        return false;
    gid->network_bits = (uint8_t)(8 * before + ones_of(mask, size));
    return true;
}

/* Addresses that no interface has (a software device) count as up, with a common mask. Old
 * kernels have link-local entries for RoCE v1 without an address; for those the GID table names the
 * interface. */
static void look_at_interfaces(const struct ifaddrs *all, uint32_t index, struct tk_gid_row *row)
{
    static const uint8_t mapped[mapped_bits / 8] = {[10] = 0xff, [11] = 0xff};
    char name[IF_NAMESIZE];
    bool is_mapped = !memcmp(row->gid.raw, mapped, sizeof(mapped)), is_found = false;
    bool is_named = index > 0 && if_indextoname(index, name);
    row->gid.network_bits = is_mapped ? unknown_bits : prefix_bits;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (is_named && strcmp(i->ifa_name, name))
            continue;
        if (is_named)
            row->is_down = !(i->ifa_flags & IFF_UP);
        if (!is_found && has_address(i, &row->gid)) {
            row->is_down = !(i->ifa_flags & IFF_UP);
            is_found = true;
        }
    }
}

/* Read when the first row that belongs to one is found: InfiniBand has none, and the list costs a
 * socket and some ten system calls. */
struct interfaces {
    struct ifaddrs *all; /* NULL also if they can't be listed */
    bool are_read;
};

static const struct ifaddrs *interfaces_read(struct interfaces *interfaces)
{
    if (!interfaces->are_read && getifaddrs(&interfaces->all) != 0)
        interfaces->all = NULL;
    interfaces->are_read = true;
    return interfaces->all;
}

static bool read_row(struct ibv_context *context, int port, int index,
                     struct interfaces *interfaces, struct tk_gid_row *row)
{
    struct ibv_gid_entry entry;
    if (ibv_query_gid_ex(context, (uint32_t)port, (uint32_t)index, &entry, 0))
        return false;
    *row = (struct tk_gid_row){.gid = {.type = (uint8_t)entry.gid_type, .index = (uint16_t)index}};
    memcpy(row->gid.raw, entry.gid.raw, sizeof(row->gid.raw));
    if (entry.gid_type == IBV_GID_TYPE_IB)
        row->gid.network_bits = prefix_bits;
    else
        look_at_interfaces(interfaces_read(interfaces), entry.ndev_ifindex, row);
    return true;
}

TK_FIRST_USE static bool is_in_row(struct ibv_context *context, int port, int index,
                                   const struct tk_gid *gid)
{
    struct ibv_gid_entry entry;
    return ibv_query_gid_ex(context, (uint32_t)port, (uint32_t)index, &entry, 0) == 0 &&
           entry.gid_type == gid->type && !memcmp(entry.gid.raw, gid->raw, sizeof(gid->raw));
}

TK_FIRST_USE int tk_gid_row_now(struct ibv_context *context, int port, const struct tk_gid *gid)
{
    struct ibv_port_attr attr;
    if (is_in_row(context, port, gid->index, gid))
        return gid->index;
    if (ibv_query_port(context, (uint8_t)port, &attr))
        return -1;
    for (int i = 0; i < attr.gid_tbl_len && i < rows_max; i++)
        if (is_in_row(context, port, i, gid))
            return i;
    return -1;
}

/* A GID that the user names is used without checks. */
unsigned tk_gid_table_offer(struct ibv_context *context, int port, int length, int wanted,
                            struct tk_gid *offered)
{
    struct tk_gid_row rows[rows_max];
    struct interfaces interfaces = {.all = NULL};
    unsigned count = 0;
    for (int i = 0; i < length && i < rows_max; i++) {
        if ((wanted >= 0 && i != wanted) || !read_row(context, port, i, &interfaces, &rows[count]))
            continue;
        rows[count].is_down &= wanted < 0;
        count++;
    }
    if (interfaces.all)
        freeifaddrs(interfaces.all);
    return tk_gids_offer(rows, count, offered);
}
