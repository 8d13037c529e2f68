/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events in arrays: leaves and their roots in any order, empty entries, operations that are reused
 * for something else while the array is processed. */
#include "config.h"

#include "event/event.h"
#include "event/nbi_now.h"
#include "unit.h"

static struct tk_op *start(int pending, int sources)
{
    struct tk_op *op = tk_op_take();
    tk_counter_set(&op->pending, pending);
    tk_counter_set(&op->sources, sources);
    return op;
}

static void finish(struct tk_op *op)
{
    tk_counter_set(&op->sources, 0);
    tk_counter_set(&op->pending, 0);
}

static gex_Event_t root(struct tk_op *op)
{
    return (gex_Event_t)op;
}

static gex_Event_t leaf(struct tk_op *op)
{
    return (gex_Event_t)&op->sources;
}

/* The next operation that has just been given back, among those that were never used. */
static struct tk_op *take_again(const struct tk_op *wanted)
{
    struct tk_op *others[1000], *op = NULL;
    int n = 0;
    while (n < 1000 && (op = tk_op_take()) != wanted)
        others[n++] = op;
    for (int i = 0; i < n; i++)
        tk_op_give(others[i]);
    return op;
}

static size_t pass(gex_Event_t *events, size_t count, size_t expected_left)
{
    size_t left, done = tk_events_pass(events, count, &left);
    assert_int_equal(left, expected_left);
    return done;
}

static void roots_and_leaves_are_distinguished(void **state)
{
    struct tk_op *op = start(1, 1);
    assert_true(tk_event_of(op) == root(op) && !tk_event_is_leaf(root(op)));
    assert_true(tk_leaf_of(op) == leaf(op) && tk_event_is_leaf(leaf(op)));
    assert_ptr_equal(tk_op_of(leaf(op)), op);
    assert_ptr_equal(tk_op_of(root(op)), op);
    assert_ptr_not_equal(leaf(op), GEX_EVENT_NO_OP);
    finish(op);
    tk_op_give(op);
}

static void what_is_done_already_needs_no_event(void **state)
{
    struct tk_op *op = start(0, 0);
    assert_ptr_equal(tk_leaf_of(op), GEX_EVENT_INVALID);
    assert_ptr_equal(tk_event_of(op), GEX_EVENT_INVALID);
    assert_ptr_equal(take_again(op), op); /* it was given back */
    tk_op_give(op);
}

static void a_leaf_does_not_wait_for_its_root(void **state)
{
    struct tk_op *op = start(1, 1);
    assert_false(tk_event_test(leaf(op)));
    tk_counter_set(&op->sources, 0);
    assert_true(tk_event_test(leaf(op)));
    assert_false(tk_event_test(root(op)));
    finish(op);
    assert_true(tk_event_test(root(op)));
}

static void a_root_that_is_done_is_given_back_once(void **state)
{
    struct tk_op *op = start(1, 0);
    assert_false(tk_event_test(root(op)));
    finish(op);
    assert_true(tk_event_test(root(op)));
    assert_true(tk_event_is_stale(root(op)));
    assert_ptr_equal(take_again(op), op);
    assert_false(tk_event_is_stale(root(op)));
    assert_ptr_not_equal(take_again(op), op);
    tk_op_give(op);
}

/* The library must not take the mark that clients' inlined test leaves in a leaf for a put whose
 * source is in use. */
static void a_leaf_may_be_synced_by_all_its_copies(void **state)
{
    struct tk_op *op = start(1, 1);
    gex_Event_t copies[] = {leaf(op), leaf(op)};
    tk_counter_set(&op->sources, 0);
    assert_true(tk_event_test(leaf(op)));
    assert_true(tk_event_test(leaf(op)));
    assert_true(tk_op_source_free(op));
    assert_ptr_equal(tk_leaf_of(op), GEX_EVENT_INVALID);
    assert_int_equal(pass(copies, 2, 0), 2);
    assert_false(tk_event_test(root(op)));
    finish(op);
    assert_true(tk_event_test(root(op)));
}

/* gasnetex.h reads an event and marks it without a call: its layout must match ours. */
static void clients_test_events_by_themselves(void **state)
{
    struct tk_op *op = start(1, 1);
    struct tk_nbi_set *set = (tk_nbi_op(TK_NBI_PUT), tk_nbi_now);
    assert_int_equal(TRUNKLINE_EVENT_CONSUMED, tk_op_free);
    assert_int_equal(root(op)->trunkline_left, 1);
    tk_counter_set(&op->sources, 0);
    assert_int_equal(leaf(op)->trunkline_left, 0);
    for (int part = 0; part <= tk_nbi_kinds; part++)
        assert_true(((gex_Event_t)&set->marks[part])->trunkline_left > 0);
    finish(op);
    tk_op_give(op);
}

static void empty_entries_are_skipped(void **state)
{
    gex_Event_t events[] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID};
    assert_int_equal(pass(events, 3, 0), 0);
    assert_int_equal(pass(NULL, 0, 0), 0);
    struct tk_op *op = start(1, 0);
    events[1] = root(op);
    assert_int_equal(pass(events, 3, 1), 0);
    finish(op);
    assert_int_equal(pass(events, 3, 0), 1);
    assert_ptr_equal(events[1], GEX_EVENT_INVALID);
}

static void what_is_complete_is_consumed_and_the_rest_stays(void **state)
{
    struct tk_op *a = start(0, 0), *b = start(1, 0), *c = start(0, 0);
    gex_Event_t events[] = {root(a), root(b), root(c)};
    assert_int_equal(pass(events, 3, 1), 2);
    assert_ptr_equal(events[0], GEX_EVENT_INVALID);
    assert_ptr_equal(events[1], root(b));
    assert_ptr_equal(events[2], GEX_EVENT_INVALID);
    finish(b);
    assert_int_equal(pass(events, 3, 0), 1);
}

/* Syncing the root consumes the leaf: in either order both are done and nothing is touched
 * after its operation was given back. */
static void a_leaf_may_stand_before_or_behind_its_root(void **state)
{
    for (int root_at = 0; root_at < 2; root_at++) {
        struct tk_op *op = start(1, 1);
        gex_Event_t events[2];
        events[root_at] = root(op);
        events[1 - root_at] = leaf(op);
        assert_int_equal(pass(events, 2, 2), 0);
        finish(op);
        assert_int_equal(pass(events, 2, 0), 2);
    }
}

static void a_leaf_alone_may_be_done_first(void **state)
{
    struct tk_op *op = start(1, 1);
    gex_Event_t events[] = {root(op), leaf(op)};
    tk_counter_set(&op->sources, 0);
    assert_int_equal(pass(events, 2, 1), 1);
    assert_ptr_equal(events[0], root(op));
    finish(op);
    assert_int_equal(pass(events, 2, 0), 1);
}

/* All arrangements of two operations with their leaves, in every state of completion. */
static void every_arrangement_of_two_operations_comes_out_right(void **state)
{
    for (int order = 0; order < 256; order++) {
        int at[4] = {order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6};
        if ((1 << at[0] | 1 << at[1] | 1 << at[2] | 1 << at[3]) != 15)
            continue;
        for (int done = 0; done < 4; done++) {
            struct tk_op *ops[2] = {start(1, 1), start(1, 1)};
            gex_Event_t events[4];
            for (int i = 0; i < 2; i++) {
                events[at[2 * i]] = root(ops[i]);
                events[at[2 * i + 1]] = leaf(ops[i]);
                if (done >> i & 1)
                    finish(ops[i]);
            }
            size_t complete = 2 * (size_t)((done & 1) + (done >> 1));
            assert_int_equal(pass(events, 4, 4 - complete), complete);
            finish(ops[0]);
            finish(ops[1]);
            assert_int_equal(pass(events, 4, 0), 4 - complete);
        }
    }
}

/* An operation that was given back serves the next put, perhaps while the array is being looked at:
 * its leaf must not be asked then. The trap: the recycled operation seems busy. */
static void a_leaf_is_dropped_with_its_root_before_the_operation_is_recycled(void **state)
{
    struct tk_op *op = start(0, 0), *other = start(1, 1);
    gex_Event_t events[] = {root(op), root(other), leaf(op), leaf(op)};
    assert_int_equal(pass(events, 4, 1), 3);
    struct tk_op *recycled = take_again(op);
    assert_ptr_equal(recycled, op);
    tk_counter_set(&recycled->pending, 5);
    tk_counter_set(&recycled->sources, 5);
    assert_int_equal(pass(events, 4, 1), 0);
    finish(recycled);
    tk_op_give(recycled);
    finish(other);
    assert_int_equal(pass(events, 4, 0), 1);
}

static void a_large_array_is_passed_in_one_go(void **state)
{
    enum { count = 1000 };
    static gex_Event_t events[count];
    for (int i = 0; i < count; i++)
        events[i] = root(start(i % 3 == 0, 0));
    size_t open = (count + 2) / 3;
    assert_int_equal(pass(events, count, open), count - open);
    for (int i = 0; i < count; i += 3)
        finish(tk_op_of(events[i]));
    assert_int_equal(pass(events, count, 0), open);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(roots_and_leaves_are_distinguished),
    cmocka_unit_test(what_is_done_already_needs_no_event),
    cmocka_unit_test(a_leaf_does_not_wait_for_its_root),
    cmocka_unit_test(a_root_that_is_done_is_given_back_once),
    cmocka_unit_test(a_leaf_may_be_synced_by_all_its_copies),
    cmocka_unit_test(clients_test_events_by_themselves),
    cmocka_unit_test(empty_entries_are_skipped),
    cmocka_unit_test(what_is_complete_is_consumed_and_the_rest_stays),
    cmocka_unit_test(a_leaf_may_stand_before_or_behind_its_root),
    cmocka_unit_test(a_leaf_alone_may_be_done_first),
    cmocka_unit_test(every_arrangement_of_two_operations_comes_out_right),
    cmocka_unit_test(a_leaf_is_dropped_with_its_root_before_the_operation_is_recycled),
    cmocka_unit_test(a_large_array_is_passed_in_one_go),
};

UNIT_MAIN(tests)
