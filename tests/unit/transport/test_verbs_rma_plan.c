/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The plan of a put or get over verbs, for each path. Links only the plan, without the library: a
 * plan that used a device, a connection or a setting would not link. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transport/transport.h"
#include "transport/verbs/data/rma_plan.h"

enum {
    inline_max = 72,
    bounce_max = 65536,
    message_max = 1 << 30,
    copy_max = 1000,
    register_min = 262144,
    region_min = 16384
};

/* One port, one connection. */
static const struct tk_rma_limits one = {.inline_max = inline_max,
                                         .message_max = message_max,
                                         .bounce_max = bounce_max,
                                         .stripe_above = {16384, 16384},
                                         .stripe = {message_max, message_max},
                                         .blocking_stripe = 65536,
                                         .copy_max = copy_max,
                                         .register_min = register_min,
                                         .conns = 1,
                                         .work_requests = 100,
                                         .bounce_buffers = 10};

/* Two connections; pieces of different size for gets, puts and blocking puts. */
static struct tk_rma_limits two(void)
{
    struct tk_rma_limits limits = one;
    limits.conns = 2;
    limits.stripe[false] = 8192;
    limits.stripe[true] = 131072;
    limits.stripe_above[false] = 8192;
    limits.stripe_above[true] = 131072;
    return limits;
}

static struct tk_rma put(size_t nbytes)
{
    return (struct tk_rma){.nbytes = nbytes, .is_put = true};
}

static struct tk_rma lent(size_t nbytes)
{
    return (struct tk_rma){.nbytes = nbytes, .is_put = true, .is_lent = true};
}

static struct tk_rma get(size_t nbytes)
{
    return (struct tk_rma){.nbytes = nbytes};
}

static struct tk_rma_plan plan_of(const struct tk_rma *rma, const struct tk_rma_limits *limits,
                                  bool is_registered)
{
    struct tk_rma_plan plan;
    tk_rma_plan_make(&plan, rma, limits, is_registered);
    return plan;
}

static struct tk_rma_piece first(const struct tk_rma *rma, const struct tk_rma_limits *limits,
                                 bool is_registered)
{
    const struct tk_rma_plan plan = plan_of(rma, limits, is_registered);
    return tk_rma_plan_piece(&plan, rma->nbytes, is_registered);
}

#define assert_piece(piece, size, by)                                                              \
    do {                                                                                           \
        struct tk_rma_piece p = piece;                                                             \
        assert_int_equal(p.path, by);                                                              \
        assert_int_equal(p.nbytes, size);                                                          \
    } while (0)

static void a_small_put_is_inline(void **state)
{
    const struct tk_rma at_limit = put(inline_max), above = put(inline_max + 1), tiny = put(1);
    for (int is_registered = 0; is_registered < 2; is_registered++) {
        assert_piece(first(&tiny, &one, is_registered), 1, TK_RMA_INLINE);
        assert_piece(first(&at_limit, &one, is_registered), inline_max, TK_RMA_INLINE);
    }
    assert_piece(first(&above, &one, true), inline_max + 1, TK_RMA_IN_PLACE);
    assert_piece(first(&above, &one, false), inline_max + 1, TK_RMA_BOUNCE);
}

static void without_inline_sends_none_is(void **state)
{
    struct tk_rma_limits limits = one;
    const struct tk_rma tiny = put(1);
    limits.inline_max = 0;
    assert_piece(first(&tiny, &limits, true), 1, TK_RMA_IN_PLACE);
}

static void a_get_is_never_inline(void **state)
{
    const struct tk_rma small = get(8);
    assert_piece(first(&small, &one, true), 8, TK_RMA_IN_PLACE);
    assert_piece(first(&small, &one, false), 8, TK_RMA_BOUNCE);
}

static void the_last_bytes_of_a_put_are_inline(void **state)
{
    const struct tk_rma large = put(bounce_max + inline_max);
    const struct tk_rma_plan plan = plan_of(&large, &one, false);
    assert_piece(tk_rma_plan_piece(&plan, large.nbytes, false), bounce_max, TK_RMA_BOUNCE);
    assert_piece(tk_rma_plan_piece(&plan, inline_max, false), inline_max, TK_RMA_INLINE);
}

static void other_memory_is_bounced_a_buffer_at_a_time(void **state)
{
    const struct tk_rma large[] = {get(100000), put(100000)};
    for (int is_put = 0; is_put < 2; is_put++) {
        assert_piece(first(&large[is_put], &one, false), bounce_max, TK_RMA_BOUNCE);
        assert_piece(first(&large[is_put], &one, true), 100000, TK_RMA_IN_PLACE);
    }
}

static void no_piece_is_larger_than_a_message(void **state)
{
    struct tk_rma_limits limits = one;
    const struct tk_rma large[] = {get(100000), put(100000)};
    limits.message_max = 10000;
    for (int is_put = 0; is_put < 2; is_put++)
        for (int is_registered = 0; is_registered < 2; is_registered++)
            assert_int_equal(first(&large[is_put], &limits, is_registered).nbytes, 10000);
    limits.message_max = 10; /* less than may be inline */
    const struct tk_rma small = put(50);
    assert_piece(first(&small, &limits, true), 10, TK_RMA_INLINE);
}

/* GASNET_NONBULKPUT_BOUNCE_LIMIT */
static void a_source_with_a_waiter_is_copied_up_to_the_limit(void **state)
{
    struct tk_rma at_limit = put(copy_max), above = put(copy_max + 1);
    assert_piece(first(&at_limit, &one, true), copy_max, TK_RMA_IN_PLACE);
    at_limit.copy_source = above.copy_source = true;
    assert_piece(first(&at_limit, &one, true), copy_max, TK_RMA_BOUNCE);
    assert_piece(first(&above, &one, true), copy_max + 1, TK_RMA_IN_PLACE);
    /* The limit is about the whole put, not about its last bytes. */
    above = put(10 * copy_max);
    above.copy_source = true;
    const struct tk_rma_plan plan = plan_of(&above, &one, true);
    assert_piece(tk_rma_plan_piece(&plan, 100, true), 100, TK_RMA_IN_PLACE);
}

/* The caller waits for it anyway, so registering is not worth the cost. */
static void a_lent_source_is_copied_unless_it_is_registered(void **state)
{
    struct tk_rma_limits limits = one;
    const struct tk_rma at_limit = lent(copy_max), above = lent(register_min);
    limits.register_min = copy_max;
    assert_piece(first(&at_limit, &limits, true), copy_max, TK_RMA_IN_PLACE);
    assert_piece(first(&at_limit, &limits, false), copy_max, TK_RMA_BOUNCE);
    assert_false(plan_of(&at_limit, &limits, false).wants_register);
    assert_true(plan_of(&above, &limits, false).wants_register);
}

/* ---- registered on the fly ---- */

static bool wants_register(const struct tk_rma *rma, const struct tk_rma_limits *limits,
                           bool is_registered)
{
    return plan_of(rma, limits, is_registered).wants_register;
}

static void large_transfers_register_their_memory(void **state)
{
    for (int is_put = 0; is_put < 2; is_put++) {
        struct tk_rma large = {.nbytes = register_min, .is_put = is_put};
        struct tk_rma small = {.nbytes = register_min - 1, .is_put = is_put};
        assert_true(wants_register(&large, &one, false));
        assert_false(wants_register(&large, &one, true));
        assert_false(wants_register(&small, &one, false));
        large.immediate = true;
        assert_false(wants_register(&large, &one, false));
    }
}

static void what_is_copied_is_not_registered(void **state)
{
    struct tk_rma_limits limits = one;
    struct tk_rma large = put(register_min);
    large.copy_source = true;
    assert_true(wants_register(&large, &limits, false));
    limits.copy_max = register_min;
    assert_false(wants_register(&large, &limits, false));
}

/* With remote memory on demand a transfer comes in parts, each of which may be small. */
static void a_part_is_judged_by_its_whole(void **state)
{
    struct tk_rma_limits limits = one;
    struct tk_rma part = put(4096);
    part.whole = register_min;
    assert_false(wants_register(&part, &limits, false));
    limits.is_whole_judged = true;
    assert_true(wants_register(&part, &limits, false));
    part.whole = 0;
    assert_false(wants_register(&part, &limits, false));
}

static void a_region_is_sought_where_copying_takes_longer(void **state)
{
    assert_true(tk_rma_plan_seeks_region(region_min));
    assert_false(tk_rma_plan_seeks_region(region_min - 1));
}

static void a_piece_goes_as_far_as_its_region(void **state)
{
    const struct tk_rma large = put(1 << 20);
    const struct tk_rma_plan plan = plan_of(&large, &one, false);
    assert_piece(tk_rma_plan_region_piece(&plan, 1 << 20, 300000, true), 300000, TK_RMA_IN_PLACE);
    assert_piece(tk_rma_plan_region_piece(&plan, 5000, 300000, true), 5000, TK_RMA_IN_PLACE);
    /* Without a region it is copied, and the next granule may have one. */
    assert_piece(tk_rma_plan_region_piece(&plan, 1 << 20, 300000, false), bounce_max,
                 TK_RMA_BOUNCE);
    assert_piece(tk_rma_plan_region_piece(&plan, 1 << 20, 5000, false), 5000, TK_RMA_BOUNCE);
}

static void a_region_does_not_make_pieces_larger_than_a_stripe(void **state)
{
    const struct tk_rma_limits limits = two();
    const struct tk_rma large = put(1 << 20);
    const struct tk_rma_plan plan = plan_of(&large, &limits, false);
    assert_piece(tk_rma_plan_region_piece(&plan, 1 << 20, 300000, true), 131072, TK_RMA_IN_PLACE);
}

/* ---- striped ---- */

static bool is_striped(const struct tk_rma *rma, const struct tk_rma_limits *limits)
{
    return plan_of(rma, limits, true).is_striped;
}

static void what_is_larger_than_a_stripe_goes_over_all_connections(void **state)
{
    const struct tk_rma_limits limits = two();
    const struct tk_rma gets[] = {get(8192), get(8193)}, puts[] = {put(131072), put(131073)};
    assert_false(is_striped(&gets[0], &limits));
    assert_true(is_striped(&gets[1], &limits));
    assert_false(is_striped(&puts[0], &limits));
    assert_true(is_striped(&puts[1], &limits));
    assert_false(is_striped(&gets[1], &one)); /* there is one connection only */
    assert_piece(first(&gets[1], &limits, true), 8192, TK_RMA_IN_PLACE);
    assert_piece(first(&puts[1], &limits, true), 131072, TK_RMA_IN_PLACE);
    assert_piece(first(&gets[1], &limits, false), 8192, TK_RMA_BOUNCE);
    assert_piece(first(&puts[1], &limits, false), bounce_max, TK_RMA_BOUNCE);
}

static void a_blocking_put_has_pieces_of_its_own_size(void **state)
{
    const struct tk_rma_limits limits = two();
    struct tk_rma large = put(1 << 20);
    large.is_blocking = true;
    assert_piece(first(&large, &limits, true), 65536, TK_RMA_IN_PLACE);
    large.nbytes = 100000; /* not striped */
    assert_piece(first(&large, &limits, true), 100000, TK_RMA_IN_PLACE);
}

/* The head of a Long must not overtake its payload. */
static void what_must_be_in_order_is_not_striped(void **state)
{
    const struct tk_rma_limits limits = two();
    struct tk_rma large = put(1 << 20);
    large.sources_only = true;
    assert_false(is_striped(&large, &limits));
    assert_piece(first(&large, &limits, true), 1 << 20, TK_RMA_IN_PLACE);
}

/* Its last bytes may go over another connection than the rest and need no better path. */
static void no_piece_of_a_striped_put_is_inline(void **state)
{
    const struct tk_rma_limits limits = two();
    const struct tk_rma large = put(1 << 20);
    const struct tk_rma_plan plan = plan_of(&large, &limits, true);
    assert_piece(tk_rma_plan_piece(&plan, 8, true), 8, TK_RMA_IN_PLACE);
}

/* ---- fenced ---- */

static void a_put_that_completes_needs_a_fence(void **state)
{
    struct tk_rma some[] = {get(8), put(8)};
    assert_false(plan_of(&some[0], &one, true).wants_fence);
    assert_true(plan_of(&some[1], &one, true).wants_fence);
    some[1].sources_only = true; /* its completion is never reported */
    assert_false(plan_of(&some[1], &one, true).wants_fence);
}

/* ---- immediate ---- */

static size_t reserved(const struct tk_rma *rma, const struct tk_rma_limits *limits,
                       bool is_registered, size_t idle_slots)
{
    const struct tk_rma_plan plan = plan_of(rma, limits, is_registered);
    return tk_rma_plan_reserve(&plan, limits, rma->nbytes, is_registered, idle_slots);
}

static void an_immediate_transfer_reserves_one_for_each_piece(void **state)
{
    const struct tk_rma_limits limits = two();
    const struct tk_rma some[] = {put(8), put(bounce_max), put(bounce_max + 1), get(10 * 8192 + 1)};
    assert_int_equal(reserved(&some[0], &one, false, 50), 1);
    assert_int_equal(reserved(&some[1], &one, false, 50), 1);
    assert_int_equal(reserved(&some[2], &one, false, 50), 2);
    assert_int_equal(reserved(&some[2], &one, true, 50), 1);
    assert_int_equal(reserved(&some[3], &limits, true, 50), 11);
}

static void it_reserves_no_more_than_idle_queues_have(void **state)
{
    struct tk_rma_limits limits = two();
    const struct tk_rma large = get(40 * 8192);
    assert_int_equal(reserved(&large, &limits, true, 7), 7);
    assert_int_equal(reserved(&large, &limits, true, 50), 40);
    assert_int_equal(reserved(&large, &limits, false, 50), 10); /* bounce buffers */
    limits.work_requests = 5;
    assert_int_equal(reserved(&large, &limits, true, 50), 5);
    assert_int_equal(reserved(&large, &limits, true, 0), 1); /* for ever refused otherwise */
}

/* Of an accelerator: whatever the flags and limits say, in place; and no piece of a get is small
 * enough for a completion, unless all of it is. */
static void memory_of_accelerators_moves_in_place(void **state)
{
    (void)state;
    struct tk_rma rma = {.nbytes = 8, .is_put = true, .copy_source = true, .is_lent = true};
    struct tk_rma_plan plan;
    tk_rma_plan_make(&plan, &rma, &one, true);
    tk_rma_plan_for_device(&plan, &rma);
    assert_int_equal(tk_rma_plan_piece(&plan, 8, true).path, TK_RMA_IN_PLACE);
    assert_false(plan.wants_register);
}

static void no_piece_of_a_get_to_an_accelerator_is_scattered(void **state)
{
    (void)state;
    struct tk_rma_limits limits = two();
    for (size_t nbytes = 65; nbytes < 5 * limits.stripe[false]; nbytes++) {
        const struct tk_rma rma = {.nbytes = nbytes};
        struct tk_rma_plan plan;
        size_t left = nbytes;
        tk_rma_plan_make(&plan, &rma, &limits, true);
        tk_rma_plan_for_device(&plan, &rma);
        assert_true(plan.piece_max <= limits.stripe[false] || !plan.is_striped);
        assert_true(plan.piece_max > limits.stripe[false] / 2);
        while (left > 0) {
            size_t piece = tk_rma_plan_piece(&plan, left, true).nbytes;
            assert_true(piece > tk_rma_scattered_max);
            left -= piece;
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_small_put_is_inline),
    cmocka_unit_test(without_inline_sends_none_is),
    cmocka_unit_test(a_get_is_never_inline),
    cmocka_unit_test(the_last_bytes_of_a_put_are_inline),
    cmocka_unit_test(other_memory_is_bounced_a_buffer_at_a_time),
    cmocka_unit_test(no_piece_is_larger_than_a_message),
    cmocka_unit_test(a_source_with_a_waiter_is_copied_up_to_the_limit),
    cmocka_unit_test(a_lent_source_is_copied_unless_it_is_registered),
    cmocka_unit_test(large_transfers_register_their_memory),
    cmocka_unit_test(what_is_copied_is_not_registered),
    cmocka_unit_test(a_part_is_judged_by_its_whole),
    cmocka_unit_test(a_region_is_sought_where_copying_takes_longer),
    cmocka_unit_test(a_piece_goes_as_far_as_its_region),
    cmocka_unit_test(a_region_does_not_make_pieces_larger_than_a_stripe),
    cmocka_unit_test(what_is_larger_than_a_stripe_goes_over_all_connections),
    cmocka_unit_test(a_blocking_put_has_pieces_of_its_own_size),
    cmocka_unit_test(what_must_be_in_order_is_not_striped),
    cmocka_unit_test(no_piece_of_a_striped_put_is_inline),
    cmocka_unit_test(a_put_that_completes_needs_a_fence),
    cmocka_unit_test(an_immediate_transfer_reserves_one_for_each_piece),
    cmocka_unit_test(it_reserves_no_more_than_idle_queues_have),
    cmocka_unit_test(memory_of_accelerators_moves_in_place),
    cmocka_unit_test(no_piece_of_a_get_to_an_accelerator_is_scattered),
};

int main(void)
{
    return cmocka_run_group_tests(tests, NULL, NULL);
}
