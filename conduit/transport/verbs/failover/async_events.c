/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See async_events.h. Owns the lock that guards what events record in rails. It is taken before the
 * lock of moves, or only tried. */
#include "config.h"

#include <fcntl.h>

#include "base/lock.h"
#include "common/clock.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/async_events.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static tk_lock_t reading = TK_LOCK_INIT;

void tk_events_open(void)
{
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next) {
        int flags = fcntl(device->context->async_fd, F_GETFL);
        if (flags != -1)
            fcntl(device->context->async_fd, F_SETFL, flags | O_NONBLOCK);
    }
}

static void port_mark(const struct tk_device *device, int port, bool is_down)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct tk_rail *rail = &tk_verbs.rails[i];
        if (rail->device != device || rail->address.port != port)
            continue;
        rail->down_since = is_down ? tk_now() : 0;
        tk_reconnect_watch(rail);
    }
}

static void gids_look(const struct tk_device *device, int port)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].device == device && tk_verbs.rails[i].address.port == port)
            tk_gids_look(&tk_verbs.rails[i]);
}

static void read_events(const struct tk_device *device)
{
    struct ibv_async_event event;
    while (ibv_get_async_event(device->context, &event) == 0) {
        if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
            tk_srq_last_wqe(event.element.qp);
        if (event.event_type == IBV_EVENT_PORT_ERR || event.event_type == IBV_EVENT_PORT_ACTIVE)
            port_mark(device, event.element.port_num, event.event_type == IBV_EVENT_PORT_ERR);
        if (event.event_type == IBV_EVENT_GID_CHANGE)
            gids_look(device, event.element.port_num);
        ibv_ack_async_event(&event);
    }
}

void tk_events_go_on(void)
{
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next)
        read_events(device);
}

bool tk_events_begin(void)
{
    if (!tk_trylock(&reading))
        return false;
    tk_events_go_on();
    return true;
}

void tk_events_end(void)
{
    tk_unlock(&reading);
}

void tk_events_read(void)
{
    if (tk_events_begin())
        tk_events_end();
}
