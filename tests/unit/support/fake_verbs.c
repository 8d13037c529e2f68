/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_verbs.h. Owns everything that its creating functions hand out. No lock. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_verbs.h"

#undef ibv_query_port
#undef ibv_reg_mr

enum { queue_max = 4096, inline_bytes = 1024, mrs_max = 256 };

struct request {
    struct ibv_send_wr wr;
    struct ibv_sge sge[2];
    char inlined[inline_bytes];
};

struct ring {
    unsigned first, end; /* of a queue of `limit`; counts, not places */
    unsigned limit;
};

struct receive {
    uint64_t id;
    char *at;
    uint32_t size;
};

/* Requests pass from waiting to carried to completed, in order; their slots are free again when a
 * completion of theirs, or of a later one, was polled (IBA 10.7.3.1): four marks in one ring. */
struct fake_qp {
    struct ibv_qp qp;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr states[IBV_QPS_ERR + 1];
    struct request *requests;
    unsigned posted, carried, completed, freed;
    struct receive *receives;
    unsigned recv_posted, recv_used;
    struct fake_srq *srq; /* NULL: it has a receive queue of its own */
    enum { LAST_NONE, LAST_PENDING, LAST_READ } last_wqe; /* its event, */
    int last_wqe_asked; /* which comes when it was asked for a few times */
    unsigned resets;
    bool broken, deaf; /* deaf: in RESET or INIT, and not for the first time */
    bool must_wait;    /* for a message */
    bool is_unseen;    /* what it sends, before there are two requests */
};

struct fake_srq {
    struct ibv_srq srq;
    struct receive *receives;
    uint32_t depth;
    unsigned posted, used;
};

struct entry {
    struct ibv_wc wc;
    struct fake_qp *sender; /* NULL: a receive */
    unsigned frees;         /* the sender's slots up to here, */
    unsigned resets;        /* if it was not reset since */
};

struct fake_cq {
    struct ibv_cq cq;
    struct entry *entries;
    unsigned put, taken;
    bool is_armed;
};

struct fake fake;
static struct fake_qp *qps[fake_qps_max];
static struct ibv_mr *mrs[mrs_max];

/* ---- set-up */

static void reset_port(struct fake_port *port)
{
    port->attr = (struct ibv_port_attr){.state = IBV_PORT_ACTIVE,
                                        .max_mtu = IBV_MTU_4096,
                                        .active_mtu = IBV_MTU_4096,
                                        .lid = 1,
                                        .max_msg_sz = 1u << 30,
                                        .active_speed = 32,
                                        .active_width = 2,
                                        .link_layer = IBV_LINK_LAYER_INFINIBAND};
}

void fake_reset(void)
{
    memset(&fake, 0, sizeof(fake));
    fake.device_count = 1;
    fake.inline_max = inline_bytes;
    fake.attr = (struct ibv_device_attr){.max_mr_size = UINT64_MAX,
                                         .max_qp_wr = queue_max,
                                         .max_cqe = 1 << 20,
                                         .max_qp_rd_atom = 16,
                                         .max_qp_init_rd_atom = 8,
                                         .phys_port_cnt = 1};
    for (int d = 0; d < fake_devices_max; d++) {
        snprintf(fake.devices[d].name, sizeof(fake.devices[d].name), "fake%d", d);
        for (int p = 1; p <= fake_ports_max; p++)
            reset_port(&fake.ports[d][p]);
    }
    for (int c = 0; c < fake_calls; c++)
        fake.failing[c].allowed = -1;
}

void fake_make_ethernet(struct fake_port *port)
{
    port->attr.lid = 0;
    port->attr.link_layer = IBV_LINK_LAYER_ETHERNET;
    port->attr.gid_tbl_len = 0;
}

void fake_gid(struct fake_port *port, enum ibv_gid_type type, const char *ipv6)
{
    int i = port->attr.gid_tbl_len++;
    port->gids[i] = (struct ibv_gid_entry){.gid_index = (uint32_t)i, .gid_type = type};
    if (inet_pton(AF_INET6, ipv6, port->gids[i].gid.raw) != 1)
        abort();
}

unsigned fake_sins(void)
{
    return fake.rnr + fake.too_long + fake.sq_overruns + fake.rq_overruns + fake.cq_overruns +
           fake.bad_keys + fake.too_early + fake.inline_overruns;
}

/* True when this call must fail; errno says why. */
static bool fails(enum fake_call call)
{
    if (fake.failing[call].allowed < 0)
        return false;
    if (fake.failing[call].allowed > 0) {
        fake.failing[call].allowed--;
        return false;
    }
    errno = fake.failing[call].error;
    return true;
}

/* ---- devices */

struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list = calloc(fake_devices_max + 1, sizeof(*list));
    for (int i = 0; list && i < fake.device_count; i++)
        list[i] = &fake.devices[i];
    *count = fake.device_count;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

static int poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
static int notify_cq(struct ibv_cq *cq, int solicited_only);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    if (fails(FAKE_OPEN_DEVICE))
        return NULL;
    struct ibv_context *context = calloc(1, sizeof(*context));
    context->device = device;
    context->async_fd = -1;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = notify_cq;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
    fake.contexts++;
    return context;
}

int ibv_close_device(struct ibv_context *context)
{
    free(context);
    fake.contexts--;
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (fails(FAKE_QUERY_DEVICE))
        return errno;
    *attr = fake.attr;
    return 0;
}

static struct fake_port *port_of(struct ibv_context *context, uint32_t port)
{
    return &fake.ports[context->device - fake.devices][port];
}

int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    if (fails(FAKE_QUERY_PORT))
        return errno;
    memcpy(attr, &port_of(context, port)->attr, sizeof(struct ibv_port_attr));
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    struct fake_port *p = port_of(context, port);
    if (index >= (uint32_t)p->attr.gid_tbl_len || flags || size != sizeof(*entry))
        return EINVAL;
    *entry = p->gids[index];
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    struct fake_port *p = port_of(context, port);
    if (index >= p->attr.pkey_tbl_len)
        return -1;
    *pkey = htons(p->pkeys[index]);
    return 0;
}

enum { last_wqe_late = 4 };

static bool take_last_wqe(struct ibv_context *context, struct ibv_async_event *event)
{
    for (int i = 0; i < fake_qps_max; i++) {
        struct fake_qp *qp = qps[i];
        if (!qp || qp->qp.context != context || qp->last_wqe != LAST_PENDING ||
            ++qp->last_wqe_asked < last_wqe_late)
            continue;
        qp->last_wqe = LAST_READ;
        *event = (struct ibv_async_event){.event_type = IBV_EVENT_QP_LAST_WQE_REACHED};
        event->element.qp = &qp->qp;
        return true;
    }
    return false;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (take_last_wqe(context, event))
        return 0;
    bool is_its =
        fake.event_qp ? context == fake.event_qp->context : context->device == &fake.devices[0];
    if (!fake.event || !is_its || fake.event_late-- > 0)
        return -1;
    fake.event_late = 0;
    *event = (struct ibv_async_event){.event_type = fake.event};
    if (fake.event_qp)
        event->element.qp = fake.event_qp;
    else
        event->element.port_num = fake.event_port;
    fake.event = 0;
    fake.event_qp = NULL;
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

/* ---- protection domains and memory */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    if (fails(FAKE_ALLOC_PD))
        return NULL;
    struct ibv_pd *pd = calloc(1, sizeof(*pd));
    pd->context = context;
    fake.pds++;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    fake.pds--;
    return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t size, int access)
{
    uint32_t slot = 0;
    if (fails(FAKE_REG_MR))
        return NULL;
    while (slot < mrs_max && mrs[slot])
        slot++;
    if (slot == mrs_max)
        abort();
    struct ibv_mr *mr = mrs[slot] = calloc(1, sizeof(*mr));
    *mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = at, .length = size};
    mr->lkey = 1000 + slot;
    mr->rkey = 2000 + slot;
    fake.mrs++;
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t size, uint64_t iova,
                                unsigned access)
{
    return ibv_reg_mr(pd, at, size, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    mrs[mr->lkey - 1000] = NULL;
    free(mr);
    fake.mrs--;
    return 0;
}

static bool covers(const struct fake_qp *qp, uint32_t slot, uint64_t at, uint64_t size)
{
    const struct ibv_mr *mr = slot < mrs_max ? mrs[slot] : NULL;
    bool inside = mr && mr->pd == qp->qp.pd && at >= (uintptr_t)mr->addr &&
                  at - (uintptr_t)mr->addr <= mr->length &&
                  size <= mr->length - (at - (uintptr_t)mr->addr);
    fake.bad_keys += !inside;
    return inside;
}

/* ---- completion queues, and channels, of one queue each */

struct fake_channel {
    struct ibv_comp_channel channel;
    struct ibv_cq *cq;
};

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    if (fails(FAKE_CREATE_CHANNEL))
        return NULL;
    struct fake_channel *made = calloc(1, sizeof(*made));
    made->channel.context = context;
    made->channel.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fake.channels++;
    return &made->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    close(channel->fd);
    free(channel);
    fake.channels--;
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **user)
{
    eventfd_t events;
    *cq = ((struct fake_channel *)channel)->cq;
    *user = NULL;
    return eventfd_read(channel->fd, &events);
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
    (void)cq, (void)count;
}

static int notify_cq(struct ibv_cq *which, int solicited_only)
{
    (void)solicited_only;
    if (fails(FAKE_NOTIFY_CQ))
        return errno;
    ((struct fake_cq *)which)->is_armed = true;
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int size, void *user,
                             struct ibv_comp_channel *channel, int vector)
{
    if (fails(FAKE_CREATE_CQ))
        return NULL;
    struct fake_cq *cq = calloc(1, sizeof(*cq));
    cq->entries = calloc((size_t)size, sizeof(*cq->entries));
    cq->cq.context = context;
    cq->cq.cqe = size;
    cq->cq.channel = channel;
    if (channel)
        ((struct fake_channel *)channel)->cq = &cq->cq;
    fake.cqs++;
    return &cq->cq;
}

/* Needed only by connections on demand: the fake has no datagrams. */
int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    (void)cq, (void)cqe;
    return ENOSYS;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    (void)pd, (void)attr;
    return NULL;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    (void)ah;
    return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    free(((struct fake_cq *)cq)->entries);
    free(cq);
    fake.cqs--;
    return 0;
}

static void put(struct ibv_cq *which, struct entry entry)
{
    struct fake_cq *cq = (struct fake_cq *)which;
    if (cq->put - cq->taken == (unsigned)cq->cq.cqe) {
        fake.cq_overruns++;
        return;
    }
    cq->entries[cq->put++ % (unsigned)cq->cq.cqe] = entry;
    if (cq->is_armed && cq->cq.channel)
        eventfd_write(cq->cq.channel->fd, 1);
    cq->is_armed = false;
}

static int poll_cq(struct ibv_cq *which, int count, struct ibv_wc *wc)
{
    struct fake_cq *cq = (struct fake_cq *)which;
    int n = 0;
    if (fails(FAKE_POLL_CQ))
        return -errno;
    for (; n < count && cq->taken != cq->put; n++) {
        const struct entry *entry = &cq->entries[cq->taken++ % (unsigned)cq->cq.cqe];
        wc[n] = entry->wc;
        if (entry->sender && entry->sender->resets == entry->resets)
            entry->sender->freed = entry->frees;
    }
    return n;
}

/* ---- queue pairs */

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    unsigned slot = 0;
    if (fake.before_create_qp)
        fake.before_create_qp();
    if (fails(FAKE_CREATE_QP))
        return NULL;
    if (attr->cap.max_inline_data > fake.inline_max) {
        errno = EINVAL;
        return NULL;
    }
    if ((fake.send_sge_max && attr->cap.max_send_sge > fake.send_sge_max) ||
        (fake.send_slots_max &&
         attr->cap.max_send_wr * attr->cap.max_send_sge > fake.send_slots_max)) {
        errno = ENOMEM;
        return NULL;
    }
    while (slot < fake_qps_max && qps[slot])
        slot++;
    if (slot == fake_qps_max)
        abort();
    struct fake_qp *qp = qps[slot] = calloc(1, sizeof(*qp));
    qp->init = *attr;
    qp->srq = (struct fake_srq *)attr->srq;
    qp->requests = calloc(attr->cap.max_send_wr, sizeof(*qp->requests));
    qp->receives = calloc(attr->cap.max_recv_wr, sizeof(*qp->receives));
    qp->qp = (struct ibv_qp){
        .context = pd->context, .pd = pd, .qp_num = 100 + slot, .qp_context = attr->qp_context};
    fake.qps++;
    return &qp->qp;
}

/* Discards the work queues. Completions stay: a thread may have taken them before, and
 * acts upon them now. */
static void reset(struct fake_qp *qp)
{
    qp->resets++;
    qp->posted = qp->carried = qp->completed = qp->freed = 0;
    qp->recv_posted = qp->recv_used = 0;
    qp->broken = false;
    qp->last_wqe = LAST_NONE;
    qp->last_wqe_asked = 0;
}

int ibv_modify_qp(struct ibv_qp *which, struct ibv_qp_attr *attr, int mask)
{
    struct fake_qp *qp = (struct fake_qp *)which;
    if (fails(FAKE_MODIFY_QP))
        return errno;
    qp->states[attr->qp_state] = *attr;
    qp->qp.state = attr->qp_state;
    if (attr->qp_state == IBV_QPS_RESET)
        reset(qp);
    qp->deaf = attr->qp_state < IBV_QPS_RTR && qp->resets > 0;
    if (attr->qp_state == IBV_QPS_ERR)
        fake_break(which, IBV_WC_WR_FLUSH_ERR);
    return 0;
}

/* Its completions go with it, as most drivers have it. */
static void forget_sends(struct fake_cq *cq, const struct fake_qp *qp)
{
    unsigned kept = cq->taken, cqe = (unsigned)cq->cq.cqe;
    for (unsigned i = cq->taken; i != cq->put; i++)
        if (cq->entries[i % cqe].sender != qp)
            cq->entries[kept++ % cqe] = cq->entries[i % cqe];
    cq->put = kept;
}

int ibv_destroy_qp(struct ibv_qp *which)
{
    struct fake_qp *qp = (struct fake_qp *)which;
    forget_sends((struct fake_cq *)qp->init.send_cq, qp);
    qps[which->qp_num - 100] = NULL;
    free(qp->requests);
    free(qp->receives);
    free(qp);
    fake.qps--;
    return 0;
}

const struct ibv_qp_attr *fake_attr(struct ibv_qp *qp, enum ibv_qp_state state)
{
    return &((struct fake_qp *)qp)->states[state];
}

const struct ibv_qp_init_attr *fake_init_attr(struct ibv_qp *qp)
{
    return &((struct fake_qp *)qp)->init;
}

int fake_receives(struct ibv_qp *qp)
{
    return (int)(((struct fake_qp *)qp)->recv_posted - ((struct fake_qp *)qp)->recv_used);
}

int fake_sends(struct ibv_qp *qp)
{
    return (int)(((struct fake_qp *)qp)->posted - ((struct fake_qp *)qp)->freed);
}

/* ---- shared receive queues */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    if (fails(FAKE_CREATE_SRQ))
        return NULL;
    struct fake_srq *srq = calloc(1, sizeof(*srq));
    srq->srq = (struct ibv_srq){.context = pd->context, .pd = pd};
    srq->depth = attr->attr.max_wr;
    srq->receives = calloc(srq->depth, sizeof(*srq->receives));
    fake.srqs++;
    return &srq->srq;
}

int ibv_destroy_srq(struct ibv_srq *which)
{
    free(((struct fake_srq *)which)->receives);
    free(which);
    fake.srqs--;
    return 0;
}

int fake_srq_receives(struct ibv_srq *srq)
{
    return (int)(((struct fake_srq *)srq)->posted - ((struct fake_srq *)srq)->used);
}

/* ---- posting */

static void keep_inline(struct request *r, uint32_t max)
{
    uint32_t size = 0;
    for (int i = 0; i < r->wr.num_sge; i++) {
        memcpy(r->inlined + size, (void *)(uintptr_t)r->sge[i].addr, r->sge[i].length);
        size += r->sge[i].length;
    }
    fake.inline_overruns += size > max;
    r->sge[0] = (struct ibv_sge){.addr = (uintptr_t)r->inlined, .length = size};
    r->wr.num_sge = 1;
}

static int post_one_send(struct ibv_qp *which, struct ibv_send_wr *wr)
{
    struct fake_qp *qp = (struct fake_qp *)which;
    uint32_t depth = qp->init.cap.max_send_wr;
    if (fails(FAKE_POST_SEND))
        return errno;
    if (qp->posted - qp->freed == depth) {
        fake.sq_overruns++;
        return ENOMEM;
    }
    fake.too_early += qp->must_wait;
    struct request *r = &qp->requests[qp->posted++ % depth];
    r->wr = fake.last = *wr;
    if (wr->num_sge > 0)
        memcpy(r->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(r->sge[0]));
    memcpy(fake.last_sge, r->sge, sizeof(fake.last_sge));
    fake.posted++;
    if (wr->send_flags & IBV_SEND_INLINE)
        keep_inline(r, qp->init.cap.max_inline_data);
    if (qp->broken)
        fake_break(which, IBV_WC_WR_FLUSH_ERR);
    if (fake.is_prompt)
        fake_settle();
    return 0;
}

static int post_send(struct ibv_qp *which, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    int error = 0;
    fake.send_calls++;
    for (; wr && !error; wr = wr->next) {
        *bad = wr;
        error = post_one_send(which, wr);
    }
    return error;
}

static int post_recv(struct ibv_qp *which, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fake_qp *qp = (struct fake_qp *)which;
    uint32_t depth = qp->init.cap.max_recv_wr;
    *bad = wr;
    if (fails(FAKE_POST_RECV))
        return errno;
    if (qp->recv_posted - qp->recv_used == depth) {
        fake.rq_overruns++;
        return ENOMEM;
    }
    struct receive *receive = &qp->receives[qp->recv_posted++ % depth];
    *receive = (struct receive){.id = wr->wr_id};
    if (wr->num_sge > 0) {
        receive->at = (char *)(uintptr_t)wr->sg_list->addr;
        receive->size = wr->sg_list->length;
    }
    if (qp->broken)
        fake_break(which, IBV_WC_WR_FLUSH_ERR);
    return 0;
}

static int post_srq_recv(struct ibv_srq *which, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct fake_srq *srq = (struct fake_srq *)which;
    for (; wr; wr = wr->next) {
        *bad = wr;
        if (fails(FAKE_POST_RECV))
            return errno;
        if (srq->posted - srq->used == srq->depth) {
            fake.rq_overruns++;
            return ENOMEM;
        }
        srq->receives[srq->posted++ % srq->depth] =
            (struct receive){.id = wr->wr_id,
                             .at = (char *)(uintptr_t)wr->sg_list->addr,
                             .size = wr->sg_list->length};
    }
    return 0;
}

/* ---- the network */

static uint32_t gather(const struct fake_qp *from, const struct request *r, char *to, uint32_t most)
{
    uint32_t size = 0;
    for (int i = 0; i < r->wr.num_sge; i++) {
        const struct ibv_sge *s = &r->sge[i];
        if (!(r->wr.send_flags & IBV_SEND_INLINE) &&
            !covers(from, s->lkey - 1000, s->addr, s->length))
            continue;
        if (size + s->length <= most)
            memcpy(to + size, (void *)(uintptr_t)s->addr, s->length);
        size += s->length;
    }
    fake.too_long += size > most;
    return size;
}

static bool has_buffer(const struct fake_qp *to)
{
    bool is_empty = to->srq ? to->srq->posted == to->srq->used : to->recv_posted == to->recv_used;
    fake.rnr += is_empty;
    return !is_empty;
}

static struct receive *next_receive(struct fake_qp *to)
{
    if (to->srq)
        return &to->srq->receives[to->srq->used++ % to->srq->depth];
    return &to->receives[to->recv_used++ % to->init.cap.max_recv_wr];
}

static void receive(const struct fake_qp *from, struct fake_qp *to, const struct request *r)
{
    if (!has_buffer(to))
        return;
    to->must_wait = false;
    struct receive *buffer = next_receive(to);
    struct ibv_wc wc = {.wr_id = buffer->id, .opcode = IBV_WC_RECV, .qp_num = to->qp.qp_num};
    wc.byte_len = gather(from, r, buffer->at, buffer->size);
    put(to->init.recv_cq, (struct entry){.wc = wc});
}

static void transfer(const struct fake_qp *from, const struct fake_qp *to, const struct request *r)
{
    const struct ibv_sge *local = &r->sge[0];
    void *far = (void *)(uintptr_t)r->wr.wr.rdma.remote_addr;
    if (r->wr.num_sge == 0)
        return;
    if (!covers(to, r->wr.wr.rdma.rkey - 2000, r->wr.wr.rdma.remote_addr, local->length))
        return;
    if (!(r->wr.send_flags & IBV_SEND_INLINE) &&
        !covers(from, local->lkey - 1000, local->addr, local->length))
        return;
    if (r->wr.opcode == IBV_WR_RDMA_WRITE)
        memcpy(far, (void *)(uintptr_t)local->addr, local->length);
    else
        memcpy((void *)(uintptr_t)local->addr, far, local->length);
}

/* A packet whose number is not the one expected is not for this incarnation of the connection. */
static bool hears(const struct fake_qp *to, const struct fake_qp *from)
{
    /* A message that the device has begun to receive may still arrive through a shared queue until
     * its event comes. */
    bool lingers = to->srq && to->last_wqe == LAST_PENDING;
    return (!to->broken || lingers) && !to->deaf &&
           to->states[IBV_QPS_RTR].rq_psn == from->states[IBV_QPS_RTS].sq_psn;
}

bool fake_carry(struct ibv_qp *which)
{
    struct fake_qp *qp = (struct fake_qp *)which;
    uint32_t dest = qp->states[IBV_QPS_RTR].dest_qp_num - 100;
    if (qp->carried == qp->posted || qp->broken)
        return false;
    if (dest < fake_qps_max && qps[dest] && !hears(qps[dest], qp)) {
        fake_break(which, IBV_WC_RETRY_EXC_ERR);
        return true;
    }
    if (qp->is_unseen && qp->posted < 2)
        return false;
    const struct request *r = &qp->requests[qp->carried % qp->init.cap.max_send_wr];
    bool is_message = r->wr.opcode == IBV_WR_SEND && dest < fake_qps_max && qps[dest];
    if (is_message && !has_buffer(qps[dest]))
        return false;
    qp->carried++;
    if (is_message)
        receive(qp, qps[dest], r);
    else if (r->wr.opcode != IBV_WR_SEND)
        transfer(qp, qps[dest], r);
    return true;
}

static void complete(struct fake_qp *qp, enum ibv_wc_status status)
{
    const struct request *r = &qp->requests[qp->completed++ % qp->init.cap.max_send_wr];
    struct ibv_wc wc = {.wr_id = r->wr.wr_id, .status = status, .qp_num = qp->qp.qp_num};
    bool unsignaled = !qp->init.sq_sig_all && !(r->wr.send_flags & IBV_SEND_SIGNALED);
    if (!unsignaled || status != IBV_WC_SUCCESS)
        put(qp->init.send_cq,
            (struct entry){.wc = wc, .sender = qp, .frees = qp->completed, .resets = qp->resets});
}

bool fake_ack(struct ibv_qp *which)
{
    struct fake_qp *qp = (struct fake_qp *)which;
    if (qp->completed == qp->carried)
        return false;
    complete(qp, IBV_WC_SUCCESS);
    return true;
}

static bool settle_one(struct fake_qp *qp)
{
    bool carried = fake_carry(&qp->qp), acked = fake_ack(&qp->qp);
    return carried || acked;
}

bool fake_settle(void)
{
    bool any = false;
    for (int i = 0; i < fake_qps_max; i++)
        while (qps[i] && settle_one(qps[i]))
            any = true;
    return any;
}

void fake_break(struct ibv_qp *which, enum ibv_wc_status status)
{
    struct fake_qp *qp = (struct fake_qp *)which;
    qp->broken = true;
    if (qp->srq && qp->last_wqe == LAST_NONE && !fake.no_last_wqe)
        qp->last_wqe = LAST_PENDING;
    for (; qp->completed != qp->posted; status = IBV_WC_WR_FLUSH_ERR)
        complete(qp, status);
    qp->carried = qp->posted;
    while (qp->recv_used != qp->recv_posted) {
        struct receive *r = &qp->receives[qp->recv_used++ % qp->init.cap.max_recv_wr];
        struct ibv_wc wc = {.wr_id = r->id, .status = IBV_WC_WR_FLUSH_ERR};
        put(qp->init.recv_cq, (struct entry){.wc = wc});
    }
}

void fake_join(uint32_t accepts, uint32_t connects, bool is_lazy)
{
    struct fake_qp *one = qps[accepts - 100], *other = qps[connects - 100];
    one->states[IBV_QPS_RTR].dest_qp_num = connects;
    other->states[IBV_QPS_RTR].dest_qp_num = accepts;
    one->must_wait = true;
    other->is_unseen = is_lazy;
}

void fake_part(uint32_t qp)
{
    if (qp >= 100 && qps[qp - 100])
        fake_break(&qps[qp - 100]->qp, IBV_WC_WR_FLUSH_ERR);
}

bool fake_is_broken(struct ibv_qp *which)
{
    return ((struct fake_qp *)which)->broken;
}

void fake_inject(struct ibv_qp *to, const void *bytes, uint32_t size)
{
    struct request r = {.wr = {.num_sge = 1, .send_flags = IBV_SEND_INLINE}};
    r.sge[0] = (struct ibv_sge){.addr = (uintptr_t)bytes, .length = size};
    receive((struct fake_qp *)to, (struct fake_qp *)to, &r);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    static char text[32];
    snprintf(text, sizeof(text), "status %d", (int)status);
    return text;
}
