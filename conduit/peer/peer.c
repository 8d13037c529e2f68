/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The peer table and the exchange of segments. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "peer/peer.h"

struct tk_peers tk_peers;

enum tk_status tk_peers_open(uint32_t rank, uint32_t size)
{
    tk_peers.at = calloc(size, sizeof(*tk_peers.at));
    if (!tk_peers.at) {
        tk_complain("out of memory for a table of %u peers", size);
        return TK_FAIL;
    }
    tk_peers.size = size;
    tk_peers.me = rank;
    for (uint32_t r = 0; r < size; r++)
        tk_peers.at[r].rank = r;
    return TK_OK;
}

struct segment_card {
    uint64_t base, size;
    uint32_t key, reserved;
};

static enum tk_status learn_segment(uint32_t rank)
{
    void *blob;
    size_t size;
    struct segment_card card;
    struct tk_peer *peer = tk_peer(rank);
    if (tk_bootstrap_get(rank, "tk.segment", &blob, &size) != TK_OK)
        return TK_FAIL;
    if (size != sizeof(card)) {
        tk_complain(
            "rank %u describes its segment in %zu bytes instead of %zu: is it another version?",
            rank, size, sizeof(card));
        free(blob);
        return TK_FAIL;
    }
    memcpy(&card, blob, sizeof(card));
    free(blob);
    peer->segment_base = (uintptr_t)card.base;
    peer->segment_size = (uintptr_t)card.size;
    peer->segment_key = card.key;
    return TK_OK;
}

enum tk_status tk_segments_exchange(uintptr_t base, uintptr_t size, uint32_t key,
                                    void (*poll)(void))
{
    struct segment_card card = {.base = base, .size = size, .key = key};
    struct tk_peer *self = tk_peer(tk_peers.me);
    self->segment_base = base;
    self->segment_size = size;
    self->segment_key = key;
    if (tk_bootstrap_put("tk.segment", &card, sizeof(card)) != TK_OK)
        return TK_FAIL;
    if (tk_bootstrap_fence(poll, 0) != TK_OK)
        return TK_FAIL;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (r != tk_peers.me && learn_segment(r) != TK_OK)
            return TK_FAIL;
    return TK_OK;
}
