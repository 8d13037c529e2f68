/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of rendezvous_queue.h: messages are read in order of arrival, at most one per place; a
 * message that can't begin now releases its place and lets others go first; reads complete in any
 * order; and no place is ever lost or duplicated. Single-threaded. / */
#include "config.h"

#include <stdlib.h>

#include "transport/verbs/data/rendezvous_queue.h"
#include "unit.h"

enum { many = 40 };

static struct tk_rndv_queue queue;
static struct tk_rndv all[many];

static void open_with(unsigned places, unsigned count)
{
    tk_rndv_queue_open(&queue, places);
    for (unsigned i = 0; i < count; i++) {
        all[i] = (struct tk_rndv){.size = i};
        tk_rndv_queue_add(&queue, &all[i]);
    }
}

static void begin(struct tk_rndv *rndv)
{
    tk_counter_set(&rndv->op.pending, 1);
    tk_rndv_queue_read(&queue, rndv);
}

static void complete(struct tk_rndv *rndv)
{
    tk_counter_set(&rndv->op.pending, 0);
}

static void they_begin_in_order_as_many_as_there_are_places(void **state)
{
    open_with(3, 5);
    for (unsigned i = 0; i < 3; i++) {
        struct tk_rndv *rndv = tk_rndv_queue_next(&queue);
        assert_ptr_equal(rndv, &all[i]);
        begin(rndv);
    }
    assert_null(tk_rndv_queue_next(&queue));
    assert_null(tk_rndv_queue_take(&queue));
    complete(&all[1]); /* a handler has it: it keeps its place */
    assert_ptr_equal(tk_rndv_queue_take(&queue), &all[1]);
    assert_null(tk_rndv_queue_next(&queue));
    tk_rndv_queue_leave(&queue);
    assert_ptr_equal(tk_rndv_queue_next(&queue), &all[3]);
    assert_null(tk_rndv_queue_next(&queue));
}

static void one_place_serves_all(void **state)
{
    open_with(1, many);
    for (unsigned i = 0; i < many; i++) {
        begin(tk_rndv_queue_next(&queue));
        assert_null(tk_rndv_queue_next(&queue));
        complete(&all[i]);
        assert_ptr_equal(tk_rndv_queue_take(&queue), &all[i]);
        tk_rndv_queue_leave(&queue);
    }
    assert_null(tk_rndv_queue_next(&queue));
    assert_int_equal(queue.count, 0);
    assert_int_equal(queue.places, 1);
}

static void one_without_space_lets_others_go_first(void **state)
{
    open_with(1, 3);
    tk_rndv_queue_put_back(&queue, tk_rndv_queue_next(&queue));
    assert_int_equal(queue.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        struct tk_rndv *rndv = tk_rndv_queue_next(&queue);
        assert_ptr_equal(rndv, &all[(i + 1) % 3]);
        begin(rndv);
        complete(rndv);
        assert_ptr_equal(tk_rndv_queue_take(&queue), rndv);
        tk_rndv_queue_leave(&queue);
    }
    assert_null(tk_rndv_queue_next(&queue));
}

static void reads_complete_in_any_order(void **state)
{
    static const unsigned orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}};
    for (unsigned o = 0; o < 4; o++) {
        open_with(4, 4);
        for (unsigned i = 0; i < 4; i++)
            begin(tk_rndv_queue_next(&queue));
        for (unsigned i = 0; i < 4; i++) {
            complete(&all[orders[o][i]]);
            assert_ptr_equal(tk_rndv_queue_take(&queue), &all[orders[o][i]]);
            assert_null(tk_rndv_queue_take(&queue));
        }
        open_with(2, 1); /* what was the last is added behind again */
        begin(tk_rndv_queue_next(&queue));
        complete(&all[0]);
        assert_ptr_equal(tk_rndv_queue_take(&queue), &all[0]);
        tk_rndv_queue_add(&queue, &all[1]);
        begin(tk_rndv_queue_next(&queue));
        complete(&all[1]);
        assert_ptr_equal(tk_rndv_queue_take(&queue), &all[1]);
    }
}

/* Counts the entries in all lists of the queue. */
static void places_are_neither_lost_nor_made(void **state)
{
    enum { places = 4 };
    uint64_t random = 1;
    open_with(places, 0);
    unsigned reading = 0, handled = 0, came = 0, done = 0;
    while (done < 20 * many) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        unsigned choice = (unsigned)(random >> 33) % 5, other = (unsigned)(random >> 40);
        struct tk_rndv *rndv;
        if (choice == 0 && came - done < many) {
            tk_rndv_queue_add(&queue, &all[came++ % many]);
        } else if (choice <= 2 && (rndv = tk_rndv_queue_next(&queue)) != NULL) {
            if (choice == 1) {
                tk_rndv_queue_put_back(&queue, rndv);
                /* or it would take the slot of one that is still there */
                while (queue.waiting.first != rndv)
                    tk_rndv_queue_put_back(&queue, tk_rndv_queue_next(&queue));
            } else {
                begin(rndv);
                reading++;
            }
        } else if (choice == 3) {
            for (rndv = queue.reading.first; rndv && other-- % 3; rndv = rndv->next)
                continue;
            if (rndv)
                complete(rndv);
            if (handled < places && (rndv = tk_rndv_queue_take(&queue)) != NULL) {
                assert_true(tk_op_done(&rndv->op));
                handled++;
                reading--;
            }
        } else if (choice == 4 && handled > 0) {
            handled--;
            tk_rndv_queue_leave(&queue);
            done++;
        }
        assert_int_equal(queue.places + (int)reading + (int)handled, places);
        assert_int_equal(queue.count, (int)(came - done - reading - handled));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(they_begin_in_order_as_many_as_there_are_places),
    cmocka_unit_test(one_place_serves_all),
    cmocka_unit_test(one_without_space_lets_others_go_first),
    cmocka_unit_test(reads_complete_in_any_order),
    cmocka_unit_test(places_are_neither_lost_nor_made),
};

UNIT_MAIN(tests)
