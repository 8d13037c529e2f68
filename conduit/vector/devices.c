/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A transfer of kind_rma/ for each contiguous piece, where either side is memory of a device, which
 * this CPU can't pack. No state; kind_rma/ takes its lock. */
#include "config.h"

#include "vector/vector_private.h"

bool tk_vector_by_devices(struct tk_vector *v)
{
    struct tk_piece piece;
    struct tk_kind_transfer k = {
        .t = {.peer = v->peer, .rma = v->rma}, .local = v->kinds.local, .remote = v->kinds.remote};
    k.t.rma.is_put = v->is_put;
    for (;;) {
        if (!tk_kind_has_space())
            return false;
        if (!tk_streams_next(&v->remote, &v->local, SIZE_MAX, &piece))
            return true;
        k.t.rma.remote = (uintptr_t)piece.a;
        k.t.rma.local = piece.b;
        k.t.rma.nbytes = piece.nbytes;
        tk_kind_post(&k, v->pieces, v->sources);
    }
}
