/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completion channels: how a thread sleeps until a device has a completion
 * (transport/device_events.h). An armed queue reports its next completion once. Each queue has a
 * channel of its own, so that threads may wait for either. Channels are made only if a thread will
 * sleep: on some devices a queue with a channel costs a fence per completion. Owns the channels,
 * which start-up makes; no lock. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/report.h"
#include "settings/settings.h"
#include "topology/topology.h"
#include "transport/device_events.h"
#include "transport/transport.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/data/events.h"
#include "transport/verbs/data/housekeeping.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static const struct tk_transport *served;
static tk_counter_t refused; /* a device failed to arm a queue; we do not try again */
TK_PER_THREAD unsigned tk_queues_insisted;
static tk_counter_t kept; /* roles: only threads that insist poll these queues */

/* Another thread may poll at the same time. That is safe, because the device has a lock of its
 * own. */
int tk_cq_take_insisting(struct ibv_cq *cq, unsigned role, struct ibv_wc *wc, int max)
{
    int n = tk_queues_insisted & role ? ibv_poll_cq(cq, max, wc) : 0;
    tk_if_unlikely(n < 0) tk_panic("ibv_poll_cq failed with error %d", n);
    return n;
}

static bool something_sleeps(void)
{
    return tk_topology.oversubscribed ||
           (TK_THREADED && (tk_settings.rcv_thread || tk_settings.snd_thread));
}

static struct ibv_comp_channel *channel_open(const struct tk_device *device)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(device->context);
    int flags = channel ? fcntl(channel->fd, F_GETFL) : -1;
    if (flags != -1)
        fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK);
    return channel;
}

/* If channels can't be made, threads sleep for short times instead. */
void tk_channels_open(struct tk_device *device)
{
    if (!something_sleeps())
        return;
    device->recv_events = channel_open(device);
    if (device->recv_events)
        device->send_events = channel_open(device);
    if (!device->send_events)
        tk_channels_close(device);
}

void tk_channels_close(struct tk_device *device)
{
    if (device->send_events)
        ibv_destroy_comp_channel(device->send_events);
    if (device->recv_events)
        ibv_destroy_comp_channel(device->recv_events);
    device->send_events = device->recv_events = NULL;
}

void tk_channels_serve(const struct tk_transport *transport)
{
    served = transport;
}

static unsigned devices(void)
{
    return tk_verbs.device_count;
}

static const char *events_name(unsigned number)
{
    const struct tk_device *device = &tk_verbs.device;
    while (number-- > 0)
        device = device->next;
    return ibv_get_device_name(device->context->device);
}

static bool events_are_open(void)
{
    bool is_open = tk_verbs.device_count > 0 && tk_counter_read(&refused) == 0;
    for (const struct tk_device *d = &tk_verbs.device; is_open && d; d = d->next)
        is_open = d->recv_events != NULL;
    return is_open;
}

static unsigned files(unsigned roles, struct pollfd *all, unsigned max)
{
    unsigned count = 0;
    for (const struct tk_device *d = &tk_verbs.device; d; d = d->next) {
        if (roles & TK_DEVICE_RECEIVES && count < max)
            all[count++] = (struct pollfd){.fd = d->recv_events->fd, .events = POLLIN};
        if (roles & TK_DEVICE_SENDS && count < max)
            all[count++] = (struct pollfd){.fd = d->send_events->fd, .events = POLLIN};
    }
    if (roles & TK_DEVICE_RECEIVES && tk_cm_file() != -1 && count < max)
        all[count++] = (struct pollfd){.fd = tk_cm_file(), .events = POLLIN};
    return count;
}

static int request_sends(struct tk_device *device)
{
    int error = 0;
    for (unsigned lane = 0; lane < tk_lane_count(); lane++)
        error |= ibv_req_notify_cq(tk_send_cq(device, lane), 0);
    return error;
}

static void request_events(struct tk_device *device, unsigned roles)
{
    int error = 0;
    if (roles & TK_DEVICE_RECEIVES)
        error = ibv_req_notify_cq(device->recv_cq, 0);
    if (roles & TK_DEVICE_SENDS)
        error |= request_sends(device);
    if (error)
        tk_counter_set(&refused, 1);
}

/* A rendezvous message is read from its sender's memory, and the read completes on the send queue:
 * a thread that sleeps for received messages keeps polling for these microseconds. */
static bool is_reading(void)
{
    return tk_counter_read(&tk_verbs.rndv_count) > tk_counter_read(&tk_verbs.rndv_stuck);
}

/* An armed queue does not report earlier completions, so this takes them after arming. It does so
 * even while another thread polls, because that thread may have looked before and then leave. */
static bool arm(unsigned roles, bool *is_armed)
{
    unsigned before = tk_queues_insisted;
    for (struct tk_device *d = &tk_verbs.device; d; d = d->next)
        request_events(d, roles);
    tk_queues_insisted |= roles & ~(unsigned)tk_counter_read(&kept);
    tk_lane_mine.polls = tk_lanes_due_next; /* poll other lanes, too */
    bool any = roles & TK_DEVICE_RECEIVES ? served->poll() : served->reap();
    any |= roles == TK_DEVICE_RECEIVES && is_reading();
    tk_queues_insisted = before;
    *is_armed =
        tk_counter_read(&refused) == 0 && (!(roles & TK_DEVICE_RECEIVES) || !tk_work_is_open());
    return any;
}

static void take_from(struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq;
    void *unused;
    while (ibv_get_cq_event(channel, &cq, &unused) == 0)
        ibv_ack_cq_events(cq, 1);
}

static void take(unsigned roles)
{
    for (const struct tk_device *d = &tk_verbs.device; d; d = d->next) {
        if (roles & TK_DEVICE_RECEIVES)
            take_from(d->recv_events);
        if (roles & TK_DEVICE_SENDS)
            take_from(d->send_events);
    }
}

static void insist(unsigned roles)
{
    tk_queues_insisted = roles;
}

static void set_lock(tk_lock_t *lock, bool is_locked)
{
    if (is_locked)
        tk_lock(lock);
    else
        tk_unlock(lock);
}

static void lock_all(unsigned role, bool is_locked)
{
    for (struct tk_device *d = &tk_verbs.device; d; d = d->next) {
        if (role == TK_DEVICE_RECEIVES)
            set_lock(&d->recv_cq_lock, is_locked);
        for (unsigned lane = 0; lane < tk_lane_count() && role == TK_DEVICE_SENDS; lane++)
            set_lock(&tk_sends_of(d, &tk_verbs.lanes[lane])->lock, is_locked);
    }
}

/* One role at a time; called by the first of its threads. */
static void keep(unsigned role)
{
    lock_all(role, true);
    tk_counter_add(&kept, (int32_t)role);
}

static void give_back(unsigned role)
{
    tk_counter_add(&kept, -(int32_t)role);
    lock_all(role, false);
}

const struct tk_device_events tk_verbs_events = {
    .devices = devices,
    .name = events_name,
    .is_open = events_are_open,
    .files = files,
    .arm = arm,
    .take = take,
    .insist = insist,
    .keep = keep,
    .give_back = give_back,
};
