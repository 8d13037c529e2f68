/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order of start-up, what is undone when a step fails, which transports a job needs, and the
 * limits of its segments; with fake rooms that only record that they were opened. */
#include "config.h"

#include "fake_rooms.h"
#include "start/start.h"
#include "transport/self/self.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"
#include "unit.h"

/* Ranks 0 and 1 share a host, 2 and 3 another; we are 1. */
static const struct job two_hosts = {.rank = 1,
                                     .size = 4,
                                     .host_of = {0, 0, 1, 1},
                                     .local = {0, 1},
                                     .local_size = 2,
                                     .memory = {400, 300, 800, 900}};

static int set_up(void **state)
{
    job = two_hosts;
    return 0;
}

/* ---- the order */

static void identity_comes_first_then_settings_then_rooms(void **state)
{
    assert_order(start_job(true), "alone_open", "prepare", "bootstrap", "process_memory", "pattern",
                 "peers", "describe", "ports", "record_open", "message", "barrier_open",
                 "named_open", "exchange_open", "atomic_open", "vector_open", "kind_rma_open",
                 "kind_long_open", "exit_open", "shm_open", "verbs_open", "exchange", "topology",
                 "started", NULL);
}

/* The exchange compares settings: start-up must not act on them earlier. */
static void nothing_of_others_is_mapped_or_connected_before_all_are_compared(void **state)
{
    assert_order(start_job(true), "exchange", "topology", "shm_connect", "verbs_agree",
                 "verbs_connect", "barrier", "named", "answers_ring", "use:shm:verbs", "fence",
                 "network_ready", "started", NULL);
}

/* Ranks that found different numbers of ports open again with fewer, before anything is connected.
 */
static void a_narrowed_transport_is_exchanged_again(void **state)
{
    assert_false(did(start_job(true), "exchange_again"));
    job.is_narrowed = true;
    assert_order(start_job(true), "exchange", "verbs_narrow", "exchange_again", "topology",
                 "verbs_agree", "verbs_connect", "started", NULL);
}

static void no_rank_sends_before_all_are_ready_to_receive(void **state)
{
    assert_order(start_job(true), "verbs_connect", "fence", "network_ready", "listed",
                 "alone_accept", "tools", "drop", "started", NULL);
}

static void only_rank_0_reports_unknown_names(void **state)
{
    assert_false(did(start_job(true), "unknown"));
    job.rank = 0;
    assert_true(did(start_job(true), "unknown"));
}

static void only_rank_0_reports_the_start_and_only_on_request(void **state)
{
    job.rank = 0;
    assert_false(did(start_job(true), "record"));
    setenv("GASNET_VERBOSEENV", "1", 1);
    assert_order(start_job(true), "network_ready", "record", "started", NULL);
    job.rank = 1;
    const char *said = start_job(true);
    unsetenv("GASNET_VERBOSEENV");
    assert_false(did(said, "record"));
}

/* ---- failing */

static void assert_fails_at(const char *name, const char *before, const char *undone)
{
    char end[64];
    job.failing = name;
    const char *said = start_job(false), *failed = place_of(said, name);
    if (!failed)
        fail_msg("'%s' was not reached: %s", name, said);
    snprintf(end, sizeof(end), "%s %sexit_failed ", name, undone);
    if (strcmp(failed, end))
        fail_msg("after '%s' expected '%s': %s", name, end, said);
    if (before)
        assert_order(said, before, name, NULL);
}

static void what_fails_before_transports_ends_the_job_and_undoes_nothing(void **state)
{
    static const char *const early[] = {"bootstrap", "peers", "describe"};
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++)
        assert_fails_at(early[i], i ? early[i - 1] : NULL, "");
}

static void a_transport_that_does_not_open_is_closed_with_those_before_it(void **state)
{
    assert_fails_at("shm_open", "exit_open", "shm_close ");
    assert_fails_at("verbs_open", "shm_open", "verbs_close shm_close ");
}

/* The last one that opened is closed first. */
static void what_fails_afterwards_closes_all_transports_in_reverse(void **state)
{
    static const char *const late[] = {"exchange", "topology", "shm_connect", "verbs_connect",
                                       "barrier",  "named",    "limit",       "fence"};
    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
        assert_fails_at(late[i], i ? late[i - 1] : "verbs_open", "verbs_close shm_close ");
}

static void failures_to_pin_are_found_before_publishing(void **state)
{
    job.pins = true;
    assert_fails_at("physmem", "verbs_open", "verbs_close shm_close ");
}

/* A rank that ended the job before rank 0 has printed its lines would cut them short. */
static void where_ports_do_not_agree_rank_0_fails_at_once_and_others_wait_for_it(void **state)
{
    assert_fails_at("verbs_agree", "shm_connect", "fence verbs_close shm_close ");
    job.rank = 0;
    assert_fails_at("verbs_agree", "shm_connect", "verbs_close shm_close ");
}

static void bad_settings_end_the_job_before_anything_opens(void **state)
{
    setenv("GASNET_SUPERNODE_MAXSIZE", "few", 1);
    const char *said = start_job(false);
    unsetenv("GASNET_SUPERNODE_MAXSIZE");
    unit_assert_says(said, "GASNET_SUPERNODE_MAXSIZE");
    assert_order(said, "bootstrap", "exit_failed", NULL);
    assert_false(did(said, "pattern") || did(said, "peers"));
}

/* ---- which transports */

static void a_job_of_one_opens_no_transport_and_waits_for_no_rank(void **state)
{
    job = (struct job){.size = 1, .memory = {500}};
    const char *said = start_job(true);
    assert_order(said, "exit_open", "topology", "limits:250,250", "started", NULL);
    assert_false(did(said, "shm_open") || did(said, "verbs_open") || did(said, "exchange") ||
                 did(said, "fence"));
}

static void where_the_launcher_says_that_all_are_here_no_device_is_opened(void **state)
{
    job = (struct job){
        .rank = 1, .size = 3, .local = {0, 1, 2}, .local_size = 3, .memory = {9, 9, 9}};
    const char *said = start_job(true);
    assert_order(said, "shm_open", "shm_connect", "use:shm", "network_ready", "barrier_start",
                 "all_came", "alone_close", NULL);
    assert_false(did(said, "verbs_open") || did(said, "verbs_connect") || did(said, "fence"));
}

static void where_it_says_nothing_a_device_that_is_not_needed_is_closed_again(void **state)
{
    job = (struct job){.rank = 1, .size = 3, .memory = {9, 9, 9}};
    const char *said = start_job(true);
    assert_order(said, "verbs_open", "topology", "verbs_close", "use:shm", "all_came", NULL);
    assert_false(did(said, "verbs_agree") || did(said, "verbs_connect"));
}

static void without_neighbours_rings_are_closed_again(void **state)
{
    job.size = 3;
    job.host_of[1] = 2;
    job.local_size = 0;
    const char *said = start_job(true);
    assert_order(said, "shm_open", "topology", "shm_close", "verbs_connect", "use:verbs", NULL);
    assert_false(did(said, "shm_connect"));
}

static void without_neighbours_there_are_no_rings(void **state)
{
    job.nbrhd_size = 1;
    job.local_size = 0;
    setenv("GASNET_SUPERNODE_MAXSIZE", "1", 1);
    const char *said = start_job(true);
    unsetenv("GASNET_SUPERNODE_MAXSIZE");
    assert_false(did(said, "shm_open") || did(said, "shm_connect"));
    assert_order(said, "verbs_open", "verbs_connect", "use:verbs", NULL);
}

static void a_device_is_opened_for_ranks_that_are_not_expected_here(void **state)
{
    assert_true(did(start_job(true), "turn:1 for:2:3"));
    job.local_size = 0;
    assert_true(did(start_job(true), "turn:1 for:0:2:3"));
    job.rank = 3;
    job.local[0] = 2;
    job.local[1] = 3;
    job.local_size = 2;
    assert_true(did(start_job(true), "turn:1 for:0:1"));
}

static void expected_neighbours_are_cut_as_neighbourhoods_are(void **state)
{
    job = (struct job){.rank = 2, .size = 3, .local = {0, 1, 2}, .local_size = 3, .nbrhd_size = 1};
    setenv("GASNET_SUPERNODE_MAXSIZE", "2", 1);
    const char *said = start_job(true);
    unsetenv("GASNET_SUPERNODE_MAXSIZE");
    assert_true(did(said, "turn:2 for:0:1"));
}

static void a_launcher_that_contradicts_the_hosts_is_an_error_with_a_remedy(void **state)
{
    job.local[2] = 2;
    job.local_size = 3;
    const char *said = start_job(false);
    unit_assert_says(said, "the launcher reports rank 2 on this host too");
    unit_assert_says(said, "set GASNET_HOST_DETECT");
    assert_order(said, "topology", "verbs_close", "shm_close", "exit_failed", NULL);
}

static void where_ranks_outnumber_cpus_waiting_gives_them_away(void **state)
{
    assert_false(did(start_job(true), "crowded"));
    job.oversubscribed = true;
    assert_order(start_job(true), "use:shm:verbs", "crowded", "fence", NULL);
}

/* ---- limits of segments */

/* 300 / 2 is left on host 0, 800 / 2 on host 1, for two ranks each. */
static void of_a_host_the_least_counts_and_of_the_job_the_least_host(void **state)
{
    assert_true(did(start_job(true), "limits:75,75"));
    job.rank = 2;
    job.local[0] = 2;
    job.local[1] = 3;
    assert_true(did(start_job(true), "limits:200,75"));
}

static void what_can_be_pinned_bounds_segments_where_there_is_a_network(void **state)
{
    job.pins = true;
    const char *said = start_job(true);
    assert_false(did(said, "(pinnable is not known)"));
    assert_true(did(said, "limits:37,37"));
    job.size = 2;
    job.local_size = 0;
    assert_true(did(start_job(true), "limits:75,75"));
}

static void the_limit_is_the_users_or_the_clients_or_the_default(void **state)
{
    assert_true(did(start_job(true), "limit:0.85/H"));
    job.segsize = 12345;
    assert_true(did(start_job(true), "limit:12345/P"));
    job.segsize_text = "3G";
    assert_true(did(start_job(true), "limit:3G"));
    setenv("GASNET_MAX_SEGSIZE", "2G", 1);
    bool is_users = did(start_job(true), "limit:2G");
    setenv("GASNET_MAX_SEGSIZE", "  ", 1);
    bool is_clients = did(start_job(true), "limit:3G");
    unsetenv("GASNET_MAX_SEGSIZE");
    assert_true(is_users && is_clients);
}

/* ---- afterwards */

static void a_peer_is_described_by_its_transport(void **state)
{
    char text[64];
    struct tk_peer peers[] = {{.rank = 0, .transport = &tk_transport_self},
                              {.rank = 1, .transport = &tk_transport_shm}};
    tk_peers.at = peers;
    tk_describe_peer(0, text, sizeof(text));
    assert_string_equal(text, "self");
    tk_describe_peer(1, text, sizeof(text));
    assert_string_equal(text, "shm to 1");
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

static const struct CMUnitTest tests[] = {
    TEST(identity_comes_first_then_settings_then_rooms),
    TEST(nothing_of_others_is_mapped_or_connected_before_all_are_compared),
    TEST(a_narrowed_transport_is_exchanged_again),
    TEST(no_rank_sends_before_all_are_ready_to_receive),
    TEST(only_rank_0_reports_unknown_names),
    TEST(only_rank_0_reports_the_start_and_only_on_request),
    TEST(what_fails_before_transports_ends_the_job_and_undoes_nothing),
    TEST(a_transport_that_does_not_open_is_closed_with_those_before_it),
    TEST(what_fails_afterwards_closes_all_transports_in_reverse),
    TEST(failures_to_pin_are_found_before_publishing),
    TEST(where_ports_do_not_agree_rank_0_fails_at_once_and_others_wait_for_it),
    TEST(bad_settings_end_the_job_before_anything_opens),
    TEST(a_job_of_one_opens_no_transport_and_waits_for_no_rank),
    TEST(where_the_launcher_says_that_all_are_here_no_device_is_opened),
    TEST(where_it_says_nothing_a_device_that_is_not_needed_is_closed_again),
    TEST(without_neighbours_rings_are_closed_again),
    TEST(without_neighbours_there_are_no_rings),
    TEST(a_device_is_opened_for_ranks_that_are_not_expected_here),
    TEST(expected_neighbours_are_cut_as_neighbourhoods_are),
    TEST(a_launcher_that_contradicts_the_hosts_is_an_error_with_a_remedy),
    TEST(where_ranks_outnumber_cpus_waiting_gives_them_away),
    TEST(of_a_host_the_least_counts_and_of_the_job_the_least_host),
    TEST(what_can_be_pinned_bounds_segments_where_there_is_a_network),
    TEST(the_limit_is_the_users_or_the_clients_or_the_default),
    TEST(a_peer_is_described_by_its_transport),
};

/* make check sets this for jobs, and what a process was started with stays in force: start anew. */
int main(int argc, char **argv)
{
    (void)argc;
    if (getenv("GASNET_SUPERNODE_MAXSIZE")) {
        unsetenv("GASNET_SUPERNODE_MAXSIZE");
        execv("/proc/self/exe", argv);
        return 1;
    }
    unit_deadline();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
