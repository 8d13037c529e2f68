/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The protection domain, completion queues and shared receive queue of each device in use. Their
 * depths follow from what all connections may have in flight. Single-threaded at start-up and exit;
 * with the lock of demands in between. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/report.h"
#include "transport/transport.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/events.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/queues.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* The minimum of all devices; at least two, for a message's head and its payload. */
static void set_list_max(const struct ibv_device_attr *attr)
{
    int most = attr->max_sge < attr->max_sge_rd ? attr->max_sge : attr->max_sge_rd;
    if (tk_verbs.list_max == 0)
        tk_verbs.list_max = tk_gather_max;
    if (most < tk_verbs.list_max)
        tk_verbs.list_max = most < 2 ? 2 : most;
}

static enum tk_status fit(const struct tk_device *device)
{
    const char *name = ibv_get_device_name(device->context->device);
    struct ibv_device_attr attr;
    int error = ibv_query_device(device->context, &attr);
    if (error) {
        tk_log_error("%s can't be queried: %s", name, strerror(error));
        return TK_FAIL;
    }
    if (!tk_srq_in_use() && tk_receives_max() > attr.max_qp_wr) {
        tk_log_error("%s allows %d work requests in a queue: lower GASNET_AM_CREDITS_PP (%d)", name,
                     attr.max_qp_wr, tk_verbs.credits_pp);
        return TK_FAIL;
    }
    tk_verbs.depth_pp = (int)tk_min((size_t)tk_verbs.depth_pp, (size_t)attr.max_qp_wr);
    set_list_max(&attr);
    tk_verbs.depth_total = (int)tk_min((size_t)tk_verbs.depth_total, (size_t)attr.max_cqe);
    return TK_OK;
}

enum tk_status tk_queues_check(void)
{
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (fit(device) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

TK_FIRST_USE static uint32_t device_conns_on(uint32_t rail)
{
    return (tk_verbs.conns_pp + tk_verbs.rail_count - 1 - rail) / tk_verbs.rail_count;
}

/* A greeting comes over each connection that librdmacm makes at start-up. */
TK_FIRST_USE static int greetings_max(const struct tk_device *device)
{
    uint32_t conns = 0;
    for (uint32_t i = 0; i < tk_verbs.rail_count && tk_verbs.is_static; i++)
        if (tk_verbs.rails[i].device == device && tk_verbs.rails[i].by_cm)
            conns += tk_verbs.peers * device_conns_on(i);
    return (int)conns;
}

/* The number of connections for which completion queues are made: those of all peers or, on demand
 * and if the queues can grow, those that exist now, at least conns_expected. */
enum { conns_expected = 64 /* by each rail */ };

TK_FIRST_USE static bool is_for_all(const struct tk_rail *rail)
{
    return tk_verbs.is_static || rail->device->has_fixed_cqs;
}

TK_FIRST_USE static uint32_t conns_on(uint32_t rail)
{
    uint32_t all = tk_verbs.peers * device_conns_on(rail);
    uint32_t now = (uint32_t)tk_max(tk_verbs.rails[rail].conns_open, conns_expected);
    return is_for_all(&tk_verbs.rails[rail]) ? all : (uint32_t)tk_min(all, now);
}

TK_FIRST_USE static uint32_t primaries_on(const struct tk_rail *rail)
{
    uint32_t now = (uint32_t)tk_max(rail->primaries + 1, conns_expected); /* and the next one */
    return is_for_all(rail) ? rail->peers : (uint32_t)tk_min(rail->peers, now);
}

/* Messages come over primary connections only, but with failover each connection may become
 * primary. */
TK_FIRST_USE static int receives_max(const struct tk_device *device)
{
    uint32_t conns = 0, peers = 0;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        bool is_ours = tk_verbs.rails[i].device == device;
        if (is_ours || tk_verbs.failover_enabled)
            peers += primaries_on(&tk_verbs.rails[i]);
        if (is_ours)
            conns += tk_verbs.failover_enabled ? conns_on(i) : primaries_on(&tk_verbs.rails[i]);
    }
    if (tk_srq_in_use())
        return tk_loan_stock(&tk_verbs.srq_plan, (int)peers).buffers +
               tk_datagrams_received(device);
    return tk_max(1, tk_receives_max() * (int)conns) + greetings_max(device) +
           tk_datagrams_received(device);
}

/* A dying connection flushes all its work requests, with a completion for each. */
TK_FIRST_USE static int sends_max(const struct tk_device *device)
{
    uint32_t conns = 0;
    for (uint32_t i = 0; i < tk_verbs.rail_count && tk_verbs.failover_enabled; i++)
        if (tk_verbs.rails[i].device == device)
            conns += conns_on(i);
    return (int)tk_max((size_t)tk_verbs.depth_total, (size_t)tk_verbs.depth_pp * conns);
}

/* Each queue has the full depth, because all work may be with peers of one lane. */
static bool open_sends(const struct tk_device *device, int depth)
{
    for (unsigned lane = 0; lane < tk_lane_count(); lane++) {
        struct tk_sends *sends = tk_sends_of(device, &tk_verbs.lanes[lane]);
        tk_lock_init(&sends->lock);
        sends->cq = ibv_create_cq(device->context, depth, NULL, device->send_events, 0);
        if (!sends->cq)
            return false;
    }
    return true;
}

/* Several drivers have no ibv_resize_cq (cxgb4, qedr, hns ...). */
static bool has_fixed_cqs(struct ibv_context *context)
{
    struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    bool is_fixed = cq && ibv_resize_cq(cq, 2 * cq->cqe) != 0;
    if (cq)
        ibv_destroy_cq(cq);
    return is_fixed;
}

static bool may_grow(void)
{
    return !tk_verbs.is_static && tk_verbs.peers > conns_expected;
}

static enum tk_status open_queues(struct tk_device *device)
{
    device->has_fixed_cqs = may_grow() && has_fixed_cqs(device->context);
    int recv_depth = receives_max(device), send_depth = sends_max(device);
    tk_channels_open(device);
    device->pd = ibv_alloc_pd(device->context);
    if (device->pd && open_sends(device, send_depth))
        device->recv_cq = ibv_create_cq(device->context, recv_depth, NULL, device->recv_events, 0);
    if (device->recv_cq)
        return TK_OK;
    tk_log_error("%s: no protection domain or completion queues of %d and %d entries: %s; lower "
                 "GASNET_AM_CREDITS_PP or GASNET_NETWORKDEPTH_TOTAL",
                 ibv_get_device_name(device->context->device), send_depth, recv_depth,
                 strerror(errno));
    return TK_FAIL;
}

enum tk_status tk_queues_open(void)
{
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (open_queues(device) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

/* Makes the queue twice as large as needed, so that resizing is rare. */
TK_FIRST_USE static enum tk_status cq_fit(const struct tk_device *device, struct ibv_cq *cq,
                                          int wanted)
{
    if (wanted <= cq->cqe)
        return TK_OK;
    if (ibv_resize_cq(cq, 2 * wanted) == 0 || ibv_resize_cq(cq, wanted) == 0)
        return TK_OK;
    tk_log_error("%s: no completion queue of %d entries: %s; lower GASNET_AM_CREDITS_PP, or set "
                 "GASNET_CONNECT_STATIC=1, which makes it as large at start-up",
                 ibv_get_device_name(device->context->device), wanted, strerror(errno));
    return TK_FAIL;
}

TK_FIRST_USE static enum tk_status fit_sends(const struct tk_device *device)
{
    for (unsigned lane = 0; lane < tk_lane_count(); lane++)
        if (cq_fit(device, tk_send_cq(device, lane), sends_max(device)) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

TK_FIRST_USE enum tk_status tk_queues_fit(void)
{
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        if (cq_fit(device, device->recv_cq, receives_max(device)) != TK_OK ||
            fit_sends(device) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}

static void close_one(struct tk_device *device)
{
    tk_srq_close(device);
    if (device->xrcd)
        ibv_close_xrcd(device->xrcd);
    if (device->recv_cq)
        ibv_destroy_cq(device->recv_cq);
    for (unsigned lane = 0; lane < tk_lane_count(); lane++)
        if (tk_send_cq(device, lane))
            ibv_destroy_cq(tk_send_cq(device, lane));
    tk_channels_close(device);
    if (device->pd)
        ibv_dealloc_pd(device->pd);
}

void tk_queues_close(void)
{
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        close_one(device);
}
