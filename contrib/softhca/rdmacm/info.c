/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rdma_getaddrinfo: names and services become addresses by libc. Owns nothing; the program frees
 * what it gets. */
#include "config.h"

#include <netdb.h>
#include <stdlib.h>

#include "rdmacm/rdmacm.h"

static const struct rdma_addrinfo no_hints;

static void choose_type(struct rdma_addrinfo *r, const struct rdma_addrinfo *hints)
{
    r->ai_port_space = hints->ai_port_space;
    r->ai_qp_type = hints->ai_qp_type;
    if (!r->ai_port_space)
        r->ai_port_space = r->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
    if (!r->ai_qp_type)
        r->ai_qp_type = r->ai_port_space == RDMA_PS_UDP || r->ai_port_space == RDMA_PS_IPOIB
                            ? IBV_QPT_UD
                            : IBV_QPT_RC;
}

static int copy_address(struct sockaddr **to, socklen_t *length, const struct sockaddr *from,
                        socklen_t n)
{
    if (!from || n == 0)
        return 0;
    *to = malloc(n);
    if (!*to)
        return EAI_MEMORY;
    memcpy(*to, from, n);
    *length = n;
    return 0;
}

static int copy_name(char **to, const char *from)
{
    if (from && !(*to = strdup(from)))
        return EAI_MEMORY;
    return 0;
}

static int fill_info(struct rdma_addrinfo *r, const struct addrinfo *found,
                     const struct rdma_addrinfo *hints)
{
    int e;

    r->ai_family = found->ai_family;
    if (hints->ai_flags & RAI_PASSIVE) {
        e = copy_address(&r->ai_src_addr, &r->ai_src_len, found->ai_addr, found->ai_addrlen);
        return e ? e : copy_name(&r->ai_src_canonname, found->ai_canonname);
    }
    e = copy_address(&r->ai_dst_addr, &r->ai_dst_len, found->ai_addr, found->ai_addrlen);
    if (e == 0)
        e = copy_address(&r->ai_src_addr, &r->ai_src_len, hints->ai_src_addr, hints->ai_src_len);
    return e ? e : copy_name(&r->ai_dst_canonname, found->ai_canonname);
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
                   struct addrinfo **found)
{
    struct addrinfo a = {.ai_socktype = SOCK_STREAM};

    a.ai_family = hints->ai_flags & RAI_FAMILY ? hints->ai_family : AF_UNSPEC;
    a.ai_flags = (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
                 (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0);
    return getaddrinfo(node, service, &a, found);
}

/* The destination as text, or as an address in the hints. */
static int resolve_info(struct rdma_addrinfo *r, const char *node, const char *service,
                        const struct rdma_addrinfo *hints)
{
    struct addrinfo *found = NULL;
    int e;

    choose_type(r, hints);
    r->ai_flags = hints->ai_flags;
    if (!node && !service) {
        if (!hints->ai_dst_addr && !hints->ai_src_addr)
            return EAI_NONAME;
        r->ai_family = hints->ai_family;
        e = copy_address(&r->ai_dst_addr, &r->ai_dst_len, hints->ai_dst_addr, hints->ai_dst_len);
        return e ? e
                 : copy_address(&r->ai_src_addr, &r->ai_src_len, hints->ai_src_addr,
                                hints->ai_src_len);
    }
    e = look_up(node, service, hints, &found);
    if (e == 0)
        e = fill_info(r, found, hints);
    if (found)
        freeaddrinfo(found);
    return e;
}

SHCA_PUBLIC int rdma_getaddrinfo(const char *node, const char *service,
                                 const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
    SHCA_CM_INSIDE(rdma_getaddrinfo, node, service, hints, res);
    struct rdma_addrinfo *r = calloc(1, sizeof *r);
    int e = r ? resolve_info(r, node, service, hints ? hints : &no_hints) : EAI_MEMORY;

    if (e == 0) {
        *res = r;
        return 0;
    }
    if (r)
        rdma_freeaddrinfo(r);
    return e;
}

SHCA_PUBLIC void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
    SHCA_CM_INSIDE_VOID(rdma_freeaddrinfo, res);
    while (res) {
        struct rdma_addrinfo *next = res->ai_next;

        free(res->ai_src_addr);
        free(res->ai_dst_addr);
        free(res->ai_src_canonname);
        free(res->ai_dst_canonname);
        free(res->ai_route);
        free(res->ai_connect);
        free(res);
        res = next;
    }
}
