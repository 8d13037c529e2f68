/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the pure parts of --simulate: order of events, the links of a fabric, and words. */
#include "config.h"

#include "spawner/simulate/events.h"
#include "spawner/simulate/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void events_come_by_time_and_then_as_added(void **state)
{
    (void)state;
    struct sim_events events = {0};
    struct sim_event event, last = {0};
    uint32_t random = 1, count = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        random = random * 1664525 + 1013904223;
        assert_true(sim_events_add(&events, random >> 24, 0, i, 0, 0));
    }
    for (; sim_events_next(&events, &event); last = event) {
        assert_true(event.time >= last.time);
        assert_true(count++ == 0 || event.time > last.time || event.a > last.a);
    }
    assert_int_equal(count, 10000);
    sim_events_free(&events);
}

static struct sim_input input;
static struct sim_fabric fabric;

static void on(enum sim_fabric_kind kind, uint32_t hosts, uint32_t ports)
{
    char why[200];
    sim_fabric_close(&fabric);
    input = (struct sim_input){
        .hosts = hosts, .fabric = kind, .ports = ports, .latency = 1000000, .gbits = 8};
    assert_true(sim_fabric_open(&fabric, &input, why, sizeof(why)));
}

/* Links that an undisturbed message crosses: a link takes a millisecond, its bytes far less. */
static unsigned hops(uint32_t from, uint32_t to)
{
    return (unsigned)(sim_fabric_send(&fabric, from, to, UINT64_C(1) << 60, 0) -
                      (UINT64_C(1) << 60)) /
           1000000;
}

static void paths_have_the_links_of_their_fabric(void **state)
{
    (void)state;
    on(SIM_ONE_SWITCH, 20, 32);
    assert_int_equal(hops(0, 19), 2);
    on(SIM_FAT_TREE, 20, 8);
    assert_int_equal(hops(0, 3), 2);
    on(SIM_FAT_TREE, 20, 8);
    assert_int_equal(hops(3, 4), 4);
    on(SIM_FAT_TREE, 20, 8);
    assert_int_equal(hops(19, 0), 4);
}

/* 7 ports: 2 hosts a router, 4 routers a group, 9 groups. Each group has one link to each other
 * one, which carries all messages that go there: from 8 hosts to 8. */
static void dragonfly_has_one_link_between_two_groups(void **state)
{
    (void)state;
    enum { groups = 9, of_group = 8, hosts = groups * of_group, local = 16 };
    on(SIM_DRAGONFLY, hosts, 7);
    assert_int_equal(fabric.count, 2 * hosts + groups * (local + of_group));
    for (uint32_t a = 0; a < hosts; a++)
        for (uint32_t b = 0; b < hosts; b++)
            if (a != b)
                sim_fabric_send(&fabric, a, b, 0, 0);
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t i = 0; i < of_group; i++) {
            uint32_t at = 2 * hosts + g * (local + of_group) + local + i;
            assert_int_equal(fabric.links[at].messages, of_group * of_group);
        }
}

static void a_link_carries_one_message_after_another(void **state)
{
    (void)state;
    on(SIM_ONE_SWITCH, 3, 8);
    uint64_t first = sim_fabric_send(&fabric, 0, 2, 0, 1000000);
    uint64_t second = sim_fabric_send(&fabric, 1, 2, 0, 1000000);
    assert_true(second >= first + 1000000); /* a byte takes 1 ns at 8 Gbit/s */
    assert_true(sim_fabric_send(&fabric, 2, 0, 0, 0) < first);
}

static void too_many_hosts_are_refused(void **state)
{
    (void)state;
    char why[200];
    struct sim_fabric other;
    input = (struct sim_input){.hosts = 33, .fabric = SIM_FAT_TREE, .ports = 8, .gbits = 8};
    assert_false(sim_fabric_open(&other, &input, why, sizeof(why)));
    input.hosts = 32;
    assert_true(sim_fabric_open(&other, &input, why, sizeof(why)));
    sim_fabric_close(&other);
}

static struct sim_input read_words(const char *words)
{
    char why[200];
    struct sim_input in;
    assert_true(sim_input_parse(&in, 100, 10, words, why, sizeof(why)));
    return in;
}

static void refused(const char *words)
{
    char why[200];
    struct sim_input in;
    assert_false(sim_input_parse(&in, 100, 10, words, why, sizeof(why)));
    assert_true(why[0] != 0);
}

static void a_job_ends_in_one_way(void **state)
{
    (void)state;
    assert_true(read_words("barrier:2").exits < 0 && read_words("barrier:2").late < 0);
    assert_int_equal(read_words("exits=99").exits, 99);
    assert_int_equal(read_words("exits=99").code, 1);
    assert_int_equal(read_words("exits=99,code=0").code, 0);
    assert_int_equal(read_words("late=0").late, 0);
    assert_int_equal(read_words("late=0").code, 0);
    assert_true(read_words("fail=3").is_silent);
    assert_false(read_words("fail=3,start=fork").is_silent);
    assert_false(read_words("fail=3,failure=closed").is_silent);
    assert_true(read_words("failure=silent,fail=3,start=fork").is_silent);
    refused("exits=100");
    refused("late=100");
    refused("code=256");
    refused("exits=1,late=2");
    refused("fail=1,exits=2");
    refused("failure=quick");
    refused("plant=none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_and_then_as_added),
        cmocka_unit_test(paths_have_the_links_of_their_fabric),
        cmocka_unit_test(dragonfly_has_one_link_between_two_groups),
        cmocka_unit_test(a_link_carries_one_message_after_another),
        cmocka_unit_test(too_many_hosts_are_refused),
        cmocka_unit_test(a_job_ends_in_one_way),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sim_fabric_close(&fabric);
    return failed;
}
