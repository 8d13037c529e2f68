/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Owns the peer table. Filled at start-up and by attach, under the rules of peer.h; no lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "base/segment_mode.h"
#include "peer/peer.h"

struct tk_peers tk_peers;

enum tk_status tk_peers_open(uint32_t rank, uint32_t size)
{
    struct tk_peers layout;
    size_t bytes = tk_peers_lay_out(&layout, NULL, size);
    void *block = aligned_alloc(TK_CACHE_LINE, bytes);
    if (!block) {
        tk_log_error("out of memory for a table of %u peers (%zu bytes)", size, bytes);
        return TK_FAIL;
    }
    memset(block, 0, bytes);
    tk_peers_lay_out(&tk_peers, block, size);
    tk_peers.key_table = NULL;
    tk_peers.offsets = NULL;
    tk_peers.size = size;
    tk_peers.me = rank;
    for (uint32_t r = 0; r < size; r++)
        tk_peers.at[r] = (struct tk_peer){
            .rank = r, .segment_fd = -1, .segment_size = tk_is_everything ? UINTPTR_MAX : 0};
    return TK_OK;
}

void tk_peers_unmap(uintptr_t *unmapped, uint32_t size)
{
    for (uint32_t r = 0; r < size; r++)
        unmapped[r] = tk_unmapped;
}
