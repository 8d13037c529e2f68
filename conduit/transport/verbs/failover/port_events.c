/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of ports. A device tries for seconds to get something through a port that is down; its
 * event reports it at once, also to a rank that only waits for others. A cable that is out for a
 * moment is no reason to give the port up: so it must have been down for a while. A port that was
 * down is looked at from then on: it may be back. All now and then, by waiters without progress;
 * one thread at a time. */
#include "config.h"

#include <fcntl.h>

#include "base/clock.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/verbs_private.h"

static const uint64_t patience = TK_SECOND / 4;
static tk_lock_t looking = TK_LOCK_INIT;

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

static void read_events(const struct tk_device *device)
{
    struct ibv_async_event event;
    while (ibv_get_async_event(device->context, &event) == 0) {
        if (event.event_type == IBV_EVENT_PORT_ERR || event.event_type == IBV_EVENT_PORT_ACTIVE)
            port_mark(device, event.element.port_num, event.event_type == IBV_EVENT_PORT_ERR);
        ibv_ack_async_event(&event);
    }
}

/* Events may be lost where a device has many: the port itself is asked before it is given up. */
static bool is_down(const struct tk_rail *rail)
{
    struct ibv_port_attr attr;
    return ibv_query_port(rail->context, rail->address.port, &attr) == 0 &&
           attr.state != IBV_PORT_ACTIVE;
}

static void look_at_port(uint32_t number, uint64_t now)
{
    struct tk_rail *rail = &tk_verbs.rails[number];
    if (rail->look_again && now >= rail->look_again)
        rail->look_again = tk_reconnect_look(number, now);
    if (!rail->down_since || now - rail->down_since < patience)
        return;
    rail->down_since = 0;
    if (is_down(rail))
        tk_failover_rail(number);
}

void tk_events_look(void)
{
    if (!tk_trylock(&looking))
        return;
    for (const struct tk_device *device = &tk_verbs.device; device; device = device->next)
        read_events(device);
    uint64_t now = tk_now();
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        look_at_port(i, now);
    if (tk_verbs.cm) { /* connects that nobody expects are refused, or they would stay */
        tk_lock(&tk_moves_lock);
        tk_cm_look();
        tk_unlock(&tk_moves_lock);
    }
    tk_unlock(&looking);
}
