/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The blobs of a host in one: what comes out is what went in, and what is no such blob is refused.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/host_blob.h"
#include "unit.h"

enum { ranks_max = 64, blob_max = 600, job = 1000 };

static char blobs_of[ranks_max][blob_max];
static struct tk_bootstrap_blob blobs[ranks_max];
static uint64_t sizes[job];
static char table[job][blob_max];

static void *place(uint32_t rank, void *base)
{
    (void)base;
    return table[rank];
}

/* Blobs of `size` bytes that differ in byte `at` and in the last one. */
static void make_blobs(uint32_t count, size_t size, size_t at)
{
    for (uint32_t i = 0; i < count; i++) {
        for (size_t k = 0; k < size; k++)
            blobs_of[i][k] = (char)(k * 7);
        if (size > 0) {
            blobs_of[i][at] = (char)i;
            blobs_of[i][size - 1] = (char)(i * 3);
        }
        blobs[i] = (struct tk_bootstrap_blob){.at = blobs_of[i], .size = size};
    }
}

static struct tk_bootstrap_blob pack(const uint32_t *ranks, uint32_t count)
{
    struct tk_bootstrap_blob packed;
    packed.at = tk_host_pack(ranks, blobs, count, &packed.size);
    assert_non_null(packed.at);
    return packed;
}

static bool read_sizes(const struct tk_bootstrap_blob *packed)
{
    for (uint32_t r = 0; r < job; r++)
        sizes[r] = tk_host_no_size;
    return tk_host_read_sizes(packed, sizes, job);
}

static void assert_same(const struct tk_bootstrap_blob *packed, const uint32_t *ranks,
                        uint32_t count)
{
    assert_true(read_sizes(packed));
    tk_host_unpack(packed, place, NULL);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(sizes[ranks[i]], blobs[i].size);
        assert_memory_equal(table[ranks[i]], blobs[i].at, blobs[i].size);
    }
}

static void ranks_differ_in_few_words(void **state)
{
    static const size_t all[] = {0, 1, 3, 4, 5, 32, 33, 129, 561};
    uint32_t ranks[ranks_max];
    for (size_t s = 0; s < sizeof(all) / sizeof(all[0]); s++)
        for (uint32_t count = 1; count <= ranks_max; count *= 4) {
            for (uint32_t i = 0; i < count; i++)
                ranks[i] = 7 + i;
            make_blobs(count, all[s], all[s] / 2);
            struct tk_bootstrap_blob packed = pack(ranks, count);
            assert_same(&packed, ranks, count);
            assert_true(packed.size <= sizeof(struct tk_host_blob) + sizeof(struct tk_host_run) +
                                           all[s] + all[s] / 32 + 1 + (count - 1) * 8);
            free(packed.at);
        }
}

/* By node, by turns, and at random. */
static void ranks_lie_as_the_launcher_wants(void **state)
{
    static const uint32_t each[][5] = {
        {0, 1, 2, 3, 4}, {3, 103, 203, 303, 403}, {0, 2, 4, 7, 999}, {5, 900, 901, 902, 904}};
    for (int i = 0; i < 4; i++) {
        make_blobs(5, 100, 50);
        struct tk_bootstrap_blob packed = pack(each[i], 5);
        assert_same(&packed, each[i], 5);
        uint32_t named = 0;
        for (uint32_t r = 0; r < job; r++)
            named += sizes[r] != tk_host_no_size;
        assert_int_equal(named, 5);
        free(packed.at);
    }
}

static void sizes_may_differ(void **state)
{
    static const uint32_t ranks[] = {1, 2, 3, 4};
    make_blobs(4, 100, 50);
    blobs[1].size = 99;
    blobs[3].size = 0;
    struct tk_bootstrap_blob packed = pack(ranks, 4);
    assert_same(&packed, ranks, 4);
    free(packed.at);
}

/* Each byte of the head, of the runs and of the sizes is changed: it is refused, or is another blob
 * within the bounds; nothing is read beyond the end. Each shorter one is refused. */
static void what_is_no_blob_of_a_host_is_refused(void **state)
{
    static const uint32_t ranks[] = {1, 2, 3, 4};
    make_blobs(4, 100, 50);
    blobs[2].size = 7;
    struct tk_bootstrap_blob good = pack(ranks, 4);
    for (size_t size = 0; size < good.size; size++) {
        struct tk_bootstrap_blob cut = {.at = malloc(size + 1), .size = size};
        memcpy(cut.at, good.at, size);
        assert_false(read_sizes(&cut));
        free(cut.at);
    }
    for (size_t at = 0; at < good.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            ((char *)good.at)[at] ^= (char)(1 << bit);
            bool is_taken = read_sizes(&good);
            for (uint32_t r = 0; is_taken && r < job; r++)
                assert_true(sizes[r] == tk_host_no_size || sizes[r] <= blob_max);
            if (at < sizeof(struct tk_host_blob) - sizeof(uint64_t))
                assert_false(is_taken);
            ((char *)good.at)[at] ^= (char)(1 << bit);
        }
    assert_same(&good, ranks, 4);
    free(good.at);
}

static void a_rank_is_in_one_blob(void **state)
{
    static const uint32_t ranks[] = {1, 2};
    make_blobs(2, 10, 5);
    struct tk_bootstrap_blob packed = pack(ranks, 2);
    assert_true(read_sizes(&packed));
    assert_false(tk_host_read_sizes(&packed, sizes, job));
    for (uint32_t r = 0; r < job; r++)
        sizes[r] = tk_host_no_size;
    assert_false(tk_host_read_sizes(&packed, sizes, 2)); /* rank 2 is not in a job of two */
    free(packed.at);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_differ_in_few_words),
    cmocka_unit_test(ranks_lie_as_the_launcher_wants),
    cmocka_unit_test(sizes_may_differ),
    cmocka_unit_test(what_is_no_blob_of_a_host_is_refused),
    cmocka_unit_test(a_rank_is_in_one_blob),
};

UNIT_MAIN(tests)
