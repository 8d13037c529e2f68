/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The IP address of a rail, and its listener. Only librdmacm knows which address belongs to which
 * port, so this file binds to an address and checks which port it got. On RoCE the port's GIDs
 * contain addresses, the rail's own first; on InfiniBand (IPoIB) and iWARP they contain none, so
 * all addresses of the host are candidates. No state. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum {
    mapped_bytes = 12,
    ip4_bytes = 4,
    backlog_max = 1024 /* the kernel's limit, unless an administrator changed it */
};

void tk_cm_place_sockaddr(const struct tk_cm_place *place, struct sockaddr_storage *address)
{
    struct sockaddr_in *ip4 = (void *)address;
    struct sockaddr_in6 *ip6 = (void *)address;
    memset(address, 0, sizeof(*address));
    if (!place->is_ip6) {
        ip4->sin_family = AF_INET;
        ip4->sin_port = place->port;
        memcpy(&ip4->sin_addr, place->address, ip4_bytes);
        return;
    }
    ip6->sin6_family = AF_INET6;
    ip6->sin6_port = place->port;
    ip6->sin6_scope_id = place->scope;
    memcpy(&ip6->sin6_addr, place->address, sizeof(ip6->sin6_addr));
}

void tk_cm_place_text(const struct tk_cm_place *place, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "?";
    inet_ntop(place->is_ip6 ? AF_INET6 : AF_INET, place->address, address, sizeof(address));
    if (place->is_ip6)
        snprintf(text, size, "[%s]:%u", address, ntohs(place->port));
    else
        snprintf(text, size, "%s:%u", address, ntohs(place->port));
}

static bool is_link_local(const uint8_t *ip6)
{
    return ip6[0] == 0xfe && (ip6[1] & 0xc0) == 0x80;
}

/* Reads the address in a RoCE port's GID. False: the GID contains none. */
static bool place_of_gid(struct tk_cm_place *place, const struct ibv_gid_entry *gid)
{
    static const uint8_t zero[16], mapped[mapped_bytes] = {[10] = 0xff, [11] = 0xff};
    const uint8_t *raw = gid->gid.raw;
    *place = (struct tk_cm_place){.is_ip6 = memcmp(raw, mapped, mapped_bytes) != 0};
    if (!memcmp(raw, zero, sizeof(zero)))
        return false;
    if (!place->is_ip6) {
        memcpy(place->address, raw + mapped_bytes, ip4_bytes);
        return true;
    }
    memcpy(place->address, raw, sizeof(place->address));
    if (is_link_local(raw))
        place->scope = gid->ndev_ifindex;
    return true;
}

static bool place_of_interface(struct tk_cm_place *place, const struct ifaddrs *interface)
{
    const struct sockaddr_in *ip4 = (const void *)interface->ifa_addr;
    const struct sockaddr_in6 *ip6 = (const void *)interface->ifa_addr;
    *place = (struct tk_cm_place){.port = 0};
    if (!ip4 || !(interface->ifa_flags & IFF_UP) || (interface->ifa_flags & IFF_LOOPBACK))
        return false;
    if (ip4->sin_family == AF_INET) {
        memcpy(place->address, &ip4->sin_addr, ip4_bytes);
        return true;
    }
    if (ip4->sin_family != AF_INET6)
        return false;
    place->is_ip6 = true;
    memcpy(place->address, &ip6->sin6_addr, sizeof(place->address));
    place->scope = ip6->sin6_scope_id;
    return true;
}

static bool is_port_of(const struct rdma_cm_id *id, const struct tk_rail *rail)
{
    return id->verbs && id->port_num == rail->address.port &&
           !strcmp(ibv_get_device_name(id->verbs->device), rail->address.device);
}

/* An id bound to the address, if the address belongs to the rail; else NULL. */
static struct rdma_cm_id *bind_to(const struct tk_cm_place *place, const struct tk_rail *rail)
{
    struct sockaddr_storage address;
    struct rdma_cm_id *id;
    if (rdma_create_id(tk_verbs.cm->channel, &id, NULL, RDMA_PS_TCP))
        return NULL;
    tk_cm_place_sockaddr(place, &address);
    if (!rdma_bind_addr(id, (struct sockaddr *)&address) && is_port_of(id, rail))
        return id;
    rdma_destroy_id(id);
    return NULL;
}

static bool try_place(struct tk_cm_listener *listener, const struct tk_rail *rail,
                      const struct tk_cm_place *place)
{
    listener->place = *place;
    listener->id = bind_to(place, rail);
    return listener->id != NULL;
}

static bool try_gid(struct tk_cm_listener *listener, const struct tk_rail *rail, int index)
{
    struct ibv_gid_entry gid;
    struct tk_cm_place place;
    return !ibv_query_gid_ex(rail->context, rail->address.port, (uint32_t)index, &gid, 0) &&
           place_of_gid(&place, &gid) && try_place(listener, rail, &place);
}

/* Tries the best GID first; with GASNET_IBV_GID_INDEX there is only one. */
static bool try_gids(struct tk_cm_listener *listener, const struct tk_rail *rail)
{
    for (unsigned i = 0; i < rail->address.gid_count; i++)
        if (try_gid(listener, rail, rail->address.gids[i].index))
            return true;
    return false;
}

/* No interface has the software device's addresses: 10.83.N.P for port P of softhcaN, also in
 * InfiniBand mode. With SOFTHCA_PROFILE only the name of its file has the number. */
static bool try_softhca(struct tk_cm_listener *listener, const struct tk_rail *rail)
{
    struct tk_cm_place place = {.address = {10, 83}};
    unsigned number;
    if (sscanf(rail->context->device->dev_name, "softhca-uverbs%u", &number) != 1)
        return false;
    place.address[2] = (uint8_t)number;
    place.address[3] = rail->address.port;
    return try_place(listener, rail, &place);
}

/* 0: IPv4; 1: IPv6 of any subnet; 2: link-local, which does not cross routers. */
static int class_of(const struct tk_cm_place *place)
{
    return !place->is_ip6 ? 0 : is_link_local(place->address) ? 2 : 1;
}

static bool try_interfaces(struct tk_cm_listener *listener, const struct tk_rail *rail)
{
    struct ifaddrs *all = NULL;
    struct tk_cm_place place;
    bool is_found = false;
    if (getifaddrs(&all))
        return false;
    for (int class = 0; class <= 2 && !is_found; class ++)
        for (const struct ifaddrs *i = all; i && !is_found; i = i->ifa_next)
            is_found = place_of_interface(&place, i) && class_of(&place) == class &&
                       try_place(listener, rail, &place);
    freeifaddrs(all);
    return is_found;
}

static enum tk_status no_address(const struct tk_rail *rail)
{
    const struct tk_port_address *a = &rail->address;
    tk_log_error("%s:%u has no IP address by which librdmacm finds it: give its network interface "
                 "one%s%s",
                 a->device, a->port, a->is_ethernet ? "" : " (IPoIB)",
                 rail->is_iwarp ? "" : ", or connect without: GASNET_IBV_CONNECT=verbs");
    return TK_FAIL;
}

enum tk_status tk_cm_listen(struct tk_cm_listener *listener, const struct tk_rail *rail)
{
    const struct tk_port_address *a = &rail->address;
    bool spells = a->is_ethernet && !rail->is_iwarp;
    if (!(spells && try_gids(listener, rail)) && !try_softhca(listener, rail) &&
        !try_interfaces(listener, rail))
        return no_address(rail);
    if (rdma_listen(listener->id, backlog_max)) {
        char text[tk_cm_text_max];
        tk_cm_place_text(&listener->place, text, sizeof(text));
        tk_log_error("%s:%u (%s): rdma_listen failed: %s", a->device, a->port, text,
                     strerror(errno));
        return TK_FAIL;
    }
    listener->place.port = rdma_get_src_port(listener->id);
    return TK_OK;
}

void tk_cm_close_listeners(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct tk_cm_listener *listener = &tk_verbs.cm->listeners[i];
        if (listener->id)
            rdma_destroy_id(listener->id);
        listener->id = NULL;
    }
}
