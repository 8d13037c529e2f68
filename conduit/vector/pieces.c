/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A put or get for each contiguous piece: always possible, and best for large ones. No state; the
 * transport takes its locks. */
#include "config.h"

#include "base/atomic.h"
#include "vector/vector_private.h"

/* The transport's fast path, which keeps no state. */
static bool post_small(struct tk_vector *v, const struct tk_piece *piece)
{
    const struct tk_transport *transport = tk_peer_transport(v->peer);
    if (v->rma.is_pair)
        return false;
    tk_counter_add(&v->pieces->pending, 1);
    bool is_posted =
        v->is_put
            ? transport->rma.put(v->peer, v->pieces, (uintptr_t)piece->a, piece->b, piece->nbytes)
            : transport->rma.get(v->peer, v->pieces, (uintptr_t)piece->a, piece->b, piece->nbytes);
    if (!is_posted)
        tk_counter_add(&v->pieces->pending, -1);
    return is_posted;
}

/* v->state must not move until all of v->rma is posted: the transport identifies it by its address.
 * / */
static void set_piece(struct tk_vector *v, const struct tk_piece *piece)
{
    v->state = (struct tk_rma_state){.done = 0};
    v->rma = (struct tk_rma){.remote = (uintptr_t)piece->a,
                             .local = piece->b,
                             .nbytes = piece->nbytes,
                             .op = v->pieces,
                             .sources = v->sources,
                             .is_put = v->is_put,
                             .is_pair = v->rma.is_pair,
                             .endpoint = v->rma.endpoint,
                             .remote_keys = v->rma.remote_keys,
                             .home = v->rma.home};
}

bool tk_vector_by_pieces(struct tk_vector *v)
{
    struct tk_piece piece;
    for (;;) {
        if (v->rma.nbytes > 0) {
            if (tk_peer_transport(v->peer)->rma.post(v->peer, &v->rma, &v->state) == TK_BUSY)
                return false;
            v->rma.nbytes = 0;
        }
        if (!tk_streams_next(&v->remote, &v->local, SIZE_MAX, &piece))
            return true;
        if (!post_small(v, &piece))
            set_piece(v, &piece);
    }
}
