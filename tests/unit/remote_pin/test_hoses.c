/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of remote firehoses: hits, replacement, and which transfer a region serves. */
#include "config.h"

#include "remote_pin/hoses.h"
#include "unit.h"

enum { ranks = 3, rails = 2, granule = 0x1000, most = 8, other = 1 };

static const uint32_t keys[rails] = {11, 22};

static int open_table(void **state)
{
    return tk_hoses_open(ranks, rails, granule, most) == TK_OK ? 0 : -1;
}

static int close_table(void **state)
{
    tk_hoses_close();
    return 0;
}

static struct tk_hose *seek(uintptr_t at, const void *owner, enum tk_hose_state *state,
                            bool *is_new)
{
    uintptr_t from = at & ~(uintptr_t)(granule - 1);
    return tk_hose_seek(other, at, owner, from, from + granule, state, is_new);
}

/* Requests a region; the answer brings `handle`. Returns the region that is given up for it. */
static uint32_t get(uintptr_t at, const void *owner, uint32_t handle, uint32_t lent)
{
    enum tk_hose_state state;
    bool is_new;
    struct tk_hose *h = seek(at, owner, &state, &is_new);
    assert_non_null(h);
    assert_true(is_new);
    uint32_t given_up = h->handle;
    assert_true(tk_hose_arrive(other, h->number, h->base, granule, handle, keys, lent));
    return given_up;
}

static struct tk_hose *use(uintptr_t at, const void *owner)
{
    enum tk_hose_state state;
    bool is_new;
    struct tk_hose *h = seek(at, owner, &state, &is_new);
    assert_non_null(h);
    assert_false(is_new);
    assert_int_equal(state, TK_HOSE_READY);
    return h;
}

static bool is_there(uintptr_t at, const void *owner)
{
    struct tk_hose *h = tk_hose_seek_ahead(other, at, owner, at, at + 1);
    if (h)
        tk_hose_cancel(h);
    return !h;
}

static void what_came_is_found_again(void **state)
{
    enum tk_hose_state seen;
    bool is_new;
    struct tk_hose *asked = seek(0x5010, NULL, &seen, &is_new);
    assert_true(is_new);
    assert_ptr_equal(seek(0x5ff0, NULL, &seen, &is_new), asked);
    assert_false(is_new);
    assert_int_equal(seen, TK_HOSE_MOVING);
    assert_true(tk_hose_arrive(other, asked->number, 0x4800, 0x1000, 7, keys, 4));
    struct tk_hose *h = use(0x5010, NULL);
    assert_int_equal(h->base, 0x5000); /* of what is registered there, what was asked for */
    assert_int_equal(h->size, 0x800);
    assert_int_equal(tk_hose_keys(h)[1], 22);
    tk_hose_leave(h, true);
    assert_false(is_there(0x5800, NULL));
    assert_int_equal(tk_hoses_count().hits, 1);
}

static void ranks_with_equal_addresses_do_not_share_a_bucket(void **state)
{
    enum { many = 64 };
    unsigned behind_another = 0;
    tk_hoses_close();
    assert_int_equal(tk_hoses_open(many, rails, granule, many), TK_OK);
    for (uint32_t rank = 0; rank < many; rank++) {
        struct tk_hose *h = tk_hose_seek_ahead(rank, 0x5000, NULL, 0x5000, 0x6000);
        assert_non_null(h);
        behind_another += h->entry.next != NULL;
    }
    assert_in_range(behind_another, 0, 3 * many / 4);
}

static void no_rank_holds_more_than_it_borrowed(void **state)
{
    assert_int_equal(get(0x1000, NULL, 71, 2), 0);
    assert_int_equal(get(0x2000, NULL, 72, 2), 0);
    tk_hose_leave(use(0x1000, NULL), true);         /* now the younger */
    assert_int_equal(get(0x3000, NULL, 73, 2), 72); /* the oldest moves */
    assert_true(is_there(0x1000, NULL));
    assert_false(is_there(0x2000, NULL));
    assert_int_equal(tk_hoses_count().moves, 1);
    assert_int_equal(tk_hoses_count().here, 2);
}

static void what_is_used_stays(void **state)
{
    enum tk_hose_state seen;
    bool is_new;
    get(0x1000, NULL, 71, 1);
    struct tk_hose *h = use(0x1000, NULL);
    assert_null(seek(0x2000, NULL, &seen, &is_new));
    assert_int_equal(seen, TK_HOSE_MOVING); /* worth waiting */
    assert_ptr_equal(use(0x1000, NULL), h);
    tk_hose_leave(h, true);
    assert_null(seek(0x2000, NULL, &seen, &is_new));
    tk_hose_leave(h, true);
    assert_int_equal(get(0x2000, NULL, 72, 1), 71);
}

static void a_refusal_is_not_for_ever(void **state)
{
    enum tk_hose_state seen;
    bool is_new;
    int uses = 0;
    get(0x1000, NULL, 0, 4);
    while (seek(0x1000, NULL, &seen, &is_new) && !is_new) {
        assert_int_equal(seen, TK_HOSE_REFUSED);
        assert_true(++uses < 100);
    }
    assert_true(is_new && uses > 1);
    assert_int_equal(tk_hoses_count().refusals, 1);
}

/* It was not released: the owner was not notified. */
static void what_was_not_asked_for_is_still_to_be_given_up(void **state)
{
    enum tk_hose_state seen;
    bool is_new;
    get(0x1000, NULL, 71, 1);
    struct tk_hose *h = seek(0x2000, NULL, &seen, &is_new);
    assert_true(is_new);
    tk_hose_cancel(h);
    assert_false(is_there(0x1000, NULL));
    assert_int_equal(get(0x3000, NULL, 73, 1), 71);
    assert_int_equal(tk_hoses_count().moves, 1);
}

/* A region that one transfer may use is not valid for another, nor for a later one at the same
 * address. */
static void what_is_owned_serves_its_owner_once(void **state)
{
    int mine = 0, yours = 0;
    get(0x1000, &mine, 71, 4);
    assert_false(is_there(0x1000, &yours));
    assert_false(is_there(0x1000, NULL));
    struct tk_hose *h = use(0x1000, &mine);
    tk_hose_leave(h, false); /* nothing went through it: it was not used */
    h = use(0x1000, &mine);
    tk_hose_leave(h, true);
    assert_false(is_there(0x1000, &mine));
    assert_int_equal(get(0x1000, &mine, 72, 4), 71); /* given up as soon as possible */
    tk_hoses_disown(other, &mine);
    assert_false(is_there(0x1000, &mine));
}

static void unrequested_answers_are_not_taken(void **state)
{
    enum tk_hose_state seen;
    bool is_new;
    struct tk_hose *h = seek(0x1000, NULL, &seen, &is_new);
    assert_false(tk_hose_arrive(other, 0, 0x1000, granule, 7, keys, 1));
    assert_false(tk_hose_arrive(other, most + 1, 0x1000, granule, 7, keys, 1));
    assert_false(tk_hose_arrive(other, h->number + 1, 0x1000, granule, 7, keys, 1));
    assert_false(tk_hose_arrive(other + 1, h->number, 0x1000, granule, 7, keys, 1));
    assert_false(tk_hose_arrive(other, h->number, 0x8000, granule, 7, keys, 1));
    assert_true(tk_hose_arrive(other, h->number, 0x1000, granule, 7, keys, 1));
    assert_false(tk_hose_arrive(other, h->number, 0x1000, granule, 7, keys, 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)

static const struct CMUnitTest tests[] = {
    TEST(what_came_is_found_again),
    TEST(ranks_with_equal_addresses_do_not_share_a_bucket),
    TEST(no_rank_holds_more_than_it_borrowed),
    TEST(what_is_used_stays),
    TEST(a_refusal_is_not_for_ever),
    TEST(what_was_not_asked_for_is_still_to_be_given_up),
    TEST(what_is_owned_serves_its_owner_once),
    TEST(unrequested_answers_are_not_taken),
};

UNIT_MAIN(tests)
