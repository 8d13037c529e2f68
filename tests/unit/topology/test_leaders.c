/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of leaders: each message is awaited by the leader that it goes to, and ranks are those
 * that come first in their neighbourhoods, also if neighbourhoods take ranks in turn. */
#include "config.h"

#include "topology/leaders.h"
#include "topology/topology.h"
#include "unit.h"

enum { most = 70, each = 3 };

static void assert_steps_fit(uint32_t count, bool on_demand)
{
    struct tk_leaders one, other;
    for (uint32_t mine = 0; mine < count; mine++) {
        tk_leaders_plan(&one, mine, count, on_demand);
        assert_true(one.all <= tk_leaders_steps_max);
        for (unsigned i = 0; i < one.all; i++) {
            const struct tk_leaders_step *step = &one.steps[i];
            if (!step->sends)
                continue;
            assert_true(step->to < count && step->to != mine);
            tk_leaders_plan(&other, step->to, count, on_demand);
            assert_true(tk_leaders_await(&other, step->to_step));
            assert_int_equal(other.steps[step->to_step].from, mine);
        }
    }
}

static void test_each_message_is_awaited(void **state)
{
    (void)state;
    for (uint32_t count = 1; count < most; count++) {
        assert_steps_fit(count, true);
        assert_steps_fit(count, false);
    }
}

static void test_few_barriers_use_the_tree(void **state)
{
    (void)state;
    struct tk_leaders leaders;
    tk_leaders_plan(&leaders, 0, most, true);
    assert_true(tk_leaders_use_tree(&leaders, tk_leaders_few - 1));
    assert_false(tk_leaders_use_tree(&leaders, tk_leaders_few));
    tk_leaders_plan(&leaders, 0, most, false);
    assert_false(tk_leaders_use_tree(&leaders, 0));
}

/* What a rank may have to receive at once: leaders.h. */
static void test_enough_messages_are_expected(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= most; count++)
        for (uint32_t mine = 0; mine < 2 * count; mine++) {
            struct tk_leaders leaders;
            int tree = 0, rounds = 0;
            tk_leaders_plan(&leaders, mine / 2, count, mine % 2);
            for (unsigned i = 0; i < leaders.all; i++)
                *(i < leaders.tree ? &tree : &rounds) += leaders.steps[i].awaits;
            int at_end = leaders.tree ? tree : rounds;
            assert_true(tk_leaders_ahead * (tree + 2 * rounds) + at_end <=
                        tk_leaders_messages_max(count));
        }
    assert_int_equal(tk_leaders_messages_max(256), 2 * 3 + 4 * 8 + 8);
}

/* Rank r is in neighbourhood r % most, so its first rank is that of its index; or in r / each. */
static void assert_ranks(uint32_t mine, bool in_turn)
{
    static uint32_t nbrhd_of[most * each];
    struct tk_leaders by_nbrhd, by_rank;
    for (uint32_t r = 0; r < most * each; r++)
        nbrhd_of[r] = in_turn ? r % most : r / each;
    tk_topology.nbrhd_of = nbrhd_of;
    tk_topology.nbrhds = most;
    tk_topology.my_nbrhd = mine;
    tk_topology.nbrhd_rank = 0;
    tk_leaders_plan(&by_nbrhd, mine, most, true);
    tk_leaders_open(&by_rank, true);
    assert_int_equal(by_rank.all, by_nbrhd.all);
    for (unsigned i = 0; i < by_rank.all; i++) {
        const struct tk_leaders_step *step = &by_rank.steps[i], *plan = &by_nbrhd.steps[i];
        assert_true(step->sends == plan->sends && step->awaits == plan->awaits);
        if (step->sends)
            assert_int_equal(step->to, in_turn ? plan->to : plan->to * each);
        if (step->awaits)
            assert_int_equal(step->from, in_turn ? plan->from : plan->from * each);
    }
}

static void test_ranks_are_the_first_of_their_neighbourhoods(void **state)
{
    (void)state;
    for (uint32_t mine = 0; mine < most; mine++) {
        assert_ranks(mine, true);
        assert_ranks(mine, false);
    }
}

static void test_other_ranks_have_no_steps(void **state)
{
    (void)state;
    struct tk_leaders leaders;
    tk_topology.nbrhd_rank = 1;
    tk_leaders_open(&leaders, true);
    assert_int_equal(leaders.all, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_message_is_awaited),
        cmocka_unit_test(test_few_barriers_use_the_tree),
        cmocka_unit_test(test_enough_messages_are_expected),
        cmocka_unit_test(test_ranks_are_the_first_of_their_neighbourhoods),
        cmocka_unit_test(test_other_ranks_have_no_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
