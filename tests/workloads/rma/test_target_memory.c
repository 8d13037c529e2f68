/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that swarm and sharing read and write, and the names of a swarm (S1, S2), without a
 * job. */
#include "config.h"

#include "target_memory.h"
#include "names.h"
#include "unit.h"

/* ---- Names */

static void names_are_unique_and_partners_of_partners_themselves(void **state)
{
    for (uint32_t n = 1; n <= 8; n++)
        for (uint32_t m = 1; m <= 8; m++)
            for (uint32_t w = 1; w <= 4; w += 3) {
                struct swarm_size size = {n, m, w};
                uint64_t named = 0, connected = 0, to_first = 0;
                for (uint32_t p = 0; p < n; p++)
                    for (uint32_t t = 0; t < w; t++)
                        for (uint32_t k = 0; k < n * m; k++) {
                            struct swarm_end end = {p, t, k}, other = swarm_partner(size, end);
                            struct swarm_end back = swarm_partner(size, other);
                            assert_memory_equal(&end, &back, sizeof(end));
                            assert_int_equal(other.thread, t);
                            assert_int_equal(swarm_machine(size, other), swarm_machine(size, end));
                            assert_int_equal(swarm_peer(size, other), p);
                            named++;
                            connected += swarm_connected(size, end);
                            to_first += swarm_connected(size, end) && other.process == 0;
                        }
                assert_int_equal(named, n * swarm_named(size));
                assert_int_equal(connected, n * swarm_connected_ends(size));
                assert_int_equal(connected, 2 * swarm_connections(size));
                assert_int_equal(to_first, swarm_connected_ends(size));
            }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void names_are_those_of_the_document(void **state)
{
    enum { n = 8, m = 8, w = 4, all = n * n * m * w };
    static char names[all][swarm_name_max];
    struct swarm_size size = {n, m, w};
    size_t count = 0;
    char name[swarm_name_max];
    swarm_name(size, (struct swarm_end){3, 2, 13}, name);
    assert_string_equal(name, "on_phys_mc_3-at_thr_2-for_phys_mc_5-for_vm_1");
    swarm_name(size, swarm_partner(size, (struct swarm_end){3, 2, 13}), name);
    assert_string_equal(name, "on_phys_mc_5-at_thr_2-for_phys_mc_3-for_vm_1");
    for (uint32_t p = 0; p < n; p++)
        for (uint32_t t = 0; t < w; t++)
            for (uint32_t k = 0; k < n * m; k++)
                swarm_name(size, (struct swarm_end){p, t, k}, names[count++]);
    qsort(names, all, sizeof(names[0]), by_text);
    for (size_t i = 1; i < all; i++)
        assert_string_not_equal(names[i - 1], names[i]);
}

static void every_writer_has_a_ring_of_its_own(void **state)
{
    struct swarm_size size = {5, 3, 2};
    bool taken[30] = {false};
    for (uint32_t from = 0; from < 5; from++)
        for (uint32_t t = 0; t < 2; t++)
            for (uint32_t machine = 0; machine < 3; machine++) {
                size_t writer = swarm_writer(size, from, t, machine);
                assert_true(writer < swarm_named(size) && !taken[writer]);
                taken[writer] = true;
            }
}

/* ---- Ground */

static struct rma_memory memory_of(size_t size)
{
    struct rma_memory g = {
        .seed = 5, .sources = 2, .source_size = 4000, .writers = 3, .threads = 2, .window = 4};
    rma_memory_set(&g, size);
    return g;
}

static void areas_do_not_overlap(void **state)
{
    for (size_t size = 1; size < 300; size += 21) {
        struct rma_memory g = memory_of(size);
        assert_true(g.stride >= size + rma_line);
        unsigned char *used = calloc(1, rma_memory_bytes(&g));
        for (size_t w = 0; w < g.writers; w++)
            for (size_t i = 0; i < 8; i++)
                assert_int_equal(used[rma_at_greeting(&g, w) + i]++, 0);
        for (size_t s = 0; s < g.sources; s++)
            for (size_t i = 0; i < g.source_size; i++)
                assert_int_equal(used[rma_at_source(&g, s) + i]++, 0);
        for (size_t w = 0; w < g.writers; w++)
            for (uint64_t seq = 1; seq <= g.ring; seq++)
                for (size_t i = 0; i < g.stride; i++)
                    assert_int_equal(used[rma_at_cell(&g, w, seq) + i]++, 0);
        for (size_t t = 0; t < g.threads; t++)
            for (size_t slot = 0; slot < g.window; slot++) {
                assert_int_equal(rma_at_local(&g, t, slot) % rma_line, 0);
                for (size_t i = 0; i < size; i++)
                    assert_int_equal(used[rma_at_local(&g, t, slot) + i]++, 0);
            }
        free(used);
    }
}

static void a_pattern_tells_place_and_source(void **state)
{
    struct rma_memory g = memory_of(100);
    static unsigned char bytes[65536];
    unsigned char part[100];
    rma_pattern(&g, 7, 0, bytes, sizeof(bytes));
    for (size_t x = 0; x < sizeof(bytes); x++)
        assert_true(bytes[x] != 0);
    for (size_t at = 0; at < 900; at += 37) {
        rma_pattern(&g, 7, at, part, sizeof(part));
        assert_memory_equal(part, bytes + at, sizeof(part));
        assert_true(rma_pattern_holds(&g, 7, at, part, sizeof(part)));
        assert_false(rma_pattern_holds(&g, 8, at, part, sizeof(part)));
        assert_false(rma_pattern_holds(&g, 7, at + 64, part, sizeof(part)));
        part[99] ^= 1;
        assert_false(rma_pattern_holds(&g, 7, at, part, sizeof(part)));
    }
}

/* A line that is late is missed, whichever it is. */
static void a_read_has_arrived_when_all_its_lines_have(void **state)
{
    static const size_t sizes[] = {1, 8, 63, 64, 65, 128, 200};
    struct rma_memory g = memory_of(100);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++)
        for (size_t late = 0; late < sizes[s]; late += 64) {
            char memory[256];
            size_t line = sizes[s] - late < 64 ? sizes[s] - late : 64;
            rma_pattern(&g, 7, 3, memory, sizeof(memory));
            assert_true(rma_has_arrived(memory, sizes[s]));
            memset(memory + late, 0, line);
            assert_false(rma_has_arrived(memory, sizes[s]));
        }
}

static void a_ring_holds_what_was_written_last(void **state)
{
    static const size_t sizes[] = {1, 8, 20, 200};
    for (size_t s = 0; s < 4; s++)
        for (uint64_t last = 0; last < 20; last++) {
            struct rma_memory g = memory_of(sizes[s]);
            char *segment = calloc(1, rma_memory_bytes(&g));
            uint64_t bad = 0;
            rma_memory_fill(&g, segment, 4);
            for (uint64_t seq = 1; seq <= last; seq++)
                rma_cell_fill(&g, 9, seq, segment + rma_at_cell(&g, 1, seq));
            assert_int_equal(rma_ring_wrong(&g, segment, 1, 9, last, &bad), 0);
            assert_int_equal(rma_memory_changed_lines(&g, segment, 4), 0);
            assert_int_not_equal(rma_ring_wrong(&g, segment, 1, 9, last + 1, &bad), 0);
            assert_int_equal(bad, last + 1);
            assert_int_equal(rma_ring_wrong(&g, segment, 2, 9, last, NULL) > 0, last > 0);
            if (last && sizes[s] > 8)
                assert_int_not_equal(rma_ring_wrong(&g, segment, 1, 8, last, NULL), 0);
            segment[rma_at_cell(&g, 2, 3) + g.size] ^= 1; /* behind a cell */
            assert_int_equal(rma_memory_changed_lines(&g, segment, 4), 1);
            segment[rma_at_source(&g, 1) + 5] ^= 1;
            assert_int_equal(rma_memory_changed_lines(&g, segment, 4), 2);
            assert_int_equal(rma_ring_wrong(&g, segment, 0, 9, 0, NULL), 0);
            segment[rma_at_cell(&g, 0, 3)] ^= 1; /* changed, though not written by the rule */
            assert_int_equal(rma_ring_wrong(&g, segment, 0, 9, 0, NULL), 1);
            free(segment);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names_are_unique_and_partners_of_partners_themselves),
    cmocka_unit_test(names_are_those_of_the_document),
    cmocka_unit_test(every_writer_has_a_ring_of_its_own),
    cmocka_unit_test(areas_do_not_overlap),
    cmocka_unit_test(a_pattern_tells_place_and_source),
    cmocka_unit_test(a_read_has_arrived_when_all_its_lines_have),
    cmocka_unit_test(a_ring_holds_what_was_written_last),
};
UNIT_MAIN(tests)
