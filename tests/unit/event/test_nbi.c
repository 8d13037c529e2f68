/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sets of implicit operations: categories, access regions and their events, leaves, and threads
 * that start and end. */
#include "config.h"

#include <pthread.h>

#include "event/event.h"
#include "event/nbi_now.h"
#include "unit.h"

static void begin(enum tk_nbi_kind kind)
{
    tk_counter_add(&tk_nbi_op(kind)->pending, 1);
}

static void end(struct tk_nbi_set *set, enum tk_nbi_kind kind)
{
    tk_counter_add(&set->ops[kind].pending, -1);
}

static void each_category_stands_for_its_own_operations(void **state)
{
    static const gex_EC_t category[] = {GEX_EC_PUT, GEX_EC_GET, GEX_EC_RMW, GEX_EC_AM};
    for (int kind = 0; kind < tk_nbi_kinds; kind++) {
        begin(kind);
        for (int other = 0; other < tk_nbi_kinds; other++) {
            bool covers = kind == other || (kind == TK_NBI_LC && other == TK_NBI_PUT);
            assert_int_equal(tk_nbi_done(tk_nbi_now, category[other]), !covers);
        }
        assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
        assert_false(tk_nbi_done(tk_nbi_now, category[kind] | GEX_EC_RMW));
        assert_true(tk_nbi_done(tk_nbi_now, 0));
        end(tk_nbi_now, kind);
        assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
    }
}

static void a_source_is_part_of_puts_and_a_category_itself(void **state)
{
    struct tk_op *put = tk_nbi_op(TK_NBI_PUT);
    tk_counter_add(&put->sources, 1);
    assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_LC));
    assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_PUT));
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_GET));
    tk_counter_add(&put->sources, -1);
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
}

static void a_region_takes_what_is_started_in_it_and_nothing_else(void **state)
{
    begin(TK_NBI_GET);
    struct tk_nbi_set *outside = tk_nbi_now;
    assert_false(tk_nbi_in_region());
    tk_nbi_begin_region();
    assert_true(tk_nbi_in_region());
    begin(TK_NBI_PUT);
    struct tk_nbi_set *region = tk_nbi_end_region();
    assert_ptr_equal(tk_nbi_now, outside);
    assert_true(tk_nbi_done(outside, GEX_EC_PUT));
    assert_true(tk_nbi_done(region, GEX_EC_GET));
    gex_Event_t root = tk_event_of_set(region);
    assert_ptr_not_equal(root, GEX_EVENT_INVALID);
    assert_false(tk_event_test(root));
    end(region, TK_NBI_PUT);
    assert_true(tk_event_test(root));
    assert_false(tk_nbi_done(outside, GEX_EC_GET));
    end(outside, TK_NBI_GET);
}

static void a_region_with_nothing_left_needs_no_event(void **state)
{
    tk_nbi_begin_region();
    struct tk_nbi_set *first = tk_nbi_now;
    assert_ptr_equal(tk_event_of_set(tk_nbi_end_region()), GEX_EVENT_INVALID);
    tk_nbi_begin_region();
    assert_ptr_equal(tk_nbi_now, first); /* its memory serves the next one */
    tk_nbi_give(tk_nbi_end_region());
}

static gex_Event_t region_with(struct tk_nbi_set **set)
{
    tk_nbi_begin_region();
    for (int kind = 0; kind < tk_nbi_kinds; kind++)
        begin(kind);
    *set = tk_nbi_end_region();
    return tk_event_of_set(*set);
}

static void leaves_of_a_region_follow_their_category(void **state)
{
    struct tk_nbi_set *set;
    gex_Event_t root = region_with(&set);
    gex_Event_t put = tk_event_leaf(root, GEX_EC_PUT), get = tk_event_leaf(root, GEX_EC_GET);
    gex_Event_t rmw = tk_event_leaf(root, GEX_EC_RMW), lc = tk_event_leaf(root, GEX_EC_LC);
    assert_ptr_equal(tk_event_leaf(root, GEX_EC_PUT), put);
    assert_true(tk_event_is_leaf(put) && tk_event_is_leaf(lc));
    end(set, TK_NBI_GET);
    assert_true(tk_event_test(get));
    assert_true(tk_event_test(get)); /* leaves consume nothing */
    assert_false(tk_event_test(put) || tk_event_test(rmw) || tk_event_test(lc));
    end(set, TK_NBI_RMW);
    assert_true(tk_event_test(rmw));
    end(set, TK_NBI_LC);
    assert_true(tk_event_test(lc));
    assert_false(tk_event_test(put) || tk_event_test(root));
    end(set, TK_NBI_PUT);
    assert_true(tk_event_test(put));
    assert_true(tk_event_test(root));
}

static void only_the_four_categories_have_leaves(void **state)
{
    static const gex_EC_t none[] = {0, 1, GEX_EC_ALL, GEX_EC_PUT | GEX_EC_GET, 16};
    struct tk_nbi_set *set;
    gex_Event_t root = region_with(&set);
    for (int i = 0; i < 5; i++)
        assert_ptr_equal(tk_event_leaf(root, none[i]), GEX_EVENT_INVALID);
    for (int kind = 0; kind < tk_nbi_kinds; kind++)
        end(set, kind);
    assert_true(tk_event_test(root));
}

/* Among other roots and leaves, in any order: a root consumes only its own leaves. */
static void a_regions_root_drops_its_leaves_from_an_array(void **state)
{
    struct tk_nbi_set *a_set, *b_set;
    size_t left;
    gex_Event_t a = region_with(&a_set), b = region_with(&b_set);
    gex_Event_t events[] = {tk_event_leaf(a, GEX_EC_PUT), a,
                            tk_event_leaf(b, GEX_EC_PUT), b,
                            tk_event_leaf(a, GEX_EC_LC),  tk_event_leaf(b, GEX_EC_GET)};
    for (int kind = 0; kind < tk_nbi_kinds; kind++)
        end(a_set, kind);
    end(b_set, TK_NBI_GET);
    assert_int_equal(tk_events_pass(events, 6, &left), 4);
    assert_int_equal(left, 2);
    assert_ptr_equal(events[3], b);
    for (int kind = 0; kind < tk_nbi_kinds; kind++)
        if (kind != TK_NBI_GET)
            end(b_set, kind);
    assert_int_equal(tk_events_pass(events, 6, &left), 2);
    assert_int_equal(left, 0);
}

/* ---- threads ---- */

static struct tk_nbi_set *of_thread;

static void *begin_one_and_end(void *unused)
{
    begin(TK_NBI_PUT);
    of_thread = tk_nbi_now;
    return unused;
}

static void *look_at_set(void *set)
{
    *(struct tk_nbi_set **)set = (tk_nbi_op(TK_NBI_PUT), tk_nbi_now);
    return NULL;
}

static void run(void *(*fn)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fn, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Its memory serves the next thread, but not while the network still counts in it. */
static void a_thread_that_ends_leaves_its_set_to_another(void **state)
{
    struct tk_nbi_set *second, *third;
    if (!TK_SEVERAL_CLIENT_THREADS)
        skip();
    run(begin_one_and_end, NULL);
    assert_ptr_not_equal(of_thread, tk_nbi_now);
    run(look_at_set, &second);
    assert_ptr_not_equal(second, of_thread);
    end(of_thread, TK_NBI_PUT);
    run(look_at_set, &third);
    assert_true(third == of_thread || third == second);
    for (int i = 0; i < 1000; i++) {
        run(look_at_set, &second);
        assert_true(second == of_thread || second == third);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_category_stands_for_its_own_operations),
    cmocka_unit_test(a_source_is_part_of_puts_and_a_category_itself),
    cmocka_unit_test(a_region_takes_what_is_started_in_it_and_nothing_else),
    cmocka_unit_test(a_region_with_nothing_left_needs_no_event),
    cmocka_unit_test(leaves_of_a_region_follow_their_category),
    cmocka_unit_test(only_the_four_categories_have_leaves),
    cmocka_unit_test(a_regions_root_drops_its_leaves_from_an_array),
    cmocka_unit_test(a_thread_that_ends_leaves_its_set_to_another),
};

UNIT_MAIN(tests)
