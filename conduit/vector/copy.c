/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See copy.h. The loops over elements of one size are separate functions, because a copy of a
 * constant size is a few instructions and one of a variable size is a call. No state. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "base/copy.h"
#include "vector/copy.h"

/* Elements of one row. */
struct row {
    char *to;
    const char *from;
    ptrdiff_t to_stride, from_stride;
    size_t count, size;
};

static inline __attribute__((always_inline)) void copy_row_of(const struct row *row, size_t size)
{
    char *to = row->to;
    const char *from = row->from;
    const ptrdiff_t to_stride = row->to_stride, from_stride = row->from_stride;
    for (size_t left = row->count; left > 0; left--) {
        memcpy(to, from, size);
        to += to_stride;
        from += from_stride;
    }
}

static void copy_row_any(const struct row *row)
{
    if (row->size > tk_copy_small_max) {
        copy_row_of(row, row->size);
        return;
    }
    for (size_t i = 0; i < row->count; i++)
        tk_copy_small(row->to + (ptrdiff_t)i * row->to_stride,
                      row->from + (ptrdiff_t)i * row->from_stride, row->size);
}

static void copy_row(const struct row *row)
{
    switch (row->size) {
    case 1:
        copy_row_of(row, 1);
        break;
    case 2:
        copy_row_of(row, 2);
        break;
    case 4:
        copy_row_of(row, 4);
        break;
    case 8:
        copy_row_of(row, 8);
        break;
    case 16:
        copy_row_of(row, 16);
        break;
    case 32:
        copy_row_of(row, 32);
        break;
    case 64:
        copy_row_of(row, 64);
        break;
    default:
        copy_row_any(row);
    }
}

/* Level 0 is the row. At most tk_levels_inline levels. */
static void copy_rows(const struct tk_box *box, struct row *row)
{
    size_t at[tk_levels_inline] = {0}, rows = 1;
    for (size_t k = 1; k < box->levels; k++)
        rows *= box->level[k].count;
    while (true) {
        copy_row(row);
        if (--rows == 0)
            return;
        for (size_t k = 1; k < box->levels; k++) {
            const struct tk_box_level *l = &box->level[k];
            if (++at[k] < l->count) {
                row->to += l->to;
                row->from += l->from;
                break;
            }
            row->to -= (ptrdiff_t)(l->count - 1) * l->to;
            row->from -= (ptrdiff_t)(l->count - 1) * l->from;
            at[k] = 0;
        }
    }
}

/* For a box with more dimensions than the row and the counted ones: each index of the outermost
 * dimension is a box with one dimension less. */
static void copy_outer(const struct tk_box *box)
{
    struct tk_box inner = *box;
    const struct tk_box_level *outer = &box->level[box->levels - 1];
    inner.level = box->level;
    inner.levels--;
    for (size_t i = 0; i < outer->count; i++) {
        tk_copy_box(&inner);
        inner.to += outer->to;
        inner.from += outer->from;
    }
}

void tk_copy_box(const struct tk_box *box)
{
    if (box->levels == 0) {
        tk_copy_whole(box->to, box->from, box->size);
        return;
    }
    if (box->levels > tk_levels_inline) {
        copy_outer(box);
        return;
    }
    struct row row = {.to = box->to,
                      .from = box->from,
                      .to_stride = box->level[0].to,
                      .from_stride = box->level[0].from,
                      .count = box->level[0].count,
                      .size = box->size};
    copy_rows(box, &row);
}

/* ---- lists ---- */

/* Copies elements by lists of addresses. An address is the list's entry plus an offset or, without
 * a list, the offset plus a multiple of the element size. */
struct listed {
    void *const *to, *const *from;
    uintptr_t to_offset, from_offset;
    size_t count, size;
};

static inline __attribute__((always_inline)) void copy_listed_of(const struct listed *l,
                                                                 size_t size)
{
    for (size_t i = 0; i < l->count; i++) {
        uintptr_t to = l->to_offset + (l->to ? (uintptr_t)l->to[i] : i * size);
        uintptr_t from = l->from_offset + (l->from ? (uintptr_t)l->from[i] : i * size);
        if (size <= tk_copy_small_max && !__builtin_constant_p(size))
            tk_copy_small((void *)to, (const void *)from, size);
        else
            memcpy((void *)to, (const void *)from, size);
    }
}

static inline __attribute__((always_inline)) void copy_listed_each(const struct listed *l)
{
    switch (l->size) {
    case 1:
        copy_listed_of(l, 1);
        break;
    case 2:
        copy_listed_of(l, 2);
        break;
    case 4:
        copy_listed_of(l, 4);
        break;
    case 8:
        copy_listed_of(l, 8);
        break;
    case 16:
        copy_listed_of(l, 16);
        break;
    case 32:
        copy_listed_of(l, 32);
        break;
    case 64:
        copy_listed_of(l, 64);
        break;
    default:
        copy_listed_of(l, l->size);
    }
}

/* One loop for each shape, so that the compiler knows in each whether there is a list. */
static void copy_listed(const struct listed *l)
{
    struct listed known = *l;
    if (l->to && l->from) {
        copy_listed_each(&known);
    } else if (l->to) {
        known.from = NULL;
        copy_listed_each(&known);
    } else {
        known.to = NULL;
        copy_listed_each(&known);
    }
}

static bool is_at_entry(const struct tk_stream *s)
{
    return s->form == TK_STREAM_INDEXED && s->left == 0;
}

static void pass_entries(struct tk_stream *s, size_t count)
{
    s->list = (void *const *)s->list + count;
    s->chunks -= count;
}

void tk_copy_streams(struct tk_stream *to, uintptr_t to_offset, struct tk_stream *from,
                     uintptr_t from_offset)
{
    struct tk_piece piece;
    if (is_at_entry(to) && is_at_entry(from) && to->chunk == from->chunk) {
        struct listed l = {.to = to->list,
                           .from = from->list,
                           .to_offset = to_offset,
                           .from_offset = from_offset,
                           .count = tk_min(to->chunks, from->chunks),
                           .size = to->chunk};
        copy_listed(&l);
        pass_entries(to, l.count);
        pass_entries(from, l.count);
    }
    while (tk_streams_next(to, from, SIZE_MAX, &piece))
        tk_copy(piece.a + to_offset, piece.b + from_offset, piece.nbytes);
}

/* Copies as many whole chunks as fit in nbytes and one loop can move; returns their bytes. */
static size_t gather_many(char *to, struct tk_stream *from, size_t nbytes)
{
    char *first;
    if (from->form == TK_STREAM_VECTOR || from->left > 0 || nbytes < from->chunk)
        return 0;
    size_t most = nbytes / from->chunk;
    if (from->form == TK_STREAM_INDEXED) {
        struct listed l = {.from = from->list,
                           .to_offset = (uintptr_t)to,
                           .count = tk_min(most, from->chunks),
                           .size = from->chunk};
        copy_listed(&l);
        pass_entries(from, l.count);
        return l.count * l.size;
    }
    struct row row = {.to = to, .to_stride = (ptrdiff_t)from->chunk, .size = from->chunk};
    row.count = tk_stream_row(from, most, &first, &row.from_stride);
    row.from = first;
    copy_row(&row);
    return row.count * row.size;
}

static size_t scatter_many(struct tk_stream *to, const char *from, size_t nbytes)
{
    if (to->form == TK_STREAM_VECTOR || to->left > 0 || nbytes < to->chunk)
        return 0;
    size_t most = nbytes / to->chunk;
    if (to->form == TK_STREAM_INDEXED) {
        struct listed l = {.to = to->list,
                           .from_offset = (uintptr_t)from,
                           .count = tk_min(most, to->chunks),
                           .size = to->chunk};
        copy_listed(&l);
        pass_entries(to, l.count);
        return l.count * l.size;
    }
    struct row row = {.from = from, .from_stride = (ptrdiff_t)to->chunk, .size = to->chunk};
    row.count = tk_stream_row(to, most, &row.to, &row.to_stride);
    copy_row(&row);
    return row.count * row.size;
}

void tk_copy_gather(char *to, struct tk_stream *from, size_t nbytes)
{
    while (nbytes > 0) {
        size_t n = gather_many(to, from, nbytes);
        if (n == 0) {
            if (!tk_stream_fill(from))
                return;
            n = tk_min(nbytes, from->left);
            tk_copy(to, from->at, n);
            tk_stream_skip(from, n);
        }
        to += n;
        nbytes -= n;
    }
}

void tk_copy_scatter(struct tk_stream *to, const char *from, size_t nbytes)
{
    while (nbytes > 0) {
        size_t n = scatter_many(to, from, nbytes);
        if (n == 0) {
            if (!tk_stream_fill(to))
                return;
            n = tk_min(nbytes, to->left);
            tk_copy(to->at, from, n);
            tk_stream_skip(to, n);
        }
        from += n;
        nbytes -= n;
    }
}
