/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses as sockets and the ICRC want them. Owns nothing. */
#include "config.h"

#include "wire/udp/udp.h"

enum { mapped = 12 /* bytes in front of an IPv4 address */ };

socklen_t shca_udp_name(const struct shca_inet *a, uint32_t scope, union shca_udp_name *name)
{
    enum shca_inet_kind kind = shca_inet_kind(a);
    uint16_t port = htons(a->port ? a->port : SHCA_INET_PLAIN);

    if (kind == SHCA_INET_IPV4) {
        name->ipv4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
        memcpy(&name->ipv4.sin_addr, a->ip + mapped, sizeof name->ipv4.sin_addr);
        return sizeof name->ipv4;
    }
    name->ipv6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                       .sin6_port = port,
                                       .sin6_scope_id = kind == SHCA_INET_LINK_LOCAL ? scope : 0};
    memcpy(&name->ipv6.sin6_addr, a->ip, sizeof a->ip);
    return sizeof name->ipv6;
}

void shca_udp_named(const union shca_udp_name *name, struct shca_inet *a)
{
    if (name->any.sa_family == AF_INET) {
        shca_inet_ipv4(a, ntohl(name->ipv4.sin_addr.s_addr));
        a->port = ntohs(name->ipv4.sin_port);
    } else {
        memcpy(a->ip, &name->ipv6.sin6_addr, sizeof a->ip);
        a->port = ntohs(name->ipv6.sin6_port);
    }
    a->mtu = 0;
}

struct roce_path shca_udp_path(const struct shca_inet *from, const struct shca_inet *to)
{
    struct roce_path path = {.source_port = from->port, .destination_port = to->port};

    if (shca_inet_kind(from) == SHCA_INET_IPV4) {
        path.version = 4;
        memcpy(path.source, from->ip + mapped, sizeof from->ip - mapped);
        memcpy(path.destination, to->ip + mapped, sizeof to->ip - mapped);
    } else {
        path.version = 6;
        memcpy(path.source, from->ip, sizeof from->ip);
        memcpy(path.destination, to->ip, sizeof to->ip);
    }
    return path;
}

/* Each segment of an IPv4 datagram has an identification of its own, which counts, and the ICRC
 * covers it. Over loopback the receiver gets the datagram whole, or without its IP headers, and a
 * softhca counts 0 for all. An address that the kernel's RoCE may have too does not count as a
 * softhca's. */
bool shca_udp_segments(const struct shca_inet *to)
{
    if (shca_inet_kind(to) != SHCA_INET_IPV4)
        return true;
    return shca_inet_loopback(to) && (to->port != 0 || shca_inet_own_loopback(to));
}
