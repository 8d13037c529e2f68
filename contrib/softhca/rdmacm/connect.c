/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting, accepting, rejecting and disconnecting at the request of programs. Owns nothing;
 * takes shca_cm_lock, but not while queue pairs are moved. */
#include "config.h"

#include <endian.h>

#include "rdmacm/rdmacm.h"

enum { default_retry = 7 };

static int put_data(struct shca_cm_message *m, const void *data, size_t length, size_t room)
{
    if (length > room)
        return EINVAL;
    if (data)
        memcpy(m->data, data, length);
    m->length = data ? (uint8_t)length : 0;
    return 0;
}

/* Reads and atomics of a connection that the device can have in progress. */
static uint8_t depth_max(const struct shca_cm *id)
{
    const struct shca_profile *p = &shca_config.device[id->port ? shca_hca_at(id->port) : 0];
    uint32_t most = p->max_rd_atom < p->max_init_rd_atom ? p->max_rd_atom : p->max_init_rd_atom;

    return most < UINT8_MAX ? (uint8_t)most : UINT8_MAX - 1;
}

static uint8_t depth_of(const struct shca_cm *id, uint8_t wanted)
{
    return wanted == RDMA_MAX_INIT_DEPTH ? depth_max(id) : wanted;
}

static bool valid_depth(const struct shca_cm *id, uint8_t wanted)
{
    return wanted == RDMA_MAX_INIT_DEPTH || wanted <= depth_max(id);
}

/* A connection needs a queue pair: the identifier's, or one that the parameters name. */
static int connect_check(const struct shca_cm *id, const struct rdma_conn_param *p)
{
    if (id->pub.ps != RDMA_PS_TCP)
        return 0;
    if (!p)
        return id->pub.qp ? 0 : EINVAL;
    return valid_depth(id, p->responder_resources) && valid_depth(id, p->initiator_depth) ? 0
                                                                                          : EINVAL;
}

/* Numbers and depths of this end, in its request or reply. */
static void put_end(struct shca_cm *id, const struct rdma_conn_param *p)
{
    struct shca_cm_message *m = &id->out;

    id->given_qpn = p ? p->qp_num : 0;
    m->qpn = id->pub.qp ? id->pub.qp->qp_num : id->given_qpn;
    m->srq = id->pub.qp ? id->pub.qp->srq != NULL : p && p->srq;
    m->qkey = id->qkey;
    m->responder_resources = id->responder_resources;
    m->initiator_depth = id->initiator_depth;
    m->flow_control = p ? p->flow_control : 0;
    m->retry_count = id->active ? id->retry_count : 0;
    m->rnr_retry_count = p ? p->rnr_retry_count & 7 : default_retry;
}

static int connect_now(struct shca_cm *id, const struct rdma_conn_param *p)
{
    struct shca_cm_message *m;
    struct shca_cm_address src, dst;
    const void *data = p ? p->private_data : id->ep_data;
    size_t length = p ? p->private_data_len : id->ep_length;
    int e;

    if (id->state != SHCA_CM_ROUTE_RESOLVED)
        return EINVAL;
    id->responder_resources = depth_of(id, p ? p->responder_resources : RDMA_MAX_RESP_RES);
    id->initiator_depth = depth_of(id, p ? p->initiator_depth : RDMA_MAX_INIT_DEPTH);
    id->retry_count = p ? p->retry_count & 7 : default_retry;
    m = shca_cm_exchange_draft(id, SHCA_CM_REQ);
    e = put_data(m, data, length, id->datagram ? SHCA_CM_SIDR_REQ_DATA : SHCA_CM_REQ_DATA);
    if (e != 0)
        return e;
    put_end(id, p);
    shca_cm_address_read(&id->pub.route.addr.src_addr, &src);
    shca_cm_address_read(&id->pub.route.addr.dst_addr, &dst);
    m->src = src.ip;
    m->dst = dst.ip;
    m->src_port = src.port;
    m->dst_port = dst.port;
    id->state = SHCA_CM_REQ_SENT;
    shca_cm_exchange_expect(id, SHCA_CM_ANSWER_NS);
    shca_cm_exchange_send(id);
    return 0;
}

static int pass_connect(struct shca_cm *id, struct rdma_conn_param *p)
{
    SHCA_CM_PASS(id, rdma_connect, p);
    return 0;
}

SHCA_PUBLIC int rdma_connect(struct rdma_cm_id *pub, struct rdma_conn_param *p)
{
    SHCA_CM_INSIDE(rdma_connect, pub, p);
    struct shca_cm *id = shca_cm_of(pub);
    int e;

    if (id->state == SHCA_CM_HOST)
        return pass_connect(id, p) != 0 ? -1 : shca_cm_event_await(id);
    e = connect_check(id, p);
    if (e == 0) {
        pthread_mutex_lock(&shca_cm_lock);
        e = connect_now(id, p);
        pthread_mutex_unlock(&shca_cm_lock);
    }
    return e ? shca_cm_fail(e) : shca_cm_event_await(id);
}

/* ---- the listening side ---- */

static int accept_datagram(struct shca_cm *id, const struct rdma_conn_param *p)
{
    struct shca_cm_message *m = shca_cm_exchange_draft(id, SHCA_CM_REP);
    int e = p ? put_data(m, p->private_data, p->private_data_len, SHCA_CM_SIDR_REP_DATA) : 0;

    if (e != 0)
        return e;
    put_end(id, p);
    shca_cm_exchange_send(id);
    id->state = SHCA_CM_CLOSED;
    return 0;
}

static int accept_connection(struct shca_cm *id, const struct rdma_conn_param *p)
{
    struct shca_cm_message *m = shca_cm_exchange_draft(id, SHCA_CM_REP);
    int e = p ? put_data(m, p->private_data, p->private_data_len, SHCA_CM_REP_DATA) : 0;

    if (e != 0)
        return e;
    put_end(id, p);
    id->state = SHCA_CM_REP_SENT;
    shca_cm_exchange_expect(id, SHCA_CM_PROGRAM_NS);
    shca_cm_exchange_send(id);
    return 0;
}

/* The other end's numbers are limits for this one. */
static void accept_depths(struct shca_cm *id, const struct rdma_conn_param *p)
{
    if (p && p->responder_resources != RDMA_MAX_RESP_RES)
        id->responder_resources = p->responder_resources;
    if (p && p->initiator_depth != RDMA_MAX_INIT_DEPTH)
        id->initiator_depth = p->initiator_depth;
    id->responder_resources = depth_of(id, id->responder_resources);
    id->initiator_depth = depth_of(id, id->initiator_depth);
}

static int accept_request(struct shca_cm *id, const struct rdma_conn_param *p)
{
    int e = connect_check(id, p);

    if (e != 0)
        return e;
    if (id->state != SHCA_CM_REQ_RCVD)
        return EINVAL;
    accept_depths(id, p);
    id->given_qpn = p ? p->qp_num : 0;
    if (!id->datagram)
        e = shca_cm_qp_connect(id, id->responder_resources, id->initiator_depth);
    if (e != 0)
        return e;
    pthread_mutex_lock(&shca_cm_lock);
    if (id->state != SHCA_CM_REQ_RCVD) /* the other end has given up meanwhile */
        e = EINVAL;
    else
        e = id->datagram ? accept_datagram(id, p) : accept_connection(id, p);
    pthread_mutex_unlock(&shca_cm_lock);
    if (e != 0)
        shca_cm_qp_break(id);
    return e;
}

SHCA_PUBLIC int rdma_establish(struct rdma_cm_id *pub)
{
    SHCA_CM_INSIDE(rdma_establish, pub);
    struct shca_cm *id = shca_cm_of(pub);
    int e = 0;

    SHCA_CM_PASS(id, rdma_establish);
    if (pub->qp)
        return shca_cm_fail(EINVAL);
    pthread_mutex_lock(&shca_cm_lock);
    if (id->state == SHCA_CM_REP_RCVD) {
        id->state = SHCA_CM_ESTABLISHED;
        shca_cm_exchange_draft(id, SHCA_CM_RTU);
        shca_cm_exchange_send(id);
    } else {
        e = EINVAL;
    }
    pthread_mutex_unlock(&shca_cm_lock);
    return shca_cm_fail(e);
}

static int pass_accept(struct shca_cm *id, struct rdma_conn_param *p)
{
    SHCA_CM_PASS(id, rdma_accept, p);
    return 0;
}

SHCA_PUBLIC int rdma_accept(struct rdma_cm_id *pub, struct rdma_conn_param *p)
{
    SHCA_CM_INSIDE(rdma_accept, pub, p);
    struct shca_cm *id = shca_cm_of(pub);
    int e;

    if (id->state == SHCA_CM_HOST)
        return pass_accept(id, p) != 0         ? -1
               : id->pub.qp_type == IBV_QPT_UD ? 0
                                               : shca_cm_event_await(id);
    /* This is how a connection was completed before rdma_establish existed. */
    if (id->state == SHCA_CM_REP_RCVD)
        return rdma_establish(pub);
    e = accept_request(id, p);
    if (e != 0)
        return shca_cm_fail(e);
    return id->datagram ? 0 : shca_cm_event_await(id);
}

static int reject_now(struct shca_cm *id, const void *data, uint8_t length)
{
    struct shca_cm_message *m;
    int e;

    if (id->state != SHCA_CM_REQ_RCVD && id->state != SHCA_CM_REP_RCVD)
        return EINVAL;
    m = shca_cm_exchange_draft(id, SHCA_CM_REJ);
    e = put_data(m, data, length, id->datagram ? SHCA_CM_SIDR_REP_DATA : SHCA_CM_REJ_DATA);
    if (e != 0)
        return e;
    m->reason = id->datagram ? SHCA_CM_SIDR_REJECT : SHCA_CM_REJ_CONSUMER;
    id->state = SHCA_CM_CLOSED;
    shca_cm_exchange_send(id);
    return 0;
}

SHCA_PUBLIC int rdma_reject(struct rdma_cm_id *pub, const void *data, uint8_t length)
{
    SHCA_CM_INSIDE(rdma_reject, pub, data, length);
    int e;

    SHCA_CM_PASS(shca_cm_of(pub), rdma_reject, data, length);
    pthread_mutex_lock(&shca_cm_lock);
    e = reject_now(shca_cm_of(pub), data, length);
    pthread_mutex_unlock(&shca_cm_lock);
    return shca_cm_fail(e);
}

/* ---- the end of a connection ---- */

static void disconnect_now(struct shca_cm *id)
{
    if (id->state == SHCA_CM_ESTABLISHED) {
        id->state = SHCA_CM_DREQ_SENT;
        shca_cm_exchange_draft(id, SHCA_CM_DREQ);
        shca_cm_exchange_expect(id, SHCA_CM_ANSWER_NS);
        shca_cm_exchange_send(id);
    } else if (id->state == SHCA_CM_DREQ_RCVD) {
        shca_cm_exchange_draft(id, SHCA_CM_DREP);
        shca_cm_exchange_send(id);
        shca_cm_exchange_timewait(id);
    }
}

static int pass_disconnect(struct shca_cm *id)
{
    SHCA_CM_PASS(id, rdma_disconnect);
    return 0;
}

SHCA_PUBLIC int rdma_disconnect(struct rdma_cm_id *pub)
{
    SHCA_CM_INSIDE(rdma_disconnect, pub);
    struct shca_cm *id = shca_cm_of(pub);
    bool waits;

    if (id->state == SHCA_CM_HOST)
        return pass_disconnect(id) != 0 ? -1 : shca_cm_event_await(id);
    if (id->state < SHCA_CM_REQ_SENT)
        return shca_cm_fail(EINVAL);
    shca_cm_qp_break(id);
    pthread_mutex_lock(&shca_cm_lock);
    waits = id->state == SHCA_CM_ESTABLISHED || id->state == SHCA_CM_DREQ_RCVD;
    disconnect_now(id);
    pthread_mutex_unlock(&shca_cm_lock);
    return waits ? shca_cm_event_await(id) : 0;
}

SHCA_PUBLIC int rdma_notify(struct rdma_cm_id *pub, enum ibv_event_type event)
{
    SHCA_CM_INSIDE(rdma_notify, pub, event);
    struct shca_cm *id = shca_cm_of(pub);
    int e = 0;

    SHCA_CM_PASS(id, rdma_notify, event);
    if (event != IBV_EVENT_COMM_EST)
        return shca_cm_fail(EINVAL);
    pthread_mutex_lock(&shca_cm_lock);
    if (id->state == SHCA_CM_REP_SENT) {
        id->state = SHCA_CM_ESTABLISHED;
        id->give_up = UINT64_MAX;
        shca_cm_event_post(id, RDMA_CM_EVENT_ESTABLISHED, 0);
    } else if (id->state != SHCA_CM_ESTABLISHED) {
        e = EINVAL;
    }
    pthread_mutex_unlock(&shca_cm_lock);
    return e == 0 ? 0 : shca_cm_fail(e);
}
