/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Local pieces whose remote side is contiguous, by the device's own lists of local memory: nothing
 * is copied, and a request moves as many pieces as a list has. No state; the transport takes its
 * locks. */
#include "config.h"

#include "base/bits.h"
#include "vector/vector_private.h"

enum { request_max = 1 << 30 /* bytes: less than any port's largest message */ };

struct range {
    const char *at;
    size_t nbytes;
};

static bool set_range(void *context, const char *at, size_t nbytes)
{
    *(struct range *)context = (struct range){at, nbytes};
    return true;
}

/* All of the local side must lie in memory that is never deregistered. */
unsigned tk_vector_list_max(struct tk_vector *v)
{
    struct range range = {NULL, 0};
    if (!tk_peer_transport(v->peer)->rma.gather_max || v->local.left > 0)
        return 0;
    tk_stream_ranges(&v->local, set_range, &range);
    return tk_min(tk_peer_transport(v->peer)->rma.gather_max(v->rma.home, range.at, range.nbytes),
                  tk_gather_max);
}

/* Listed pieces have left the streams: they stay in v until the queue has space for them. */
static void list_next(struct tk_vector *v)
{
    v->listed.nbytes = 0;
    v->listed.count = 0;
    while (v->listed.count < v->list_max && v->listed.nbytes < v->remote.left &&
           v->listed.nbytes < request_max && tk_stream_fill(&v->local)) {
        size_t most = tk_min(v->remote.left, request_max) - v->listed.nbytes;
        size_t nbytes = tk_min(v->local.left, most);
        v->listed.pieces[v->listed.count++] =
            (struct tk_local_piece){.at = v->local.at, .nbytes = nbytes};
        v->listed.nbytes += nbytes;
        tk_stream_skip(&v->local, nbytes);
    }
}

bool tk_vector_by_lists(struct tk_vector *v)
{
    while (v->remote.left > 0) {
        if (v->listed.count == 0)
            list_next(v);
        struct tk_gather gather = {.remote = (uintptr_t)v->remote.at,
                                   .remote_keys = v->rma.is_pair ? v->rma.remote_keys
                                                                 : tk_peers.keys[v->peer->rank],
                                   .home = v->rma.home,
                                   .pieces = v->listed.pieces,
                                   .count = v->listed.count,
                                   .op = v->pieces,
                                   .sources = v->sources,
                                   .is_put = v->is_put};
        if (tk_peer_transport(v->peer)->rma.gather(v->peer, &gather) == TK_BUSY)
            return false;
        tk_stream_skip(&v->remote, v->listed.nbytes);
        v->listed.count = 0;
    }
    return true;
}
