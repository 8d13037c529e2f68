/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the verbs transport takes in a job of a given shape, from the sizes that open.c and its
 * callees allocate by. Also part of the launcher, so it uses no state of a job. What a driver has
 * for its queue pairs and completion queues is not known here. */
#include "config.h"

#include <string.h>

#include "settings/settings.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_private.h"

static bool fails_over(const struct tk_job_shape *shape)
{
    return shape->conns > 1 && tk_settings.ibv_failover;
}

/* A slab of message buffers, and what describes them. */
static void add_buffers(struct tk_footprint *total, uint64_t count)
{
    total->registered += tk_align_up(count * tk_buffer_stride, tk_page_size());
    total->private_bytes += sizeof(struct tk_slab) + count * sizeof(struct tk_buffer);
}

/* Primary connections are dealt out to rails by rank number. */
static uint64_t receive_buffers(const struct tk_job_shape *shape,
                                const struct tk_verbs_limits *limits, uint32_t rail)
{
    uint32_t peers = shape->connected;
    const struct tk_verbs_receivers receivers = {
        .primaries = (peers + shape->rails - 1 - rail) / shape->rails,
        .conns = peers * tk_verbs_conns_on(shape->conns, shape->rails, rail),
        .notices = fails_over(shape) ? tk_notice_buffers_max : 0,
        .is_threaded = shape->is_threaded};
    return tk_verbs_receive_buffers(limits, &receivers);
}

/* Where ranks are, and whether they are connected. */
static void add_tables(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    total->private_bytes += shape->ranks * (sizeof(struct tk_conn *) + sizeof(bool) +
                                            shape->rails * sizeof(struct tk_place)) +
                            (uint64_t)shape->hosts * shape->rails * sizeof(struct tk_port_address) +
                            shape->conns * sizeof(struct tk_conn);
}

static bool is_on_demand(void)
{
    return !tk_settings.connect_static && tk_settings.connect_dynamic &&
           strcmp(tk_settings.ibv_connect, "rdmacm") != 0;
}

static void add_datagrams(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    uint64_t receives = tk_verbs_datagram_receives(tk_shape_peers(shape));
    uint64_t slots = receives + (uint64_t)tk_settings.connect_snds;
    total->queue_pairs += shape->rails;
    total->registered += shape->rails * slots * tk_datagram_slot;
    total->private_bytes += shape->rails * (slots * tk_datagram_slot + sizeof(struct tk_conn) +
                                            receives * sizeof(struct tk_buffer));
}

void tk_verbs_footprint(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    struct tk_verbs_limits limits;
    if (tk_shape_peers(shape) == 0)
        return;
    tk_verbs_limits_find(&limits, tk_shape_peers(shape), shape->conns);
    for (uint32_t i = 0; i < shape->rails; i++)
        add_buffers(total, receive_buffers(shape, &limits, i));
    add_buffers(total, (uint64_t)limits.bounces);
    total->queue_pairs += (uint64_t)shape->connected * shape->conns;
    total->private_bytes += (uint64_t)shape->connected * shape->conns * sizeof(struct tk_conn) +
                            (uint64_t)limits.depth_total * sizeof(struct tk_tx);
    add_tables(total, shape);
    if (is_on_demand())
        add_datagrams(total, shape);
    if (fails_over(shape))
        total->private_bytes +=
            tk_pairs_bytes(shape->ranks) +
            (uint64_t)shape->connected * shape->conns * tk_tx_log_bytes((size_t)limits.depth_pp);
}
