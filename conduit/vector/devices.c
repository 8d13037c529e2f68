/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfers of kind_rma/, where either side is memory of a device, which this CPU can't pack. To
 * start a copy by a device takes as long as to copy many KiB, so small pieces of one length at
 * equal distances are one transfer of rows; any other piece is a transfer of its own. No state;
 * kind_rma/ takes its lock. */
#include "config.h"

#include "kind/kind_class.h"
#include "vector/vector_private.h"

static bool next_piece(struct tk_vector *v, struct tk_piece *piece)
{
    if (v->ahead.nbytes == 0)
        return tk_streams_next(&v->remote, &v->local, SIZE_MAX, piece);
    *piece = v->ahead;
    v->ahead.nbytes = 0;
    return true;
}

/* Rows that overlap, or descend, are none. */
static bool is_pitch(const char *from, const char *to, size_t nbytes)
{
    uintptr_t pitch = (uintptr_t)to - (uintptr_t)from;
    return pitch >= nbytes && pitch <= tk_kind_pitch_max;
}

static bool makes_rows(const struct tk_piece *first, const struct tk_piece *second)
{
    return second->nbytes == first->nbytes && is_pitch(first->a, second->a, first->nbytes) &&
           is_pitch(first->b, second->b, first->nbytes);
}

static bool is_row(const struct tk_piece *first, const struct tk_kind_rows *rows,
                   const struct tk_piece *piece)
{
    return piece->nbytes == first->nbytes &&
           piece->a == first->a + rows->count * rows->remote_pitch &&
           piece->b == first->b + rows->count * rows->local_pitch;
}

/* The pieces that continue `first`; the one that does not is kept. */
static struct tk_kind_rows take_rows(struct tk_vector *v, const struct tk_piece *first)
{
    struct tk_kind_rows rows = {.count = 1};
    struct tk_piece piece;
    if (first->nbytes > tk_kind_row_max() || !next_piece(v, &piece))
        return rows;
    if (makes_rows(first, &piece)) {
        rows = (struct tk_kind_rows){.count = 1,
                                     .remote_pitch = (size_t)(piece.a - first->a),
                                     .local_pitch = (size_t)(piece.b - first->b)};
        do {
            rows.count++;
            if (!next_piece(v, &piece))
                return rows;
        } while (rows.count < tk_kind_pitch_max && is_row(first, &rows, &piece));
    }
    v->ahead = piece;
    return rows;
}

bool tk_vector_by_devices(struct tk_vector *v)
{
    struct tk_piece first;
    struct tk_kind_transfer k = {
        .t = {.peer = v->peer, .rma = v->rma}, .local = v->kinds.local, .remote = v->kinds.remote};
    k.t.rma.is_put = v->is_put;
    for (;;) {
        if (!tk_kind_has_space())
            return false;
        if (!next_piece(v, &first))
            return true;
        k.rows = take_rows(v, &first);
        k.t.rma.remote = (uintptr_t)first.a;
        k.t.rma.local = first.b;
        k.t.rma.nbytes = first.nbytes;
        tk_kind_post(&k, v->pieces, v->sources);
    }
}
