/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small Mediums over the network: assembled in a buffer and sent unsignaled from there, and
 * delivered by a fast path. Others take the general path. */
#include "config.h"

#include "fake_world.h"
#include "transport/verbs/verbs.h"
#include "gasnetex.h"
#include "unit.h"

enum { handler = GEX_AM_INDEX_BASE + 5, payload_max = 600 };

static struct {
    unsigned any, mediums; /* calls of either way to deliver */
    struct tk_message_head head;
    int32_t args[tk_max_args];
    char payload[payload_max];
    size_t nbytes;
    bool answers; /* requests: else they are acknowledged */
} got;

static char payload[payload_max];
static int32_t arguments[tk_max_args];

static void note(struct tk_arrival *arrival)
{
    got.head = *arrival->head;
    got.nbytes = arrival->nbytes;
    assert_int_equal((uintptr_t)arrival->payload % 8, 0);
    memcpy(got.args, arrival->head + 1, 4u * got.head.nargs);
    memcpy(got.payload, arrival->payload, arrival->nbytes);
    arrival->replied = got.answers && got.head.kind == TK_REQUEST;
}

static void deliver(struct tk_arrival *arrival)
{
    got.any++;
    note(arrival);
}

static void deliver_medium(struct tk_arrival *arrival)
{
    got.mediums++;
    note(arrival);
}

static struct {
    unsigned calls;
    uint64_t head;
    const void *payload;
    size_t nbytes;
} later;

static enum tk_status send_later(struct tk_peer *to, uint64_t head, const int32_t *args,
                                 const void *from, size_t nbytes)
{
    assert_ptr_equal(to, tk_peer(1));
    assert_ptr_equal(args, arguments);
    later.calls++;
    later.head = head;
    later.payload = from;
    later.nbytes = nbytes;
    return TK_OK;
}

static void open_world(void)
{
    memset(&got, 0, sizeof(got));
    memset(&later, 0, sizeof(later));
    fake_reset();
    tk_deliver = deliver;
    tk_deliver_medium = deliver_medium;
    for (unsigned i = 0; i < payload_max; i++)
        payload[i] = (char)(i * 7 + 1);
    for (int i = 0; i < tk_max_args; i++)
        arguments[i] = -1000 - i;
    world_open(2, 0);
    tk_peer(1)->transport = &tk_transport_verbs;
}

static enum tk_status send(enum tk_message_kind kind, uint8_t index, unsigned nargs, size_t nbytes,
                           tk_medium_busy *busy)
{
    return tk_transport_verbs.am.send_medium(tk_peer(1), tk_head_of_medium(kind, index, nargs),
                                             arguments, payload, nbytes, busy);
}

static void assert_came(unsigned nargs, size_t nbytes)
{
    assert_int_equal(got.any + got.mediums, 1);
    assert_int_equal(got.head.kind, TK_REQUEST);
    assert_int_equal(got.head.category, TK_MEDIUM);
    assert_int_equal(got.head.nargs, nargs);
    assert_int_equal(got.head.packed, 0);
    assert_int_equal(got.head.reserved, 0);
    assert_memory_equal(got.args, arguments, 4u * nargs);
    assert_int_equal(got.nbytes, nbytes);
    assert_memory_equal(got.payload, payload, nbytes);
    got.any = got.mediums = 0;
}

/* Also Mediums that are too large for the fast path because of their arguments. */
static void mediums_of_every_shape_arrive_as_they_were_sent(void **state)
{
    static const size_t sizes[] = {0,  1,  3,  7,  8,   16,  31,  33,  48,
                                   56, 57, 64, 65, 112, 113, 120, 121, payload_max};
    unit_settings("GASNET_AM_CREDITS_PP=4", NULL);
    open_world();
    for (unsigned n = 0; n <= tk_max_args; n++)
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            assert_int_equal(send(TK_REQUEST, handler, n, sizes[i], NULL), TK_OK);
            world_settle();
            assert_came(n, sizes[i]);
        }
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static void a_small_one_needs_no_completion_and_a_large_one_a_buffer(void **state)
{
    unit_settings("GASNET_BBUF_COUNT=1", NULL);
    open_world();
    assert_int_equal(send(TK_REQUEST, handler, 2, tk_verbs.inline_limit - 16, NULL), TK_OK);
    struct tk_conn *conn = tk_peer(1)->connection;
    assert_int_equal(conn->unsignaled, 1);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes->out), 0);
    assert_int_equal(send(TK_REQUEST, handler, 2, tk_verbs.inline_limit - 15, NULL), TK_OK);
    assert_int_equal(conn->unsignaled, 0);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes->out), 1);
    world_settle();
    world_close();
}

static unsigned free_buffers(void)
{
    unsigned n = 0;
    for (const struct tk_pool_item *item = tk_verbs.bounce_pool.free; item; item = item->next)
        n++;
    return n;
}

static void send_large(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(send(TK_REQUEST, handler, 1, payload_max, NULL), TK_OK);
}

/* It gives back the buffers of the three before it, and work of another kind does not. */
static void of_four_large_ones_the_last_has_a_completion(void **state)
{
    unit_settings(NULL);
    open_world();
    unsigned all = free_buffers();
    send_large(3);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes->out), 0);
    assert_int_equal(free_buffers(), all - 3);
    world_settle();
    assert_int_equal(free_buffers(), all - 3);
    send_large(1);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes->out), 1);
    assert_int_equal(free_buffers(), all - 4);
    world_settle();
    assert_int_equal(free_buffers(), all);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes->out), 0);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

/* Peers to which nothing is sent now keep buffers that others may wait for. */
static void kept_buffers_leave_half_of_all_to_others(void **state)
{
    static const struct {
        uint32_t ranks;
        const char *count;
        int kept;
    } cases[] = {{2, "GASNET_BBUF_COUNT=1", 0},  {2, "GASNET_BBUF_COUNT=3", 1},
                 {2, "GASNET_BBUF_COUNT=6", 3},  {2, "GASNET_BBUF_COUNT=1024", 3},
                 {4, "GASNET_BBUF_COUNT=12", 2}, {4, "GASNET_BBUF_COUNT=5", 0}};
    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unit_settings(cases[i].count, NULL);
        fake_reset();
        world_open(cases[i].ranks, 0);
        assert_int_equal(tk_verbs.unsignaled_bounces_max, cases[i].kept);
        world_close();
    }
}

/* Handlers of the library are found by another path. */
static void those_for_client_handlers_have_a_fast_path(void **state)
{
    unit_settings(NULL);
    open_world();
    for (size_t nbytes = 8; nbytes <= payload_max; nbytes += payload_max - 8) {
        assert_int_equal(send(TK_REQUEST, handler, 1, nbytes, NULL), TK_OK);
        world_settle();
        assert_int_equal(got.mediums, 1);
        assert_came(1, nbytes);
        assert_int_equal(send(TK_REQUEST, 3, 1, nbytes, NULL), TK_OK);
        world_settle();
        assert_int_equal(got.any, 1);
        assert_came(1, nbytes);
    }
    world_close();
}

static void credits_ride_on(size_t nbytes)
{
    unit_settings("GASNET_AM_CREDITS_PP=4", "GASNET_AM_CREDITS_SLACK=2", NULL);
    open_world();
    world_be(1);
    tk_peer(0)->transport = &tk_transport_verbs;
    assert_int_equal(tk_transport_verbs.am.send_medium(tk_peer(0),
                                                       tk_head_of_medium(TK_REQUEST, handler, 0),
                                                       NULL, payload, 8, NULL),
                     TK_OK);
    world_settle();
    world_be(0);
    struct tk_conn *conn = tk_peer(1)->connection;
    assert_int_equal(conn->credits_to_return, 1);
    assert_int_equal(world_conn(1, 0)->credits, 3);
    assert_int_equal(send(TK_REQUEST, handler, 0, nbytes, NULL), TK_OK);
    assert_int_equal(conn->credits_to_return, 0);
    got.mediums = 0;
    world_settle();
    assert_int_equal(got.mediums, 1);
    assert_int_equal(got.head.credits, 1);
    assert_int_equal(world_conn(1, 0)->credits, 4);
    world_close();
}

static void credits_that_were_held_back_ride_on_it(void **state)
{
    credits_ride_on(8);
    credits_ride_on(payload_max);
}

static void refused_or_waited_for(size_t nbytes)
{
    unit_settings("GASNET_AM_CREDITS_PP=1", NULL);
    open_world();
    assert_int_equal(send(TK_REQUEST, handler, 3, nbytes, send_later), TK_OK);
    unsigned posted = fake.posted;
    assert_int_equal(send(TK_REQUEST, handler, 3, nbytes, NULL), TK_BUSY);
    assert_int_equal(later.calls, 0);
    assert_int_equal(send(TK_REQUEST, handler, 3, nbytes, send_later), TK_OK);
    assert_int_equal(later.calls, 1);
    assert_int_equal(later.head, tk_head_of_medium(TK_REQUEST, handler, 3));
    assert_ptr_equal(later.payload, payload);
    assert_int_equal(later.nbytes, nbytes);
    assert_int_equal(fake.posted, posted);
    struct tk_conn *conn = tk_peer(1)->connection;
    assert_int_equal(conn->credits, 0);
    world_settle();
    assert_int_equal(conn->credits, 1);
    world_close();
}

static void without_a_credit_it_is_refused_or_waited_for(void **state)
{
    refused_or_waited_for(40);
    refused_or_waited_for(payload_max);
}

/* A larger one takes the credit first. */
static void without_a_buffer_it_gives_its_credit_back(void **state)
{
    struct tk_pool_item *all;
    unit_settings("GASNET_AM_CREDITS_PP=2", NULL);
    open_world();
    struct tk_conn *conn = tk_peer(1)->connection;
    all = tk_verbs.bounce_pool.free;
    tk_verbs.bounce_pool.free = NULL;
    assert_int_equal(send(TK_REQUEST, handler, 1, payload_max, NULL), TK_BUSY);
    assert_int_equal(conn->credits, 2);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes->out), 0);
    tk_verbs.bounce_pool.free = all;
    assert_int_equal(send(TK_REQUEST, handler, 1, payload_max, NULL), TK_OK);
    assert_int_equal(conn->credits, 1);
    world_settle();
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mediums_of_every_shape_arrive_as_they_were_sent),
    cmocka_unit_test(a_small_one_needs_no_completion_and_a_large_one_a_buffer),
    cmocka_unit_test(of_four_large_ones_the_last_has_a_completion),
    cmocka_unit_test(kept_buffers_leave_half_of_all_to_others),
    cmocka_unit_test(those_for_client_handlers_have_a_fast_path),
    cmocka_unit_test(credits_that_were_held_back_ride_on_it),
    cmocka_unit_test(without_a_credit_it_is_refused_or_waited_for),
    cmocka_unit_test(without_a_buffer_it_gives_its_credit_back),
};

UNIT_MAIN(tests)
