/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ports that go down and come up. A device retries for seconds over a port that is down; the port's
 * event reports it at once, also to a rank that only waits for others. A port is given up only when
 * it has been down for a while, so unplugging a cable for a moment does no damage. From then on the
 * port is checked, because it may come back. Waiters without progress do all this now and then, one
 * thread at a time. */
#include "config.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/async_events.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

static const uint64_t patience = TK_SECOND / 4;

/* Queries the port before it is given up, because a device with many events may lose some. */
static bool is_down(const struct tk_rail *rail)
{
    struct ibv_port_attr attr;
    return ibv_query_port(rail->context, rail->address.port, &attr) == 0 &&
           attr.state != IBV_PORT_ACTIVE;
}

static void look_at_port(uint32_t number, uint64_t now)
{
    struct tk_rail *rail = &tk_verbs.rails[number];
    uint64_t look_again = __atomic_load_n(&rail->look_again, __ATOMIC_RELAXED);
    if (look_again && now >= look_again)
        __atomic_store_n(&rail->look_again, tk_reconnect_look(number, now), __ATOMIC_RELAXED);
    if (!rail->down_since || now - rail->down_since < patience)
        return;
    rail->down_since = 0;
    if (is_down(rail))
        tk_failover_rail(number);
}

/* False if we closed the queue pair: then the event is expected. */
static bool broke_by_itself(struct tk_conn *conn)
{
    tk_lock(&conn->lock);
    bool is_broken = __atomic_load_n(&conn->qp, __ATOMIC_RELAXED) && !conn->is_closing &&
                     tk_conn_is_open(conn) &&
                     __atomic_load_n(&conn->has_received_last, __ATOMIC_ACQUIRE);
    tk_unlock(&conn->lock);
    return is_broken;
}

static void look_at_queue_pairs(void)
{
    if (tk_counter_read(&tk_verbs.received_last) == 0)
        return;
    tk_counter_set(&tk_verbs.received_last, 0);
    for (uint32_t r = 0; r < tk_peers.size; r++)
        for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
            if (broke_by_itself(tk_conns_to(r) + k))
                tk_failover_broken(tk_conns_to(r) + k);
}

void tk_events_look(void)
{
    if (!tk_events_begin())
        return;
    uint64_t now = tk_now();
    for (uint32_t i = 0; i < tk_verbs.rail_count && tk_verbs.failover_enabled; i++)
        look_at_port(i, now);
    if (tk_verbs.cm) { /* refuses unexpected connects, which would stay otherwise */
        tk_lock(&tk_moves_lock);
        tk_cm_look();
        tk_unlock(&tk_moves_lock);
    }
    tk_events_end();
    look_at_queue_pairs();
}
