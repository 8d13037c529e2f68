/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reservations that end without a message: all resources are released, whatever happened meanwhile.
 * Resources are measured by the number of reservations possible at once. */
#include "config.h"

#include "fake_world.h"
#include "transport/verbs/data/credit_loan_messages.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/srq.h"
#include "unit.h"

enum { reservations_max = 512, many = 2000 };

static void reply(struct tk_arrival *arrival)
{
    struct tk_message_head head = {.kind = TK_REPLY};
    struct tk_outgoing out = {.head = &head, .head_size = sizeof(head)};
    if (arrival->head->kind != TK_REQUEST)
        return;
    assert_int_equal(tk_verbs_send(arrival->peer, &out), TK_OK);
    arrival->replied = true;
}

static void open_world(uint32_t size, bool is_shared)
{
    fake_reset();
    fake.attr.max_srq = is_shared;
    fake.attr.max_srq_wr = is_shared ? 4096 : 0;
    tk_deliver = reply;
    world_open(size, 0);
}

static enum tk_status request(uint32_t to)
{
    struct tk_message_head head = {.kind = TK_REQUEST};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    return tk_verbs_send(tk_peer(to), &m);
}

static enum tk_status reserve(struct tk_am_reservation *r, uint32_t to, bool place, bool buffer)
{
    *r = (struct tk_am_reservation){.peer = tk_peer(to), .kind = TK_REQUEST};
    return tk_verbs_reserve(r, place, buffer);
}

/* Makes as many reservations as possible. */
static unsigned reserve_all(struct tk_am_reservation *all, uint32_t to, bool place, bool buffer)
{
    unsigned count = 0;
    while (reserve(&all[count], to, place, buffer) == TK_OK)
        assert_true(++count < reservations_max);
    return count;
}

static void release_all(struct tk_am_reservation *all, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        tk_verbs_release(&all[i], false);
}

static unsigned capacity(uint32_t to, bool place, bool buffer)
{
    static struct tk_am_reservation all[reservations_max];
    unsigned count = reserve_all(all, to, place, buffer);
    release_all(all, count);
    return count;
}

static void assert_nothing_is_lost(void)
{
    static const bool forms[3][2] = {{false, false}, {true, false}, {true, true}};
    struct tk_am_reservation r;
    for (int f = 0; f < 3; f++) {
        const unsigned before = capacity(1, forms[f][0], forms[f][1]);
        const unsigned posted = fake.posted;
        assert_true(before > 0);
        for (int i = 0; i < many; i++) {
            assert_int_equal(reserve(&r, 1, forms[f][0], forms[f][1]), TK_OK);
            tk_verbs_release(&r, false);
        }
        assert_int_equal(capacity(1, forms[f][0], forms[f][1]), before);
        assert_int_equal(fake.posted, posted);
        assert_int_equal(tk_counter_read(&world_conn(0, 1)->reserved), 0);
    }
}

static void all_can_be_reserved_again(void **state)
{
    static const char *const settings[] = {"GASNET_AM_CREDITS_PP=3", "GASNET_AM_CREDITS_TOTAL=2",
                                           "GASNET_NETWORKDEPTH_PP=4", "GASNET_BBUF_COUNT=1",
                                           "GASNET_USE_SRQ=1"};
    (void)state;
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        unit_settings(settings[i], NULL);
        open_world(3, strstr(settings[i], "SRQ"));
        assert_nothing_is_lost();
        assert_int_equal(request(1), TK_OK);
        world_settle();
        assert_nothing_is_lost();
        world_close();
    }
}

/* Borrows until rank 1 has lent this rank more than its base. */
static struct tk_borrower *borrow(void)
{
    struct tk_borrower *b = &world_conn(0, 1)->loan->borrower;
    for (int i = 0; i < 100 && b->limit == b->base; i++) {
        while (request(1) == TK_OK)
            ;
        world_settle();
    }
    assert_true(b->limit > b->base);
    return b;
}

/* Reservations held most credits when the lender reclaimed some. Too few were unused, and no reply
 * will bring more. */
static void loans_return_when_a_reservation_is_released(void **state)
{
    static struct tk_am_reservation all[reservations_max];
    (void)state;
    unit_settings("GASNET_USE_SRQ=1", "GASNET_RBUF_COUNT=40", "GASNET_AM_CREDITS_PP=32", NULL);
    open_world(3, true);
    struct tk_borrower *b = borrow();
    unsigned count = reserve_all(all, 1, false, false);
    world_settle(); /* the last one may have asked for more, which a limit of the process hides */
    world_be(1);
    tk_loan_reclaim(tk_primary(tk_peer(2)));
    world_settle();
    world_be(0);
    assert_true(b->owed > 0);
    const int left = b->limit - b->owed;
    release_all(all, count);
    world_settle();
    assert_int_equal(b->owed + b->given, 0);
    assert_int_equal(b->limit, left);
    assert_int_equal(world_conn(1, 0)->loan->account.granted, left);
    assert_int_equal(world_conn(0, 1)->credits, left);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static struct tk_message_head head_only = {.kind = TK_REQUEST};

static enum tk_status send_reserved(struct tk_am_reservation *r)
{
    struct tk_outgoing m = {.head = &head_only, .head_size = sizeof(head_only)};
    return tk_verbs_send_reserved(r, &m);
}

/* Adds a slot to a reservation that has only a credit: then the message can be sent whatever others
 * take. Without the slot it can't, and nothing changes. */
static void a_place_is_added_when_there_is_one(void **state)
{
    struct tk_am_reservation r, others[2];
    (void)state;
    unit_settings("GASNET_NETWORKDEPTH_PP=2", "GASNET_AM_CREDITS_PP=4", NULL);
    open_world(2, false);
    const struct tk_conn *conn = world_conn(0, 1);
    assert_int_equal(reserve(&r, 1, false, false), TK_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(reserve(&others[i], 1, true, i), TK_OK);
    const unsigned posted = fake.posted;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tk_verbs_reserve_place(&r), TK_BUSY);
        assert_int_equal(send_reserved(&r), TK_BUSY);
        assert_null(r.tx);
        assert_int_equal(conn->credits, 1);
        assert_int_equal(tk_counter_read(&conn->reserved), 2);
    }
    assert_int_equal(fake.posted, posted);
    tk_verbs_release(&others[0], false);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tk_verbs_reserve_place(&r), TK_OK);
        assert_int_equal(reserve(&others[0], 1, true, false), TK_BUSY);
        tk_verbs_release(&r, true);
        assert_int_equal(conn->credits, 2);
    }
    assert_int_equal(tk_verbs_reserve_place(&r), TK_OK);
    assert_int_equal(send_reserved(&r), TK_OK);
    assert_int_equal(conn->credits, 2);
    tk_verbs_release(&others[1], false);
    world_settle();
    assert_int_equal(conn->credits, 4);
    assert_int_equal(tk_counter_read(&conn->reserved), 0);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_place_is_added_when_there_is_one),
    cmocka_unit_test(all_can_be_reserved_again),
    cmocka_unit_test(loans_return_when_a_reservation_is_released),
};

UNIT_MAIN(tests)
