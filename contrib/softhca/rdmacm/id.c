/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creation, migration and destruction of identifiers by programs, and their options. Owns
 * nothing. */
#include "config.h"

#include <stdlib.h>

#include "rdmacm/rdmacm.h"

static void id_inherited(void)
{
    shca_cm_agent_inherited();
    shca_cm_exchange_inherited();
    shca_cm_device_inherited();
}

static void id_at_fork(void)
{
    pthread_atfork(NULL, NULL, id_inherited);
}

static int id_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int e = shca_config_load();

    pthread_once(&once, id_at_fork);
    /* A listener may never open a device, but the state of the ports is known to members only. */
    if (e == 0)
        e = shca_join();
    pthread_mutex_lock(&shca_cm_lock);
    if (e == 0)
        e = shca_cm_exchange_start();
    pthread_mutex_unlock(&shca_cm_lock);
    return e;
}

static bool known_space(enum rdma_port_space ps)
{
    return ps == RDMA_PS_TCP || ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB || ps == RDMA_PS_IB;
}

struct shca_cm *shca_cm_id_make(struct rdma_event_channel *ch, void *context,
                                enum rdma_port_space ps, enum ibv_qp_type type)
{
    struct rdma_event_channel *own = NULL;
    struct shca_cm *id = NULL;
    int e = known_space(ps) ? id_start() : EPROTONOSUPPORT;

    if (e == 0 && !ch && !(own = rdma_create_event_channel()))
        e = errno;
    if (e == 0) {
        pthread_mutex_lock(&shca_cm_lock);
        id = shca_cm_object_make(ch ? ch : own, context, ps, type);
        pthread_mutex_unlock(&shca_cm_lock);
        e = id ? 0 : ENOMEM;
    }
    if (id)
        id->sync = own != NULL;
    else if (own)
        rdma_destroy_event_channel(own);
    errno = e;
    return id;
}

SHCA_PUBLIC int rdma_create_id(struct rdma_event_channel *ch, struct rdma_cm_id **out,
                               void *context, enum rdma_port_space ps)
{
    SHCA_CM_INSIDE(rdma_create_id, ch, out, context, ps);
    enum ibv_qp_type type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
    struct shca_cm *id = shca_cm_id_make(ch, context, ps, type);

    if (!id)
        return -1;
    *out = &id->pub;
    return 0;
}

static void drop_events(struct shca_cm *id)
{
    struct shca_cm_event *e = shca_cm_channel_strip(shca_cm_channel_of(id->pub.channel), id);

    while (e) {
        struct shca_cm_event *next = e->next;

        free(e);
        e = next;
    }
}

SHCA_PUBLIC int rdma_destroy_id(struct rdma_cm_id *pub)
{
    SHCA_CM_INSIDE(rdma_destroy_id, pub);
    struct shca_cm *id = shca_cm_of(pub);
    struct rdma_event_channel *own = id->sync ? pub->channel : NULL;

    if (pub->event)
        rdma_ack_cm_event(pub->event);
    shca_cm_host_end(id);
    pthread_mutex_lock(&shca_cm_lock);
    drop_events(id);
    shca_cm_exchange_leave(id);
    id->state = SHCA_CM_CLOSED;
    id->due = id->give_up = UINT64_MAX;
    id->pending = false;
    shca_cm_event_settle(id);
    shca_cm_object_free(id);
    pthread_mutex_unlock(&shca_cm_lock);
    if (own)
        rdma_destroy_event_channel(own);
    return 0;
}

static void move_events(struct shca_cm *id, struct rdma_event_channel *to)
{
    struct shca_cm_event *e, *next;

    shca_cm_event_settle(id);
    e = shca_cm_channel_strip(shca_cm_channel_of(id->pub.channel), id);
    id->pub.channel = to;
    for (; e; e = next) {
        next = e->next;
        shca_cm_event_push(e);
    }
}

SHCA_PUBLIC int rdma_migrate_id(struct rdma_cm_id *pub, struct rdma_event_channel *ch)
{
    SHCA_CM_INSIDE(rdma_migrate_id, pub, ch);
    struct shca_cm *id = shca_cm_of(pub);
    struct rdma_event_channel *old = id->sync ? pub->channel : NULL;
    struct rdma_event_channel *to = ch ? ch : rdma_create_event_channel();
    int e;

    if (!to)
        return -1;
    e = shca_cm_host_migrate(id, to);
    if (e != 0) {
        if (!ch)
            rdma_destroy_event_channel(to);
        return shca_cm_fail(e);
    }
    if (id->sync && pub->event) {
        rdma_ack_cm_event(pub->event);
        pub->event = NULL;
    }
    pthread_mutex_lock(&shca_cm_lock);
    move_events(id, to);
    id->sync = ch == NULL;
    pthread_mutex_unlock(&shca_cm_lock);
    if (old)
        rdma_destroy_event_channel(old);
    return 0;
}

/* The type of service and the sharing of addresses mean nothing here, but programs set them. */
static int id_option(struct shca_cm *id, int name, const void *value, size_t length)
{
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        return length == sizeof(uint8_t) ? 0 : EINVAL;
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
        return length == sizeof(int) ? 0 : EINVAL;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        if (length != sizeof(uint8_t) || *(const uint8_t *)value > 31)
            return EINVAL;
        id->timeout = *(const uint8_t *)value;
        return 0;
    default:
        return ENOSYS;
    }
}

SHCA_PUBLIC int rdma_set_option(struct rdma_cm_id *pub, int level, int name, void *value,
                                size_t length)
{
    SHCA_CM_INSIDE(rdma_set_option, pub, level, name, value, length);

    SHCA_CM_PASS(shca_cm_of(pub), rdma_set_option, level, name, value, length);
    if (level == RDMA_OPTION_ID)
        return shca_cm_fail(id_option(shca_cm_of(pub), name, value, length));
    /* A path set by the program: every port has one path to every other. */
    return shca_cm_fail(level == RDMA_OPTION_IB ? EINVAL : ENOSYS);
}

static __be16 port_of(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET6)
        return ((const struct sockaddr_in6 *)(const void *)a)->sin6_port;
    return a->sa_family == AF_INET ? ((const struct sockaddr_in *)(const void *)a)->sin_port : 0;
}

SHCA_PUBLIC __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return port_of(&id->route.addr.src_addr);
}

SHCA_PUBLIC __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return port_of(&id->route.addr.dst_addr);
}
