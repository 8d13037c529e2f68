/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The largest segment: of this rank, and of all. Owns both limits, written once at start-up. No
 * lock; must not communicate: they follow from the peer infos that all ranks have. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "start/start.h"
#include "start/start_private.h"
#include "topology/topology.h"
#include "transport/verbs/verbs.h"

/* Weak: a client may define its own. */
__attribute__((weak)) const char *gasnet_max_segsize_str;
__attribute__((weak)) uint64_t gasnet_max_segsize;

uint64_t tk_segment_limit_local, tk_segment_limit_global;

static const char *segment_limit_text(void)
{
    static char text[32];
    size_t given = 0;
    const char *value = tk_getenv("GASNET_MAX_SEGSIZE");
    if (value)
        tk_setting_trim(value, &given);
    if (given > 0)
        return tk_settings.max_segsize;
    if (gasnet_max_segsize_str)
        return gasnet_max_segsize_str;
    if (!gasnet_max_segsize)
        return tk_settings.max_segsize;
    snprintf(text, sizeof(text), "%" PRIu64 "/P", gasnet_max_segsize);
    return text;
}

/* Free memory is measured before the job's own rings and buffers are allocated: these are counted
 * separately (tk_segment_limit()). */
void tk_limits_measure(struct tk_peer_info *info)
{
    tk_memory_measure(&info->host_memory, &info->memory_left);
    info->pinnable = UINT64_MAX;
}

/* When all ranks share memory, the device has been closed before this is called. */
enum tk_status tk_limits_find_pinnable(struct tk_peer_info *info)
{
    return tk_verbs_pins() ? tk_firehose_physmem(info->host_memory, &info->pinnable) : TK_OK;
}

static enum tk_status limit_by(const struct tk_segment_bounds *space, uint64_t *limit)
{
    if (tk_is_everything) {
        *limit = UINTPTR_MAX;
        return TK_OK;
    }
    return tk_segment_limit(segment_limit_text(), space, limit);
}

/* Peer infos were made at different moments, and GASNET_PHYSMEM_MAX may differ between ranks: the
 * smallest value on a host counts for all of its ranks. One pass for all hosts. */
static void measure_hosts(struct tk_segment_bounds *spaces)
{
    for (uint32_t host = 0; host < tk_topology.hosts; host++)
        spaces[host] = (struct tk_segment_bounds){UINT64_MAX, UINT64_MAX, UINT64_MAX, 0};
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_peer_info *info = tk_peer_info_of(r);
        struct tk_segment_bounds *space = &spaces[tk_topology.host_of[r]];
        space->memory = tk_min(space->memory, info->host_memory);
        space->left = tk_min(space->left, info->memory_left);
        if (tk_topology.nbrhds > 1 && !tk_is_on_demand)
            space->pinnable = tk_min(space->pinnable, info->pinnable);
        space->ranks++;
    }
}

static enum tk_status limits_by(const struct tk_segment_bounds *spaces)
{
    tk_segment_limit_global = UINT64_MAX;
    for (uint32_t host = 0; host < tk_topology.hosts; host++) {
        uint64_t limit;
        if (limit_by(&spaces[host], &limit) != TK_OK)
            return TK_FAIL;
        tk_segment_limit_global = tk_min(tk_segment_limit_global, limit);
        if (host == tk_topology.my_host)
            tk_segment_limit_local = limit;
    }
    return TK_OK;
}

/* Each rank's limit follows from the peer infos of its host, so no second exchange is needed. */
enum tk_status tk_limits_find(void)
{
    struct tk_segment_bounds *spaces = malloc(tk_topology.hosts * sizeof(*spaces));
    if (!spaces) {
        tk_log_error("out of memory for the limits of %u hosts", tk_topology.hosts);
        return TK_FAIL;
    }
    measure_hosts(spaces);
    enum tk_status status = limits_by(spaces);
    free(spaces);
    return status;
}

/* A job of one process has no device either. */
enum tk_status tk_limits_find_single(const struct tk_peer_info *info)
{
    const struct tk_segment_bounds space = {info->host_memory, info->memory_left, UINT64_MAX, 1};
    enum tk_status status = limit_by(&space, &tk_segment_limit_local);
    tk_segment_limit_global = tk_segment_limit_local;
    return status;
}
