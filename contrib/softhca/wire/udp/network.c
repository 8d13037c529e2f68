/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SOFTHCA_UDP: the interface that it names, and its addresses. A network is chosen by one address;
 * the others of its interface are used too, so that peers reach this host by each of their GIDs.
 * Owns nothing. */
#include "config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/udp/udp.h"

enum { over_payload = 40 + 8 + ROCE_HEADERS_MAX + ROCE_ICRC_BYTES };

struct wanted {
    unsigned bits; /* of prefix; 0: by name, or any */
    struct shca_inet prefix;
    char name[IFNAMSIZ];
    uint32_t mtu; /* asked for, 0: that of the interface */
};

static bool number(const char *text, const char *end, unsigned least, unsigned most, unsigned *out)
{
    unsigned long n;
    char *stop;

    if (*text < '0' || *text > '9')
        return false;
    n = strtoul(text, &stop, 10);
    *out = (unsigned)n;
    return stop == end && n >= least && n <= most;
}

/* A.B.C.D/N or X:Y::/N. */
static bool parse_prefix(const char *text, const char *slash, const char *end, struct wanted *w)
{
    char address[INET6_ADDRSTRLEN];
    size_t length = (size_t)(slash - text);
    uint32_t ipv4;

    if (length >= sizeof address)
        return false;
    memcpy(address, text, length);
    address[length] = 0;
    if (inet_pton(AF_INET, address, &ipv4) == 1) {
        shca_inet_ipv4(&w->prefix, ntohl(ipv4));
        if (!number(slash + 1, end, 1, 32, &w->bits))
            return false;
        w->bits += 96;
        return true;
    }
    return inet_pton(AF_INET6, address, w->prefix.ip) == 1 &&
           number(slash + 1, end, 1, 128, &w->bits);
}

/* A subnet, an interface, or auto (an empty name); then perhaps ,mtu=N. */
static bool parse(const char *text, struct wanted *w)
{
    static const char mtu[] = ",mtu=";
    size_t length = strcspn(text, ",");
    const char *end = text + length, *slash = memchr(text, '/', length);

    memset(w, 0, sizeof *w);
    if (*end && (strncmp(end, mtu, sizeof mtu - 1) != 0 ||
                 !number(end + sizeof mtu - 1, end + strlen(end), 256, ROCE_MTU_MAX, &w->mtu)))
        return false;
    if (slash)
        return parse_prefix(text, slash, end, w);
    if (length == 4 && strncmp(text, "auto", 4) == 0)
        return true;
    if (length == 0 || length >= sizeof w->name)
        return false;
    memcpy(w->name, text, length);
    return if_nametoindex(w->name) != 0;
}

static bool inside(const struct shca_inet *a, const struct shca_inet *prefix, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;

    return memcmp(a->ip, prefix->ip, whole) == 0 &&
           (rest == 0 || (a->ip[whole] ^ prefix->ip[whole]) >> (8 - rest) == 0);
}

static bool address_of(const struct ifaddrs *i, struct shca_inet *a)
{
    const struct sockaddr *any = i->ifa_addr;
    union shca_udp_name name;

    if (!any || !(i->ifa_flags & IFF_UP) ||
        (any->sa_family != AF_INET && any->sa_family != AF_INET6))
        return false;
    memcpy(&name, any, any->sa_family == AF_INET ? sizeof name.ipv4 : sizeof name.ipv6);
    shca_udp_named(&name, a);
    return true;
}

/* The first address on the network; auto: IPv4 before IPv6, and link-local ones last. */
static const struct ifaddrs *choose(const struct wanted *w, const struct ifaddrs *all)
{
    static const int order[SHCA_INET_KINDS] = {
        [SHCA_INET_IPV4] = 2, [SHCA_INET_LINK_LOCAL] = 0, [SHCA_INET_IPV6] = 1};
    const struct ifaddrs *best = NULL;
    int best_order = -1;

    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        struct shca_inet a;

        if (!address_of(i, &a) || (w->bits && !inside(&a, &w->prefix, w->bits)) ||
            (w->name[0] && strcmp(w->name, i->ifa_name) != 0) ||
            (!w->bits && !w->name[0] && i->ifa_flags & IFF_LOOPBACK))
            continue;
        if (order[shca_inet_kind(&a)] > best_order) {
            best = i;
            best_order = order[shca_inet_kind(&a)];
        }
    }
    return best;
}

static uint32_t mtu_of(const char *name)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq r = {0};
    uint32_t mtu = 256;

    memcpy(r.ifr_name, name, strnlen(name, sizeof r.ifr_name - 1));
    if (fd >= 0 && ioctl(fd, SIOCGIFMTU, &r) == 0 && r.ifr_mtu >= over_payload + 256)
        mtu = (uint32_t)r.ifr_mtu - over_payload;
    if (fd >= 0)
        close(fd);
    return mtu < ROCE_MTU_MAX ? mtu : ROCE_MTU_MAX;
}

/* The chosen address, and the first of each other kind on its interface. */
static void collect(const struct wanted *w, const struct ifaddrs *all, const struct ifaddrs *chosen,
                    struct shca_udp_network *n)
{
    uint32_t most = mtu_of(chosen->ifa_name);
    uint16_t mtu = (uint16_t)(w->mtu && w->mtu < most ? w->mtu : most);
    struct shca_inet a;

    address_of(chosen, &a);
    a.mtu = mtu;
    n->at[shca_inet_kind(&a)] = a;
    n->scope = if_nametoindex(chosen->ifa_name);
    for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (strcmp(i->ifa_name, chosen->ifa_name) != 0 || !address_of(i, &a))
            continue;
        a.mtu = mtu;
        if (n->at[shca_inet_kind(&a)].mtu == 0)
            n->at[shca_inet_kind(&a)] = a;
    }
}

int shca_udp_network(const char *text, struct shca_udp_network *n)
{
    const struct ifaddrs *chosen;
    struct ifaddrs *all;
    struct wanted w;

    memset(n, 0, sizeof *n);
    if (!parse(text, &w)) {
        shca_log("SOFTHCA_UDP=%s is neither auto, nor A.B.C.D/N (N from 1 to 32), nor X:Y::/N "
                 "(N from 1 to 128), nor an interface of this host, perhaps with ,mtu=N (256 to "
                 "4096)",
                 text);
        return EINVAL;
    }
    if (getifaddrs(&all) != 0)
        return errno;
    chosen = choose(&w, all);
    if (chosen)
        collect(&w, all, chosen, n);
    else
        shca_log("SOFTHCA_UDP=%s: this host has no address there", text);
    freeifaddrs(all);
    return chosen ? 0 : EADDRNOTAVAIL;
}
