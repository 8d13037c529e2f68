/* SPDX-License-Identifier: BSD-3-Clause
 *
 * With several connections to a peer and without failover each thread puts and gets over one of its
 * own, in a lane of its own. The fake device has no locks: threads run one after another. */
#include "config.h"

#include <pthread.h>

#include "fake_world.h"
#include "op/op_type.h"
#include "stats/stats.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

enum { segment_size = 4096, nbytes = 8, conns = 2 };

static struct tk_op op;

static void open_world(const char *failover, int devices)
{
    fake_reset();
    fake.device_count = devices;
    unit_settings("GASNET_NUM_QPS=2", failover, NULL);
    world_open(2, segment_size);
    tk_counter_set(&op.pending, 0);
}

static void settle(void)
{
    fake_settle();
    tk_lanes_reap();
    assert_int_equal(tk_counter_read(&op.pending), 0);
    assert_int_equal(fake_sins(), 0);
}

static int space_of(unsigned number)
{
    return tk_conn_space(&tk_conns_to(1)[number]);
}

/* What a thread does, and the connection that carried it; -1: none did. */
struct step {
    bool (*run)(void);
    int number;
};

static void *run_step(void *argument)
{
    struct step *step = argument;
    int before[conns];
    for (unsigned k = 0; k < conns; k++)
        before[k] = space_of(k);
    tk_stats_begin_thread(); /* the first transfer of a thread would go the slow way, which counts
                                it */
    tk_counter_add(&op.pending, 1);
    assert_true(step->run());
    step->number = -1;
    for (int k = 0; k < conns; k++)
        if (space_of((unsigned)k) < before[k])
            step->number = k;
    return NULL;
}

static int here(bool (*run)(void))
{
    struct step step = {.run = run};
    run_step(&step);
    settle();
    return step.number;
}

static int in_a_new_thread(bool (*run)(void))
{
    struct step step = {.run = run};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_step, &step), 0);
    pthread_join(thread, NULL);
    settle();
    return step.number;
}

static const struct tk_transport *transport(void)
{
    return tk_peer(1)->transport;
}

static uintptr_t there(void)
{
    return (uintptr_t)world_segment(1);
}

static bool put(void)
{
    return transport()->rma.put(tk_peer(1), &op, there(), tk_segment_area.base, nbytes);
}

static bool put_from(void)
{
    return transport()->rma.put_from(tk_peer(1), &op, there(), tk_segment_area.base, segment_size);
}

static bool get(void)
{
    return transport()->rma.get(tk_peer(1), &op, there(), tk_segment_area.base, nbytes);
}

static bool long_message(void)
{
    union {
        struct tk_message_head head;
        char bytes[sizeof(struct tk_message_head) + sizeof(struct tk_long_head)];
    } front = {.head = {.kind = TK_REPLY, .category = TK_LONG}};
    struct tk_outgoing m = {.head = &front.head,
                            .head_size = tk_message_front(true, 0),
                            .payload = tk_segment_area.base,
                            .nbytes = nbytes,
                            .source = &op};
    tk_counter_add(&op.pending, -1); /* send_long() counts it */
    return transport()->am.send_long(tk_peer(1), &m, there());
}

static void a_thread_keeps_its_connection(void **state)
{
    (void)state;
    open_world("GASNET_IBV_FAILOVER=0", 1);
    int mine = here(put);
    assert_in_range(mine, 0, conns - 1);
    assert_int_equal(here(put), mine);
    assert_int_equal(here(put_from), mine);
    assert_int_equal(here(get), mine);
    world_close();
}

static void threads_take_them_in_turn(void **state)
{
    (void)state;
    open_world("GASNET_IBV_FAILOVER=0", 1);
    int first = in_a_new_thread(put);
    assert_int_equal(in_a_new_thread(get), !first);
    assert_int_equal(in_a_new_thread(put_from), first);
    world_close();
}

static void their_lanes_are_different_ones(void **state)
{
    (void)state;
    open_world("GASNET_IBV_FAILOVER=0", 1);
    assert_ptr_not_equal(tk_conns_to(1)[0].lane, tk_conns_to(1)[1].lane);
    world_close();
}

static void a_long_stays_on_the_primary_connection(void **state)
{
    (void)state;
    open_world("GASNET_IBV_FAILOVER=0", 1);
    for (unsigned i = 0; i < conns; i++)
        assert_int_equal(in_a_new_thread(long_message), tk_primary_number(1));
    world_close();
}

/* Each device has keys of its own; the fake counts wrong ones. */
static void each_uses_the_keys_of_its_device(void **state)
{
    (void)state;
    open_world("GASNET_IBV_FAILOVER=0", 2);
    int first = in_a_new_thread(get);
    assert_int_equal(in_a_new_thread(get), !first);
    world_close();
}

/* Work that moves to another connection keeps its lane. */
static void with_failover_all_use_the_primary_connection(void **state)
{
    (void)state;
    open_world("GASNET_IBV_FAILOVER=1", 1);
    assert_ptr_equal(tk_conns_to(1)[0].lane, tk_conns_to(1)[1].lane);
    for (unsigned i = 0; i < conns; i++)
        assert_int_equal(in_a_new_thread(put), tk_primary_number(1));
    world_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_keeps_its_connection),
        cmocka_unit_test(threads_take_them_in_turn),
        cmocka_unit_test(their_lanes_are_different_ones),
        cmocka_unit_test(a_long_stays_on_the_primary_connection),
        cmocka_unit_test(each_uses_the_keys_of_its_device),
        cmocka_unit_test(with_failover_all_use_the_primary_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
