/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The synchronous interface: an identifier with its queue pair in one call, and the next request of
 * a listener. Owns only copies of the data that requests will need, freed with the identifier. */
#include "config.h"

#include <stdlib.h>

#include "rdmacm/rdmacm.h"

enum { resolve_ms = 2000 };

static int ep_active(struct rdma_cm_id *id, const struct rdma_addrinfo *res)
{
    if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, resolve_ms) != 0)
        return errno;
    return rdma_resolve_route(id, resolve_ms) != 0 ? errno : 0;
}

static int keep_data(struct shca_cm *id, const struct rdma_addrinfo *res)
{
    if (!res->ai_connect_len)
        return 0;
    id->ep_data = malloc(res->ai_connect_len);
    if (!id->ep_data)
        return ENOMEM;
    memcpy(id->ep_data, res->ai_connect, res->ai_connect_len);
    id->ep_length = res->ai_connect_len;
    return 0;
}

/* Requests get queue pairs of this kind. */
static int keep_attr(struct shca_cm *id, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
    id->ep_attr = malloc(sizeof *attr);
    if (!id->ep_attr)
        return ENOMEM;
    *id->ep_attr = *attr;
    id->ep_attr->qp_type = id->pub.qp_type;
    if (pd)
        id->pub.pd = pd;
    return 0;
}

static int ep_make(struct shca_cm *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *attr)
{
    int e = 0;

    if (res->ai_flags & RAI_PASSIVE) {
        if (rdma_bind_addr(&id->pub, res->ai_src_addr) != 0)
            return errno;
        return attr ? keep_attr(id, pd, attr) : 0;
    }
    e = ep_active(&id->pub, res);
    if (e == 0 && attr) {
        attr->qp_type = id->pub.qp_type;
        e = rdma_create_qp(&id->pub, pd, attr) != 0 ? errno : 0;
    }
    return e ? e : keep_data(id, res);
}

SHCA_PUBLIC void rdma_destroy_ep(struct rdma_cm_id *id)
{
    SHCA_CM_INSIDE_VOID(rdma_destroy_ep, id);
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

SHCA_PUBLIC int rdma_create_ep(struct rdma_cm_id **out, struct rdma_addrinfo *res,
                               struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    SHCA_CM_INSIDE(rdma_create_ep, out, res, pd, attr);
    struct shca_cm *id = shca_cm_id_make(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
                                         (enum ibv_qp_type)res->ai_qp_type);
    int e;

    if (!id)
        return -1;
    e = ep_make(id, res, pd, attr);
    if (e == 0)
        *out = &id->pub;
    else
        rdma_destroy_ep(&id->pub);
    return shca_cm_fail(e);
}

static int request_check(const struct rdma_cm_event *e)
{
    if (e->status)
        return abs(e->status);
    return e->event == RDMA_CM_EVENT_CONNECT_REQUEST ? 0 : EINVAL;
}

SHCA_PUBLIC int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **out)
{
    SHCA_CM_INSIDE(rdma_get_request, listen, out);
    struct shca_cm *l = shca_cm_of(listen);
    struct rdma_cm_event *event;
    struct ibv_qp_init_attr attr;
    int e;

    if (!l->sync)
        return shca_cm_fail(EINVAL);
    if (listen->event) {
        rdma_ack_cm_event(listen->event);
        listen->event = NULL;
    }
    if (rdma_get_cm_event(listen->channel, &event) != 0)
        return -1;
    e = request_check(event);
    if (e == 0 && l->ep_attr) {
        attr = *l->ep_attr;
        if (listen->srq)
            attr.srq = listen->srq;
        e = rdma_create_qp(event->id, listen->pd, &attr) != 0 ? errno : 0;
    }
    if (e != 0) {
        listen->event = event;
        return shca_cm_fail(e);
    }
    *out = event->id;
    event->id->event = event;
    return 0;
}
