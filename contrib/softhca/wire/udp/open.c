/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sockets: which address and UDP port each port of this process gets. Without SOFTHCA_UDP only
 * loopback addresses are used, one of its own for each port, so that every one has RoCE's port
 * 4791; on a network the first process of a host gets that port and others one of their own, which
 * their GIDs carry. SO_REUSEPORT with a filter that steers by queue pair number was not chosen: the
 * filter returns an index into the group, and the kernel moves the last socket into the place of
 * one that closes, so that a process that ends would redirect the packets of others. Owns
 * shca_udp_port; shca.lock protects opening. */
#include "config.h"

#include <linux/udp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packet/crc.h"
#include "wire/udp/udp.h"

enum {
    receive_bytes = 4 << 20,
    tries = 4096,
    ecn_capable = 2, /* (RFC 3168): routers mark packets before they have to drop them */
};

static bool opened[SHCA_MAX_HCA];

/* ---- one socket ---- */

static void set(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof value);
}

/* With "don't fragment" an unconnected socket sends identification 0, which the ICRC covers. */
static void set_ipv4(int fd)
{
    set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    set(fd, IPPROTO_IP, IP_TOS, ecn_capable);
    set(fd, IPPROTO_IP, IP_RECVTOS, 1);
    set(fd, IPPROTO_IP, IP_RECVERR, 1);
}

/* The kernel's RoCE sends no UDP checksum over IPv6 either: the ICRC covers more. Ours have one,
 * which it ignores and segmentation offload needs. */
static void set_ipv6(int fd)
{
    set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
    set(fd, IPPROTO_IPV6, IPV6_TCLASS, ecn_capable);
    set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
    set(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
    set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
}

static int bind_at(const struct shca_inet *a, uint32_t scope)
{
    union shca_udp_name name;
    socklen_t length = shca_udp_name(a, scope, &name);
    int fd = socket(name.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int room = receive_bytes, none = 0;

    if (fd < 0)
        return -1;
    if (name.any.sa_family == AF_INET6)
        set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (bind(fd, &name.any, length) != 0) {
        int e = errno;

        close(fd);
        errno = e;
        return -1;
    }
    if (name.any.sa_family == AF_INET)
        set_ipv4(fd);
    else
        set_ipv6(fd);
    set(fd, IPPROTO_UDP, UDP_GRO, 1);
    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof none) == 0)
        atomic_store(&shca_udp.segments, true);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    return fd;
}

static bool wildcard_in(const char *table, const char *entry)
{
    FILE *f = fopen(table, "re");
    char line[256];
    bool found = false;

    while (f && fgets(line, sizeof line, f))
        found |= strstr(line, entry) != NULL;
    if (f)
        fclose(f);
    return found;
}

/* Whether a socket that is bound to every address has port 4791. */
static bool held_by_kernel(void)
{
    return wildcard_in("/proc/net/udp", ": 00000000:12B7 ") ||
           wildcard_in("/proc/net/udp6", ": 00000000000000000000000000000000:12B7 ");
}

static int bind_own_port(struct shca_udp_socket *s)
{
    uint32_t room = SHCA_INET_LAST - SHCA_INET_FIRST + 1;

    for (uint32_t i = 0; i < room && s->fd < 0; i++) {
        s->at.port = (uint16_t)(SHCA_INET_FIRST + (shca.pid * 7 + i) % room);
        s->fd = bind_at(&s->at, s->scope);
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

static int bind_network(struct shca_udp_socket *s, const struct shca_inet *at, uint32_t scope)
{
    s->at = *at;
    s->scope = scope;
    s->at.port = SHCA_INET_PLAIN;
    s->fd = bind_at(&s->at, scope);
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
        uint32_t ipv4 = UINT32_C(0x7f800000) | (at & 0x7ffffe);

        if ((ipv4 & 0xff) == 0)
            continue;
        shca_inet_ipv4(&s->at, ipv4);
        s->fd = bind_at(&s->at, 0);
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

/* An address that can't be used, as a new IPv6 one which is still being checked, is left out. */
static int bind_all(struct shca_udp_port *p, const struct shca_udp_network *n)
{
    int e = EADDRNOTAVAIL;
    bool any = false;

    for (int i = 0; i < SHCA_INET_KINDS; i++) {
        int failed;

        if (n->at[i].mtu == 0)
            continue;
        failed = bind_network(&p->socket[i], &n->at[i], n->scope);
        if (failed)
            e = failed;
        any |= failed == 0;
    }
    return any ? 0 : e;
}

static int open_port(uint32_t fabric_port, const struct shca_udp_network *n)
{
    struct shca_udp_port *p = &shca_udp_port[fabric_port];
    int e = n ? bind_all(p, n) : bind_loopback(&p->socket[SHCA_INET_IPV4], fabric_port);

    if (e == 0 && !p->tx)
        p->tx = shca_udp_tx_open();
    if (e == 0 && !p->tx)
        e = ENOMEM;
    if (e != 0) {
        shca_log("cannot open a UDP socket for port %u: %s", fabric_port, strerror(e));
        return e;
    }
    for (int i = 0; i < SHCA_INET_KINDS; i++)
        if (p->socket[i].fd >= 0)
            shca.seg->inet[fabric_port][i] = p->socket[i].at;
    return 0;
}

static int open_ports(int hca, const struct shca_udp_network *n)
{
    int e = 0;

    for (int port = 1; port <= shca_config.ports && e == 0; port++)
        e = open_port(shca_fabric_port(hca, port), n);
    return e;
}

static int report(char *out, size_t room)
{
    int n = snprintf(out, room, " sent %llu received %llu lost %llu repeated %llu",
                     (unsigned long long)shca_udp.sent, (unsigned long long)shca_udp.received,
                     (unsigned long long)shca_udp.lost, (unsigned long long)shca_udp.repeated);

    return n + shca_udp_report(out + n, room - (size_t)n);
}

static void start_wire(void)
{
    void (*none)(void) = NULL;

    if (!atomic_compare_exchange_strong(&shca_far_run, &none, shca_udp_progress))
        return;
    atomic_store(&shca_far_sleep, shca_udp_sleep);
    if (shca_config.crc_tables)
        roce_crc_by_tables();
    atomic_store(&shca_far_report, report);
    for (int i = 0; i < SHCA_UDP_PORTS; i++)
        for (int k = 0; k < SHCA_INET_KINDS; k++)
            shca_udp_port[i].socket[k].fd = -1;
    atomic_fetch_add(&shca.pending, 1); /* polls that find nothing call shca_far_run */
}

static int open_locked(int hca)
{
    struct shca_udp_network n;
    int e;

    start_wire();
    if (!shca_config.udp_list)
        return open_ports(hca, NULL);
    e = shca_udp_network(shca_config.udp_list, &n);
    return e ? e : open_ports(hca, &n);
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
        for (int k = 0; k < SHCA_INET_KINDS; k++)
            if (shca_udp_port[i].socket[k].fd >= 0)
                close(shca_udp_port[i].socket[k].fd);
    memset(shca_udp_port, 0, sizeof shca_udp_port);
    memset(opened, 0, sizeof opened);
    memset(shca_udp.qps, 0, sizeof shca_udp.qps);
    atomic_store(&shca_udp.users, 0);
    shca_udp_drops_inherited();
    shca_udp_attend_inherited();
    atomic_store(&shca_udp.lock.word, 0);
    atomic_store(&shca_udp.next, ROCE_NEVER);
    shca_udp_timer_inherited();
    shca_udp_put_off_inherited();
    shca_udp_held_inherited();
    shca_udp_early_inherited();
    atomic_store(&shca_far_run, NULL);
    atomic_store(&shca_far_sleep, NULL);
    atomic_store(&shca_far_report, NULL);
}
