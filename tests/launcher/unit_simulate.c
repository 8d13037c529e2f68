/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the parts of --simulate: order of events, the links of a fabric, words, and what
 * holds for credits and connections whatever their limits. */
#include "config.h"

#include "settings/settings.h"
#include "spawner/simulate/connections.h"
#include "spawner/simulate/events.h"
#include "spawner/simulate/fabric.h"
#include "spawner/simulate/messages.h"
#include "spawner/simulate/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- credits and connections of a job with a leader on each host */

struct tk_settings tk_settings;

enum { leaders = 24 };
static struct simulation job;
static struct sim_leader leader[leaders];
static struct sim_member member[leaders];
static struct sim_host host[leaders];
static uint32_t first[leaders + 1], host_of[leaders];

static void no_error(const char *line)
{
    fail_msg("%s", line);
}

static void job_open(char *setting, char *other)
{
    char one[] = "GASNET_SUPERNODE_MAXSIZE=1", why[200];
    char *env[] = {one, setting, other, NULL};
    assert_int_equal(tk_settings_parse(env, &tk_settings, no_error), TK_OK);
    memset(leader, 0, sizeof(leader));
    job = (struct simulation){.in = {.ranks = leaders,
                                     .hosts = leaders,
                                     .fabric = SIM_ONE_SWITCH,
                                     .ports = leaders,
                                     .latency = 300,
                                     .gbits = 200,
                                     .cpus = 1,
                                     .srq = 32767},
                              .random = 1,
                              .nbrhds = leaders,
                              .first = first,
                              .host_of = host_of,
                              .leaders = leader,
                              .members = member,
                              .hosts = host};
    sim_costs_default(&job.costs);
    assert_true(sim_fabric_open(&job.fabric, &job.in, why, sizeof(why)));
    for (uint32_t n = 0; n < leaders; n++) {
        first[n] = host_of[n] = n;
        host[n] = (struct sim_host){.first = n, .end = n + 1, .ranks = 1};
    }
    first[leaders] = leaders;
    assert_true(sim_world_open(first, leaders));
    sim_messages_open(&job);
}

static void job_run(void)
{
    static const struct sim_call calls[] = {
        {SIM_REDUCE_ALL, 2, 8}, {SIM_BROADCAST, 1, 300000}, {SIM_REDUCE, 1, 300000}};
    for (uint32_t i = 0; i < 3; i++)
        sim_barrier(&job, i);
    for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        sim_collective(&job, &calls[i]);
    assert_false(job.has_failed);
}

static void job_close(void)
{
    sim_events_free(&job.events);
    sim_connections_close(&job);
    sim_messages_close(&job);
    sim_fabric_close(&job.fabric);
    sim_world_close();
}

/* What an end may send, and what the other holds back of it, is what it was given. */
static int connections_with_all_credits(void)
{
    int open = 0;
    for (uint32_t a = 0; a < leaders; a++)
        for (uint32_t i = 0; i < leader[a].connections; i++) {
            uint32_t b = leader[a].partners[i];
            struct sim_connection *c = sim_connection(&job, a, b);
            const struct sim_end *end = &c->ends[sim_end_of(a, b)];
            int limit = job.is_shared ? end->borrower.limit : job.credits.base;
            assert_int_equal(end->credits + c->ends[!sim_end_of(a, b)].to_return, limit);
            assert_true(end->to_return <= job.credits.slack);
            if (job.is_shared)
                assert_int_equal(c->ends[!sim_end_of(a, b)].account.granted, limit);
            open++;
        }
    return open;
}

/* Returns the number of messages. */
static uint32_t all_messages_came(void)
{
    uint32_t sent = 0, came = 0;
    for (uint32_t n = 0; n < leaders; n++) {
        sent += leader[n].sent;
        came += leader[n].came;
        assert_int_equal(leader[n].waiting, 0);
        assert_int_equal(leader[n].record_count, 0);
    }
    assert_int_equal(sent, came);
    return sent;
}

static uint32_t sum_of(size_t member_at)
{
    uint32_t sum = 0;
    for (uint32_t n = 0; n < leaders; n++)
        sum += *(const uint32_t *)(const void *)((const char *)&leader[n] + member_at);
    return sum;
}

static uint32_t run_with(char *setting, char *other)
{
    job_open(setting, other);
    job_run();
    uint32_t sent = all_messages_came();
    assert_true(connections_with_all_credits() > 0);
    return sent;
}

static void credits_come_back(void **state)
{
    (void)state;
    char none[] = "GASNET_AM_CREDITS_PP=12", one[] = "GASNET_AM_CREDITS_PP=1",
         total[] = "GASNET_AM_CREDITS_TOTAL=1", srq[] = "GASNET_USE_SRQ=1",
         few[] = "GASNET_RBUF_COUNT=150";
    uint32_t all = run_with(none, NULL);
    assert_int_equal(sum_of(offsetof(struct sim_leader, waits)), 0);
    job_close();
    assert_int_equal(run_with(one, NULL), all);
    assert_int_equal(sum_of(offsetof(struct sim_leader, acks)), all); /* the slack is 0 */
    job_close();
    assert_int_equal(run_with(total, NULL), all);
    assert_true(sum_of(offsetof(struct sim_leader, waits)) > 0);
    for (uint32_t n = 0; n < leaders; n++)
        assert_int_equal(leader[n].credits_total, 1);
    job_close();
    assert_int_equal(run_with(srq, few), all);
    assert_true(sum_of(offsetof(struct sim_leader, loans)) > 0);
    job_close();
}

static void connections_are_bounded(void **state)
{
    (void)state;
    char none[] = "GASNET_CONNECT_MAX=0", limit[] = "GASNET_CONNECT_MAX=3",
         one[] = "GASNET_AM_CREDITS_PP=1";
    uint32_t all = run_with(none, one), made = sum_of(offsetof(struct sim_leader, made));
    job_close();
    assert_int_equal(run_with(limit, one), all);
    for (uint32_t n = 0; n < leaders; n++) {
        assert_true(leader[n].connections_most <= 3);
        assert_int_equal(leader[n].made - leader[n].closed, leader[n].connections);
    }
    assert_true(sum_of(offsetof(struct sim_leader, made)) > made);
    job_close();
}

/* Messages of barriers count on both ends, so that connections which carried some are closed. */
static void connections_of_shared_queues_are_bounded(void **state)
{
    (void)state;
    char limit[] = "GASNET_CONNECT_MAX=3", srq[] = "GASNET_USE_SRQ=1";
    run_with(limit, srq);
    assert_true(job.is_shared && job.plan.bounded > 0);
    assert_true(sum_of(offsetof(struct sim_leader, closed)) > 0);
    job_close();
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
        cmocka_unit_test(credits_come_back),
        cmocka_unit_test(connections_are_bounded),
        cmocka_unit_test(connections_of_shared_queues_are_bounded),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sim_fabric_close(&fabric);
    return failed;
}
