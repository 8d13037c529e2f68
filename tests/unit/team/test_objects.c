/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Endpoints, the team of all processes and pairs of endpoints: queries of their handles. Endpoints
 * are never freed, so their tests depend on earlier ones. */
#include "config.h"

#include "bootstrap/bootstrap.h"
#include "team/objects.h"
#include "unit.h"

enum { ranks = 5, me = 3 };

/* ---- not reached by these tests */

struct tk_topology tk_topology;
static uint32_t nbrhd_of[ranks] = {0, 1, 0, 1, 1}, host_of[ranks];

static int set_up(void **state)
{
    static uintptr_t unmapped[ranks];
    static uintptr_t offsets[ranks];
    if (tk_peers_open(me, ranks) != TK_OK)
        return -1;
    tk_peers_unmap(offsets, ranks);
    offsets[me] = 0;
    tk_peers.offsets = offsets;
    tk_peers_unmap(unmapped, ranks);
    tk_peers.unmapped = unmapped;
    tk_topology =
        (struct tk_topology){.nbrhds = 2, .my_nbrhd = 1, .nbrhd_of = nbrhd_of, .host_of = host_of};
    tk_teams_open();
    return 0;
}

/* ---- endpoints */

static void endpoint_0_is_there_before_any_is_made(void **state)
{
    assert_ptr_equal(tk_ep_at(0), &tk_ep);
    assert_int_equal(tk_ep.index, 0);
    assert_ptr_equal(tk_ep.client, &tk_client);
    assert_null(tk_ep.segment);
    assert_ptr_equal(tk_tm.ep, &tk_ep);
}

static void further_endpoints_are_numbered_as_they_are_made(void **state)
{
    struct trunkline_ep *one = tk_ep_create(GEX_EP_CAPABILITY_RMA, 0),
                        *two = tk_ep_create(GEX_EP_CAPABILITY_RMA, GEX_FLAG_HINT_ACCEL_ALL);
    assert_int_equal(one->index, 1);
    assert_int_equal(two->index, 2);
    assert_ptr_equal(tk_ep_at(1), one);
    assert_ptr_equal(tk_ep_at(2), two);
}

static void an_endpoint_is_of_the_client_has_its_flags_and_no_segment(void **state)
{
    const struct trunkline_ep *ep = tk_ep_create(GEX_EP_CAPABILITY_RMA, GEX_FLAG_HINT_ACCEL_ALL);
    assert_ptr_equal(ep->client, &tk_client);
    assert_int_equal(ep->flags, GEX_FLAG_HINT_ACCEL_ALL);
    assert_null(ep->segment);
    assert_null(ep->cdata);
}

static void no_endpoint_is_at_an_index_that_was_not_given_out(void **state)
{
    assert_null(tk_ep_at(GASNET_MAXEPS - 1));
    assert_null(tk_ep_at(GASNET_MAXEPS));
    assert_null(tk_ep_at((gex_EP_Index_t)-1));
}

static void there_are_GASNET_MAXEPS_endpoints_and_no_more(void **state)
{
    unsigned index = 0;
    for (struct trunkline_ep *ep; (ep = tk_ep_create(GEX_EP_CAPABILITY_RMA, 0));)
        index = ep->index;
    assert_int_equal(index, GASNET_MAXEPS - 1);
    assert_non_null(tk_ep_at(GASNET_MAXEPS - 1));
    assert_null(tk_ep_at(GASNET_MAXEPS));
    assert_null(tk_ep_create(GEX_EP_CAPABILITY_RMA, 0));
}

/* ---- teams and pairs */

static void a_pair_says_which_endpoints_it_is_of(void **state)
{
    for (gex_EP_Index_t local = 0; local < GASNET_MAXEPS; local++)
        for (gex_EP_Index_t remote = 0; remote < GASNET_MAXEPS; remote++) {
            gex_TM_t pair = tk_pair(local, remote);
            assert_true(tk_is_pair(pair));
            assert_int_equal(tk_pair_local(pair), local);
            assert_int_equal(tk_pair_remote(pair), remote);
        }
}

static void a_team_is_no_pair(void **state)
{
    assert_false(tk_is_pair(&tk_tm));
    assert_false(tk_is_pair(NULL));
    assert_false(tk_is_pair((gex_TM_t)(void *)(tk_pairs + sizeof(tk_pairs) / sizeof(*tk_pairs))));
}

/* Others may have more endpoints than we: an index out of range belongs to no endpoint, not to
 * another's. */
static void a_pair_with_an_index_out_of_range_names_no_endpoint(void **state)
{
    const gex_EP_Index_t wrong[] = {GASNET_MAXEPS, 63, 64, 65, 1000, (gex_EP_Index_t)-1};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        gex_TM_t pair = tk_pair(1, wrong[i]);
        assert_int_equal(tk_pair_local(pair), 1);
        assert_true(tk_pair_remote(pair) >= GASNET_MAXEPS);
        assert_int_equal(tk_bound_by(pair, 0).size, 0);
    }
}

/* Inline calls of clients read the first word of any kind of team. */
static void inline_calls_go_to_neighbours_by_the_team_and_to_nobody_by_a_pair(void **state)
{
    assert_ptr_equal(*(uintptr_t **)&tk_tm, tk_peers.offsets);
    for (gex_EP_Index_t e = 0; e < GASNET_MAXEPS; e++) {
        const uintptr_t *offsets = *(uintptr_t **)tk_pair(e, e);
        for (uint32_t r = 0; r < ranks; r++)
            assert_int_equal(offsets[r], tk_unmapped);
    }
}

static void ranks_of_teams_and_pairs_are_job_ranks(void **state)
{
    for (uint32_t r = 0; r < ranks; r++) {
        assert_ptr_equal(tk_peer_of(&tk_tm, r), tk_peer(r));
        assert_ptr_equal(tk_peer_of(tk_pair(0, 1), r), tk_peer(r));
        assert_int_equal(tk_peer_of(&tk_tm, r)->rank, r);
    }
}

static void a_team_means_segments_of_endpoints_0_and_a_pair_those_of_its_remote_one(void **state)
{
    const struct tk_bound zero = {.endpoint = 0, .base = 0x10000, .size = 4096, .fd = -1},
                          two = {.endpoint = 2, .base = 0x20000, .size = 8192, .fd = -1};
    tk_bound_set(1, &zero);
    tk_bound_set(1, &two);
    assert_int_equal(tk_bound_by(&tk_tm, 1).base, 0x10000);
    assert_int_equal(tk_bound_by(tk_pair(2, 0), 1).base, 0x10000);
    assert_int_equal(tk_bound_by(tk_pair(0, 2), 1).base, 0x20000);
    assert_int_equal(tk_bound_by(tk_pair(0, 1), 1).size, 0);
    assert_int_equal(tk_bound_by(tk_pair(0, 2), 2).size, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(endpoint_0_is_there_before_any_is_made),
    cmocka_unit_test(further_endpoints_are_numbered_as_they_are_made),
    cmocka_unit_test(an_endpoint_is_of_the_client_has_its_flags_and_no_segment),
    cmocka_unit_test(no_endpoint_is_at_an_index_that_was_not_given_out),
    cmocka_unit_test(there_are_GASNET_MAXEPS_endpoints_and_no_more),
    cmocka_unit_test(a_pair_says_which_endpoints_it_is_of),
    cmocka_unit_test(a_team_is_no_pair),
    cmocka_unit_test(a_pair_with_an_index_out_of_range_names_no_endpoint),
    cmocka_unit_test(inline_calls_go_to_neighbours_by_the_team_and_to_nobody_by_a_pair),
    cmocka_unit_test(ranks_of_teams_and_pairs_are_job_ranks),
    cmocka_unit_test(a_team_means_segments_of_endpoints_0_and_a_pair_those_of_its_remote_one),
};

int main(void)
{
    unit_deadline();
    return cmocka_run_group_tests(tests, set_up, NULL);
}
