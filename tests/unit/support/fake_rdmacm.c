/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_rdmacm.h. Owns ids, channels and events; stands in for librdmacm, getifaddrs() and
 * poll(). No lock. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "failing_rails.h"
#include "fake_rdmacm.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "unit.h"

enum { ids_max = 512, events_max = 1024, data_max = 256, rejected_by_user = 28, stale = 10 };

struct fake_id {
    struct rdma_cm_id id;
    struct fake_id *other; /* end of the connection, or of one being established */
    bool listens;
    uint16_t port;
    uint32_t qp, psn;
    bool is_joined; /* over iWARP: the queue pair lives as long as this */
};

struct fake_event {
    struct rdma_cm_event event;
    uint8_t data[data_max];
};

struct fake_channel {
    struct rdma_event_channel channel;
    struct fake_event *events[events_max];
    unsigned put, taken;
};

struct fake_cm fake_cm;
static struct fake_id *ids[ids_max];
static struct ibv_context contexts[fake_devices_max];
static uint16_t next_port;
static uint32_t connections;

void fake_cm_reset(void)
{
    memset(&fake_cm, 0, sizeof(fake_cm));
    memset(ids, 0, sizeof(ids)); /* of a test that failed */
    next_port = 4000;
    tk_cm_look_pause = 0;
}

const char *failing_rails_setting(void)
{
    fake_cm_reset();
    return "GASNET_IBV_CONNECT=rdmacm";
}

void failing_rails_time_passes(void)
{
    for (uint32_t i = 0; i < tk_verbs.cm->end_count; i++)
        if (tk_verbs.cm->ends[i].deadline)
            tk_verbs.cm->ends[i].deadline = 1;
}

static bool cm_fails(enum fake_cm_call call)
{
    if (!fake_cm.failing[call].error || fake_cm.failing[call].allowed-- > 0)
        return false;
    errno = fake_cm.failing[call].error;
    fake_cm.failing[call].allowed = 0;
    return true;
}

/* ---- channels and events */

struct rdma_event_channel *rdma_create_event_channel(void)
{
    if (cm_fails(FAKE_CM_CHANNEL))
        return NULL;
    struct fake_channel *channel = calloc(1, sizeof(*channel));
    channel->channel.fd = open("/dev/null", O_RDONLY);
    fake_cm.channels++;
    return &channel->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *which)
{
    struct fake_channel *channel = (struct fake_channel *)which;
    while (channel->taken != channel->put) {
        struct fake_event *e = channel->events[channel->taken++ % events_max];
        struct rdma_cm_id *unread = e->event.listen_id ? e->event.id : NULL;
        free(e);
        if (unread)
            rdma_destroy_id(unread);
    }
    close(which->fd);
    free(channel);
    fake_cm.channels--;
}

static void raise_event(struct fake_id *to, enum rdma_cm_event_type type, int status,
                        const void *data, uint8_t size)
{
    struct fake_channel *channel = (struct fake_channel *)to->id.channel;
    struct fake_event *e = calloc(1, sizeof(*e));
    if (fake_cm.instead[type]) {
        type = fake_cm.instead[type];
        status = fake_cm.instead_status;
        size = 0;
    }
    e->event = (struct rdma_cm_event){.id = &to->id, .event = type, .status = status};
    if (size > 0) {
        memcpy(e->data, data, size);
        e->event.param.conn.private_data = e->data;
        e->event.param.conn.private_data_len = size;
    }
    assert_true(channel->put - channel->taken < events_max);
    channel->events[channel->put++ % events_max] = e;
}

int rdma_get_cm_event(struct rdma_event_channel *which, struct rdma_cm_event **event)
{
    struct fake_channel *channel = (struct fake_channel *)which;
    if (channel->taken == channel->put) {
        errno = EAGAIN;
        return -1;
    }
    *event = &channel->events[channel->taken++ % events_max]->event;
    return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    free(event);
    return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
    return event == RDMA_CM_EVENT_UNREACHABLE  ? "RDMA_CM_EVENT_UNREACHABLE"
           : event == RDMA_CM_EVENT_ADDR_ERROR ? "RDMA_CM_EVENT_ADDR_ERROR"
                                               : "another event";
}

/* Unread events of a destroyed id are dropped. */
static void forget_events(const struct fake_id *id)
{
    struct fake_channel *channel = (struct fake_channel *)id->id.channel;
    unsigned kept = channel->taken;
    for (unsigned i = channel->taken; i != channel->put; i++) {
        struct fake_event *e = channel->events[i % events_max];
        if (e->event.id == &id->id)
            free(e);
        else
            channel->events[kept++ % events_max] = e;
    }
    channel->put = kept;
}

/* ---- ids */

static struct fake_id *make_id(struct rdma_event_channel *channel, void *context)
{
    unsigned slot = 0;
    while (slot < ids_max && ids[slot])
        slot++;
    assert_true(slot < ids_max);
    struct fake_id *id = ids[slot] = calloc(1, sizeof(*id));
    id->id.channel = channel;
    id->id.context = context;
    fake_cm.ids++;
    return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space space)
{
    assert_int_equal(space, RDMA_PS_TCP);
    if (cm_fails(FAKE_CM_CREATE_ID))
        return -1;
    *id = &make_id(channel, context)->id;
    return 0;
}

int rdma_destroy_id(struct rdma_cm_id *which)
{
    struct fake_id *id = (struct fake_id *)which;
    forget_events(id);
    if (id->is_joined)
        fake_part(id->qp);
    if (id->other) {
        if (id->is_joined)
            fake_part(id->other->qp);
        id->other->other = NULL;
        raise_event(id->other, RDMA_CM_EVENT_DISCONNECTED, 0, NULL, 0);
    }
    for (unsigned i = 0; i < ids_max; i++)
        if (ids[i] == id)
            ids[i] = NULL;
    free(id);
    fake_cm.ids--;
    return 0;
}

/* Device D, port P: 10.D.P.1 */
static bool find_port(const struct sockaddr *address, int *device, uint8_t *port)
{
    const uint8_t *raw =
        (const uint8_t *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    *device = raw[1];
    *port = raw[2];
    return address->sa_family == AF_INET && raw[0] == 10 && raw[3] == 1 &&
           *device < fake.device_count && *port >= 1 && *port <= fake.attr.phys_port_cnt;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
    int device;
    if (cm_fails(FAKE_CM_BIND))
        return -1;
    if (!find_port(address, &device, &id->port_num)) {
        errno = ENODEV;
        return -1;
    }
    contexts[device].device = &fake.devices[device];
    id->verbs = &contexts[device];
    ((struct fake_id *)id)->port = htons(next_port++);
    return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    assert_true(backlog > 0);
    if (cm_fails(FAKE_CM_LISTEN))
        return -1;
    ((struct fake_id *)id)->listens = true;
    return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return ((struct fake_id *)id)->port;
}

/* ---- connecting */

int rdma_resolve_addr(struct rdma_cm_id *which, struct sockaddr *from, struct sockaddr *to,
                      int timeout_ms)
{
    int device;
    uint8_t port;
    struct fake_id *id = (struct fake_id *)which;
    assert_true(timeout_ms > 0);
    if (cm_fails(FAKE_CM_RESOLVE_ADDR))
        return -1;
    assert_true(find_port(from, &device, &port) && find_port(to, &device, &port));
    id->port = ((struct sockaddr_in *)(void *)to)->sin_port;
    raise_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0, NULL, 0);
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
    assert_true(timeout_ms > 0);
    if (cm_fails(FAKE_CM_RESOLVE_ROUTE))
        return -1;
    raise_event((struct fake_id *)id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0, NULL, 0);
    return 0;
}

static struct fake_id *find_listening(uint16_t port)
{
    for (unsigned i = 0; i < ids_max; i++)
        if (ids[i] && ids[i]->listens && ids[i]->port == port)
            return ids[i];
    return NULL;
}

static void arrive(struct fake_id *id, struct fake_id *listener,
                   const struct rdma_conn_param *param)
{
    uint8_t padded[56] = {0}; /* as on InfiniBand */
    struct fake_id *new = make_id(listener->id.channel, listener->id.context);
    assert_true(param->private_data_len <= sizeof(padded));
    memcpy(padded, param->private_data, param->private_data_len);
    new->other = id;
    id->other = new;
    new->psn = ++connections * 0x345671 & 0xffffff;
    id->psn = connections * 0x234567 & 0xffffff;
    ((struct sockaddr_in *)&new->id.route.addr.dst_addr)->sin_family = AF_INET;
    raise_event(new, RDMA_CM_EVENT_CONNECT_REQUEST, 0, padded, sizeof(padded));
    struct fake_channel *channel = (struct fake_channel *)listener->id.channel;
    channel->events[(channel->put - 1) % events_max]->event.listen_id = &listener->id;
    fake_cm.connects++;
}

int rdma_connect(struct rdma_cm_id *which, struct rdma_conn_param *param)
{
    struct fake_id *id = (struct fake_id *)which;
    struct fake_id *listener = find_listening(id->port);
    if (cm_fails(FAKE_CM_CONNECT))
        return -1;
    fake_cm.last = *param;
    id->qp = param->qp_num;
    if (fake_cm.lost_connects > 0)
        fake_cm.lost_connects--;
    else if (fake_cm.unreachable > 0 && fake_cm.unreachable--)
        raise_event(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, NULL, 0);
    else if (!listener || fake_cm.refused_by_network > 0)
        raise_event(id, RDMA_CM_EVENT_REJECTED, stale, NULL, 0);
    else
        arrive(id, listener, param);
    fake_cm.refused_by_network -= fake_cm.refused_by_network > 0;
    return 0;
}

int rdma_accept(struct rdma_cm_id *which, struct rdma_conn_param *param)
{
    struct fake_id *id = (struct fake_id *)which;
    if (cm_fails(FAKE_CM_ACCEPT))
        return -1;
    id->qp = param->qp_num;
    if (fake_cm.is_iwarp && id->other) {
        fake_join(id->qp, id->other->qp, fake_cm.is_lazy);
        id->is_joined = id->other->is_joined = true;
        raise_event(id, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
    }
    if (fake_cm.lost_answers > 0)
        fake_cm.lost_answers--;
    else if (id->other)
        raise_event(id->other, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, NULL, 0);
    return 0;
}

int rdma_reject(struct rdma_cm_id *which, const void *data, uint8_t size)
{
    uint8_t padded[148] = {0}; /* as on InfiniBand */
    struct fake_id *id = (struct fake_id *)which;
    memcpy(padded, data, size);
    if (id->other) {
        raise_event(id->other, RDMA_CM_EVENT_REJECTED, rejected_by_user, padded, sizeof(padded));
        id->other->other = NULL;
    }
    id->other = NULL;
    return 0;
}

int rdma_establish(struct rdma_cm_id *which)
{
    struct fake_id *id = (struct fake_id *)which;
    if (cm_fails(FAKE_CM_ESTABLISH))
        return -1;
    if (id->other)
        raise_event(id->other, RDMA_CM_EVENT_ESTABLISHED, 0, NULL, 0);
    return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *which, struct ibv_qp_attr *attr, int *mask)
{
    const struct fake_id *id = (struct fake_id *)which;
    if (cm_fails(FAKE_CM_INIT_ATTR))
        return -1;
    *mask = IBV_QP_STATE;
    if (attr->qp_state == IBV_QPS_RTR && id->other) {
        attr->dest_qp_num = id->other->qp;
        attr->rq_psn = id->other->psn;
        attr->path_mtu = IBV_MTU_4096;
    } else if (attr->qp_state == IBV_QPS_RTS) {
        attr->sq_psn = id->psn;
    }
    return 0;
}

enum rdma_cm_event_type fake_cm_conn_request(const void *request, uint8_t request_size, void *data,
                                             size_t size)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct fake_id *id = make_id(channel, NULL);
    struct rdma_conn_param param = {.private_data = request, .private_data_len = request_size};
    enum rdma_cm_event_type type = RDMA_CM_EVENT_TIMEWAIT_EXIT;
    struct rdma_cm_event *event;
    memset(data, 0, size);
    arrive(id, (struct fake_id *)tk_verbs.cm->listeners[0].id, &param);
    tk_cm_events_read();
    if (rdma_get_cm_event(channel, &event) == 0) {
        type = event->event;
        if (event->param.conn.private_data)
            memcpy(data, event->param.conn.private_data, size);
        rdma_ack_cm_event(event);
    }
    rdma_destroy_id(&id->id);
    rdma_destroy_event_channel(channel);
    return type;
}

/* ---- the host */

int getifaddrs(struct ifaddrs **all)
{
    *all = NULL;
    for (int d = 0; d < fake.device_count; d++)
        for (int p = 1; p <= fake.attr.phys_port_cnt; p++) {
            struct ifaddrs *i = calloc(1, sizeof(*i));
            struct sockaddr_in *address = calloc(1, sizeof(*address));
            const uint8_t raw[4] = {10, (uint8_t)d, (uint8_t)p, 1};
            address->sin_family = AF_INET;
            memcpy(&address->sin_addr, raw, sizeof(raw));
            *i = (struct ifaddrs){
                .ifa_next = *all, .ifa_flags = IFF_UP, .ifa_addr = (void *)address};
            *all = i;
        }
    return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
    while (all) {
        struct ifaddrs *next = all->ifa_next;
        free(all->ifa_addr);
        free(all);
        all = next;
    }
}

/* A rank waits: the next one begins, inside of it; when all have begun the others go on. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    uint32_t me = tk_peers.me;
    (void)fds, (void)count, (void)timeout;
    if (fake_cm.is_alone) {
        nanosleep(&moment, NULL);
        return 0;
    }
    fake_settle();
    if (!world_connect_next())
        for (uint32_t r = 0; r < tk_peers.size; r++) {
            world_be(r);
            if (tk_verbs.cm && tk_verbs.cm->is_starting && r != me)
                tk_cm_connect_step();
        }
    world_be(me);
    return 0;
}
