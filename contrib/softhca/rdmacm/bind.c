/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Addresses of an identifier: binding, listening, resolving. A wildcard is all addresses of the
 * fabric's ports, so it claims a port number at each. Owns nothing; takes shca_cm_lock. */
#include "config.h"

#include <endian.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdmacm/rdmacm.h"

/* The default range of Linux. */
enum { first_free = 32768, last_free = 60999, backlog_max = 1024 };

/* The addresses that a wildcard stands for; it claims its own too, so that others can see what
 * holds a port number. */
static uint32_t address_at(int i)
{
    return i == 0 ? INADDR_ANY : i == 1 ? INADDR_LOOPBACK : shca_ipv4_of((uint32_t)i - 1);
}

static int addresses(void)
{
    return shca_config.hcas * shca_config.ports + 2;
}

static void unclaim(struct shca_cm *id)
{
    for (int i = 0; i < id->n_names; i++)
        shca_cm_wire_close(&id->names[i]);
    id->n_names = 0;
}

static bool held_by_wildcard(const struct shca_cm *id, uint16_t port)
{
    struct shca_cm_socket s;
    int e = shca_cm_wire_claim(&s, id->datagram, INADDR_ANY, port);

    if (e == 0)
        shca_cm_wire_close(&s);
    return e == EADDRINUSE;
}

/* Claims a port number at one address, 0: at all. */
static int claim(struct shca_cm *id, uint32_t ip, uint16_t port)
{
    int n = ip ? 1 : addresses(), e = 0;

    for (int i = 0; i < n && e == 0; i++) {
        struct shca_cm_socket *s = &id->names[i];

        s->id = id;
        e = shca_cm_wire_claim(s, id->datagram, ip ? ip : address_at(i), port);
        id->n_names += e == 0;
    }
    if (e != 0)
        unclaim(id);
    /* Linux distinguishes the same address from one that includes the other. */
    return e == EADDRINUSE && (!ip || held_by_wildcard(id, port)) ? EADDRNOTAVAIL : e;
}

static int claim_any(struct shca_cm *id, uint32_t ip, uint16_t *port)
{
    uint32_t range = last_free - first_free + 1, start = id->psn % range;
    int e = EADDRINUSE;

    for (uint32_t i = 0; i < range && (e == EADDRINUSE || e == EADDRNOTAVAIL); i++) {
        *port = (uint16_t)(first_free + (start + i) % range);
        e = claim(id, ip, *port);
    }
    return e == EADDRINUSE ? EADDRNOTAVAIL : e;
}

static int bind_names(struct shca_cm *id, uint32_t ip, uint16_t *port)
{
    if (!id->names && !(id->names = calloc((size_t)addresses(), sizeof *id->names)))
        return ENOMEM;
    return *port ? claim(id, ip, *port) : claim_any(id, ip, port);
}

static int bind_to(struct shca_cm *id, const struct shca_cm_address *a, int family)
{
    uint32_t port = a->any ? 0 : shca_cm_address_route(a->ip);
    uint16_t number = a->port;
    int e;

    if (id->state != SHCA_CM_IDLE)
        return EINVAL;
    if (!a->any && port == 0)
        return EADDRNOTAVAIL;
    e = bind_names(id, a->any ? 0 : a->ip, &number);
    if (e == 0 && port != 0 && (e = shca_cm_object_bind(id, port)) != 0)
        unclaim(id);
    if (e != 0)
        return e;
    shca_cm_address_write(&id->pub.route.addr.src_storage, family, a->any ? INADDR_ANY : a->ip,
                          number);
    id->state = SHCA_CM_BOUND;
    return 0;
}

/* An address of the host's devices, or, as a wildcard, also of those: then both have the same port
 * number. */
static int bind_host(struct shca_cm *id, struct shca_cm_address *a, struct sockaddr *addr)
{
    int e = shca_cm_host_usable() ? shca_cm_host_bind(id, addr) : a->any ? 0 : EADDRNOTAVAIL;

    if (e == 0 && a->any && id->host)
        a->port = be16toh(rdma_get_src_port(id->host));
    if (e == 0 && !a->any) {
        id->state = SHCA_CM_HOST;
        shca_cm_host_done(id, 0);
    }
    if (e != 0)
        shca_cm_host_end(id);
    return e;
}

SHCA_PUBLIC int rdma_bind_addr(struct rdma_cm_id *pub, struct sockaddr *addr)
{
    SHCA_CM_INSIDE(rdma_bind_addr, pub, addr);
    struct shca_cm_address a;
    struct shca_cm *id = shca_cm_of(pub);
    int e = shca_cm_address_read(addr, &a);

    if (e != 0 || id->state != SHCA_CM_IDLE)
        return shca_cm_fail(e ? e : EINVAL);
    if (a.any || !shca_cm_address_near(a.ip))
        e = bind_host(id, &a, addr);
    if (e != 0 || id->state == SHCA_CM_HOST)
        return shca_cm_fail(e);
    pthread_mutex_lock(&shca_cm_lock);
    e = bind_to(id, &a, addr->sa_family);
    pthread_mutex_unlock(&shca_cm_lock);
    if (e != 0)
        shca_cm_host_end(id);
    return shca_cm_fail(e);
}

static int listen_now(struct shca_cm *id, int backlog)
{
    int e = id->state == SHCA_CM_BOUND ? 0 : EINVAL;

    for (int i = 0; i < id->n_names && e == 0; i++) {
        if (id->names[i].ip == INADDR_ANY)
            continue;
        e = shca_cm_wire_listen(&id->names[i]);
        if (e == 0)
            e = shca_cm_agent_watch(&id->names[i]);
    }
    if (e != 0)
        return e;
    id->backlog = backlog <= 0 || backlog > backlog_max ? backlog_max : backlog;
    id->state = SHCA_CM_LISTEN;
    return 0;
}

SHCA_PUBLIC int rdma_listen(struct rdma_cm_id *pub, int backlog)
{
    SHCA_CM_INSIDE(rdma_listen, pub, backlog);
    struct sockaddr_in any = {.sin_family = AF_INET};
    struct shca_cm *id = shca_cm_of(pub);
    int e = 0;

    SHCA_CM_PASS(id, rdma_listen, backlog);
    if (id->state == SHCA_CM_IDLE && rdma_bind_addr(pub, (struct sockaddr *)&any) != 0)
        return -1;
    if (id->host && id->state == SHCA_CM_BOUND)
        e = shca_cm_host_listen(id, backlog);
    if (e == 0) {
        pthread_mutex_lock(&shca_cm_lock);
        e = listen_now(id, backlog);
        pthread_mutex_unlock(&shca_cm_lock);
    }
    return shca_cm_fail(e);
}

/* ---- resolving ---- */

/* A connection leaves through one address: the others are released, and the remaining name becomes
 * the link. */
static int keep_one(struct shca_cm *id, uint32_t ip)
{
    for (int i = 0; i < id->n_names; i++) {
        struct shca_cm_socket *s = &id->names[i];

        if (s->ip == ip) {
            id->link.fd = s->fd;
            id->link.ip = s->ip;
            s->fd = -1;
        }
    }
    unclaim(id);
    return id->link.fd >= 0 ? 0 : EINVAL;
}

/* Without an address of its own a connection leaves through the port that it goes to: this is how
 * hosts reach their own addresses, and it connects rails of the same number. */
static int choose_source(struct shca_cm *id, const struct sockaddr *src, uint32_t dst, int family)
{
    struct shca_cm_address a = {.any = true};
    int e = src ? shca_cm_address_read(src, &a) : 0;
    uint16_t number;

    if (e == 0 && id->state == SHCA_CM_IDLE) {
        if (a.any)
            a.ip = shca_cm_address_route(dst) ? dst : shca_ipv4_of(1);
        a.any = false;
        return bind_to(id, &a, src && src->sa_family ? src->sa_family : family);
    }
    if (e != 0 || id->state != SHCA_CM_BOUND || id->port != 0)
        return e ? e : id->state == SHCA_CM_BOUND ? 0 : EINVAL;
    number = be16toh(rdma_get_src_port(&id->pub));
    a.ip = shca_cm_address_route(dst) ? dst : shca_ipv4_of(1);
    shca_cm_address_write(&id->pub.route.addr.src_storage, family, a.ip, number);
    return shca_cm_object_bind(id, shca_cm_address_route(a.ip));
}

static void resolved(struct shca_cm *id, uint32_t dst)
{
    struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;

    id->active = true;
    id->far = shca_cm_address_route(dst);
    shca_gid_of(id->far, shca_cm_address_gid_index(id->far), &ib->dgid);
    id->state = SHCA_CM_ADDR_RESOLVED;
    shca_cm_event_post(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static uint32_t source_ip(const struct shca_cm *id)
{
    struct shca_cm_address a;

    shca_cm_address_read(&id->pub.route.addr.src_addr, &a);
    return a.ip;
}

static int resolve(struct shca_cm *id, const struct sockaddr *src, const struct sockaddr *dst,
                   int timeout_ms)
{
    struct shca_cm_address a;
    int e = shca_cm_address_read(dst, &a);

    if (a.any)
        a.ip = INADDR_LOOPBACK;
    if (e == 0 && !shca_cm_address_near(a.ip)) {
        shca_cm_report_far();
        e = ENETUNREACH;
    }
    if (e == 0)
        e = choose_source(id, src, a.ip, dst->sa_family);
    if (e == 0 && id->link.fd < 0)
        e = keep_one(id, source_ip(id));
    if (e != 0)
        return e;
    shca_cm_address_write(&id->pub.route.addr.dst_storage, dst->sa_family, a.ip, a.port);
    if (shca_cm_address_down(id->port)) {
        shca_cm_event_post(id, RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH);
    } else if (shca_cm_address_route(a.ip)) {
        resolved(id, a.ip);
    } else {
        /* Nobody answers for that address. */
        shca_cm_report_far();
        id->state = SHCA_CM_ADDR_QUERY;
        shca_cm_exchange_expect(id, (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000);
    }
    return 0;
}

/* A destination that is not softhca's belongs to the host's devices; the sockets of a wildcard on
 * devices of the other kind are closed. */
static int resolve_host(struct shca_cm *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
    struct shca_cm_address a;
    bool near = shca_cm_address_read(dst, &a) != 0 || a.any || shca_cm_address_near(a.ip);
    bool free = id->state == SHCA_CM_IDLE || (id->state == SHCA_CM_BOUND && id->host);

    if (id->state != SHCA_CM_HOST && (near || !free || !shca_cm_host_usable())) {
        if (free)
            shca_cm_host_end(id);
        return 0;
    }
    pthread_mutex_lock(&shca_cm_lock);
    unclaim(id);
    pthread_mutex_unlock(&shca_cm_lock);
    return shca_cm_host_resolve(id, src, dst, ms);
}

SHCA_PUBLIC int rdma_resolve_addr(struct rdma_cm_id *pub, struct sockaddr *src,
                                  struct sockaddr *dst, int timeout_ms)
{
    SHCA_CM_INSIDE(rdma_resolve_addr, pub, src, dst, timeout_ms);
    struct shca_cm *id = shca_cm_of(pub);
    int e = resolve_host(id, src, dst, timeout_ms);

    if (e != 0 || id->state == SHCA_CM_HOST)
        return e ? shca_cm_fail(e) : shca_cm_event_await(id);
    pthread_mutex_lock(&shca_cm_lock);
    e = resolve(id, src, dst, timeout_ms);
    pthread_mutex_unlock(&shca_cm_lock);
    return e ? shca_cm_fail(e) : shca_cm_event_await(id);
}

/* The fields of a path that programs read, as a subnet manager would fill them in. */
static void fill_path(struct shca_cm *id)
{
    struct ibv_sa_path_rec *p = &id->path;

    p->dgid = id->pub.route.addr.addr.ibaddr.dgid;
    p->sgid = id->pub.route.addr.addr.ibaddr.sgid;
    p->dlid = htobe16(shca_lid_of(id->far));
    p->slid = htobe16(shca_lid_of(id->port));
    p->hop_limit = shca_is_ethernet(shca_hca_at(id->port)) ? 64 : 0;
    p->reversible = 1;
    p->numb_path = 1;
    p->pkey = htobe16(shca_config.pkeys[0]);
    p->mtu_selector = p->rate_selector = p->packet_life_time_selector = 2; /* exactly */
    p->mtu = IBV_MTU_4096;
    p->rate = IBV_RATE_100_GBPS;
    p->packet_life_time = id->timeout > 0 ? (uint8_t)(id->timeout - 1) : 0;
    id->pub.route.path_rec = p;
    id->pub.route.num_paths = 1;
}

static int pass_route(struct shca_cm *id, int timeout_ms)
{
    SHCA_CM_PASS(id, rdma_resolve_route, timeout_ms);
    return 0;
}

SHCA_PUBLIC int rdma_resolve_route(struct rdma_cm_id *pub, int timeout_ms)
{
    SHCA_CM_INSIDE(rdma_resolve_route, pub, timeout_ms);
    struct shca_cm *id = shca_cm_of(pub);
    int e = 0;

    if (id->state == SHCA_CM_HOST)
        return pass_route(id, timeout_ms) != 0 ? -1 : shca_cm_event_await(id);
    pthread_mutex_lock(&shca_cm_lock);
    if (id->state != SHCA_CM_ADDR_RESOLVED) {
        e = EINVAL;
    } else if (shca_cm_address_down(id->port)) {
        shca_cm_event_post(id, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
    } else {
        fill_path(id);
        id->state = SHCA_CM_ROUTE_RESOLVED;
        shca_cm_event_post(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    }
    pthread_mutex_unlock(&shca_cm_lock);
    return e ? shca_cm_fail(e) : shca_cm_event_await(id);
}
