/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decisions of the end of a job, without ranks: times, the path of a notice, which rank asks
 * when, and what the last fence carries. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "exit/decide.h"
#include "settings/settings.h"

#include "unit.h"

static void the_grace_grows_where_ranks_outnumber_cpus(void **unused)
{
    (void)unused;
    assert_int_equal(tk_exit_grace(false, 128, 128), TK_SECOND / 10);
    assert_int_equal(tk_exit_grace(true, 4, 2), TK_SECOND / 5);
    assert_int_equal(tk_exit_grace(true, 256, 2), 128 * TK_SECOND / 200);
}

static void the_timeout_has_a_least_and_a_most(void **unused)
{
    (void)unused;
    tk_settings.exit_timeout = 0;
    tk_settings.exit_timeout_min = 2;
    tk_settings.exit_timeout_factor = 0.02;
    tk_settings.exit_timeout_max = 20;
    assert_true(tk_exit_timeout_of(100) > 3.99 && tk_exit_timeout_of(100) < 4.01);
    assert_true(tk_exit_timeout_of(1000000) == 20);
    tk_settings.exit_timeout = 7;
    assert_true(tk_exit_timeout_of(1000000) == 7);
}

/* A notice that begins at any leader reaches each other one, and each once. */
static void follow(uint32_t count, uint32_t origin)
{
    uint32_t *queue = calloc(2 * (size_t)count, sizeof(*queue)), *from = queue + count;
    uint8_t *seen = calloc(count, 1);
    uint32_t first = 0, end = 1;
    queue[0] = origin, from[0] = UINT32_MAX, seen[origin] = 1;
    while (first < end) {
        uint32_t to[tk_notice_over_tree_max], me = queue[first];
        struct tk_leaders leaders;
        tk_leaders_plan(&leaders, me, count, true);
        unsigned many = tk_notice_over_tree(&leaders, from[first++], to);
        assert_true(many <= tk_notice_over_tree_max);
        for (unsigned i = 0; i < many; i++) {
            assert_int_equal(seen[to[i]]++, 0);
            queue[end] = to[i], from[end++] = me;
        }
    }
    assert_int_equal(end, count);
    free(queue);
    free(seen);
}

static void a_notice_reaches_each_leader_once(void **unused)
{
    (void)unused;
    for (uint32_t count = 9; count < 70; count++)
        for (uint32_t origin = 0; origin < count; origin++)
            follow(count, origin);
    follow(4096, 0);
    follow(4096, 4095);
    follow(4096, 2000);
}

static void few_leaders_have_no_tree(void **unused)
{
    (void)unused;
    struct tk_leaders leaders;
    uint32_t to[tk_notice_over_tree_max];
    tk_leaders_plan(&leaders, 0, 8, true);
    assert_false(tk_leaders_have_tree(8, true));
    assert_int_equal(tk_notice_over_tree(&leaders, UINT32_MAX, to), 0);
    assert_false(tk_leaders_have_tree(1000, false));
    assert_true(tk_leaders_have_tree(9, true));
}

/* Down the tree each leader asks later than the one above it, and ranks of no neighbourhood before
 * a leader. */
static void the_deeper_asks_the_later(void **unused)
{
    (void)unused;
    const uint64_t grace = TK_SECOND / 10;
    for (uint32_t count = 9; count < 2000; count = count * 3 / 2) {
        uint32_t deepest = 0;
        for (uint32_t n = 0; n < count; n++) {
            struct tk_leaders leaders, other;
            tk_leaders_plan(&leaders, n, count, true);
            deepest = leaders.depth > deepest ? leaders.depth : deepest;
            for (unsigned i = 0; i < leaders.tree; i++)
                if (leaders.steps[i].sends) {
                    tk_leaders_plan(&other, leaders.steps[i].to, count, true);
                    assert_int_equal(other.depth,
                                     leaders.depth + (leaders.steps[i].to > n ? 1 : -1));
                }
        }
        assert_true(tk_elect_depth_of_neighbour(count, 1) > deepest);
        assert_true(tk_elect_depth_of_neighbour(count, 9) > tk_elect_depth_of_neighbour(count, 1));
    }
    assert_int_equal(tk_elect_pause(0, grace), 0);
    assert_int_equal(tk_elect_pause(3, grace), 3 * tk_elect_pause(1, grace));
    assert_true(tk_elect_pause(20, grace) <= 2 * grace); /* a million leaders */
}

static void a_rank_asks_once_and_only_after_its_pause(void **unused)
{
    (void)unused;
    struct tk_elect_view v = {.me = 5, .ranks = 100, .asks_after = 1000, .waited = 999};
    assert_false(tk_elect_next(&v).asks);
    v.waited = 1000;
    assert_true(tk_elect_next(&v).asks);
    v.is_notified = true;
    assert_false(tk_elect_next(&v).asks);
    assert_int_equal(tk_elect_next(&v).role, TK_ROLE_MEMBER);
    v.is_notified = false;
    v.has_asked = true;
    assert_false(tk_elect_next(&v).asks);
    assert_int_equal(tk_elect_next(&v).role, TK_ROLE_OPEN);
    v.waited = 1000 + TK_SECOND; /* rank 0 is silent */
    assert_int_equal(tk_elect_next(&v).role, TK_ROLE_LEADER);
    v.answer = TK_ELECT_FOLLOW;
    assert_int_equal(tk_elect_next(&v).role, TK_ROLE_MEMBER);
}

/* All leaders step by the decisions alone, in order of their numbers, until none can. */
static unsigned agree(uint32_t count, bool on_demand, uint32_t missing)
{
    struct tk_agree_place *at = calloc(count, sizeof(*at));
    uint64_t *came = calloc(count, sizeof(*came));
    unsigned over = 0;
    struct tk_leaders l;
    for (uint32_t n = 0; n < count; n++) {
        tk_leaders_plan(&l, n, count, on_demand);
        tk_agree_at_begin(&at[n], &l);
    }
    for (bool moved = true; moved;) {
        moved = false;
        over = 0;
        for (uint32_t n = 0; n < count; n++) {
            tk_leaders_plan(&l, n, count, on_demand);
            const struct tk_leaders_step *step = &l.steps[at[n].step];
            enum tk_agree_action action =
                n == missing ? TK_AGREE_WAIT : tk_agree_next(&at[n], &l, came[n] >> at[n].step & 1);
            if (action == TK_AGREE_SEND) {
                came[step->to] |= UINT64_C(1) << step->to_step;
                tk_agree_sent(&at[n]);
            } else if (action == TK_AGREE_PASS) {
                tk_agree_passed(&at[n]);
            }
            moved |= action == TK_AGREE_SEND || action == TK_AGREE_PASS;
            over += action == TK_AGREE_OVER;
        }
    }
    free(at);
    free(came);
    return over;
}

static void all_agree_or_none(void **unused)
{
    (void)unused;
    for (int on_demand = 0; on_demand < 2; on_demand++)
        for (uint32_t count = 2; count < 40; count++) {
            assert_int_equal(agree(count, on_demand, UINT32_MAX), count);
            for (uint32_t missing = 0; missing < count; missing += 3)
                assert_int_equal(agree(count, on_demand, missing), 0);
        }
}

/* A rank without the network is still in the fence when the last others enter it: they are notified
 * when the elected rank loses its patience, and wait for a grace period. */
static void a_rank_without_the_network_waits_for_those_notified_late(void **unused)
{
    (void)unused;
    const uint64_t grace = TK_SECOND / 10;
    assert_int_equal(tk_leave_aside_max(0, grace), 3 * grace); /* no tree */
    for (uint32_t depth = 1; depth < 30; depth++)
        assert_true(tk_leave_aside_max(depth, grace) >=
                    tk_elect_pause(depth, grace) + tk_notice_patience(grace) + 5 * grace / 2);
    assert_true(tk_leave_aside_max(9, 10 * grace) <= tk_aside_watchdog * TK_SECOND - 5 * grace);
}

static void codes_travel_where_one_may_be_missed(void **unused)
{
    (void)unused;
    assert_false(tk_leave_puts_code(8, 0, true, false));
    assert_true(tk_leave_puts_code(8, 0, false, false));
    assert_true(tk_leave_puts_code(8, 3, true, false));
    assert_false(tk_leave_puts_code(1, 3, true, false));
    assert_false(tk_leave_puts_code(8, 3, true, true));
    assert_true(tk_leave_parts(false, false, false));
    assert_true(tk_leave_parts(true, true, false));
    assert_true(tk_leave_parts(true, false, true));
    assert_false(tk_leave_parts(true, false, false));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_grace_grows_where_ranks_outnumber_cpus),
    cmocka_unit_test(the_timeout_has_a_least_and_a_most),
    cmocka_unit_test(a_notice_reaches_each_leader_once),
    cmocka_unit_test(few_leaders_have_no_tree),
    cmocka_unit_test(the_deeper_asks_the_later),
    cmocka_unit_test(a_rank_asks_once_and_only_after_its_pause),
    cmocka_unit_test(all_agree_or_none),
    cmocka_unit_test(a_rank_without_the_network_waits_for_those_notified_late),
    cmocka_unit_test(codes_travel_where_one_may_be_missed),
};

UNIT_MAIN(tests)
