/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Handing events to the program, and what librdmacm does on the way: it completes new identifiers
 * and moves their queue pairs. Owns events from here until they are acknowledged; the counts are
 * protected by shca_cm_lock. */
#include "config.h"

#include <stdlib.h>

#include "rdmacm/rdmacm.h"

static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;

static void count_ack(struct shca_cm_event *e)
{
    if (e->host)
        shca_cm_host_ack(e->host);
    pthread_mutex_lock(&shca_cm_lock);
    e->id->unacked--;
    if (e->request)
        e->request->unacked--;
    pthread_cond_broadcast(&acknowledged);
    pthread_mutex_unlock(&shca_cm_lock);
    free(e);
}

void shca_cm_event_settle(struct shca_cm *id)
{
    while (id->unacked > 0)
        pthread_cond_wait(&acknowledged, &shca_cm_lock);
}

/* The new identifier gets its device; that of a listener without a channel of the program's gets a
 * channel of its own too. */
static bool complete_request(struct shca_cm_event *e)
{
    struct shca_cm *l = e->id, *id = e->request;
    struct rdma_event_channel *ch = NULL;

    if (shca_cm_object_bind(id, id->port) != 0 || (l->sync && !(ch = rdma_create_event_channel())))
        return false;
    pthread_mutex_lock(&shca_cm_lock);
    id->pub.channel = ch ? ch : l->pub.channel;
    id->sync = ch != NULL;
    id->responder_resources = e->pub.param.conn.responder_resources;
    id->initiator_depth = e->pub.param.conn.initiator_depth;
    id->retry_count = id->peer.retry_count;
    id->listener = NULL;
    pthread_mutex_unlock(&shca_cm_lock);
    e->pub.id = &id->pub;
    e->pub.listen_id = &l->pub;
    return true;
}

static bool give_request(struct shca_cm_event *e)
{
    struct shca_cm *l = e->id, *id = e->request;
    bool ok = complete_request(e);

    pthread_mutex_lock(&shca_cm_lock);
    l->queued--;
    shca_cm_exchange_admit(l);
    if (!ok) {
        e->request = NULL;
        shca_cm_exchange_leave(id); /* the other end is rejected */
        shca_cm_object_free(id);
    }
    pthread_mutex_unlock(&shca_cm_lock);
    return ok;
}

static int finish_connection(struct shca_cm *id)
{
    int e = shca_cm_qp_connect(id, id->peer.initiator_depth, id->peer.responder_resources);
    bool waits;

    pthread_mutex_lock(&shca_cm_lock);
    waits = id->state == SHCA_CM_REP_RCVD;
    if (e == 0 && waits) {
        id->state = SHCA_CM_ESTABLISHED;
        shca_cm_exchange_draft(id, SHCA_CM_RTU);
        shca_cm_exchange_send(id);
    } else {
        e = e ? e : EINVAL;
        id->refused = true;
        shca_cm_exchange_draft(id, SHCA_CM_REJ)->reason = SHCA_CM_REJ_CONSUMER;
        if (waits)
            shca_cm_exchange_send(id);
        id->state = SHCA_CM_CLOSED;
    }
    pthread_mutex_unlock(&shca_cm_lock);
    return e;
}

static void give_response(struct shca_cm_event *e)
{
    int status;

    if (!shca_cm_qp_of(e->id))
        return;
    status = finish_connection(e->id);
    e->pub.status = status ? -status : 0;
    e->pub.event = status ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
    if (status)
        shca_cm_qp_break(e->id);
}

static bool give_host_request(struct shca_cm_event *e)
{
    struct rdma_event_channel *own = e->id->sync ? rdma_create_event_channel() : NULL;

    if (!own)
        return !e->id->sync;
    if (shca_cm_host_migrate(e->request, own) != 0)
        return false;
    e->request->pub.channel = own;
    e->request->sync = true;
    return true;
}

/* False: the program does not get this event. */
static bool event_prepare(struct shca_cm_event *e)
{
    if (e->host)
        return e->pub.event != RDMA_CM_EVENT_CONNECT_REQUEST || give_host_request(e);
    switch (e->pub.event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        return give_request(e);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        give_response(e);
        return true;
    case RDMA_CM_EVENT_REJECTED:
        if (e->id->refused)
            return false;
        shca_cm_qp_break(e->id);
        return true;
    default:
        return true;
    }
}

SHCA_PUBLIC int rdma_get_cm_event(struct rdma_event_channel *pub, struct rdma_cm_event **event)
{
    SHCA_CM_INSIDE(rdma_get_cm_event, pub, event);
    struct shca_cm_event *e;

    if (!pub || !event)
        return shca_cm_fail(EINVAL);
    for (;;) {
        e = shca_cm_channel_take(shca_cm_channel_of(pub));
        if (!e)
            return -1;
        if (event_prepare(e))
            break;
        count_ack(e);
    }
    *event = &e->pub;
    return 0;
}

SHCA_PUBLIC int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    SHCA_CM_INSIDE(rdma_ack_cm_event, event);
    if (!event)
        return shca_cm_fail(EINVAL);
    count_ack(shca_container(event, struct shca_cm_event, pub));
    return 0;
}

int shca_cm_event_await(struct shca_cm *id)
{
    struct rdma_cm_event *old = id->pub.event;

    if (!id->sync)
        return 0;
    id->pub.event = NULL;
    if (old)
        rdma_ack_cm_event(old);
    if (rdma_get_cm_event(id->pub.channel, &id->pub.event) != 0)
        return -1;
    if (id->pub.event->event == RDMA_CM_EVENT_REJECTED)
        return shca_cm_fail(ECONNREFUSED);
    return shca_cm_fail(abs(id->pub.event->status));
}
