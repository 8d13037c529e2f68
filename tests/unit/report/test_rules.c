/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each rule of gasnet_report fires on a job that has what it looks for, with the right numbers, and
 * is silent on a healthy one and just below its limit. */
#include "config.h"

#include "made.h"
#include "unit.h"

enum { RANKS = 4 };

/* A job of which nothing is wrong: some of everything, all ranks alike. */
static void healthy(const char *more)
{
    char counters[1024];
    snprintf(counters, sizeof(counters),
             "\"puts_bounce\":1000,\"put_bytes_network\":4000000,\"short_requests\":20000,\"shorts_"
             "received\":20000,"
             "\"medium_requests\":5000,\"connections_made\":12,\"regions_registered\":50,\"regions_"
             "found\":5000,"
             "\"credit_waits\":20,\"credit_wait_ns\":30000000,\"room_wait_ns\":1000000%s",
             more);
    for (uint32_t i = 0; i < RANKS; i++)
        made_rank(i, RANKS, counters);
}

static void healthy_trace(void)
{
    for (uint32_t i = 0; i < RANKS; i++) {
        made_read(
            "# start rank=%u size=4 pid=7 monotonic=1 realtime=5 offset=0 error=0 host=h%u boot=b",
            i, i / 2);
        made_event(i, 0, 40000, "put", " peer=1 bytes=8 path=inline at=a.c:1");
        made_event(i, 50000, 20000 + i, "barrier", "");
        made_read("# end rank=%u monotonic=2 realtime=6 lost=0 how=exit", i);
    }
}

static void a_healthy_job_has_no_findings(void **state)
{
    made_begin();
    healthy("");
    healthy_trace();
    if (made_findings() != 0) {
        for (unsigned i = 0; i < finding_rule_count; i++)
            if (made_finding(finding_rule_name(i)))
                fail_msg("%s: %s", finding_rule_name(i),
                         made_finding(finding_rule_name(i))->sentence);
    }
    made_end();
}

/* What is added to the counters of rank 3, over the others' (a later member of the same name wins),
 * and what the rule says. */
static const struct {
    const char *rule, *counters, *sentence, *silent;
} by_counters[] = {
    {"credits", ",\"credit_waits\":900,\"credit_wait_ns\":410000000",
     "Rank 3 waited 41 % of its time for credits.", ",\"credit_wait_ns\":99000000"},
    {"space", ",\"room_waits\":9,\"room_wait_ns\":250000000",
     "Rank 3 waited 25 % of its time for space in queues and buffers.",
     ",\"room_wait_ns\":99000000"},
    {"failover", ",\"failovers\":2,\"connections_back\":1",
     "2 connections failed and other connections took over their work; 1 came back.",
     ",\"failovers\":0"},
    {"bytes-balance", ",\"put_bytes_network\":40000000",
     "Rank 3 moved 10.0 times as many bytes as the mean of the others.",
     ",\"put_bytes_network\":16000000"},
    {"messages-balance", ",\"shorts_received\":120000",
     "Rank 3 handled 6.0 times as many messages as the mean of the others.",
     ",\"shorts_received\":60000"},
    {"evictions", ",\"regions_registered\":2000,\"regions_evicted\":1800",
     "1800 of 2150 registrations on demand were evicted for others: memory is registered again and "
     "again.",
     ",\"regions_evicted\":99"},
    {"invalidations", ",\"regions_registered\":2000,\"regions_invalidated\":1900",
     "1900 of 2150 registrations on demand ended because the program unmapped the memory: it "
     "allocates and frees what it transfers.",
     ",\"regions_invalidated\":99"},
    {"connections-closed", ",\"connections_closed\":40",
     "40 times connections to a peer were closed for others, of 48 that were made: ranks talk to "
     "more peers than they may be connected to.",
     ",\"connections_closed\":9"},
    {"datagrams-repeated", ",\"datagrams_repeated\":30",
     "30 datagrams for connections were sent again while 48 queue pairs were made: datagrams are "
     "lost, or ranks answer late.",
     ",\"datagrams_repeated\":9"},
    {"rendezvous", ",\"messages_offered\":12000",
     "12000 of 20000 Mediums were larger than a receive buffer, so that each cost one more round "
     "trip.",
     ",\"messages_offered\":9999"},
    {"staging", ",\"kind_slot\":400,\"kind_slot_waits\":200",
     "200 of 400 device transfers waited for staging memory.",
     ",\"kind_slot\":400,\"kind_slot_waits\":99"},
};

static void rank_3_has(const char *more)
{
    char counters[1024];
    made_begin();
    healthy("");
    snprintf(counters, sizeof(counters),
             "\"puts_bounce\":1000,\"put_bytes_network\":4000000,\"short_requests\":20000,\"shorts_"
             "received\":20000,\"medium_requests\":5000,"
             "\"connections_made\":12,\"regions_registered\":50,\"credit_waits\":20%s",
             more);
    made_rank(3, RANKS, counters);
}

static void counters_lead_to_findings(void **state)
{
    for (size_t i = 0; i < sizeof(by_counters) / sizeof(by_counters[0]); i++) {
        rank_3_has(by_counters[i].counters);
        const struct finding *found = made_finding(by_counters[i].rule);
        if (!found || strcmp(found->sentence, by_counters[i].sentence) != 0)
            fail_msg("%s: %s", by_counters[i].rule, found ? found->sentence : "silent");
        assert_true(found->evidence_count > 0);
        assert_int_equal(made_findings(), 1);
        made_end();
        rank_3_has(by_counters[i].silent);
        if (made_findings() != 0)
            fail_msg("%s, or another, is not silent", by_counters[i].rule);
        made_end();
    }
}

static void a_trace_names_the_peer_that_was_waited_for(void **state)
{
    rank_3_has(",\"credit_waits\":900,\"credit_wait_ns\":410000000");
    made_event(3, 0, 5000, "credit_wait", " peer=1");
    made_event(3, 9000, 6000, "credit_wait", " peer=2");
    made_event(3, 19000, 2000, "credit_wait", " peer=1");
    made_event(3, 29000, 9000, "room_wait", " peer=0");
    assert_string_equal(made_finding("credits")->sentence,
                        "Rank 3 waited 41 % of its time for credits of rank 1.");
    assert_string_equal(made_finding("credits")->setting, "GASNET_AM_CREDITS_PP");
    made_end();
}

static void a_trace_alone_tells_of_waits(void **state)
{
    made_begin();
    made_event(0, 0, 100000, "put", " peer=1 bytes=8 path=inline");
    made_event(1, 0, 12000, "room_wait", " peer=0");
    assert_string_equal(
        made_finding("space")->sentence,
        "Rank 1 waited 12 % of its time for space in queues and buffers towards rank 0.");
    made_end();
}

static void a_rank_that_comes_late_is_named(void **state)
{
    made_begin();
    for (uint32_t i = 0; i < RANKS; i++) {
        made_event(i, 0, 1, "barrier_nb", "");
        made_event(i, i == 2 ? 90000 : 5000, i == 2 ? 1000 : 86000, "event_wait", "");
    }
    const struct finding *found = made_finding("late-rank");
    assert_non_null(found);
    assert_string_equal(found->sentence, "The other ranks spent 95 % of the time in barriers and "
                                         "collectives, rank 2 only 1 %: they wait for it.");
    made_end();
}

static void handlers_that_take_most_of_the_time_are_named(void **state)
{
    made_begin();
    made_event(0, 0, 60000, "request_handler", " peer=1");
    made_event(0, 90000, 1, "put", " peer=1 bytes=8 path=inline");
    assert_non_null(made_finding("busy-handlers"));
    assert_string_equal(made_finding("busy-handlers")->sentence,
                        "Handlers took 67 % of the time of rank 0.");
    made_end();
    made_begin();
    made_event(0, 0, 40000, "request_handler", " peer=1");
    made_event(0, 90000, 1, "put", " peer=1 bytes=8 path=inline");
    assert_null(made_finding("busy-handlers"));
    made_end();
}

static void lost_events_are_reported(void **state)
{
    made_begin();
    made_event(0, 0, 1, "put", " peer=1 bytes=8 path=inline");
    made_event(0, 5, 0, "lost", " bytes=12");
    assert_non_null(made_finding("trace-lost"));
    made_end();
}

static void ranks_that_are_missing_or_ended_badly_are_named(void **state)
{
    made_begin();
    made_rank(0, 3, "");
    made_read("{\"rank\":2,\"ranks\":3,\"host\":\"h\",\"pid\":7,\"seconds\":1.000000,\"end\":\"a "
              "fatal signal\",\"counters\":{},\"sizes\":{}}");
    assert_string_equal(made_finding("ranks-missing")->sentence,
                        "The files are of 2 of 3 ranks. The first that is missing is rank 1.");
    assert_string_equal(made_finding("bad-end")->sentence,
                        "1 rank did not leave in order; rank 2: a fatal signal.");
    assert_int_equal(made_finding("bad-end")->weight, FINDING_ERROR);
    made_end();
}

/* Ranks that --top has seen once more, and a trace of a rank that SIGKILL ended. */
static void a_trace_without_an_end_is_a_bad_end(void **state)
{
    made_begin();
    healthy_trace();
    made_read("# start rank=4 size=5 pid=7 monotonic=1 realtime=5 offset=0 error=0 host=h boot=b");
    assert_string_equal(made_finding("bad-end")->sentence,
                        "1 rank did not leave in order; rank 4: its trace has no end: it was "
                        "killed, or still runs.");
    made_end();
}

static void top_tells_of_ranks_that_wait_and_hosts_that_are_silent(void **state)
{
    made_begin();
    made_read("{\"job\":5,\"program\":\"p\",\"size\":1,\"hosts\":2,\"silent_hosts\":1,\"ranks\":[{"
              "\"rank\":0,\"host\":\"a\",\"pid\":1,\"state\":\"spinning\","
              "\"waits_for\":\"send\",\"wait_seconds\":12.500000,\"wait_peer\":3,\"seconds\":20."
              "000000,\"threads\":1,\"rails\":1,\"memory_kb\":9,"
              "\"private_kb\":1,\"counters\":{}}]}");
    assert_string_equal(
        made_finding("stuck")->sentence,
        "Rank 0 waits for send since 12.5 s; gasnetrun_ibv --explain prints what for.");
    assert_string_equal(
        made_finding("silent-hosts")->sentence,
        "1 host has not answered in time; the last record of --top lacks its ranks.");
    made_end();
}

static void the_most_serious_comes_first(void **state)
{
    rank_3_has(",\"messages_offered\":12000,\"credit_wait_ns\":410000000,\"failovers\":1");
    assert_int_equal(made_findings(), 3);
    struct findings list;
    assert_true(findings_of(model, &list));
    assert_string_equal(list.list[0].rule, "failover");
    assert_string_equal(list.list[1].rule, "credits");
    assert_string_equal(list.list[2].rule, "rendezvous");
    findings_free(&list);
    made_end();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_healthy_job_has_no_findings),
    cmocka_unit_test(counters_lead_to_findings),
    cmocka_unit_test(a_trace_names_the_peer_that_was_waited_for),
    cmocka_unit_test(a_trace_alone_tells_of_waits),
    cmocka_unit_test(a_rank_that_comes_late_is_named),
    cmocka_unit_test(handlers_that_take_most_of_the_time_are_named),
    cmocka_unit_test(lost_events_are_reported),
    cmocka_unit_test(ranks_that_are_missing_or_ended_badly_are_named),
    cmocka_unit_test(a_trace_without_an_end_is_a_bad_end),
    cmocka_unit_test(top_tells_of_ranks_that_wait_and_hosts_that_are_silent),
    cmocka_unit_test(the_most_serious_comes_first),
};

UNIT_MAIN(tests)
