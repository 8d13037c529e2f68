/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls about the process and the job rather than their objects, and the calls of the named
 * barrier: codes, tables, errors. The barrier itself, waiting and neighbours are fakes of this
 * test. */
#include "config.h"

#include <unistd.h>

#include "base/report.h"
#include "collective/named.h"
#include "fake_job.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "start/start.h"
#include "team/objects.h"
#include "transport/shm/shm.h"
#include "trunkline_query.h"
#include "unit.h"

enum { ranks = 4 };

/* ---- the named barrier */

static struct {
    bool pending, done, agree, has_name;
    unsigned waits;
} barrier;

bool tk_named_notify(int id, int flags)
{
    (void)id, (void)flags;
    bool is_first = !barrier.pending;
    barrier.pending = true;
    return is_first;
}

bool tk_named_pending(void)
{
    return barrier.pending;
}

bool tk_named_done(void)
{
    return barrier.done;
}

void tk_named_wait(void)
{
    barrier.waits++;
}

bool tk_named_end(int id, int flags)
{
    (void)id, (void)flags;
    barrier.pending = false;
    return barrier.agree;
}

bool tk_named_result(int *id)
{
    *id = 42;
    return barrier.has_name;
}

/* ---- others */

void tk_exit(int code)
{
    _exit(code);
}

static uintptr_t offsets[ranks];

uintptr_t tk_neighbour_addr_offset(struct tk_peer *peer, uint32_t endpoint)
{
    assert_int_equal(endpoint, 0);
    return offsets[peer->rank];
}

void tk_describe_peer(uint32_t rank, char *text, size_t size)
{
    snprintf(text, size, "by mail to %u", rank);
}

struct tk_topology tk_topology;

/* Rank 0 of four on two hosts, of which 0 and 1 share memory; 2 and 3 do not. */
static int set_up(void **state)
{
    static uint32_t all[ranks] = {0, 1, 2, 3};
    static uint32_t host_of[ranks] = {0, 0, 1, 1}, nbrhd_of[ranks] = {0, 0, 1, 2};
    unit_settings(NULL, NULL);
    memset(&barrier, 0, sizeof(barrier));
    barrier.agree = true;
    tk_verbose_errors = false;
    tk_topology = (struct tk_topology){.hosts = 2,
                                       .my_host = 0,
                                       .local_size = 2,
                                       .local_rank = 0,
                                       .local_ranks = all,
                                       .host_of = host_of,
                                       .nbrhds = 3,
                                       .my_nbrhd = 0,
                                       .nbrhd_size = 2,
                                       .nbrhd_rank = 0,
                                       .nbrhd_ranks = all,
                                       .nbrhd_of = nbrhd_of};
    fake_job_open(ranks);
    return 0;
}

static int tear_down(void **state)
{
    fake_job_close();
    return 0;
}

/* ---- barriers */

static void a_barrier_is_over_when_all_have_come(void **state)
{
    gasnet_barrier_notify(1, 0);
    assert_int_equal(gasnet_barrier_wait(1, 0), GASNET_OK);
    assert_int_equal(barrier.waits, 1);
    assert_int_equal(gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED), GASNET_OK);
    assert_int_equal(barrier.waits, 2);
}

static void a_try_polls_once_and_never_waits(void **state)
{
    gasnet_barrier_notify(1, 0);
    assert_int_equal(gasnet_barrier_try(1, 0), GASNET_ERR_NOT_READY);
    assert_int_equal(gasnet_barrier_try(1, 0), GASNET_ERR_NOT_READY);
    assert_int_equal(fake_job.polls, 2);
    barrier.done = true;
    assert_int_equal(gasnet_barrier_try(1, 0), GASNET_OK);
    assert_int_equal(barrier.waits, 0);
}

static void names_that_differ_are_a_mismatch_in_each_form(void **state)
{
    barrier.agree = false;
    barrier.done = true;
    gasnet_barrier_notify(1, 0);
    assert_int_equal(gasnet_barrier_wait(2, 0), GASNET_ERR_BARRIER_MISMATCH);
    gasnet_barrier_notify(1, 0);
    assert_int_equal(gasnet_barrier_try(2, 0), GASNET_ERR_BARRIER_MISMATCH);
    assert_int_equal(gasnet_barrier(1, 0), GASNET_ERR_BARRIER_MISMATCH);
}

static void the_result_says_whether_there_was_a_name(void **state)
{
    int id = 0;
    barrier.has_name = true;
    assert_int_equal(gasnet_barrier_result(&id), 0);
    assert_int_equal(id, 42);
    barrier.has_name = false;
    assert_int_not_equal(gasnet_barrier_result(&id), 0);
}

static void wait_alone(void *unused)
{
    gasnet_barrier_wait(0, 0);
}

static void try_alone(void *unused)
{
    gasnet_barrier_try(0, 0);
}

static void notify_twice(void *unused)
{
    gasnet_barrier_notify(0, 0);
    gasnet_barrier_notify(0, 0);
}

/* If this call returned, the job would hang. */
static void steps_out_of_turn_end_the_process(void **state)
{
    unit_assert_panic(wait_alone, NULL, "gasnet_barrier_wait was called without");
    unit_assert_panic(try_alone, NULL, "gasnet_barrier_try was called without");
    unit_assert_panic(notify_twice, NULL, "called again before gasnet_barrier_wait");
}

static void in_handler(void *step)
{
    gasnet_barrier_notify(0, 0);
    tk_in_handler = 1;
    (*(int (*const *)(int, int))step)(0, 0);
}

static void notify_in_handler(void *unused)
{
    tk_in_handler = 1;
    gasnet_barrier_notify(0, 0);
}

static void barriers_in_handlers_end_the_process(void **state)
{
    int (*wait)(int, int) = gasnet_barrier_wait, (*try)(int, int) = gasnet_barrier_try;
    unit_assert_panic(notify_in_handler, NULL, "gasnet_barrier_notify was called from a handler");
    unit_assert_panic(in_handler, &wait, "gasnet_barrier_wait was called from a handler");
    unit_assert_panic(in_handler, &try, "gasnet_barrier_try was called from a handler");
}

/* ---- progress */

static void a_poll_serves_the_network_once(void **state)
{
    assert_int_equal(gasnet_AMPoll(), GASNET_OK);
    assert_int_equal(fake_job.polls, 1);
}

static void there_are_three_ways_to_wait(void **state)
{
    assert_int_equal(gasnet_set_waitmode(GASNET_WAIT_SPIN), GASNET_OK);
    assert_int_equal(gasnet_set_waitmode(GASNET_WAIT_BLOCK), GASNET_OK);
    assert_int_equal(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK), GASNET_OK);
    assert_int_equal(gasnet_set_waitmode(-1), GASNET_ERR_BAD_ARG);
    assert_int_equal(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK + 1), GASNET_ERR_BAD_ARG);
}

static int query_threads(struct trunkline_client *client, gex_Flags_t flags, unsigned *count)
{
    const gex_ProgressThreadInfo_t *info;
    return gex_System_QueryProgressThreads(client, count, &info, flags);
}

static void a_client_that_may_query_progress_threads_has_none(void **state)
{
    struct trunkline_client plain = {.flags = 0}, deferring = {.flags = GEX_FLAG_DEFER_THREADS};
    unsigned count = 7;
    assert_int_equal(query_threads(&plain, 0, &count), GASNET_ERR_RESOURCE);
    assert_int_equal(query_threads(NULL, 0, &count), GASNET_ERR_BAD_ARG);
    assert_int_equal(query_threads(&deferring, 1, &count), GASNET_ERR_BAD_ARG);
    assert_int_equal(query_threads(&deferring, 0, NULL), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_System_QueryProgressThreads(&deferring, &count, NULL, 0),
                     GASNET_ERR_BAD_ARG);
    assert_int_equal(count, 7);
    assert_int_equal(query_threads(&deferring, 0, &count), GASNET_OK);
    assert_int_equal(count, 0);
}

static void leave_with(void *code)
{
    gasnet_exit(*(int *)code);
}

static void exit_leaves_with_the_code(void **state)
{
    int code = 39;
    unit_assert_exit(leave_with, &code, 39);
}

/* ---- where ranks are */

static void rank_and_size_are_of_the_job(void **state)
{
    tk_peers.me = 3;
    assert_int_equal(gex_System_QueryJobRank(), 3);
    assert_int_equal(gex_System_QueryJobSize(), ranks);
}

static void neighbours_and_ranks_of_the_host_are_tables_with_our_place(void **state)
{
    gex_RankInfo_t *info;
    gex_Rank_t count, mine;
    tk_topology.nbrhd_rank = 1;
    gex_System_QueryNbrhdInfo(&info, &count, &mine);
    assert_int_equal(count, 2);
    assert_int_equal(mine, 1);
    assert_int_equal(info[1].gex_jobrank, 1);
    gex_System_QueryHostInfo(&info, &count, &mine);
    assert_int_equal(count, 2);
    assert_int_equal(mine, 0);
    gex_System_QueryNbrhdInfo(NULL, NULL, NULL);
    gex_System_QueryHostInfo(NULL, NULL, NULL);
}

static void our_position_is_among_neighbourhoods_and_hosts(void **state)
{
    gex_Rank_t nbrhds, nbrhd, hosts, host;
    tk_topology.my_nbrhd = 2;
    tk_topology.my_host = 1;
    gex_System_QueryMyPosition(&nbrhds, &nbrhd, &hosts, &host);
    assert_true(nbrhds == 3 && nbrhd == 2 && hosts == 2 && host == 1);
    gex_System_QueryMyPosition(NULL, NULL, NULL, NULL);
}

static void an_offset_is_of_neighbours_whose_segment_is_mapped(void **state)
{
    gasnet_nodeinfo_t table[ranks];
    for (uint32_t r = 0; r < ranks; r++)
        offsets[r] = 0x1000;
    assert_int_equal(gasnet_getNodeInfo(table, ranks), GASNET_OK);
    assert_true(table[0].offset == 0 && table[1].offset == 0x1000);
    assert_true(table[2].offset == 0 && table[3].offset == 0);
    assert_true(table[3].host == 1 && table[3].supernode == 2);
    offsets[1] = tk_unmapped;
    assert_int_equal(gasnet_getNodeInfo(table, ranks), GASNET_OK);
    assert_int_equal(table[1].offset, 0);
}

static void a_table_of_nodes_is_filled_as_far_as_it_and_the_job_go(void **state)
{
    gasnet_nodeinfo_t table[ranks + 1];
    memset(table, 0x7f, sizeof(table));
    const gasnet_nodeinfo_t untouched = table[0];
    assert_int_equal(gasnet_getNodeInfo(table, 1), GASNET_OK);
    assert_memory_equal(&table[1], &untouched, sizeof(untouched));
    assert_int_equal(gasnet_getNodeInfo(table, ranks + 1), GASNET_OK);
    assert_memory_equal(&table[ranks], &untouched, sizeof(untouched));
    assert_int_equal(gasnet_getNodeInfo(NULL, 0), GASNET_OK);
    assert_int_equal(gasnet_getNodeInfo(NULL, 1), GASNET_ERR_BAD_ARG);
    assert_int_equal(gasnet_getNodeInfo(table, -1), GASNET_ERR_BAD_ARG);
}

static void how_a_peer_is_reached_is_a_text_that_may_be_cut(void **state)
{
    char text[8] = "";
    assert_int_equal(trunkline_describe_peer(2, text, sizeof(text)), strlen("by mail to 2"));
    assert_string_equal(text, "by mail");
    assert_int_equal(trunkline_describe_peer(ranks, text, sizeof(text)), 0);
}

/* ---- codes */

static void each_code_has_a_name_and_a_sentence(void **state)
{
    static const struct {
        int code;
        const char *name;
    } codes[] = {{GASNET_OK, "GASNET_OK"},
                 {GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT"},
                 {GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE"},
                 {GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG"},
                 {GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY"},
                 {GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH"}};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        assert_string_equal(gasnet_ErrorName(codes[i].code), codes[i].name);
        assert_string_not_equal(gasnet_ErrorDesc(codes[i].code), gasnet_ErrorDesc(-1));
    }
    assert_string_equal(gasnet_ErrorName(-1), "*unknown*");
}

static void verbose_errors_are_on_or_off(void **state)
{
    gex_System_SetVerboseErrors(5);
    assert_int_equal(gex_System_GetVerboseErrors(), 1);
    gex_System_SetVerboseErrors(0);
    assert_int_equal(gex_System_GetVerboseErrors(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(a_barrier_is_over_when_all_have_come),
    TEST(a_try_polls_once_and_never_waits),
    TEST(names_that_differ_are_a_mismatch_in_each_form),
    TEST(the_result_says_whether_there_was_a_name),
    TEST(steps_out_of_turn_end_the_process),
    TEST(barriers_in_handlers_end_the_process),
    TEST(a_poll_serves_the_network_once),
    TEST(there_are_three_ways_to_wait),
    TEST(a_client_that_may_query_progress_threads_has_none),
    TEST(exit_leaves_with_the_code),
    TEST(rank_and_size_are_of_the_job),
    TEST(neighbours_and_ranks_of_the_host_are_tables_with_our_place),
    TEST(our_position_is_among_neighbourhoods_and_hosts),
    TEST(an_offset_is_of_neighbours_whose_segment_is_mapped),
    TEST(a_table_of_nodes_is_filled_as_far_as_it_and_the_job_go),
    TEST(how_a_peer_is_reached_is_a_text_that_may_be_cut),
    TEST(each_code_has_a_name_and_a_sentence),
    TEST(verbose_errors_are_on_or_off),
};

UNIT_MAIN(tests)
