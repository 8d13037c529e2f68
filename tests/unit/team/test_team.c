/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists with and without a table, and teams made of them: translation in both directions, subsets,
 * the fields that fast paths and clients' inline code read, the table of teams, and hooks. */
#include "config.h"

#include <stdlib.h>

#include "bootstrap/bootstrap.h"
#include "team/objects.h"
#include "unit.h"

enum { ranks = 8, me = 3 };

/* ---- not reached by these tests */

enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size)
{
    (void)key, (void)blob, (void)size;
    return TK_FAIL;
}

enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size)
{
    (void)rank, (void)key, (void)blob, (void)size;
    return TK_FAIL;
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    (void)poll, (void)deadline;
    return TK_FAIL;
}

struct tk_topology tk_topology;

/* Neighbourhoods {0, 2}, {1, 3, 5}, {4, 6, 7}; hosts {0, 1, 2, 3, 5}, {4, 6, 7}. */
static uint32_t nbrhd_of[ranks] = {0, 1, 0, 1, 2, 1, 2, 2},
                host_of[ranks] = {0, 0, 0, 0, 1, 0, 1, 1};

/* ---- hooks */

static struct {
    unsigned fills, opens, closes;
    const void *blobs;
    struct trunkline_tm *tm;
} seen;

static void hook_fill(void *blob)
{
    seen.fills++;
    memcpy(blob, "mine", 5);
}

static void hook_open(struct trunkline_tm *tm, const void *blobs)
{
    seen.opens++;
    seen.tm = tm;
    seen.blobs = blobs;
}

static void hook_close(struct trunkline_tm *tm)
{
    seen.closes++;
    seen.tm = tm;
}

static int set_up(void **state)
{
    static const struct tk_team_hooks hooks = {hook_fill, hook_open, hook_close};
    static uintptr_t unmapped[ranks];
    static uintptr_t offsets[ranks];
    if (tk_peers_open(me, ranks) != TK_OK)
        return -1;
    tk_peers_unmap(offsets, ranks);
    offsets[me] = 0;
    tk_peers.offsets = offsets;
    tk_peers_unmap(unmapped, ranks);
    tk_peers.unmapped = unmapped;
    tk_topology = (struct tk_topology){.nbrhds = 3,
                                       .my_nbrhd = 1,
                                       .my_host = 0,
                                       .hosts = 2,
                                       .nbrhd_of = nbrhd_of,
                                       .host_of = host_of};
    tk_team_use_hooks(&hooks);
    tk_teams_open();
    return 0;
}

static struct trunkline_tm *make(const uint32_t *jobranks, uint32_t count, uint32_t rank)
{
    struct tk_team_plan plan = {
        .jobranks = jobranks, .count = count, .rank = rank, .id = tk_team_next_id(), .ep = &tk_ep};
    return tk_team_make(&plan);
}

/* ---- lists */

static void check_list(const uint32_t *values, uint32_t count, bool is_rule)
{
    struct tk_list list;
    tk_list_make(&list, values, count);
    assert_int_equal(list.values == NULL, is_rule);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tk_list_at(&list, i), values[i]);
    for (uint32_t v = 0; v < 50; v++) {
        uint32_t place = 0;
        while (place < count && values[place] != v)
            place++;
        assert_int_equal(tk_list_find(&list, v), place < count ? place : tk_list_none);
    }
    bool repeats = false;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            repeats = repeats || values[i] == values[j];
    assert_int_equal(tk_list_has_repeats(&list), repeats);
    tk_list_drop(&list);
}

static void ranges_steps_either_way_and_repetitions_need_no_table(void **state)
{
    check_list((uint32_t[]){7}, 1, true);
    check_list((uint32_t[]){0, 1, 2, 3}, 4, true);
    check_list((uint32_t[]){9, 12, 15}, 3, true);
    check_list((uint32_t[]){30, 20, 10, 0}, 4, true);
    check_list((uint32_t[]){5, 5, 5}, 3, true);
    check_list(NULL, 0, true);
}

static void other_lists_are_found_in_all_the_same(void **state)
{
    check_list((uint32_t[]){1, 0, 2}, 3, false);
    check_list((uint32_t[]){40, 3, 40, 3, 7}, 5, false);
    check_list((uint32_t[]){0, 1, 2, 3, 5}, 5, false);
}

static void a_random_list_is_as_it_was_given(void **state)
{
    unsigned seed = 16;
    for (int round = 0; round < 300; round++) {
        uint32_t values[40], count = (uint32_t)rand_r(&seed) % 40;
        for (uint32_t i = 0; i < count; i++)
            values[i] = (uint32_t)rand_r(&seed) % 45;
        bool is_rule = true;
        for (uint32_t i = 2; i < count; i++)
            is_rule = is_rule && values[i] - values[i - 1] == values[1] - values[0];
        check_list(values, count, is_rule);
    }
}

/* ---- teams */

static void a_range_is_a_part_of_the_jobs_tables(void **state)
{
    struct trunkline_tm *tm = make((uint32_t[]){2, 3, 4}, 3, 1);
    assert_ptr_equal(tm->head.peers, tk_peer(2));
    assert_ptr_equal(tm->head.offsets, &tk_peers.offsets[2]);
    assert_ptr_equal(tk_peer_of(tm, 2), tk_peer(4));
    assert_int_equal(tk_team_rank(tm), 1);
    assert_int_equal(tk_team_size(tm), 3);
    tk_team_drop(tm);
}

static void ranks_of_any_team_are_translated_both_ways(void **state)
{
    const uint32_t any[] = {7, 3, 0, 4}, step[] = {7, 5, 3, 1};
    struct trunkline_tm *a = make(any, 4, 1), *b = make(step, 4, 2);
    for (uint32_t r = 0; r < 4; r++) {
        assert_int_equal(tk_team_jobrank(a, r), any[r]);
        assert_int_equal(tk_team_rank_of_jobrank(a, any[r]), r);
        assert_ptr_equal(tk_peer_of(a, r), tk_peer(any[r]));
        assert_ptr_equal(tk_peer_of(b, r), tk_peer(step[r]));
        assert_int_equal(tk_team_rank_of_jobrank(b, step[r]), r);
        assert_int_equal(a->head.offsets[r], tk_unmapped);
    }
    assert_null(tk_team_peers(a));
    assert_null(tk_team_peers(b));
    assert_int_equal(tk_team_rank_of_jobrank(a, 5), GEX_RANK_INVALID);
    assert_int_equal(tk_team_rank_of_jobrank(b, 0), GEX_RANK_INVALID);
    assert_int_equal(tk_team_rank_of_jobrank(b, ranks), GEX_RANK_INVALID);
    tk_team_drop(a);
    tk_team_drop(b);
}

/* A team may have more members than the job has processes. */
static void members_may_be_endpoints_other_than_the_first(void **state)
{
    uint32_t jobranks[2 * ranks], endpoints[2 * ranks];
    for (uint32_t r = 0; r < 2 * ranks; r++) {
        jobranks[r] = r / 2;
        endpoints[r] = r % 2;
    }
    struct tk_team_plan plan = {
        .jobranks = jobranks, .endpoints = endpoints, .count = 2 * ranks, .rank = 6, .ep = &tk_ep};
    struct trunkline_tm *tm = tk_team_make(&plan);
    assert_null(tk_team_peers(tm));
    for (uint32_t r = 0; r < 2 * ranks; r++) {
        assert_ptr_equal(tk_peer_of(tm, r), tk_peer(r / 2));
        assert_int_equal(tk_team_ep_index(tm, r), r % 2);
        assert_int_equal(tm->head.offsets[r], tk_unmapped);
    }
    assert_int_equal(tk_team_rank_of_jobrank(tm, 5), 10);
    tk_team_drop(tm);
}

static void pairs_have_the_jobs_ranks(void **state)
{
    gex_TM_t pair = tk_pair(0, 5);
    assert_int_equal(tk_team_rank(pair), me);
    assert_int_equal(tk_team_size(pair), ranks);
    assert_int_equal(tk_team_jobrank(pair, 6), 6);
    assert_int_equal(tk_team_rank_of_jobrank(pair, 6), 6);
    assert_int_equal(tk_team_rank_of_jobrank(pair, ranks), GEX_RANK_INVALID);
    assert_int_equal(tk_team_ep_index(pair, 6), 5);
    assert_ptr_equal(tk_team_ep(pair), &tk_ep);
}

static void check_subset(const struct tk_team_subset *subset, const uint32_t *expected,
                         uint32_t count, uint32_t mine)
{
    assert_int_equal(subset->ranks.count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tk_list_at(&subset->ranks, i), expected[i]);
    assert_int_equal(subset->mine, mine);
}

static void a_team_knows_neighbours_host_and_leaders_by_its_own_ranks(void **state)
{
    struct trunkline_tm *tm = make((uint32_t[]){7, 5, 2, 3, 4, 0}, 6, 3);
    check_subset(&tm->nbrhd, (uint32_t[]){1, 3}, 2, 1);
    check_subset(&tm->host, (uint32_t[]){1, 2, 3, 5}, 4, 2);
    check_subset(&tm->leaders, (uint32_t[]){0, 1, 2}, 3, 1);
    check_subset(&tk_tm.nbrhd, (uint32_t[]){1, 3, 5}, 3, 1);
    check_subset(&tk_tm.leaders, (uint32_t[]){0, 1, 4}, 3, 1);
    tk_team_drop(tm);
}

static void a_team_is_found_by_id_and_rank_while_it_lives(void **state)
{
    struct trunkline_tm *many[200];
    assert_ptr_equal(tk_team_find(0, me), &tk_tm);
    assert_null(tk_team_find(0, me + 1));
    for (int i = 0; i < 200; i++)
        many[i] = make((uint32_t[]){3, 0}, 2, 0);
    for (int i = 0; i < 200; i++)
        assert_ptr_equal(tk_team_find(many[i]->id, 0), many[i]);
    for (int i = 0; i < 200; i += 2) {
        uint64_t id = many[i]->id;
        tk_team_drop(many[i]);
        assert_null(tk_team_find(id, 0));
    }
    for (int i = 1; i < 200; i += 2) {
        assert_ptr_equal(tk_team_find(many[i]->id, 0), many[i]);
        tk_team_drop(many[i]);
    }
}

static void hooks_see_each_team_come_and_go(void **state)
{
    const uint32_t jobranks[] = {3, 4};
    char blobs[2][tk_team_blob_size], blob[tk_team_blob_size];
    memset(&seen, 0, sizeof(seen));
    tk_team_fill_blob(blob);
    assert_string_equal(blob, "mine");
    assert_int_equal(blob[tk_team_blob_size - 1], 0);
    struct tk_team_plan plan = {
        .jobranks = jobranks, .count = 2, .id = 99, .ep = &tk_ep, .blobs = blobs};
    struct trunkline_tm *tm = tk_team_make(&plan);
    assert_int_equal(seen.opens, 1);
    assert_ptr_equal(seen.tm, tm);
    assert_ptr_equal(seen.blobs, blobs);
    tk_team_drop(tm);
    assert_int_equal(seen.closes, 1);
    assert_ptr_equal(seen.tm, tm);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranges_steps_either_way_and_repetitions_need_no_table),
    cmocka_unit_test(other_lists_are_found_in_all_the_same),
    cmocka_unit_test(a_random_list_is_as_it_was_given),
    cmocka_unit_test(a_range_is_a_part_of_the_jobs_tables),
    cmocka_unit_test(ranks_of_any_team_are_translated_both_ways),
    cmocka_unit_test(members_may_be_endpoints_other_than_the_first),
    cmocka_unit_test(pairs_have_the_jobs_ranks),
    cmocka_unit_test(a_team_knows_neighbours_host_and_leaders_by_its_own_ranks),
    cmocka_unit_test(a_team_is_found_by_id_and_rank_while_it_lives),
    cmocka_unit_test(hooks_see_each_team_come_and_go),
};

int main(void)
{
    unit_deadline();
    return cmocka_run_group_tests(tests, set_up, NULL);
}
