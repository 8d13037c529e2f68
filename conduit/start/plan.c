/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See plan.h. Adds up the sizes that the folders report; contains no number itself. No state. */
#include "config.h"

#include <unistd.h>

#include "base/bits.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/host_table.h"
#include "collective/local.h"
#include "exit/exit.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "op/op.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "start/plan.h"
#include "start/start_private.h"
#include "stats/stats.h"
#include "topology/topology.h"
#include "transport/shm/shm.h"
#include "transport/verbs/limits.h"
#include "transport/verbs/verbs.h"

static uint32_t up(uint32_t value, uint32_t unit)
{
    return (value + unit - 1) / unit;
}

void tk_plan_shape(struct tk_job_shape *shape, uint32_t ranks, uint32_t hosts)
{
    uint32_t most = (uint32_t)tk_settings.supernode_maxsize;
    uint32_t local = up(ranks, hosts);
    uint32_t nbrhd = most ? (uint32_t)tk_min(local, most) : local;
    uint32_t variables = 0;
    while (environ[variables])
        variables++;
    uint32_t rails = (uint32_t)tk_max(1, (size_t)tk_settings.num_qps);
    bool is_static = tk_settings.connect_static || !tk_settings.connect_dynamic;
    *shape = (struct tk_job_shape){.ranks = ranks,
                                   .hosts = hosts,
                                   .nbrhds = up(ranks, nbrhd),
                                   .local = local,
                                   .nbrhd = nbrhd,
                                   .rails = rails,
                                   .devices = 1,
                                   .conns = rails,
                                   .host_name_length = 16,
                                   .variables = variables,
                                   .host_memory = tk_host_memory(),
                                   .device_regions = 1 << 20,
                                   .is_static = is_static && !tk_verbs_static_asks(rails),
                                   .is_threaded = true};
    shape->connected = tk_shape_peers(shape);
}

/* Memory by rank and by neighbour: the tables that each process has about the others. */
static uint64_t tables(const struct tk_job_shape *shape)
{
    struct tk_peers layout;
    uint32_t ranks = shape->ranks, rails = tk_shape_peers(shape) ? shape->rails : 0;
    return tk_peers_lay_out(&layout, NULL, ranks) + tk_peers_keys_bytes(ranks, rails) +
           tk_peers_mapped_bytes(shape->nbrhd) +
           tk_host_names_bytes(shape->hosts, shape->host_name_length) +
           tk_topology_local_bytes(shape->local) + tk_bootstrap_local_bytes(shape->local) +
           tk_exit_table_bytes(ranks) +
           tk_local_members_bytes(shape->nbrhd > 1 ? shape->nbrhd : 0) +
           tk_environment_bytes(shape->variables) + tk_ops_first_bytes +
           (shape->is_threaded ? sizeof(struct tk_stats_block) : 0);
}

enum tk_status tk_plan(struct tk_footprint *total, const struct tk_job_shape *shape)
{
    *total = (struct tk_footprint){.private_bytes = tables(shape)};
    tk_footprint_add_table(total, shape, tk_start_tables_bytes(shape->ranks));
    total->private_bytes +=
        tk_host_table_copy_bytes(tk_peers_unmapped_bytes(shape->ranks),
                                 tk_peers_unmapped_bytes(shape->nbrhd), shape->local > 1);
    tk_shm_footprint(total, shape);
    tk_verbs_footprint(total, shape);
    return tk_firehose_footprint(total, shape);
}

/* Computed for a job so large that totals have reached their bounds, as the difference of two jobs,
 * so that rounding does not matter. */
enum tk_status tk_plan_idle_peer(uint64_t *bytes, const struct tk_job_shape *shape)
{
    enum { large = 1 << 16 };
    struct tk_footprint one, other;
    struct tk_job_shape smaller = *shape, larger = *shape;
    smaller.is_static = larger.is_static = false;
    smaller.connected = larger.connected = 0;
    smaller.nbrhds = smaller.ranks = large;
    smaller.hosts = large / shape->local;
    larger.nbrhds = larger.ranks = 2 * large;
    larger.hosts = 2 * large / shape->local;
    if (tk_plan(&one, &smaller) != TK_OK || tk_plan(&other, &larger) != TK_OK)
        return TK_FAIL;
    *bytes = (other.private_bytes + other.registered - one.private_bytes - one.registered) / large;
    return TK_OK;
}
