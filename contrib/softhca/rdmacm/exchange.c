/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The protocol between two identifiers: request, reply, ready to use, reject, disconnect request
 * and reply, with their timers, as InfiniBand's CM (specification 12.9) and Linux' rdma_cm on top
 * of it. A port that is down only delays messages: they wait at their sender, or unread at their
 * receiver, until the port is up or the sender gives up. If a process is killed, the other end sees
 * the end of the link where the kernel's CM would send a message. Owns the time of the next timer;
 * runs with shca_cm_lock held, in the agent and in calls of the program. */
#include "config.h"

#include <stdlib.h>

#include "rdmacm/rdmacm.h"

/* How often a message that a cut has stopped is tried again. */
static const uint64_t retry_ns = UINT64_C(50000000);
/* The kernel keeps the numbers of a connection for that long, derived from the packet lifetime. */
static const uint64_t timewait_ns = UINT64_C(4096) << 17;

static uint64_t next_due = UINT64_MAX;

static void set_due(struct shca_cm *id, uint64_t at)
{
    id->due = at < id->due ? at : id->due;
    if (id->due < next_due) {
        next_due = id->due;
        shca_cm_agent_wake();
    }
}

void shca_cm_exchange_expect(struct shca_cm *id, uint64_t within)
{
    id->give_up = tk_now() + within;
    set_due(id, id->give_up);
}

void shca_cm_exchange_timewait(struct shca_cm *id)
{
    id->state = SHCA_CM_TIMEWAIT;
    shca_cm_exchange_expect(id, timewait_ns);
}

static void exchange_close(struct shca_cm *id)
{
    id->pending = false;
    id->give_up = UINT64_MAX;
    id->state = SHCA_CM_CLOSED;
    shca_cm_wire_close(&id->link);
}

/* ---- events ---- */

static void take_data(struct shca_cm_event *e, const struct shca_cm_message *m, uint8_t full,
                      const void **data, uint8_t *length)
{
    memcpy(e->data, m->data, m->length);
    *data = full ? e->data : NULL;
    *length = full;
}

/* Each end reports the other's depths from its own point of view. */
static void fill_connection(struct shca_cm_event *e, const struct shca_cm_message *m, uint8_t full)
{
    struct rdma_conn_param *c = &e->pub.param.conn;

    take_data(e, m, full, &c->private_data, &c->private_data_len);
    c->responder_resources = m->initiator_depth;
    c->initiator_depth = m->responder_resources;
    c->flow_control = m->flow_control;
    c->retry_count = m->retry_count;
    c->rnr_retry_count = m->rnr_retry_count;
    c->srq = m->srq;
    c->qp_num = m->qpn;
}

static void fill_datagram(struct shca_cm_event *e, const struct shca_cm_message *m, uint8_t full)
{
    struct rdma_ud_param *u = &e->pub.param.ud;

    take_data(e, m, full, &u->private_data, &u->private_data_len);
    if (m->kind != SHCA_CM_REP)
        return;
    u->qp_num = m->qpn;
    u->qkey = m->qkey;
    shca_cm_address_path(e->id->port, e->id->far, &m->gid, &u->ah_attr);
}

static void post_message(struct shca_cm *id, enum rdma_cm_event_type type, int status,
                         const struct shca_cm_message *m, uint8_t full)
{
    struct shca_cm_event *e = shca_cm_event_make(id, type, status);

    if (!e)
        return;
    if (id->datagram)
        fill_datagram(e, m, full);
    else
        fill_connection(e, m, full);
    shca_cm_event_push(e);
}

/* ---- sending ---- */

struct shca_cm_message *shca_cm_exchange_draft(struct shca_cm *id, enum shca_cm_kind kind)
{
    struct shca_cm_message *m = &id->out;

    memset(m, 0, sizeof *m);
    m->kind = kind;
    m->from = id->port;
    shca_gid_of(id->port, shca_cm_address_gid_index(id->port), &m->gid);
    m->datagram = id->datagram;
    m->psn = id->psn;
    m->mtu = IBV_MTU_4096;
    return m;
}

static void refused_by_nobody(struct shca_cm *id)
{
    struct shca_cm_message none = {.kind = SHCA_CM_REJ};

    shca_cm_report_far();
    exchange_close(id);
    if (id->datagram)
        post_message(id, RDMA_CM_EVENT_UNREACHABLE, SHCA_CM_SIDR_UNSUPPORTED, &none,
                     SHCA_CM_SIDR_REP_DATA);
    else
        post_message(id, RDMA_CM_EVENT_REJECTED, SHCA_CM_REJ_NO_SERVICE, &none, SHCA_CM_REJ_DATA);
}

/* Reaches the listener; false: not now, or never. */
static bool exchange_reach(struct shca_cm *id)
{
    int e;

    if (id->connected)
        return true;
    e = shca_cm_wire_connect(&id->link, id->datagram, id->out.dst, id->out.dst_port);
    if (e == 0 && shca_cm_agent_watch(&id->link) == 0)
        return id->connected = true;
    if (e == ECONNREFUSED)
        refused_by_nobody(id);
    return false;
}

static void exchange_try(struct shca_cm *id)
{
    if (!shca_path_cut(id->port, id->far) && (id->out.kind != SHCA_CM_REQ || exchange_reach(id))) {
        id->pending = false;
        shca_cm_wire_send(&id->link, &id->out);
    }
    if (id->pending)
        set_due(id, tk_now() + retry_ns);
}

void shca_cm_exchange_send(struct shca_cm *id)
{
    id->pending = true;
    exchange_try(id);
}

static void send_short(struct shca_cm *id, enum shca_cm_kind kind)
{
    shca_cm_exchange_draft(id, kind);
    shca_cm_exchange_send(id);
}

/* ---- receiving ---- */

static void fill_addresses(struct shca_cm *id)
{
    struct rdma_addr *a = &id->pub.route.addr;
    int family = id->listener->pub.route.addr.src_addr.sa_family;

    shca_cm_address_write(&a->src_storage, family, id->peer.dst, id->peer.dst_port);
    shca_cm_address_write(&a->dst_storage, family, id->peer.src, id->peer.src_port);
}

static void admit_one(struct shca_cm *id)
{
    struct shca_cm *l = id->listener;
    struct shca_cm_event *e = shca_cm_event_make(l, RDMA_CM_EVENT_CONNECT_REQUEST, 0);

    if (!e)
        return;
    l->queued++;
    id->state = SHCA_CM_REQ_RCVD;
    id->far = id->peer.from;
    fill_addresses(id);
    e->request = id;
    if (id->datagram)
        fill_datagram(e, &id->peer, SHCA_CM_SIDR_REQ_DATA);
    else
        fill_connection(e, &id->peer, SHCA_CM_REQ_DATA);
    shca_cm_event_push(e);
    send_short(id, SHCA_CM_MRA);
}

void shca_cm_exchange_admit(struct shca_cm *l)
{
    for (struct shca_cm *id = NULL; (id = shca_cm_object_next(id));)
        if (id->listener == l && id->state == SHCA_CM_REQ_HELD && id->peer.kind == SHCA_CM_REQ &&
            l->queued < l->backlog)
            admit_one(id);
}

static void on_req(struct shca_cm *id, const struct shca_cm_message *m)
{
    /* A request that was given up while a cable was out never arrives. */
    if (id->state != SHCA_CM_REQ_HELD || id->peer.kind || shca_cm_wire_gone(&id->link))
        return;
    id->peer = *m;
    if (id->listener->queued < id->listener->backlog)
        admit_one(id);
}

static void on_rep(struct shca_cm *id, const struct shca_cm_message *m)
{
    if (id->state != SHCA_CM_REQ_SENT)
        return;
    id->give_up = UINT64_MAX;
    id->peer = *m;
    if (!id->datagram) {
        id->state = SHCA_CM_REP_RCVD;
        post_message(id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, m, SHCA_CM_REP_DATA);
        return;
    }
    exchange_close(id);
    post_message(id, RDMA_CM_EVENT_ESTABLISHED, 0, m, SHCA_CM_SIDR_REP_DATA);
}

static void on_rtu(struct shca_cm *id)
{
    if (id->state != SHCA_CM_REP_SENT)
        return;
    id->state = SHCA_CM_ESTABLISHED;
    id->give_up = UINT64_MAX;
    shca_cm_event_post(id, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void on_rej(struct shca_cm *id, const struct shca_cm_message *m)
{
    bool waits = id->state == SHCA_CM_REQ_SENT || id->state == SHCA_CM_REP_RCVD ||
                 id->state == SHCA_CM_REP_SENT;

    exchange_close(id);
    /* The kernel sends no event for a request that the program has not accepted: its
     * rdma_accept fails. */
    if (!waits)
        return;
    if (id->datagram)
        post_message(id, RDMA_CM_EVENT_UNREACHABLE, (int)m->reason, m, SHCA_CM_SIDR_REP_DATA);
    else
        post_message(id, RDMA_CM_EVENT_REJECTED, (int)m->reason, m, SHCA_CM_REJ_DATA);
}

static void on_dreq(struct shca_cm *id)
{
    bool crossing = id->state == SHCA_CM_DREQ_SENT;

    if (!crossing && id->state != SHCA_CM_ESTABLISHED && id->state != SHCA_CM_REP_SENT)
        return;
    id->give_up = UINT64_MAX;
    id->state = SHCA_CM_DREQ_RCVD;
    shca_cm_event_post(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    if (crossing) {
        send_short(id, SHCA_CM_DREP);
        shca_cm_exchange_timewait(id);
    }
}

static void on_drep(struct shca_cm *id)
{
    if (id->state != SHCA_CM_DREQ_SENT)
        return;
    shca_cm_event_post(id, RDMA_CM_EVENT_DISCONNECTED, 0);
    shca_cm_exchange_timewait(id);
}

static void on_message(struct shca_cm *id, const struct shca_cm_message *m)
{
    switch (m->kind) {
    case SHCA_CM_REQ:
        on_req(id, m);
        break;
    case SHCA_CM_MRA:
        if (id->state == SHCA_CM_REQ_SENT)
            shca_cm_exchange_expect(id, SHCA_CM_PROGRAM_NS);
        break;
    case SHCA_CM_REP:
        on_rep(id, m);
        break;
    case SHCA_CM_RTU:
        on_rtu(id);
        break;
    case SHCA_CM_REJ:
        on_rej(id, m);
        break;
    case SHCA_CM_DREQ:
        on_dreq(id);
        break;
    case SHCA_CM_DREP:
        on_drep(id);
        break;
    default:
        break;
    }
}

/* The other end closed: acts as if it had received the message that a kernel sends when it destroys
 * the identifier. */
static void on_end(struct shca_cm *id)
{
    struct shca_cm_message m = {.kind = SHCA_CM_REJ, .reason = SHCA_CM_REJ_CONSUMER};

    if (id->datagram)
        m.reason = SHCA_CM_SIDR_REJECT;
    shca_cm_wire_close(&id->link);
    switch ((enum shca_cm_state)id->state) {
    case SHCA_CM_REQ_HELD:
        shca_cm_object_free(id);
        break;
    case SHCA_CM_REQ_SENT:
    case SHCA_CM_REP_RCVD:
    case SHCA_CM_REQ_RCVD:
    case SHCA_CM_REP_SENT:
        on_rej(id, &m);
        break;
    case SHCA_CM_ESTABLISHED:
        on_dreq(id);
        break;
    case SHCA_CM_DREQ_SENT:
        on_drep(id);
        break;
    default:
        break;
    }
}

static void exchange_hear(struct shca_cm *id)
{
    struct shca_cm_message m;
    int got = 1;

    while (id->link.fd >= 0 && (got = shca_cm_wire_receive(&id->link, &m)) == 1)
        on_message(id, &m);
    if (id->link.fd >= 0 && got < 0)
        on_end(id);
}

static void take_request(struct shca_cm_socket *name)
{
    struct shca_cm *l = name->id, *id;
    struct shca_cm_socket s;

    if (shca_cm_wire_accept(name, &s) != 0)
        return;
    id = shca_cm_object_make(l->pub.channel, l->pub.context, l->pub.ps, l->pub.qp_type);
    if (id) {
        id->state = SHCA_CM_REQ_HELD;
        id->listener = l;
        id->port = shca_cm_address_route(s.ip);
        id->link.fd = s.fd;
        id->link.ip = s.ip;
        if (shca_cm_agent_watch(&id->link) == 0)
            return;
        shca_cm_object_free(id);
    }
    shca_cm_wire_close(&s);
}

static void exchange_ready(struct shca_cm_socket *s)
{
    struct shca_cm *id = s->id;

    if (s != &id->link) {
        take_request(s);
    } else if (shca_cm_address_down(id->port)) {
        id->deaf = true;
        shca_cm_agent_ignore(s);
        set_due(id, tk_now() + retry_ns);
    } else {
        exchange_hear(id);
    }
}

/* ---- time ---- */

static void expire(struct shca_cm *id)
{
    struct shca_cm_message none = {.kind = 0};

    id->give_up = UINT64_MAX;
    switch ((enum shca_cm_state)id->state) {
    case SHCA_CM_ADDR_QUERY:
        id->state = SHCA_CM_BOUND;
        shca_cm_event_post(id, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
        break;
    case SHCA_CM_REQ_SENT:
    case SHCA_CM_REP_SENT:
        exchange_close(id);
        post_message(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, &none, 0);
        break;
    case SHCA_CM_DREQ_SENT:
        id->pending = false;
        shca_cm_event_post(id, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
        shca_cm_exchange_timewait(id);
        break;
    case SHCA_CM_TIMEWAIT:
        exchange_close(id);
        shca_cm_event_post(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
        break;
    default:
        break;
    }
}

static void exchange_tick(struct shca_cm *id, uint64_t now)
{
    if (now < id->due)
        return;
    id->due = UINT64_MAX;
    if (id->deaf && shca_cm_address_down(id->port)) {
        set_due(id, now + retry_ns);
    } else if (id->deaf) {
        id->deaf = false;
        shca_cm_agent_watch(&id->link);
    }
    if (id->pending)
        exchange_try(id);
    if (now >= id->give_up)
        expire(id);
    if (id->give_up != UINT64_MAX)
        set_due(id, id->give_up);
}

static uint64_t exchange_time(uint64_t now)
{
    if (now < next_due)
        return next_due;
    for (struct shca_cm *id = NULL; (id = shca_cm_object_next(id));)
        exchange_tick(id, now);
    next_due = UINT64_MAX;
    for (struct shca_cm *id = NULL; (id = shca_cm_object_next(id));)
        next_due = id->due < next_due ? id->due : next_due;
    return next_due;
}

int shca_cm_exchange_start(void)
{
    return shca_cm_agent_start(exchange_ready, exchange_time);
}

/* ---- the end ---- */

static void close_sockets(struct shca_cm *id)
{
    shca_cm_wire_close(&id->link);
    for (int i = 0; i < id->n_names; i++)
        shca_cm_wire_close(&id->names[i]);
    id->n_names = 0;
}

void shca_cm_exchange_leave(struct shca_cm *id)
{
    struct shca_cm *at = NULL, *next = shca_cm_object_next(NULL);

    close_sockets(id);
    while ((at = next)) {
        next = shca_cm_object_next(at);
        if (at->listener == id) {
            close_sockets(at);
            shca_cm_object_free(at);
        }
    }
}

void shca_cm_exchange_inherited(void)
{
    /* The child must not keep the parent's links alive. Its handles are of no use to it. */
    for (struct shca_cm *id = NULL; (id = shca_cm_object_next(id));)
        close_sockets(id);
    shca_cm_object_forget();
    next_due = UINT64_MAX;
}
