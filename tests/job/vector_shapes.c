/* SPDX-License-Identifier: BSD-3-Clause */
/* See vector.h. No state. */
#include "config.h"

#include "vector.h"

#include <string.h>

static size_t below(uint64_t *state, size_t limit)
{
    return (size_t)(job_random(state) >> 11) % limit;
}

static size_t one_of(uint64_t *state, const size_t *values, size_t count)
{
    return values[below(state, count)];
}

/* In any order. */
static void shuffle(gex_Memvec_t *list, size_t count, uint64_t *state)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = below(state, i);
        gex_Memvec_t other = list[i - 1];
        list[i - 1] = list[j];
        list[j] = other;
    }
}

/* Pointers contain offsets until vector_place(). */
static void *offset(size_t at)
{
    return (void *)(uintptr_t)at;
}

/* Ranges side by side with gaps of 0 to 40 bytes, some of no length. */
static void random_destinations(struct vector_shape *s, uint64_t *state, size_t longest)
{
    size_t at = below(state, 100), count = 1 + below(state, vector_entries - 1);

    for (s->to_count = 0; s->to_count < count; s->to_count++) {
        size_t length = below(state, 5) == 0 ? 0 : 1 + below(state, longest);
        if (at + length > vector_area)
            break;
        s->to[s->to_count] = (gex_Memvec_t){.gex_addr = offset(at), .gex_len = length};
        s->nbytes += length;
        at += length + (below(state, 3) ? below(state, 40) : 0);
    }
    if (below(state, 2))
        shuffle(s->to, s->to_count, state);
}

static void random_vector(struct vector_shape *s, uint64_t *state)
{
    static const size_t longest[] = {1, 8, 8, 100, 700, 5000, 30000};
    size_t left, most = one_of(state, longest, 7);

    random_destinations(s, state, one_of(state, longest, 7));
    for (left = s->nbytes, s->from_count = 0; left > 0; s->from_count++) {
        gex_Memvec_t *range = &s->from[s->from_count];
        size_t length = s->from_count == vector_entries - 1 ? left : below(state, most + 1);
        range->gex_len = length < left ? length : left;
        range->gex_addr = offset(below(state, vector_area - range->gex_len + 1));
        left -= range->gex_len;
    }
}

static void random_indexed(struct vector_shape *s, uint64_t *state)
{
    static const size_t lengths[] = {1, 2, 4, 8, 8, 16, 64, 72, 100, 1000};
    size_t unit = one_of(state, lengths, 10), a = 1 + below(state, 3), b = 1 + below(state, 3);
    size_t times = 1 + below(state, vector_entries / 3 - 1), at = below(state, 50), last = 0;

    s->to_length = unit * a;
    s->from_length = unit * b;
    while (times > 0 && at + times * b * (s->to_length + 16) > vector_area)
        times--;
    s->to_count = times * b;
    s->from_count = times * a;
    s->nbytes = times * unit * a * b;
    for (size_t i = 0; i < s->to_count; i++) {
        s->to[i] = (gex_Memvec_t){.gex_addr = offset(at), .gex_len = s->to_length};
        at += s->to_length + (below(state, 2) ? below(state, 16) : 0);
    }
    if (below(state, 2))
        shuffle(s->to, s->to_count, state);
    for (size_t i = 0; i < s->from_count; i++) {
        size_t next = last + s->from_length;
        last = below(state, 3) && next + s->from_length <= vector_area
                   ? next
                   : below(state, vector_area - s->from_length + 1);
        s->from[i] = (gex_Memvec_t){.gex_addr = offset(last), .gex_len = s->from_length};
    }
}

/* Where the lowest element begins when the first is at 0, and how far they reach from there. */
static ptrdiff_t lowest(const struct vector_shape *s, const ptrdiff_t *strides, size_t *extent)
{
    ptrdiff_t low = 0, high = 0;

    for (size_t k = 0; k < s->levels; k++) {
        ptrdiff_t reach = ((ptrdiff_t)s->counts[k] - 1) * strides[k];
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    *extent = (size_t)(high - low) + s->size;
    return low;
}

/* Dimensions nested in each other in a random order, with gaps or without, forwards or backwards:
 * no two elements overlap. */
static void nest(struct vector_shape *s, uint64_t *state, ptrdiff_t *strides)
{
    size_t extent = s->size;
    unsigned used = 0;

    for (size_t n = 0; n < s->levels; n++) {
        size_t k;
        do
            k = n == 0 && below(state, 2) ? 0 : below(state, s->levels);
        while (used & 1u << k);
        used |= 1u << k;
        strides[k] = (ptrdiff_t)(extent + (below(state, 2) ? 0 : below(state, 24)));
        extent += (s->counts[k] - 1) * (size_t)strides[k];
        if (below(state, 4) == 0)
            strides[k] = -strides[k];
    }
}

/* Any strides: elements may overlap. */
static void scatter(struct vector_shape *s, uint64_t *state, ptrdiff_t *strides)
{
    for (size_t k = 0; k < s->levels; k++)
        strides[k] = below(state, 4) == 0 ? 0 : (ptrdiff_t)below(state, 400) - 200;
}

static void random_strided(struct vector_shape *s, uint64_t *state)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 8, 16, 24, 32, 64, 100, 1000};
    size_t to_extent, from_extent;
    ptrdiff_t to_low, from_low;

    do {
        s->levels = below(state, 8) == 0 ? vector_levels : below(state, 5);
        s->size = one_of(state, sizes, 12);
        s->nbytes = s->size;
        for (size_t k = 0; k < s->levels; k++) {
            s->counts[k] = 1 + below(state, s->levels > 4 ? 2 : below(state, 3) ? 5 : 60);
            s->nbytes *= s->counts[k];
        }
        nest(s, state, s->to_strides);
        if (below(state, 2))
            nest(s, state, s->from_strides);
        else
            scatter(s, state, s->from_strides);
        to_low = lowest(s, s->to_strides, &to_extent);
        from_low = lowest(s, s->from_strides, &from_extent);
    } while (to_extent > vector_area || from_extent > vector_area);
    s->to_base = (size_t)((ptrdiff_t)below(state, vector_area - to_extent + 1) - to_low);
    s->from_base = (size_t)((ptrdiff_t)below(state, vector_area - from_extent + 1) - from_low);
    if (s->levels > 0 && below(state, 20) == 0)
        s->counts[below(state, s->levels)] = s->nbytes = 0;
}

void vector_random(struct vector_shape *shape, uint64_t *state)
{
    shape->nbytes = 0;
    shape->form = (enum vector_form)below(state, FORMS);
    if (shape->form == VECTOR)
        random_vector(shape, state);
    else if (shape->form == INDEXED)
        random_indexed(shape, state);
    else
        random_strided(shape, state);
}

static void place(gex_Memvec_t *list, void **addresses, size_t count, char *area)
{
    for (size_t i = 0; i < count; i++)
        addresses[i] = list[i].gex_addr = area + (uintptr_t)list[i].gex_addr;
}

void vector_place(struct vector_shape *shape, char *to, char *from)
{
    if (shape->form == STRIDED)
        return;
    place(shape->to, shape->to_list, shape->to_count, to);
    place(shape->from, shape->from_list, shape->from_count, from);
}

static void model_lists(const struct vector_shape *s, char *to, const char *from)
{
    size_t at = 0, used = 0;

    for (size_t i = 0; i < s->to_count; i++)
        for (size_t n = 0; n < s->to[i].gex_len; n++) {
            while (used == s->from[at].gex_len) {
                at++;
                used = 0;
            }
            to[(uintptr_t)s->to[i].gex_addr + n] = from[(uintptr_t)s->from[at].gex_addr + used++];
        }
}

static void model_box(const struct vector_shape *s, size_t level, char *to, const char *from)
{
    if (level == 0) {
        memcpy(to, from, s->size);
        return;
    }
    level--;
    for (size_t i = 0; i < s->counts[level]; i++)
        model_box(s, level, to + (ptrdiff_t)i * s->to_strides[level],
                  from + (ptrdiff_t)i * s->from_strides[level]);
}

void vector_model(const struct vector_shape *shape, char *to, const char *from)
{
    if (shape->nbytes == 0)
        return;
    if (shape->form == STRIDED)
        model_box(shape, shape->levels, to + shape->to_base, from + shape->from_base);
    else
        model_lists(shape, to, from);
}
