/* SPDX-License-Identifier: BSD-3-Clause */
/* The network of a socket; see network.h. */
#include "config.h"

#include "network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* The listener takes IPv4 connections on a socket of IPv6. */
static bool own_address(int fd, struct in_addr *out)
{
    struct sockaddr_storage s = {0};
    socklen_t length = sizeof(s);

    if (getsockname(fd, (struct sockaddr *)&s, &length) != 0)
        return false;
    const struct sockaddr_in6 *six = (const void *)&s;
    if (s.ss_family == AF_INET)
        *out = ((const struct sockaddr_in *)(const void *)&s)->sin_addr;
    else if (s.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
        memcpy(out, six->sin6_addr.s6_addr + 12, sizeof(*out));
    else
        return false;
    return ntohl(out->s_addr) >> 24 != IN_LOOPBACKNET;
}

/* All ones where no interface has the address: the network is that host alone. */
static uint32_t mask_of(struct in_addr address)
{
    uint32_t mask = UINT32_MAX;
    struct ifaddrs *all;

    if (getifaddrs(&all) != 0)
        return mask;
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        const struct sockaddr_in *a = (const void *)i->ifa_addr;
        const struct sockaddr_in *m = (const void *)i->ifa_netmask;
        if (a && m && a->sin_family == AF_INET && a->sin_addr.s_addr == address.s_addr)
            mask = ntohl(m->sin_addr.s_addr);
    }
    freeifaddrs(all);
    return mask;
}

bool network_of_socket(int fd, char *text, size_t size)
{
    char address[INET_ADDRSTRLEN];
    struct in_addr own;

    if (!own_address(fd, &own))
        return false;
    uint32_t mask = mask_of(own);
    own.s_addr &= htonl(mask);
    inet_ntop(AF_INET, &own, address, sizeof(address));
    snprintf(text, size, "%s/%d", address, __builtin_popcount(mask));
    return true;
}
