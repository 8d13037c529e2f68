/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tables that are equal on all ranks once the peer infos have arrived: the host of each rank, and
 * the address offsets of segments that are not mapped. Owns the tables, which the ranks of a host
 * share, and makes the copy of the offsets that has those of mapped segments. No lock: start-up
 * only. */
#include "config.h"

#include <stdlib.h>

#include "base/report.h"
#include "bootstrap/host_table.h"
#include "peer/peer.h"
#include "start/start.h"
#include "start/start_private.h"

static struct tk_host_table common; /* until the process ends */

static enum tk_status make(uint32_t size, const struct tk_host_info *(*info_of)(uint32_t))
{
    char *own = malloc(tk_start_tables_bytes(size));
    if (!own) {
        tk_log_error("out of memory for the map of %u ranks", size);
        return TK_FAIL;
    }
    tk_peers_unmap((uintptr_t *)(void *)own, size);
    uint32_t *map = (uint32_t *)(void *)(own + tk_peers_unmapped_bytes(size));
    if (tk_topology_map(map, size, info_of) != TK_OK) {
        free(own);
        return TK_FAIL;
    }
    tk_host_table_show(&common, own, tk_start_tables_bytes(size));
    return TK_OK;
}

enum tk_status tk_start_tables(const struct tk_host_info *(*info_of)(uint32_t))
{
    uint32_t size = tk_peers.size;
    if (!tk_host_table_find(&common, tk_start_tables_bytes(size)) && make(size, info_of) != TK_OK)
        return TK_FAIL;
    const char *at = common.at;
    tk_peers.unmapped = (const uintptr_t *)(const void *)at;
    tk_peers.offsets = tk_host_table_copy(&common, tk_peers_unmapped_bytes(size));
    if (!tk_peers.offsets) {
        tk_log_error("out of memory for the address offsets of %u segments", size);
        return TK_FAIL;
    }
    tk_peers.offsets[tk_peers.me] = 0;
    at += tk_peers_unmapped_bytes(size);
    return tk_topology_build(tk_peers.me, size, (const uint32_t *)(const void *)at);
}
