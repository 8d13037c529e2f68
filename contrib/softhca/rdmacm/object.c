/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Identifiers and their events: making, freeing, the device of an identifier. Owns the list of
 * identifiers; shca_cm_lock protects it. */
#include "config.h"

#include <endian.h>
#include <stdlib.h>
#include <sys/random.h>

#include "rdmacm/rdmacm.h"

enum { ack_timeout = 14 /* 4.096 us * 2^14 = 67 ms, as of a port near by */ };

static struct shca_cm *first;

static uint32_t random_psn(void)
{
    uint32_t r = 0;

    if (getrandom(&r, sizeof r, GRND_NONBLOCK) != (ssize_t)sizeof r)
        r = (uint32_t)tk_now();
    return r & 0xffffff;
}

struct shca_cm *shca_cm_object_make(struct rdma_event_channel *ch, void *context,
                                    enum rdma_port_space ps, enum ibv_qp_type type)
{
    struct shca_cm *id = calloc(1, sizeof *id);

    if (!id)
        return NULL;
    id->pub.channel = ch;
    id->pub.context = context;
    id->pub.ps = ps;
    id->pub.qp_type = type;
    id->datagram = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
    id->link = (struct shca_cm_socket){.fd = -1, .id = id};
    id->due = id->give_up = UINT64_MAX;
    id->psn = random_psn();
    id->qkey = id->datagram ? RDMA_UDP_QKEY : 0;
    id->timeout = ack_timeout;
    id->next = first;
    if (first)
        first->prev = id;
    first = id;
    return id;
}

void shca_cm_object_free(struct shca_cm *id)
{
    if (id->prev)
        id->prev->next = id->next;
    else
        first = id->next;
    if (id->next)
        id->next->prev = id->prev;
    free(id->names);
    free(id->ep_attr);
    free(id->ep_data);
    free(id);
}

struct shca_cm_event *shca_cm_event_make(struct shca_cm *id, enum rdma_cm_event_type type,
                                         int status)
{
    struct shca_cm_event *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    e->id = id;
    e->pub.id = &id->pub;
    e->pub.event = type;
    e->pub.status = status;
    return e;
}

struct shca_cm *shca_cm_object_next(struct shca_cm *after)
{
    return after ? after->next : first;
}

void shca_cm_object_forget(void)
{
    first = NULL;
}

int shca_cm_object_bind(struct shca_cm *id, uint32_t port)
{
    struct rdma_ib_addr *ib = &id->pub.route.addr.addr.ibaddr;
    struct ibv_context *ctx = shca_cm_device_context(port);

    if (!ctx)
        return errno ? errno : ENODEV;
    id->port = port;
    id->pub.verbs = ctx;
    id->pub.port_num = (uint8_t)((port - 1) % (uint32_t)shca_config.ports + 1);
    if (!id->pub.pd)
        id->pub.pd = shca_cm_device_pd(port);
    shca_gid_of(port, shca_cm_address_gid_index(port), &ib->sgid);
    ib->pkey = htobe16(shca_config.pkeys[0]);
    return id->pub.pd ? 0 : ENOMEM;
}
