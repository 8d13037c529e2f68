/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which network a port is on, as far as a host can know: InfiniBand ports with one subnet prefix
 * are on one (IBA 4.1.1), Ethernet ports whose interfaces have addresses of one subnet. Ports of
 * several networks can't be dealt out among ranks: those of one would not reach those of the other.
 * No lock: start-up only. */
#include "config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "transport/verbs/verbs_private.h"

enum { prefix_bytes = 8, mapped_bytes = 12, ip4_bytes = 4 };

/* The bytes of an address as a GID holds them (RFC 4291 2.5.5.2 for IPv4), and where an IP mask
 * applies to them. NULL: of another family. */
static const uint8_t *network_bytes_of(const struct sockaddr *address, size_t *size)
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

static bool mask_matching(const struct ifaddrs *interface, const uint8_t *gid, uint8_t *network)
{
    size_t size = 0, mask_size = 0;
    const uint8_t *address = network_bytes_of(interface->ifa_addr, &size);
    const uint8_t *mask = network_bytes_of(interface->ifa_netmask, &mask_size);
    if (!address || !mask || mask_size != size || memcmp(gid + tk_gid_size - size, address, size))
        return false;
    for (size_t i = 0; i < size; i++)
        network[tk_gid_size - size + i] &= mask[i];
    return true;
}

static bool is_mapped(const uint8_t *gid)
{
    static const uint8_t mapped[mapped_bytes] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid, mapped, mapped_bytes) == 0;
}

/* An address of no interface says nothing (a device of software): all such are on one. An IPv6
 * address has the usual prefix then. */
static void ip_network(const uint8_t *gid, uint8_t *network)
{
    struct ifaddrs *all = NULL;
    bool is_found = false;
    if (getifaddrs(&all) == 0) {
        for (const struct ifaddrs *i = all; i && !is_found; i = i->ifa_next)
            is_found = mask_matching(i, gid, network);
        freeifaddrs(all);
    }
    if (!is_found)
        memset(network + (is_mapped(gid) ? mapped_bytes : prefix_bytes), 0,
               is_mapped(gid) ? ip4_bytes : tk_gid_size - prefix_bytes);
}

void tk_network_of(struct tk_network *network, const struct tk_rail *rail)
{
    struct ibv_gid_entry gid;
    *network = (struct tk_network){.is_ethernet = rail->address.is_ethernet};
    if (network->is_ethernet) {
        memcpy(network->prefix, rail->address.gid, tk_gid_size);
        ip_network(rail->address.gid, network->prefix);
    } else if (!ibv_query_gid_ex(rail->context, rail->address.port, 0, &gid, 0)) {
        memcpy(network->prefix, gid.gid.raw, prefix_bytes);
    }
}

bool tk_network_is_same(const struct tk_network *a, const struct tk_network *b)
{
    return a->is_ethernet == b->is_ethernet && !memcmp(a->prefix, b->prefix, tk_gid_size);
}
