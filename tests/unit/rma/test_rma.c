/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Put and get above the transports: when a call returns, when events are returned, the meaning of
 * immediate, and that an operation never seems complete while pieces remain to be posted. */
#include "config.h"

#include "event/event.h"
#include "event/nbi_now.h"
#include "fake_job.h"
#include "rma/rma.h"
#include "transport/self/self.h"
#include "unit.h"

static char far[10000], near[10000];

static int set_up(void **state)
{
    unit_settings(NULL, NULL);
    fake_job_open(2);
    memset(far, 'f', sizeof(far));
    memset(near, 'n', sizeof(near));
    return 0;
}

static int tear_down(void **state)
{
    fake_job_close();
    return 0;
}

static struct tk_transfer transfer(bool is_put, size_t nbytes)
{
    return (struct tk_transfer){
        .peer = tk_peer(1),
        .rma = {.remote = (uintptr_t)far, .local = near, .nbytes = nbytes, .is_put = is_put}};
}

static void blocking_is_done_on_return(void **state)
{
    struct tk_transfer t = transfer(true, 100);
    assert_int_equal(tk_transfer_blocking(&t), 0);
    assert_memory_equal(far, near, 100);
    assert_int_equal(fake_job.reaped, fake_job.count);
    assert_int_equal(fake_job.sent[0].copy_source, 0); /* a blocking caller needs no copy */
}

static void nothing_is_nothing(void **state)
{
    gex_Event_t event = (gex_Event_t)near;
    struct tk_transfer t = transfer(true, 0);
    assert_int_equal(tk_transfer_blocking(&t), 0);
    assert_ptr_equal(tk_transfer_start(&t, GEX_EVENT_NOW), GEX_EVENT_INVALID);
    assert_ptr_equal(tk_transfer_start(&t, GEX_EVENT_DEFER), GEX_EVENT_INVALID);
    assert_ptr_equal(tk_transfer_start(&t, &event), GEX_EVENT_INVALID);
    assert_ptr_equal(event, GEX_EVENT_INVALID);
    assert_int_equal(fake_job.count, 0);
}

static void pieces_are_posted_as_space_allows(void **state)
{
    fake_job.rma_piece = 999;
    struct tk_transfer t = transfer(false, 10000);
    assert_int_equal(tk_transfer_blocking(&t), 0);
    assert_int_equal(fake_job.count, 11);
    assert_memory_equal(near, far, 10000);
}

/* Each piece completes before the next is posted: the count must not be seen at zero in between. */
static void an_operation_is_not_done_before_its_last_piece(void **state)
{
    fake_job.rma_piece = 1000;
    struct tk_transfer t = transfer(true, 3000);
    gex_Event_t event = tk_transfer_start(&t, GEX_EVENT_DEFER);
    assert_int_equal(fake_job.count, 3);
    assert_int_equal(fake_job.reaped, 2); /* while waiting for space */
    assert_ptr_not_equal(event, GEX_EVENT_INVALID);
    assert_false(tk_event_test(event));
    fake_transport.reap();
    assert_true(tk_event_test(event));
}

static void immediate_gives_up_only_while_nothing_was_done(void **state)
{
    gex_Event_t leaf = GEX_EVENT_INVALID;
    struct tk_transfer t = transfer(true, 3000);
    t.rma.immediate = true;
    fake_job.busy_rmas = 2;
    assert_int_equal(tk_transfer_blocking(&t), 1);
    assert_ptr_equal(tk_transfer_start(&t, &leaf), GEX_EVENT_NO_OP);
    assert_int_equal(fake_job.polls, 0);
    assert_int_equal(fake_job.count, 0);
    fake_job.rma_piece = 1000;
    assert_int_equal(tk_transfer_blocking(&t), 0);
    assert_int_equal(fake_job.count, 3);
}

static void with_now_the_source_is_copied_or_waited_for(void **state)
{
    struct tk_transfer t = transfer(true, 100);
    gex_Event_t event = tk_transfer_start(&t, GEX_EVENT_NOW);
    assert_true(fake_job.sent[0].copy_source);
    assert_false(tk_event_test(event));
    fake_transport.reap();
    assert_true(tk_event_test(event));
}

/* A transport that takes a put in place at once, and reads its source until it is reaped. */
static struct tk_op *placed;

static bool place(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                  size_t nbytes)
{
    (void)peer;
    memcpy((void *)remote, local, nbytes);
    placed = op;
    return true;
}

static bool give_back_placed(void)
{
    bool any = placed != NULL;
    if (any)
        tk_counter_add(&placed->pending, -1);
    placed = NULL;
    return any;
}

static void only_puts_whose_source_may_wait_are_posted_in_place_at_once(void **state)
{
    struct tk_transport before = fake_transport;
    gex_Event_t leaf;
    fake_transport.rma.put_from = place;
    fake_transport.reap = fake_transport.poll = give_back_placed;
    tk_progress_use(&fake_transport);
    assert_int_equal(tk_blocking(true, tk_peer(1), far, near, 100, 0), 0);
    assert_memory_equal(far, near, 100);
    assert_null(placed); /* it was waited for */
    gex_Event_t event = tk_start(true, tk_peer(1), far, near, 200, GEX_EVENT_DEFER, 0);
    assert_non_null(placed);
    assert_false(tk_event_test(event));
    give_back_placed();
    assert_true(tk_event_test(event));
    tk_implicit(true, tk_peer(1), far, near, 300, GEX_EVENT_DEFER, 0);
    assert_non_null(placed);
    give_back_placed();
    assert_int_equal(fake_job.count, 0);
    fake_transport = before;
    tk_progress_use(&fake_transport);
    fake_transport.rma.put_from = place;
    tk_start(true, tk_peer(1), far, near, 100, GEX_EVENT_NOW, 0);
    tk_start(true, tk_peer(1), far, near, 100, &leaf, 0);
    tk_implicit(true, tk_peer(1), far, near, 100, GEX_EVENT_NOW, 0);
    tk_implicit(true, tk_peer(1), far, near, 100, GEX_EVENT_GROUP, 0);
    tk_blocking(false, tk_peer(1), far, near, 100, 0);
    assert_null(placed);
    assert_int_equal(fake_job.count, 5);
    fake_transport.reap();
    fake_transport = before;
}

static void with_defer_there_is_no_leaf(void **state)
{
    struct tk_transfer t = transfer(true, 100);
    gex_Event_t event = tk_transfer_start(&t, GEX_EVENT_DEFER);
    assert_false(fake_job.sent[0].copy_source);
    assert_null(fake_job.sent[0].sources); /* not requested */
    fake_transport.reap();
    assert_true(tk_event_test(event));
}

static void a_leaf_is_of_the_operation_of_its_root(void **state)
{
    gex_Event_t leaf = GEX_EVENT_INVALID;
    struct tk_transfer t = transfer(true, 100);
    gex_Event_t event = tk_transfer_start(&t, &leaf);
    assert_true(tk_event_is_leaf(leaf));
    assert_ptr_equal(tk_op_of(leaf), tk_op_of(event));
    fake_transport.reap();
    assert_true(tk_event_test(leaf));
    assert_true(tk_event_test(event));
}

/* ---- implicit ---- */

static void implicit_operations_count_in_the_threads_set(void **state)
{
    struct tk_transfer put = transfer(true, 100), get = transfer(false, 100);
    assert_int_equal(tk_transfer_implicit(&put, GEX_EVENT_DEFER), 0);
    assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_PUT));
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_LC | GEX_EC_GET));
    assert_int_equal(tk_transfer_implicit(&get, GEX_EVENT_DEFER), 0);
    assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_GET));
    fake_transport.reap();
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_PUT));
    assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_GET));
    fake_transport.reap();
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
}

static void with_group_the_source_is_a_category_of_its_own(void **state)
{
    struct tk_transfer t = transfer(true, 100);
    assert_int_equal(tk_transfer_implicit(&t, GEX_EVENT_GROUP), 0);
    assert_false(fake_job.sent[0].copy_source);
    assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_LC));
    fake_transport.reap();
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
}

/* Its own source only: the one before it may take long. */
static void an_implicit_put_with_now_waits_for_its_own_source(void **state)
{
    struct tk_transfer before = transfer(true, 100), t = transfer(true, 200);
    assert_int_equal(tk_transfer_implicit(&before, GEX_EVENT_GROUP), 0);
    assert_int_equal(tk_transfer_implicit(&t, GEX_EVENT_NOW), 0);
    assert_true(fake_job.sent[1].copy_source);
    assert_false(tk_nbi_done(tk_nbi_now, GEX_EC_LC));
    assert_int_equal(fake_job.polls, 0);
    fake_transport.reap();
    fake_transport.reap();
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
}

static void with_now_a_source_that_is_not_copied_is_waited_for(void **state)
{
    fake_job.never_copies = true;
    struct tk_transfer t = transfer(true, 100);
    assert_int_equal(tk_transfer_implicit(&t, GEX_EVENT_NOW), 0);
    assert_int_equal(fake_job.reaped, 1);
    t = transfer(true, 100);
    assert_ptr_equal(tk_transfer_start(&t, GEX_EVENT_NOW), GEX_EVENT_INVALID);
    assert_int_equal(fake_job.reaped, 2);
}

static void implicit_immediate_leaves_nothing_behind(void **state)
{
    struct tk_transfer t = transfer(true, 100);
    t.rma.immediate = true;
    fake_job.busy_rmas = 1;
    assert_int_equal(tk_transfer_implicit(&t, GEX_EVENT_GROUP), 1);
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
}

static void to_ourselves_all_is_done_at_once(void **state)
{
    gex_Event_t leaf = (gex_Event_t)near;
    tk_peer(0)->transport = &tk_transport_self;
    struct tk_transfer t = transfer(true, 100);
    t.peer = tk_peer(0);
    assert_ptr_equal(tk_transfer_start(&t, &leaf), GEX_EVENT_INVALID);
    assert_ptr_equal(leaf, GEX_EVENT_INVALID);
    assert_memory_equal(far, near, 100);
    t = transfer(false, 200);
    t.peer = tk_peer(0);
    assert_int_equal(tk_transfer_blocking(&t), 0);
    assert_memory_equal(near, far, 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(blocking_is_done_on_return),
    TEST(nothing_is_nothing),
    TEST(pieces_are_posted_as_space_allows),
    TEST(an_operation_is_not_done_before_its_last_piece),
    TEST(immediate_gives_up_only_while_nothing_was_done),
    TEST(with_now_the_source_is_copied_or_waited_for),
    TEST(only_puts_whose_source_may_wait_are_posted_in_place_at_once),
    TEST(with_defer_there_is_no_leaf),
    TEST(a_leaf_is_of_the_operation_of_its_root),
    TEST(implicit_operations_count_in_the_threads_set),
    TEST(with_group_the_source_is_a_category_of_its_own),
    TEST(an_implicit_put_with_now_waits_for_its_own_source),
    TEST(with_now_a_source_that_is_not_copied_is_waited_for),
    TEST(implicit_immediate_leaves_nothing_behind),
    TEST(to_ourselves_all_is_done_at_once),
};

UNIT_MAIN(tests)
