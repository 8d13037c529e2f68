/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sockets: which address and UDP port each port of this process gets. Without SOFTHCA_UDP only
 * loopback addresses are used, one of its own for each port, so that every one has RoCE's port
 * 4791; on a network the first process of a host gets that port and others one of their own, which
 * their GIDs carry. SO_REUSEPORT with a filter that steers by queue pair number was not chosen: the
 * filter returns an index into the group, and the kernel moves the last socket into the place of
 * one that closes, so that a process that ends would redirect the packets of others. Owns
 * shca_udp_socket; shca.lock protects opening. */
#include "config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/udp/udp.h"

enum {
    receive_bytes = 4 << 20,
    tries = 4096,
    over_payload = 20 + 8 + ROCE_HEADERS_MAX + ROCE_ICRC_BYTES,
};

static bool opened[SHCA_MAX_HCA];

/* ---- SOFTHCA_UDP ---- */

struct network {
    uint32_t address, mask; /* of a subnet; mask 0: by name, or any */
    char name[IFNAMSIZ];
    uint32_t mtu; /* asked for, 0: that of the interface */
    uint32_t found;
};

/* A.B.C.D/N, an interface, or auto (an empty name); then perhaps ,mtu=N. */
static bool parse_network(const char *text, struct network *n)
{
    unsigned a, b, c, d, bits;
    size_t length = strcspn(text, ",");
    int used = 0;

    memset(n, 0, sizeof *n);
    if (text[length]) {
        if (sscanf(text + length, ",mtu=%u%n", &n->mtu, &used) != 1 ||
            text[length + (size_t)used] || n->mtu < 256 || n->mtu > ROCE_MTU_MAX)
            return false;
    }
    used = 0;
    if (sscanf(text, "%3u.%3u.%3u.%3u/%2u%n", &a, &b, &c, &d, &bits, &used) == 5 &&
        (size_t)used == length) {
        n->mask = bits ? ~UINT32_C(0) << (32 - bits) : 0;
        n->address = a << 24 | b << 16 | c << 8 | d;
        return a < 256 && b < 256 && c < 256 && d < 256 && bits >= 1 && bits <= 32;
    }
    if (length == 4 && strncmp(text, "auto", 4) == 0)
        return true;
    if (length == 0 || length >= sizeof n->name)
        return false;
    memcpy(n->name, text, length);
    return if_nametoindex(n->name) != 0;
}

static uint32_t mtu_of(int fd, const char *name)
{
    struct ifreq r = {0};

    snprintf(r.ifr_name, sizeof r.ifr_name, "%s", name);
    if (ioctl(fd, SIOCGIFMTU, &r) != 0 || r.ifr_mtu < over_payload + 256)
        return 256;
    return (uint32_t)r.ifr_mtu - over_payload;
}

static bool fits(const struct network *n, const struct ifaddrs *i, uint32_t address)
{
    if (n->mask)
        return (address & n->mask) == (n->address & n->mask);
    if (n->name[0])
        return strcmp(n->name, i->ifa_name) == 0;
    return !(i->ifa_flags & IFF_LOOPBACK);
}

/* The first address of this host on the network. */
static int find_address(struct network *n)
{
    struct ifaddrs *all, *i;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || getifaddrs(&all) != 0)
        return errno;
    for (i = all; i; i = i->ifa_next) {
        const struct sockaddr_in *a = (const struct sockaddr_in *)(const void *)i->ifa_addr;
        uint32_t most;

        if (!a || a->sin_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
            !fits(n, i, ntohl(a->sin_addr.s_addr)))
            continue;
        most = mtu_of(fd, i->ifa_name);
        n->found = ntohl(a->sin_addr.s_addr);
        n->mtu = n->mtu && n->mtu < most ? n->mtu : most;
        break;
    }
    freeifaddrs(all);
    close(fd);
    return n->found ? 0 : EADDRNOTAVAIL;
}

/* ---- one socket ---- */

static int bind_at(uint32_t ipv4, uint16_t port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ipv4)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int discover = IP_PMTUDISC_DO, room = receive_bytes, on = 1;
    int capable = 2; /* of ECN (RFC 3168): routers mark packets before they have to drop them */

    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        int e = errno;

        close(fd);
        errno = e;
        return -1;
    }
    /* With "don't fragment" an unconnected socket sends identification 0, which the ICRC covers. */
    setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    setsockopt(fd, IPPROTO_IP, IP_TOS, &capable, sizeof capable);
    setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    return fd;
}

/* Does a socket that is bound to every address have port 4791? */
static bool held_by_kernel(void)
{
    FILE *f = fopen("/proc/net/udp", "re");
    char line[256];
    bool found = false;

    while (f && fgets(line, sizeof line, f))
        found |= strstr(line, ": 00000000:12B7 ") != NULL;
    if (f)
        fclose(f);
    return found;
}

static int bind_own_port(struct shca_udp_socket *s)
{
    uint32_t room = SHCA_INET_LAST - SHCA_INET_FIRST + 1;

    for (uint32_t i = 0; i < room && s->fd < 0; i++) {
        s->at.port = (uint16_t)(SHCA_INET_FIRST + (shca.pid * 7 + i) % room);
        s->fd = bind_at(s->at.ipv4, s->at.port);
        if (s->fd < 0 && errno != EADDRINUSE)
            return errno;
    }
    return s->fd < 0 ? EADDRINUSE : 0;
}

static void report_in_use(void)
{
    static bool reported;

    if (!reported && held_by_kernel())
        shca_log(
            "UDP port 4791 is in use on every address, by the kernel if the module rdma_rxe is "
            "loaded: only other softhcas can reach this process");
    reported = true;
}

static int bind_network(struct shca_udp_socket *s, const struct network *n)
{
    s->at.ipv4 = n->found;
    s->at.mtu = (uint16_t)(n->mtu < ROCE_MTU_MAX ? n->mtu : ROCE_MTU_MAX);
    s->at.port = SHCA_INET_PLAIN;
    s->fd = bind_at(s->at.ipv4, s->at.port);
    if (s->fd >= 0)
        return 0;
    if (errno != EADDRINUSE)
        return errno;
    report_in_use();
    return bind_own_port(s);
}

/* An address of its own in 127.128.0.0/9: 127.0.0.1 and its neighbours have other users. */
static int bind_loopback(struct shca_udp_socket *s, uint32_t fabric_port)
{
    uint32_t at = (shca.pid * 128 + fabric_port) * UINT32_C(2654435761);

    s->at.mtu = ROCE_MTU_MAX;
    s->at.port = SHCA_INET_PLAIN;
    for (int i = 0; i < tries && s->fd < 0; i++, at += 12345) {
        s->at.ipv4 = UINT32_C(0x7f800000) | (at & 0x7ffffe);
        if ((s->at.ipv4 & 0xff) == 0)
            continue;
        s->fd = bind_at(s->at.ipv4, s->at.port);
        if (s->fd < 0 && errno != EADDRINUSE)
            return errno;
        if (s->fd < 0 && held_by_kernel()) {
            report_in_use();
            return bind_own_port(s);
        }
    }
    return s->fd < 0 ? EADDRINUSE : 0;
}

/* ---- an HCA ---- */

static int open_port(uint32_t fabric_port, const struct network *n)
{
    struct shca_udp_socket *s = &shca_udp_socket[fabric_port];
    int e;

    s->fd = -1;
    e = n ? bind_network(s, n) : bind_loopback(s, fabric_port);
    if (e == 0 && !shca_udp_tx_open(s))
        e = ENOMEM;
    if (e == 0)
        shca.seg->inet[fabric_port] = s->at;
    else
        shca_log("cannot open a UDP socket for port %u: %s", fabric_port, strerror(e));
    return e;
}

static int open_ports(int hca, const struct network *n)
{
    int e = 0;

    for (int port = 1; port <= shca_config.ports && e == 0; port++)
        e = open_port(shca_fabric_port(hca, port), n);
    return e;
}

static void start_wire(void)
{
    void (*none)(void) = NULL;

    if (!atomic_compare_exchange_strong(&shca_far_run, &none, shca_udp_progress))
        return;
    atomic_store(&shca_far_sleep, shca_udp_sleep);
    for (int i = 0; i < SHCA_UDP_PORTS; i++)
        shca_udp_socket[i].fd = -1;
    atomic_fetch_add(&shca.pending, 1); /* polls that find nothing call shca_far_run */
}

static int open_locked(int hca)
{
    struct network n;
    int e = 0;

    start_wire();
    if (!shca_config.udp_list)
        return open_ports(hca, NULL);
    if (!parse_network(shca_config.udp_list, &n)) {
        shca_log("SOFTHCA_UDP=%s is neither auto, nor A.B.C.D/N (N from 1 to 32), nor an interface "
                 "of this host, perhaps with ,mtu=N (256 to 4096)",
                 shca_config.udp_list);
        return EINVAL;
    }
    e = find_address(&n);
    if (e != 0) {
        shca_log("SOFTHCA_UDP=%s: this host has no IPv4 address there", shca_config.udp_list);
        return e;
    }
    return open_ports(hca, &n);
}

int shca_udp_open(int hca)
{
    int e = 0;

    if (!shca_config.udp)
        return 0;
    pthread_mutex_lock(&shca.lock);
    if (!opened[hca])
        e = open_locked(hca);
    opened[hca] = e == 0;
    pthread_mutex_unlock(&shca.lock);
    return e;
}

void shca_udp_inherited(void)
{
    if (!shca_config.udp || !atomic_load(&shca_far_run))
        return;
    for (int i = 0; i < SHCA_UDP_PORTS; i++)
        if (shca_udp_socket[i].fd >= 0)
            close(shca_udp_socket[i].fd);
    memset(shca_udp_socket, 0, sizeof shca_udp_socket);
    memset(opened, 0, sizeof opened);
    memset(shca_udp.qps, 0, sizeof shca_udp.qps);
    atomic_store(&shca_udp.users, 0);
    atomic_store(&shca_udp.attentive, false);
    atomic_store(&shca_udp.lock.word, 0);
    atomic_store(&shca_udp.next, ROCE_NEVER);
    atomic_store(&shca_far_run, NULL);
    atomic_store(&shca_far_sleep, NULL);
}
