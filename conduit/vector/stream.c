/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See stream.h. Owns the levels of boxes with many dimensions; no lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "vector/stream.h"

static void *stream_memory(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        tk_panic("out of memory for a strided transfer of %zu dimensions", count);
    return memory;
}

static void stream_levels(struct tk_stream *s, size_t levels)
{
    s->form = TK_STREAM_STRIDED;
    s->levels = (unsigned)levels;
    s->level = levels <= tk_levels_inline ? s->few : stream_memory(levels, sizeof(*s->level));
}

void tk_stream_vector(struct tk_stream *s, size_t count, const gex_Memvec_t *list)
{
    s->form = TK_STREAM_VECTOR;
    s->left = 0;
    s->list = list;
    s->chunks = count;
    s->level = s->few;
}

void tk_stream_indexed(struct tk_stream *s, size_t count, void *const *list, size_t length)
{
    s->form = TK_STREAM_INDEXED;
    s->left = 0;
    s->list = list;
    s->chunk = length;
    s->chunks = length ? count : 0;
    s->level = s->few;
}

void tk_stream_close(struct tk_stream *s)
{
    if (s->level != s->few)
        free(s->level);
}

void tk_stream_copy(struct tk_stream *to, const struct tk_stream *from)
{
    *to = *from;
    to->level = to->few;
    if (from->form != TK_STREAM_STRIDED)
        return;
    stream_levels(to, from->levels);
    memcpy(to->level, from->level, from->levels * sizeof(*to->level));
}

void tk_stream_restore(struct tk_stream *s, char *next, size_t chunk, size_t chunks,
                       unsigned levels, const struct tk_level *level)
{
    stream_levels(s, levels);
    memcpy(s->level, level, levels * sizeof(*level));
    s->left = 0;
    s->next = next;
    s->chunk = chunk;
    s->chunks = chunks;
}

size_t tk_stream_bytes(const struct tk_stream *s)
{
    size_t sum = s->left;
    if (s->form != TK_STREAM_VECTOR)
        return sum + s->chunks * s->chunk;
    const gex_Memvec_t *list = s->list;
    for (size_t i = 0; i < s->chunks; i++)
        sum += list[i].gex_len;
    return sum;
}

/* ---- ranges ---- */

static bool box_range(const struct tk_stream *s, bool (*see)(void *, const char *, size_t),
                      void *context)
{
    const char *first = s->next, *last = s->next;
    for (unsigned k = 0; k < s->levels; k++) {
        const struct tk_level *l = &s->level[k];
        ptrdiff_t back = (ptrdiff_t)l->at * l->stride;
        ptrdiff_t on = (ptrdiff_t)(l->count - 1 - l->at) * l->stride;
        first += l->stride < 0 ? on : -back;
        last += l->stride < 0 ? -back : on;
    }
    return see(context, first, (size_t)(last - first) + s->chunk);
}

/* The smallest range around a whole list: if it lies in one segment, so does each range of the
 * list. */
static bool addresses_range(const struct tk_stream *s, bool (*see)(void *, const char *, size_t),
                            void *context)
{
    void *const *list = s->list;
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (size_t i = 0; i < s->chunks; i++) {
        low = tk_min(low, (uintptr_t)list[i]);
        high = tk_max(high, (uintptr_t)list[i]);
    }
    return see(context, (const char *)low, high - low + s->chunk);
}

static bool memvec_range(const struct tk_stream *s, bool (*see)(void *, const char *, size_t),
                         void *context)
{
    const gex_Memvec_t *list = s->list;
    uintptr_t low = UINTPTR_MAX, high = 0;
    for (size_t i = 0; i < s->chunks; i++)
        if (list[i].gex_len > 0) {
            uintptr_t first = (uintptr_t)list[i].gex_addr;
            low = tk_min(low, first);
            /* A length that wraps must not hide where the range begins. */
            high = tk_max(high, tk_max(first, first + list[i].gex_len));
        }
    return high == 0 || see(context, (const char *)low, high - low);
}

bool tk_stream_ranges(const struct tk_stream *s, bool (*see)(void *, const char *, size_t),
                      void *context)
{
    if (s->left > 0 && !see(context, s->at, s->left))
        return false;
    if (s->chunks == 0)
        return true;
    if (s->form == TK_STREAM_STRIDED)
        return box_range(s, see, context);
    return s->form == TK_STREAM_VECTOR ? memvec_range(s, see, context)
                                       : addresses_range(s, see, context);
}

/* ---- runs ---- */

static inline void box_step(struct tk_stream *s)
{
    for (unsigned k = 0; k < s->levels; k++) {
        struct tk_level *l = &s->level[k];
        if (++l->at < l->count) {
            s->next += l->stride;
            return;
        }
        s->next -= (ptrdiff_t)(l->count - 1) * l->stride;
        l->at = 0;
    }
}

size_t tk_stream_row(struct tk_stream *s, size_t most, char **first, ptrdiff_t *stride)
{
    if (s->form != TK_STREAM_STRIDED || s->left > 0 || s->levels == 0 || s->chunks == 0)
        return 0;
    struct tk_level *l = &s->level[0];
    size_t count = tk_min(most, l->count - l->at);
    if (count == 0)
        return 0;
    *first = s->next;
    *stride = l->stride;
    s->chunks -= count;
    s->next += (ptrdiff_t)(count - 1) * l->stride;
    l->at += count - 1;
    box_step(s);
    return count;
}

/* The next range, which may be empty. */
static inline void take_range(struct tk_stream *s)
{
    s->chunks--;
    if (s->form == TK_STREAM_VECTOR) {
        const gex_Memvec_t *v = s->list;
        s->at = v->gex_addr;
        s->left = v->gex_len;
        s->list = v + 1;
    } else if (s->form == TK_STREAM_INDEXED) {
        void *const *v = s->list;
        s->at = *v;
        s->left = s->chunk;
        s->list = v + 1;
    } else {
        s->at = s->next;
        s->left = s->chunk;
        box_step(s);
    }
}

bool tk_stream_fill(struct tk_stream *s)
{
    while (s->left == 0) {
        if (s->chunks == 0)
            return false;
        take_range(s);
    }
    return true;
}

/* Boxes were coalesced when they were made. An empty range may have any address. */
void tk_stream_extend(struct tk_stream *s, size_t wanted)
{
    while (s->left < wanted && s->chunks > 0) {
        const char *end = s->at + s->left;
        if (s->form == TK_STREAM_VECTOR) {
            const gex_Memvec_t *v = s->list;
            if (v->gex_len > 0 && v->gex_addr != end)
                return;
            s->left += v->gex_len;
            s->list = v + 1;
        } else if (s->form == TK_STREAM_INDEXED) {
            void *const *v = s->list;
            if (*v != end)
                return;
            s->left += s->chunk;
            s->list = v + 1;
        } else {
            return;
        }
        s->chunks--;
    }
}

void tk_stream_drop(struct tk_stream *s, size_t nbytes)
{
    char *first;
    ptrdiff_t stride;
    while (nbytes > 0) {
        size_t rows = s->left > 0 || s->form != TK_STREAM_STRIDED
                          ? 0
                          : tk_stream_row(s, nbytes / s->chunk, &first, &stride);
        if (s->form == TK_STREAM_INDEXED && s->left == 0) {
            rows = tk_min(s->chunks, nbytes / s->chunk);
            s->list = (void *const *)s->list + rows;
            s->chunks -= rows;
        }
        if (rows > 0) {
            nbytes -= rows * s->chunk;
            continue;
        }
        if (!tk_stream_fill(s))
            return;
        size_t n = tk_min(nbytes, s->left);
        tk_stream_skip(s, n);
        nbytes -= n;
    }
}

bool tk_streams_next(struct tk_stream *a, struct tk_stream *b, size_t most, struct tk_piece *piece)
{
    if (!tk_stream_fill(a) || !tk_stream_fill(b))
        return false;
    tk_stream_extend(a, most);
    tk_stream_extend(b, most);
    piece->a = a->at;
    piece->b = b->at;
    piece->nbytes = tk_min(most, tk_min(a->left, b->left));
    tk_stream_skip(a, piece->nbytes);
    tk_stream_skip(b, piece->nbytes);
    return true;
}

/* ---- boxes ---- */

/* Sorted by the stride of the destination, so that writes are in ascending order. */
static void insert_level(struct tk_box *box, struct tk_box_level level)
{
    size_t at = box->levels++;
    for (; at > 0 && box->level[at - 1].to > level.to; at--)
        box->level[at] = box->level[at - 1];
    box->level[at] = level;
}

static void add_dimension(struct tk_box *box, size_t count, ptrdiff_t to, ptrdiff_t from)
{
    struct tk_box_level level = {.count = count, .to = to, .from = from};
    if (count == 1)
        return;
    if (to < 0) {
        box->to += (ptrdiff_t)(count - 1) * to;
        box->from += (ptrdiff_t)(count - 1) * from;
        level.to = -to;
        level.from = -from;
    }
    insert_level(box, level);
}

/* Contiguous dimensions are merged into the element, others that continue each other into one
 * row. */
static void merge_levels(struct tk_box *box)
{
    size_t kept = 0;
    for (size_t k = 0; k < box->levels; k++) {
        struct tk_box_level *l = &box->level[k];
        struct tk_box_level *last = kept ? &box->level[kept - 1] : NULL;
        ptrdiff_t size = (ptrdiff_t)box->size;
        if (!last && l->to == size && l->from == size)
            box->size *= l->count;
        else if (last && l->to == last->to * (ptrdiff_t)last->count &&
                 l->from == last->from * (ptrdiff_t)last->count)
            last->count *= l->count;
        else
            box->level[kept++] = *l;
    }
    box->levels = kept;
}

bool tk_box_open(struct tk_box *box, const struct tk_strided *what)
{
    if (what->size == 0)
        return false;
    for (size_t k = 0; k < what->levels; k++)
        if (what->counts[k] == 0)
            return false;
    box->to = what->to;
    box->from = what->from;
    box->size = what->size;
    box->levels = 0;
    box->level = what->levels <= tk_levels_inline
                     ? box->few
                     : stream_memory(what->levels, sizeof(*box->level));
    for (size_t k = 0; k < what->levels; k++)
        add_dimension(box, what->counts[k], what->to_strides[k], what->from_strides[k]);
    merge_levels(box);
    return true;
}

void tk_box_close(struct tk_box *box)
{
    if (box->level != box->few)
        free(box->level);
}

/* The other side may be divided where this one is not. */
void tk_stream_box(struct tk_stream *s, const struct tk_box *box, bool is_to)
{
    stream_levels(s, box->levels);
    s->left = 0;
    s->next = is_to ? box->to : box->from;
    s->chunk = box->size;
    s->chunks = 1;
    unsigned kept = 0;
    for (size_t k = 0; k < box->levels; k++) {
        size_t count = box->level[k].count;
        ptrdiff_t stride = is_to ? box->level[k].to : box->level[k].from;
        struct tk_level *last = kept ? &s->level[kept - 1] : NULL;
        if (!last && stride == (ptrdiff_t)s->chunk) {
            s->chunk *= count;
            continue;
        }
        s->chunks *= count;
        if (last && stride == last->stride * (ptrdiff_t)last->count)
            last->count *= count;
        else
            s->level[kept++] = (struct tk_level){.count = count, .stride = stride};
    }
    s->levels = kept;
}
