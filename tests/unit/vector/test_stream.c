/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The iterator over pieces, and copies by it, against plain loops: runs, the order in which
 * elements may move, what remains of a stream after each step, and the chosen path. */
#include "config.h"

#include "base/bits.h"
#include "settings/settings.h"
#include "unit.h"
#include "vector/choose.h"
#include "vector/copy.h"
#include "vector/stream.h"

enum { area = 40000, levels_max = 7, rounds = 3000 };

static char from[area], to[area], model[area];

/* ---- runs ---- */

static void assert_run(struct tk_stream *s, const char *at, size_t nbytes)
{
    assert_true(tk_stream_fill(s));
    tk_stream_extend(s, SIZE_MAX);
    assert_ptr_equal(s->at, at);
    assert_int_equal(s->left, nbytes);
    tk_stream_skip(s, nbytes);
}

static void ranges_that_adjoin_are_one_run_and_empty_ones_nothing(void **state)
{
    struct tk_stream s;
    const gex_Memvec_t list[] = {{from, 0},      {from + 8, 8}, {from + 16, 4}, {NULL, 0},
                                 {from + 20, 1}, {from, 8},     {from + 30, 2}, {NULL, 0}};
    tk_stream_vector(&s, 8, list);
    assert_int_equal(tk_stream_bytes(&s), 23);
    assert_run(&s, from + 8, 13);
    assert_run(&s, from, 8);
    assert_run(&s, from + 30, 2);
    assert_false(tk_stream_fill(&s));
}

static void addresses_in_a_row_are_one_run(void **state)
{
    struct tk_stream s;
    void *const list[] = {from, from + 8, from + 16, from + 40, from + 32};
    tk_stream_indexed(&s, 5, list, 8);
    assert_int_equal(tk_stream_bytes(&s), 40);
    assert_run(&s, from, 24);
    assert_run(&s, from + 40, 8);
    assert_run(&s, from + 32, 8);
    assert_false(tk_stream_fill(&s));
    tk_stream_indexed(&s, 5, list, 0);
    assert_false(tk_stream_fill(&s));
}

/* A long list of neighbours is not read to its end for a short piece. */
static void a_run_is_extended_no_further_than_wanted(void **state)
{
    struct tk_stream s;
    void *const list[] = {from, from + 8, from + 16, from + 24};
    tk_stream_indexed(&s, 4, list, 8);
    assert_true(tk_stream_fill(&s));
    tk_stream_extend(&s, 9);
    assert_int_equal(s.left, 16);
    assert_int_equal(s.chunks, 2);
}

static void open_box(struct tk_box *box, size_t size, size_t levels, const size_t *counts,
                     const ptrdiff_t *to_strides, const ptrdiff_t *from_strides)
{
    const struct tk_strided what = {to + area / 2, to_strides, from + area / 2, from_strides,
                                    size,          counts,     levels};
    assert_true(tk_box_open(box, &what));
}

static void contiguous_dimensions_are_larger_elements(void **state)
{
    const size_t counts[] = {4, 1, 5, 3};
    const ptrdiff_t strides[] = {8, 77, 32, 1000};
    struct tk_box box;
    open_box(&box, 8, 4, counts, strides, strides);
    assert_int_equal(box.size, 8 * 4 * 5);
    assert_int_equal(box.levels, 1);
    tk_box_close(&box);
}

/* Rows that continue each other are one row, backwards on both sides is forwards, and the order of
 * dimensions is no matter. */
static void a_box_has_one_form_for_all_its_descriptions(void **state)
{
    const size_t counts[] = {3, 4};
    const ptrdiff_t rows[] = {48, 12}, turned[] = {-48, -12};
    struct tk_box box;
    open_box(&box, 4, 2, counts, rows, turned);
    assert_int_equal(box.levels, 1);
    assert_int_equal(box.level[0].count, 12);
    assert_int_equal(box.level[0].to, 12);
    assert_int_equal(box.level[0].from, -12);
    tk_box_close(&box);
    open_box(&box, 12, 2, counts, turned, turned);
    assert_int_equal(box.levels, 0);
    assert_int_equal(box.size, 144);
    assert_ptr_equal(box.to, to + area / 2 - 2 * 48 - 3 * 12);
    tk_box_close(&box);
}

static void one_side_may_be_contiguous_where_the_other_is_not(void **state)
{
    const size_t counts[] = {10, 10};
    const ptrdiff_t packed[] = {8, 80}, spread[] = {16, 160};
    struct tk_stream s;
    struct tk_box box;
    open_box(&box, 8, 2, counts, packed, spread);
    tk_stream_box(&s, &box, true);
    assert_run(&s, to + area / 2, 800);
    assert_false(tk_stream_fill(&s));
    tk_stream_box(&s, &box, false);
    assert_int_equal(s.levels, 1);
    assert_int_equal(s.chunks, 100);
    tk_box_close(&box);
}

struct seen {
    const char *at;
    size_t nbytes;
};

static bool note_range(void *context, const char *at, size_t nbytes)
{
    *(struct seen *)context = (struct seen){at, nbytes};
    return true;
}

/* The size that a target checks: exactly the remaining bytes, whatever part is done. */
static void the_range_of_a_stream_is_all_around_it(void **state)
{
    const size_t counts[] = {5, 3};
    const ptrdiff_t up[] = {16, 200}, mixed[] = {-20, 300};
    const gex_Memvec_t list[] = {{from + 100, 8}, {NULL, 0}, {from + 40, 4}, {from + 90, 30}};
    void *const addresses[] = {from + 50, from + 20, from + 70};
    struct tk_stream s;
    struct seen seen = {NULL, 0};
    struct tk_box box;
    open_box(&box, 8, 2, counts, up, mixed);
    for (size_t done = 0; done < 8 * 15; done += 24) {
        tk_stream_box(&s, &box, true);
        tk_stream_drop(&s, done);
        tk_stream_ranges(&s, note_range, &seen);
        assert_ptr_equal(seen.at, to + area / 2);
        assert_int_equal(seen.nbytes, 4 * 16 + 2 * 200 + 8);
        tk_stream_box(&s, &box, false);
        tk_stream_drop(&s, done);
        tk_stream_ranges(&s, note_range, &seen);
        assert_ptr_equal(seen.at, from + area / 2 - 4 * 20);
        assert_int_equal(seen.nbytes, 4 * 20 + 2 * 300 + 8);
    }
    tk_box_close(&box);
    tk_stream_vector(&s, 4, list);
    tk_stream_ranges(&s, note_range, &seen);
    assert_ptr_equal(seen.at, from + 40);
    assert_int_equal(seen.nbytes, 80);
    tk_stream_indexed(&s, 3, addresses, 5);
    tk_stream_ranges(&s, note_range, &seen);
    assert_ptr_equal(seen.at, from + 20);
    assert_int_equal(seen.nbytes, 55);
}

static void a_box_without_elements_is_nothing(void **state)
{
    const size_t counts[] = {3, 0};
    const ptrdiff_t strides[] = {8, 80};
    struct tk_box box;
    const struct tk_strided none = {to, strides, from, strides, 8, counts, 2};
    const struct tk_strided empty = {to, strides, from, strides, 0, counts, 1};
    assert_false(tk_box_open(&box, &none));
    assert_false(tk_box_open(&box, &empty));
}

/* ---- random boxes ---- */

struct random_box {
    size_t size, levels, counts[levels_max];
    ptrdiff_t to_strides[levels_max], from_strides[levels_max];
    char *to, *from;
};

static ptrdiff_t lowest(const struct random_box *r, const ptrdiff_t *strides, size_t *extent)
{
    ptrdiff_t low = 0, high = 0;
    for (size_t k = 0; k < r->levels; k++) {
        ptrdiff_t reach = (ptrdiff_t)(r->counts[k] - 1) * strides[k];
        *(reach < 0 ? &low : &high) += reach;
    }
    *extent = (size_t)(high - low) + r->size;
    return low;
}

/* Destinations nest, in a random order and direction; sources lie anywhere. */
static bool randomize(struct random_box *r, struct unit_random *random)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 16, 17, 32, 64, 65, 200};
    size_t extent, order[levels_max], to_extent, from_extent;
    r->size = extent = sizes[unit_below(random, 11)];
    r->levels = unit_below(random, levels_max + 1);
    for (size_t k = 0; k < r->levels; k++) {
        size_t at = unit_below(random, (unsigned)k + 1);
        order[k] = order[at];
        order[at] = k;
        r->counts[k] = 1 + unit_below(random, r->levels > 4 ? 3 : 7);
        r->from_strides[k] = (ptrdiff_t)unit_below(random, 200) - 100;
        if (unit_below(random, 3) == 0)
            r->from_strides[k] = (ptrdiff_t)r->size * (k ? (ptrdiff_t)r->counts[0] : 1);
    }
    for (size_t n = 0; n < r->levels; n++) {
        size_t k = order[n];
        r->to_strides[k] = (ptrdiff_t)(extent + (unit_below(random, 2) ? 0 : 5));
        extent += (r->counts[k] - 1) * (size_t)r->to_strides[k];
        if (unit_below(random, 3) == 0)
            r->to_strides[k] = -r->to_strides[k];
    }
    r->to = to - lowest(r, r->to_strides, &to_extent);
    r->from = from - lowest(r, r->from_strides, &from_extent);
    return to_extent <= area && from_extent <= area;
}

static void copy_model(const struct random_box *r, size_t level, char *t, const char *f)
{
    if (level == 0) {
        memcpy(t, f, r->size);
        return;
    }
    level--;
    for (size_t i = 0; i < r->counts[level]; i++)
        copy_model(r, level, t + (ptrdiff_t)i * r->to_strides[level],
                   f + (ptrdiff_t)i * r->from_strides[level]);
}

static void by_rows(struct tk_box *box, struct unit_random *random)
{
    (void)random;
    tk_copy_box(box);
}

static void by_streams(struct tk_box *box, struct unit_random *random)
{
    struct tk_stream t, f;
    (void)random;
    tk_stream_box(&t, box, true);
    tk_stream_box(&f, box, false);
    assert_int_equal(tk_stream_bytes(&t), tk_stream_bytes(&f));
    tk_copy_streams(&t, 0, &f, 0);
    assert_int_equal(tk_stream_bytes(&t) + tk_stream_bytes(&f), 0);
    tk_stream_close(&t);
    tk_stream_close(&f);
}

static bool is_in_area(void *context, const char *at, size_t nbytes)
{
    const char *base = context;
    return at >= base && at + nbytes <= base + area;
}

/* As messages do: parts of any size are gathered, copies of the stream are kept and restored, and
 * parts are scattered from those. */
static void by_parts(struct tk_box *box, struct unit_random *random)
{
    static char part[3000];
    struct tk_stream t, f, kept, restored;
    tk_stream_box(&t, box, true);
    tk_stream_box(&f, box, false);
    for (size_t left = tk_stream_bytes(&t); left > 0;) {
        size_t n = tk_min(left, 1 + unit_below(random, sizeof(part)));
        assert_true(tk_stream_ranges(&t, is_in_area, to));
        assert_true(tk_stream_ranges(&f, is_in_area, from));
        tk_copy_gather(part, &f, n);
        tk_stream_copy(&kept, &t);
        tk_stream_restore(&restored, t.next, t.chunk, t.chunks, t.levels, t.level);
        restored.at = t.at;
        restored.left = t.left;
        tk_stream_drop(&t, n);
        tk_copy_scatter(unit_below(random, 2) ? &kept : &restored, part, n);
        tk_stream_close(&kept);
        tk_stream_close(&restored);
        left -= n;
        assert_int_equal(tk_stream_bytes(&t), left);
        assert_int_equal(tk_stream_bytes(&f), left);
    }
    tk_stream_close(&t);
    tk_stream_close(&f);
}

static void compare(void (*copy)(struct tk_box *, struct unit_random *), uint64_t seed)
{
    struct unit_random random = unit_random(seed);
    for (int i = 0; i < rounds; i++) {
        struct random_box r;
        struct tk_box box;
        if (!randomize(&r, &random))
            continue;
        for (size_t k = 0; k < area; k += 64)
            memset(from + k, (int)unit_below(&random, 256), 32 + unit_below(&random, 8));
        memset(to, 1, area);
        memset(model, 1, area);
        copy_model(&r, r.levels, model + (r.to - to), r.from);
        const struct tk_strided what = {r.to,   r.to_strides, r.from,  r.from_strides,
                                        r.size, r.counts,     r.levels};
        assert_true(tk_box_open(&box, &what));
        copy(&box, &random);
        tk_box_close(&box);
        assert_memory_equal(to, model, area);
    }
}

static void rows_copy_what_plain_loops_do(void **state)
{
    compare(by_rows, 1);
}

static void streams_copy_what_plain_loops_do(void **state)
{
    compare(by_streams, 2);
}

static void parts_of_streams_copy_what_plain_loops_do(void **state)
{
    compare(by_parts, 3);
}

/* ---- ways ---- */

static void the_path_follows_from_the_pieces_and_the_settings(void **state)
{
    struct tk_vector_facts small = {.nbytes = 64000, .pieces = 1000, .may_pack = true};
    struct tk_vector_facts one = {.nbytes = 64000, .pieces = 1, .may_pack = true};
    struct tk_vector_facts large = {.nbytes = 1 << 20, .pieces = 4, .may_pack = true};
    unit_settings(NULL, NULL);
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_MESSAGES);
    assert_int_equal(tk_vector_choose(&one), TK_VECTOR_BY_PIECES);
    assert_int_equal(tk_vector_choose(&large), TK_VECTOR_BY_PIECES);
    large.is_slow = true;
    assert_int_equal(tk_vector_choose(&large), TK_VECTOR_BY_MESSAGES);
    small.is_remote_whole = small.may_stage = true;
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_STAGES);
    small.may_list = true;
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_STAGES);
    unit_settings("GASNET_VIS_LIST_MIN=64", NULL);
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_LISTS);
    unit_settings("GASNET_VIS_REMOTECONTIG=0", NULL);
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_MESSAGES);
    unit_settings("GASNET_VIS_REMOTECONTIG=0", "GASNET_VIS_AMPIPE=0", NULL);
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_PIECES);
    unit_settings("GASNET_VIS_REMOTECONTIG=0", "GASNET_VIS_PACK_LIMIT=63", NULL);
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_PIECES);
    unit_settings("GASNET_VIS_REMOTECONTIG=0", "GASNET_VIS_PACK_LIMIT=64", NULL);
    small.may_pack = false;
    assert_int_equal(tk_vector_choose(&small), TK_VECTOR_BY_PIECES);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranges_that_adjoin_are_one_run_and_empty_ones_nothing),
    cmocka_unit_test(addresses_in_a_row_are_one_run),
    cmocka_unit_test(a_run_is_extended_no_further_than_wanted),
    cmocka_unit_test(contiguous_dimensions_are_larger_elements),
    cmocka_unit_test(a_box_has_one_form_for_all_its_descriptions),
    cmocka_unit_test(one_side_may_be_contiguous_where_the_other_is_not),
    cmocka_unit_test(the_range_of_a_stream_is_all_around_it),
    cmocka_unit_test(a_box_without_elements_is_nothing),
    cmocka_unit_test(rows_copy_what_plain_loops_do),
    cmocka_unit_test(streams_copy_what_plain_loops_do),
    cmocka_unit_test(parts_of_streams_copy_what_plain_loops_do),
    cmocka_unit_test(the_path_follows_from_the_pieces_and_the_settings),
};

UNIT_MAIN(tests)
