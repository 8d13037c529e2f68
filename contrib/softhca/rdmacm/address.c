/* SPDX-License-Identifier: BSD-3-Clause
 *
 * IP addresses of ports: fabric/gid.c gives each one, 127.0.0.0/8 is that of softhca0:1. Owns
 * nothing. */
#include "config.h"

#include <endian.h>

#include "rdmacm/rdmacm.h"

static int read_v6(const struct sockaddr_in6 *a, struct shca_cm_address *out)
{
    const uint8_t *b = a->sin6_addr.s6_addr;

    out->port = ntohs(a->sin6_port);
    out->any = IN6_IS_ADDR_UNSPECIFIED(&a->sin6_addr);
    if (IN6_IS_ADDR_LOOPBACK(&a->sin6_addr))
        out->ip = INADDR_LOOPBACK;
    else if (IN6_IS_ADDR_V4MAPPED(&a->sin6_addr))
        out->ip = (uint32_t)b[12] << 24 | (uint32_t)b[13] << 16 | (uint32_t)b[14] << 8 | b[15];
    return 0;
}

/* The addresses of a port in VLANs and those of IPv6 stand for its own one. */
static void make_own(const struct sockaddr *a, struct shca_cm_address *out)
{
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
    uint32_t ipv4 = htonl(out->ip), port;

    memcpy(gid.raw + 12, &ipv4, sizeof ipv4);
    if (a->sa_family == AF_INET6)
        memcpy(gid.raw, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, sizeof gid.raw);
    port = shca_address_route(&gid);
    if (port)
        out->ip = shca_ipv4_of(port);
}

int shca_cm_address_read(const struct sockaddr *a, struct shca_cm_address *out)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)a;

    *out = (struct shca_cm_address){0};
    if (a->sa_family == AF_INET6) {
        read_v6((const struct sockaddr_in6 *)(const void *)a, out);
    } else if (a->sa_family == AF_INET) {
        out->ip = ntohl(v4->sin_addr.s_addr);
        out->port = ntohs(v4->sin_port);
        out->any = out->ip == INADDR_ANY;
    } else {
        return EINVAL;
    }
    make_own(a, out);
    /* All loopback addresses are one. */
    if (out->ip >> 24 == IN_LOOPBACKNET)
        out->ip = INADDR_LOOPBACK;
    return 0;
}

void shca_cm_address_write(struct sockaddr_storage *out, int family, uint32_t ip, uint16_t port)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)out;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)out;

    memset(out, 0, sizeof *out);
    if (family != AF_INET6) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        v4->sin_addr.s_addr = htonl(ip);
        return;
    }
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    if (ip == INADDR_LOOPBACK) {
        v6->sin6_addr = in6addr_loopback;
    } else if (ip != INADDR_ANY) {
        uint32_t low = htonl(ip);

        v6->sin6_addr.s6_addr[10] = v6->sin6_addr.s6_addr[11] = 0xff;
        memcpy(&v6->sin6_addr.s6_addr[12], &low, sizeof low);
    }
}

uint32_t shca_cm_address_route(uint32_t ip)
{
    return ip == INADDR_LOOPBACK ? 1 : shca_ipv4_route(ip);
}

bool shca_cm_address_near(uint32_t ip)
{
    return ip == INADDR_LOOPBACK || ip >> 16 == shca_ipv4_of(1) >> 16;
}

/* These messages are not sent as packets: each host has the same addresses for itself. */
void shca_cm_report_far(void)
{
    static _Atomic bool reported;

    if (shca_config.udp_list && !atomic_exchange(&reported, true))
        shca_log("nobody listens there on this host, and librdmacm finds no process of another "
                 "host by softhca (SOFTHCA_UDP=%s): connect by verbs (GASNET_IBV_CONNECT=verbs)",
                 shca_config.udp_list);
}

/* 3: the port's own address; 2: IPv4 of a VLAN; 1: any other; 0: link-local. */
static int worth_of(uint32_t port, const union ibv_gid *gid)
{
    uint64_t ours = UINT64_C(0xffff) << 32 | shca_ipv4_of(port);

    if (gid->global.subnet_prefix == 0)
        return be64toh(gid->global.interface_id) == ours ? 3 : 2;
    return be64toh(gid->global.subnet_prefix) >> 54 == 0xfe80 >> 6 ? 0 : 1;
}

/* The entry of the port's own address, or of another one that it has, for RoCE v2 if there is one,
 * as the kernel's CM chooses; -1: none is worth that much. */
static int best_row(uint32_t port, int worth)
{
    int found = -1;
    union ibv_gid gid;

    for (uint32_t i = 0; !shca_config.udp && i < shca_gid_count(port); i++) {
        if (shca_gid_empty(port, i))
            continue;
        shca_gid_of(port, i, &gid);
        if (worth_of(port, &gid) < worth)
            continue;
        worth = worth_of(port, &gid);
        found = (int)i;
    }
    return found;
}

uint32_t shca_cm_address_gid_index(uint32_t port)
{
    int row = best_row(port, 0);

    return row < 0 ? 0 : (uint32_t)row;
}

void shca_cm_address_path(uint32_t from, uint32_t to, const union ibv_gid *gid,
                          struct ibv_ah_attr *out)
{
    union ibv_gid own;

    shca_gid_of(from, shca_cm_address_gid_index(from), &own);
    *out = (struct ibv_ah_attr){
        .dlid = shca_lid_of(to),
        .port_num = (uint8_t)((from - 1) % (uint32_t)shca_config.ports + 1),
        /* To another InfiniBand subnet there is also a global route header. */
        .is_global = shca_is_ethernet(shca_hca_at(from)) ||
                     own.global.subnet_prefix != gid->global.subnet_prefix,
    };
    if (!out->is_global)
        return;
    out->grh.sgid_index = (uint8_t)shca_cm_address_gid_index(from);
    out->grh.hop_limit = 64;
    out->grh.dgid = *gid;
}

bool shca_cm_address_down(uint32_t port)
{
    uint32_t at = port - 1, ports = (uint32_t)shca_config.ports;

    if (port == 0)
        return false;
    /* A RoCE port whose IP addresses were removed can't be bound to either. */
    return shca_link_down((int)(at / ports), (int)(at % ports) + 1) ||
           (!shca_config.udp && shca_is_ethernet(shca_hca_at(port)) && best_row(port, 1) < 0);
}
