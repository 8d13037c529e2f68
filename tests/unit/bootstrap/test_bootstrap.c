/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The PMIx client, against a PMIx server that is a table (fake_pmix.h). */
#include "config.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "base/rank_slot.h"
#include "bootstrap/bootstrap.h"
#include "fake_pmix.h"
#include "settings/settings.h"
#include "unit.h"

/* ---- */

static const char *const names[] = {
    "TRUNKLINE_LAUNCHED", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PRTE_JOB_SIZE",
    "PMI_SIZE",           "MV2_COMM_WORLD_SIZE",  "JSM_NAMESPACE_SIZE",   "PMIX_NAMESPACE",
    "SLURM_NTASKS"};
enum { launchers = 7 };
static const char *const rank_names[] = {
    "OMPI_COMM_WORLD_RANK", "PMI_RANK",           "SLURM_PROCID",
    "MV2_COMM_WORLD_RANK",  "JSM_NAMESPACE_RANK", "PALS_RANKID",
    "FLUX_TASK_RANK",       "ALPS_APP_PE",        "PMIX_RANK"};
enum { rank_variables = 9 };

/* A server that knows a job of four, and that this process is rank 2. */
static int set_up(void **state)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    for (size_t i = 0; i < rank_variables; i++)
        unsetenv(rank_names[i]);
    memset(&server, 0, sizeof(server));
    server.job_size = (pmix_value_t){.type = PMIX_UINT32, .data.uint32 = ranks};
    server.peers_type = PMIX_STRING;
    naps = wakes = 0;
    tk_settings.connect_timeout = 5;
    tk_bootstrap_bell(NULL);
    tk_bootstrap = (struct tk_bootstrap){.rank = 0, .size = 1, .local_size = 1, .alone = true};
    return 0;
}

static int set_up_open(void **state)
{
    set_up(state);
    return tk_bootstrap_open() != TK_OK;
}

static int tear_down(void **state)
{
    if (server.pending)
        answer_fence();
    free(tk_bootstrap.local);
    return 0;
}

static void assert_open_fails(const char *text)
{
    unit_listen();
    enum tk_status status = tk_bootstrap_open();
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, text);
    assert_int_equal(unit_lines(said), 1);
}

/* A cause in libpmix's words, which are not the same in all its releases. */
static const char *because(const char *what, pmix_status_t rc)
{
    static char text[128];
    snprintf(text, sizeof(text), "%s: %s", what, PMIx_Error_string(rc));
    return text;
}

static void assert_alone(pmix_status_t rc)
{
    server.init = rc;
    unit_listen();
    enum tk_status status = tk_bootstrap_open();
    const char *said = unit_heard();
    assert_string_equal(said, "");
    assert_int_equal(status, TK_OK);
    assert_true(tk_bootstrap.alone);
    assert_int_equal(tk_bootstrap.rank, 0);
    assert_int_equal(tk_bootstrap.size, 1);
}

/* ---- opening */

static void without_a_server_a_process_is_a_job_of_one(void **state)
{
    assert_alone(PMIX_ERR_UNREACH);
    assert_alone(PMIX_ERR_INVALID_NAMESPACE);
    assert_alone(PMIX_ERROR);
}

static void a_namespace_whose_server_is_gone_still_leaves_a_job_of_one(void **state)
{
    setenv("PMIX_NAMESPACE", "old", 1);
    assert_alone(PMIX_ERR_UNREACH);
}

static void a_namespace_whose_server_refuses_is_an_error(void **state)
{
    setenv("PMIX_NAMESPACE", "old", 1);
    server.init = PMIX_ERROR;
    assert_open_fails("unset it to run alone");
}

/* If the ranks of a job each ran as a job of one, each would give wrong results. */
static void a_rank_of_several_never_runs_alone(void **state)
{
    for (unsigned i = 0; i < launchers; i++) {
        char text[64];
        set_up(state);
        setenv(names[i], "4", 1);
        server.init = PMIX_ERR_UNREACH;
        snprintf(text, sizeof(text), "one of 4 ranks (%s=4)", names[i]);
        assert_open_fails(text);
    }
}

static void a_rank_never_runs_alone_whatever_names_it(void **state)
{
    for (unsigned i = 0; i < rank_variables; i++) {
        char text[64];
        set_up(state);
        setenv("PMIX_NAMESPACE", "gone", 1);
        setenv(rank_names[i], "3", 1);
        server.init = PMIX_ERR_UNREACH;
        snprintf(text, sizeof(text), "a rank of a job (%s=3)", rank_names[i]);
        assert_open_fails(text);
    }
}

/* Otherwise, if the server of a job died, the first rank would give a result and the others would
 * not. */
static void rank_0_of_a_lost_server_does_not_run_alone(void **state)
{
    setenv("PMIX_RANK", "0", 1);
    server.init = PMIX_ERR_UNREACH;
    assert_open_fails("unset PMIX_RANK to run alone");
}

static void a_launcher_of_one_rank_needs_no_server(void **state)
{
    for (unsigned i = 0; i < launchers; i++)
        setenv(names[i], "1", 1);
    for (unsigned i = 0; i + 1 < rank_variables; i++)
        setenv(rank_names[i], "0", 1);
    assert_alone(PMIX_ERR_UNREACH);
}

/* In the shell of an allocation for several tasks. */
static void an_allocation_is_not_a_launcher(void **state)
{
    setenv("SLURM_NTASKS", "4", 1);
    assert_alone(PMIX_ERR_UNREACH);
}

static void when_libpmix_could_not_start_its_thread_the_limits_are_named(void **state)
{
    setenv("TRUNKLINE_LAUNCHED", "2", 1);
    server.init = PMIX_ERROR;
    assert_open_fails("ulimit -u");
}

/* The exit status of a process whose server goes away, -1 when it goes on. */
static int status_without_server(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        fclose(stderr);
        server.lost(1, PMIX_ERR_LOST_CONNECTION, NULL, NULL, 0, NULL, 0, NULL, NULL);
        _exit(255);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) != 255 ? WEXITSTATUS(status) : -1;
}

/* mpirun was killed: its ranks must not run on for ever. */
static void a_rank_ends_when_a_foreign_server_is_lost(void **state)
{
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_non_null(server.lost);
    assert_int_equal(status_without_server(), 1);
    tk_bootstrap_close();
    assert_int_equal(status_without_server(), -1); /* it may go first */
}

static void our_own_guard_ends_ranks_itself(void **state)
{
    setenv("TRUNKLINE_LAUNCHED", "4", 1);
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_null(server.lost);
}

static void rank_and_size_come_from_the_server(void **state)
{
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_false(tk_bootstrap.alone);
    assert_int_equal(tk_bootstrap.rank, me);
    assert_int_equal(tk_bootstrap.size, ranks);
}

static void a_size_of_any_integer_type_is_read(void **state)
{
    const pmix_value_t forms[] = {
        {.type = PMIX_UINT32, .data.uint32 = 5}, {.type = PMIX_UINT64, .data.uint64 = 5},
        {.type = PMIX_INT32, .data.int32 = 5},   {.type = PMIX_INT, .data.integer = 5},
        {.type = PMIX_UINT, .data.uint = 5},     {.type = PMIX_SIZE, .data.size = 5},
        {.type = PMIX_UINT16, .data.uint16 = 5}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        server.job_size = forms[i];
        assert_int_equal(tk_bootstrap_open(), TK_OK);
        assert_int_equal(tk_bootstrap.size, 5);
    }
}

static void a_job_without_a_usable_size_is_an_error(void **state)
{
    server.job_size.type = PMIX_UNDEF;
    assert_open_fails(because("no usable job size", PMIX_ERR_NOT_FOUND));
    server.job_size = (pmix_value_t){.type = PMIX_BOOL, .data.flag = true};
    assert_open_fails("no usable job size");
}

static void a_rank_outside_the_job_is_an_error(void **state)
{
    server.job_size.data.uint32 = me;
    assert_open_fails("no usable job size");
}

/* ---- ranks of this host */

static void ranks_of_this_host_are_a_list(void **state)
{
    const uint32_t expected[] = {0, 2, 3};
    server.local_peers = "0,2,3";
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_int_equal(tk_bootstrap.local_size, 3);
    assert_memory_equal(tk_bootstrap.local, expected, sizeof(expected));
}

/* The list only predicts neighbours: a bad list costs queue pairs, not the job. */
static void an_invalid_list_is_ignored(void **state)
{
    const char *const bad[] = {"",    ",",    "0,",  ",2",     "2,0",
                               "2,2", "0-2",  "0;2", "x",      "-1",
                               "2 ",  " 2",   "0,4", "0,2,3,", "99999999999999999999",
                               "+2",  "0,,2", "2,x"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        server.local_peers = bad[i];
        assert_int_equal(tk_bootstrap_open(), TK_OK);
        if (tk_bootstrap.local || tk_bootstrap.local_size)
            fail_msg("'%s' was taken for a list", bad[i]);
    }
}

static void a_list_that_is_not_text_is_ignored(void **state)
{
    server.local_peers = "0,2";
    server.peers_type = PMIX_BOOL;
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_null(tk_bootstrap.local);
}

/* ---- a job of one */

static void alone_nothing_asks_a_server(void **state)
{
    char byte = 1;
    assert_int_equal(tk_bootstrap_put("k", &byte, 1), TK_OK);
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(tk_bootstrap_part(NULL, 0), TK_OK);
    assert_int_equal(tk_bootstrap_peek(0, "k", &byte, 1), TK_FAIL);
    tk_bootstrap_abort(1, "no reason");
    tk_bootstrap_close_early();
    tk_bootstrap_close();
    assert_int_equal(server.puts + server.gets + server.commits + server.fences + server.aborts +
                         server.finalizes,
                     0);
}

/* ---- keys */

static void what_was_put_is_got_whatever_its_size(void **state)
{
    static const size_t sizes[] = {0, 1, 4095, blob_max};
    static char mine[blob_max];
    for (size_t i = 0; i < sizeof(mine); i++)
        mine[i] = (char)(i * 7);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *blob = NULL;
        size_t size = 1234567;
        server.blob_count = 0;
        assert_int_equal(tk_bootstrap_put("k", mine, sizes[i]), TK_OK);
        assert_int_equal(tk_bootstrap_get(me, "k", &blob, &size), TK_OK);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(blob, mine, size);
        free(blob);
    }
}

static void a_failed_put_is_reported_with_its_size(void **state)
{
    server.put = PMIX_ERR_OUT_OF_RESOURCE;
    unit_listen();
    enum tk_status status = tk_bootstrap_put("k", names, 17);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, "PMIx_Put of 17 bytes failed");
}

static const uint32_t all[ranks] = {0, 1, 2, 3};

static void all_are_asked_at_once(void **state)
{
    struct tk_bootstrap_blob blobs[ranks] = {{NULL, 0}};
    for (uint32_t r = 0; r < ranks; r++)
        publish(r, "k", "abcd", r);
    assert_int_equal(tk_bootstrap_get_many("k", all, ranks, blobs, NULL), TK_OK);
    for (uint32_t r = 0; r < ranks; r++) {
        assert_int_equal(blobs[r].size, r);
        assert_memory_equal(blobs[r].at, "abcd", r);
        free(blobs[r].at);
    }
    assert_int_equal(tk_bootstrap.counts.gets, ranks);
    assert_int_equal(tk_bootstrap.counts.bytes_got, 0 + 1 + 2 + 3);
}

static void assert_get_all_fails(const char *text, void (*poll)(void))
{
    struct tk_bootstrap_blob blobs[ranks] = {{NULL, 0}};
    unit_listen();
    enum tk_status status = tk_bootstrap_get_many("k", all, ranks, blobs, poll);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, text);
    assert_int_equal(unit_lines(said), 1);
    for (uint32_t r = 0; r < ranks; r++)
        free(blobs[r].at);
}

static const char of_two_is_missing[] = "rank 2 has not published 'k' in 5 s";

static void poll_for_10_ms(void)
{
    take_a_nap(TK_SECOND / 100);
}

/* Asked for again until the limit has passed. */
static void one_that_is_missing_among_all_is_named(void **state)
{
    publish(0, "k", "x", 1);
    publish(1, "k", "x", 1);
    publish(3, "k", "x", 1);
    for (unsigned with_poll = 0; with_poll < 2; with_poll++) {
        uint64_t begin = tk_now();
        assert_get_all_fails(of_two_is_missing, with_poll ? poll_for_10_ms : NULL);
        assert_in_range(tk_now() - begin, 5 * TK_SECOND, 6 * TK_SECOND);
    }
    assert_in_range(server.gets, 10, 1000);
    server.get_refuses = true;
    assert_get_all_fails("PMIx_Get of 'k' of rank 0 failed", NULL);
}

static void a_value_that_comes_late_is_awaited(void **state)
{
    struct tk_bootstrap_blob blob = {NULL, 0};
    publish(2, "k", "x", 1);
    server.gets_until_there = server.gets + 5;
    assert_int_equal(tk_bootstrap_get_many("k", all + 2, 1, &blob, poll_for_10_ms), TK_OK);
    assert_int_equal(blob.size, 1);
    free(blob.at);
}

/* libpmix 4 keeps a question for a value of another host for ever. */
static void a_server_that_does_not_answer_is_not_awaited_for_ever(void **state)
{
    server.get_is_silent = true;
    for (unsigned with_poll = 0; with_poll < 2; with_poll++) {
        uint64_t begin = tk_now();
        assert_get_all_fails("rank 0 has not published 'k' in 5 s",
                             with_poll ? poll_for_10_ms : NULL);
        assert_in_range(tk_now() - begin, 5 * TK_SECOND, 7 * TK_SECOND);
    }
}

static void assert_get_fails(uint32_t rank)
{
    void *blob;
    size_t size;
    unit_listen();
    enum tk_status status = tk_bootstrap_get(rank, "k", &blob, &size);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, "PMIx_Get of 'k' of rank 1 failed");
}

static void a_key_that_a_rank_did_not_put_is_an_error_with_its_name(void **state)
{
    assert_get_fails(1);
    publish(1, "k", "x", 1);
    server.blobs[0].is_text = true;
    assert_get_fails(1);
}

static void a_peek_copies_exactly_what_is_expected(void **state)
{
    char got[4] = "...";
    publish(1, "k", "abc", 4);
    assert_int_equal(tk_bootstrap_peek(1, "k", got, 4), TK_OK);
    assert_string_equal(got, "abc");
}

static void a_peek_that_does_not_fit_or_finds_nothing_is_silent(void **state)
{
    char got[8] = "as is";
    publish(1, "k", "abc", 4);
    publish(1, "text", "abc", 4);
    server.blobs[1].is_text = true;
    unit_listen();
    enum tk_status less = tk_bootstrap_peek(1, "k", got, 3);
    enum tk_status more = tk_bootstrap_peek(1, "k", got, 5);
    enum tk_status text = tk_bootstrap_peek(1, "text", got, 4);
    enum tk_status none = tk_bootstrap_peek(3, "k", got, 4);
    assert_string_equal(unit_heard(), "");
    assert_true(less == TK_FAIL && more == TK_FAIL && text == TK_FAIL && none == TK_FAIL);
    assert_string_equal(got, "as is");
}

/* A server would wait for a rank that has gone, for ever. */
static void a_peek_does_not_wait_for_the_key(void **state)
{
    char byte;
    tk_bootstrap_peek(1, "k", &byte, 1);
    assert_true(server.immediate);
}

/* ---- fences */

static unsigned polls;

/* It sleeps, as a poll should. */
static void count_poll(void)
{
    polls++;
    take_a_nap(TK_SECOND / 10000);
}

static void a_fence_of_data_makes_known_what_was_put(void **state)
{
    assert_int_equal(tk_bootstrap_put("k", "x", 1), TK_OK);
    assert_int_equal(tk_bootstrap_fence_data(NULL, 0), TK_OK);
    assert_int_equal(server.commits, 1);
    assert_int_equal(server.fences, 1);
    assert_true(server.collects);
}

/* An empty commit waits for the server too. */
static void what_was_put_is_committed_once(void **state)
{
    assert_int_equal(tk_bootstrap_put("k", "x", 1), TK_OK);
    assert_int_equal(tk_bootstrap_fence_data(NULL, 0), TK_OK);
    assert_int_equal(tk_bootstrap_fence_data(NULL, 0), TK_OK);
    assert_int_equal(server.commits, 1);
    assert_int_equal(tk_bootstrap_put("l", "x", 1), TK_OK);
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(server.commits, 2);
    server.commit = PMIX_ERR_COMM_FAILURE;
    assert_int_equal(tk_bootstrap_put("m", "x", 1), TK_OK);
    unit_listen();
    tk_bootstrap_fence(NULL, 0);
    tk_bootstrap_fence(NULL, 0); /* what failed is tried again */
    unit_heard();
    assert_int_equal(server.commits, 4);
}

static void a_fence_alone_carries_no_data(void **state)
{
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_false(server.collects);
}

/* Everything ever put would be sent to every rank, although each can ask the one server for it. */
static void on_one_host_a_fence_carries_no_data(void **state)
{
    server.local_peers = "0,1,2,3";
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_int_equal(tk_bootstrap_fence_data(NULL, 0), TK_OK);
    assert_false(server.collects);
    assert_int_equal(tk_bootstrap_part(NULL, 0), TK_OK);
    assert_false(server.collects);
}

/* If hundreds of ranks slept by the clock instead, they would leave no CPU to the rank that they
 * wait for. */
static void a_waiter_with_nothing_to_poll_sleeps_until_it_is_woken(void **state)
{
    server.fence_naps = 1;
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(naps, 1);
    assert_int_equal(wakes, 1);
    /* The clock began at one second, and slept as long had it not been woken. */
    assert_true(tk_now() >= 2 * TK_SECOND);
}

static unsigned rings;

static void count_ring(void)
{
    assert_true(tk_bootstrap_has_answer());
    rings++;
}

/* The bell is rung after there is something to see. */
static void a_poll_that_sleeps_is_rung_for(void **state)
{
    rings = 0;
    server.fence_naps = 3;
    tk_bootstrap_bell(count_ring);
    assert_false(tk_bootstrap_has_answer());
    assert_int_equal(tk_bootstrap_fence(count_poll, 0), TK_OK);
    assert_int_equal(rings, 1);
    assert_false(tk_bootstrap_has_answer()); /* no caller waits for it any more */
}

static void a_fence_polls_until_the_answer_comes(void **state)
{
    polls = 0;
    server.fence_naps = 5;
    assert_int_equal(tk_bootstrap_fence(count_poll, 0), TK_OK);
    assert_int_equal(polls, 5);
    assert_int_equal(naps, 5);
}

static void a_fence_past_its_deadline_stays_pending_and_is_gone_on_with(void **state)
{
    server.fence_naps = -1;
    const uint64_t deadline = tk_now() + TK_SECOND / 100;
    assert_int_equal(tk_bootstrap_fence(NULL, deadline), TK_BUSY);
    assert_true(tk_now() > deadline);
    assert_true(tk_now() < deadline + TK_SECOND / 1000);
    server.fence_naps = 3;
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(server.fences, 1);
}

static void fence_inside(void)
{
    if (polls++ == 0)
        assert_int_equal(tk_bootstrap_part(count_poll, 0), TK_OK);
}

static void a_fence_inside_another_is_the_same_fence(void **state)
{
    polls = 0;
    server.fence_naps = 10;
    assert_int_equal(tk_bootstrap_fence(fence_inside, 0), TK_OK);
    assert_int_equal(server.fences, 1);
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(server.fences, 2);
}

static void a_fence_that_is_over_in_the_call_is_good(void **state)
{
    server.fence_call = PMIX_OPERATION_SUCCEEDED; /* no callback comes then */
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(naps, 0);
}

static const char *failed_fence(enum tk_status (*fence)(void (*)(void), uint64_t), uint64_t until)
{
    uint64_t before = tk_now();
    polls = 0;
    unit_listen();
    enum tk_status status = fence(count_poll, until);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_true(tk_now() >= before + 2 * TK_SECOND);
    return said;
}

/* The rank that went is the one to blame, and the launcher knows it. */
static void a_failed_fence_leaves_the_launcher_two_seconds_to_end_the_job(void **state)
{
    server.fence_result = PMIX_ERR_LOST_CONNECTION;
    unit_assert_says(failed_fence(tk_bootstrap_fence, 0), "a rank of the job has gone");
    assert_int_equal(polls, 0);
}

static void meanwhile_only_a_caller_with_a_deadline_polls(void **state)
{
    server.fence_result = PMIX_ERR_LOST_CONNECTION;
    failed_fence(tk_bootstrap_fence, tk_now() + 60 * TK_SECOND);
    assert_true(polls > 1000);
}

static void a_refused_fence_or_commit_fails_without_a_hang(void **state)
{
    server.fence_call = PMIX_ERR_BAD_PARAM;
    unit_assert_says(failed_fence(tk_bootstrap_fence, 0),
                     because("PMIx_Fence failed", PMIX_ERR_BAD_PARAM));
    server.commit = PMIX_ERR_COMM_FAILURE;
    tk_bootstrap_put("k", "x", 1);
    failed_fence(tk_bootstrap_fence, 0);
    assert_int_equal(server.fences, 1);
}

static void only_the_fence_of_leaving_does_without_ranks_that_left(void **state)
{
    server.fence_result = PMIX_ERR_PARTIAL_SUCCESS;
    assert_int_equal(tk_bootstrap_part(NULL, 0), TK_OK);
    failed_fence(tk_bootstrap_fence, 0);
    server.fence_result = PMIX_ERR_LOST_CONNECTION;
    failed_fence(tk_bootstrap_part, 0);
}

/* ---- the end */

static void an_abort_gives_the_launcher_code_and_reason(void **state)
{
    tk_bootstrap_abort(37, "gave up");
    assert_int_equal(server.aborts, 1);
    assert_int_equal(server.abort_code, 37);
    assert_string_equal(server.abort_text, "gave up");
}

static void closing_early_takes_part_in_the_next_fence_without_waiting(void **state)
{
    server.fence_naps = -1;
    tk_bootstrap_close_early();
    assert_int_equal(server.fences, 1);
    assert_int_equal(server.finalizes, 1);
    assert_int_equal(naps, 0);
}

static void closing_early_starts_no_second_fence(void **state)
{
    server.fence_naps = -1;
    assert_int_equal(tk_bootstrap_fence(NULL, tk_now()), TK_BUSY);
    tk_bootstrap_close_early();
    assert_int_equal(server.fences, 1);
    assert_int_equal(server.finalizes, 1);
}

static void closing_in_order_waits_for_no_rank(void **state)
{
    tk_bootstrap_close();
    assert_int_equal(server.fences, 0);
    assert_int_equal(server.finalizes, 1);
}

static void closing_last_finalizes_without_our_launcher(void **state)
{
    tk_bootstrap_close_last();
    assert_int_equal(server.finalizes, 1);
}

/* ---- the mark of a rank that leaves in order */

static void assert_no_mark(void *unused)
{
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    _exit(tk_bootstrap_leave_mark());
}

static void under_other_launchers_there_is_no_mark(void **state)
{
    unsetenv("TRUNKLINE_SESSION");
    unit_assert_exit(assert_no_mark, NULL, 0);
    setenv("TRUNKLINE_SESSION", "/nowhere/at/all", 1);
    unit_assert_exit(assert_no_mark, NULL, 0);
    server.init = PMIX_ERR_UNREACH;
    setenv("TRUNKLINE_SESSION", "/tmp", 1);
    unit_assert_exit(assert_no_mark, NULL, 0);
    unsetenv("TRUNKLINE_SESSION");
}

/* The client may change its environment once the library is open. */
static void leave_a_mark(void *close)
{
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    unsetenv("TRUNKLINE_SESSION");
    if (close)
        tk_bootstrap_close();
    else if (!tk_bootstrap_leave_mark())
        _exit(1);
}

static void write_slots(const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, S_IRUSR | S_IWUSR);
    assert_true(fd >= 0);
    close(fd);
}

static struct tk_rank_slot read_slot(const char *file)
{
    struct tk_rank_slot slot = {0};
    int fd = open(file, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &slot, sizeof(slot), tk_rank_slot_place((uint32_t)me)),
                     sizeof(slot));
    close(fd);
    return slot;
}

static void show_waits(void *record)
{
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    tk_bootstrap_show_waits(record);
}

/* The guard makes the file for stacks when it wants them. */
static void show_stacks(void *directory)
{
    char file[64];
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    tk_bootstrap_show_stacks(62);
    assert_int_equal(tk_bootstrap_stack_file(), -1);
    snprintf(file, sizeof(file), "%s/" TK_RANK_STACK_NAME, (const char *)directory, (unsigned)me);
    write_slots(file);
    int fd = tk_bootstrap_stack_file();
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    unlink(file);
}

static void
the_slot_says_that_a_rank_has_left_closing_does_too_and_where_its_waits_are(void **state)
{
    char directory[] = "/tmp/unit-session-XXXXXX", file[sizeof(directory) + 16];
    assert_non_null(mkdtemp(directory));
    snprintf(file, sizeof(file), "%s/" TK_RANK_SLOTS_NAME, directory);
    setenv("TRUNKLINE_SESSION", directory, 1);
    write_slots(file);
    unit_assert_exit(leave_a_mark, NULL, 0);
    struct tk_rank_slot after_leaving = read_slot(file);
    write_slots(file);
    unit_assert_exit(leave_a_mark, file, 0);
    struct tk_rank_slot after_closing = read_slot(file);
    unit_assert_exit(show_waits, file, 0);
    struct tk_rank_slot of_waits = read_slot(file);
    unit_assert_exit(show_stacks, directory, 0);
    struct tk_rank_slot of_stacks = read_slot(file);
    unlink(file);
    unsetenv("TRUNKLINE_SESSION");
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(after_leaving.has_left, 1);
    assert_int_equal(after_closing.has_left, 1);
    assert_int_equal(of_waits.has_left, 0);
    assert_int_equal(of_waits.stack_signal, 0);
    assert_int_equal(of_stacks.stack_signal, 62);
    assert_true(of_stacks.wait_page == of_waits.wait_page);
    assert_true(of_waits.pid != 0);
    assert_true(of_waits.wait_page == (uintptr_t)file);
}

static void close_last(void *of)
{
    server.nspace = of;
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    tk_bootstrap_close_last();
    _exit((int)server.finalizes);
}

/* With the mark PMIx_Finalize() has nothing to say, but a launcher inside ours needs it. */
static void under_our_launcher_the_mark_is_enough_at_the_end(void **state)
{
    char directory[] = "/tmp/unit-session-XXXXXX", file[sizeof(directory) + 16];
    assert_non_null(mkdtemp(directory));
    snprintf(file, sizeof(file), "%s/" TK_RANK_SLOTS_NAME, directory);
    setenv("TRUNKLINE_SESSION", directory, 1);
    write_slots(file);
    unit_assert_exit(close_last, "trunkline-7-1a", 0);
    assert_int_equal(read_slot(file).has_left, 1);
    unit_assert_exit(close_last, "prterun-7@1", 1);
    unlink(file);
    unit_assert_exit(close_last, "trunkline-7-1a", 1);
    unsetenv("TRUNKLINE_SESSION");
    assert_int_equal(rmdir(directory), 0);
}

static void without_a_file_of_the_guard_there_is_no_mark(void **state)
{
    setenv("TRUNKLINE_SESSION", "/nowhere", 1);
    unit_assert_exit(leave_a_mark, NULL, 1);
    unsetenv("TRUNKLINE_SESSION");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define OPEN(name) cmocka_unit_test_setup_teardown(name, set_up_open, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(without_a_server_a_process_is_a_job_of_one),
    TEST(a_namespace_whose_server_is_gone_still_leaves_a_job_of_one),
    TEST(a_namespace_whose_server_refuses_is_an_error),
    TEST(a_rank_of_several_never_runs_alone),
    TEST(a_rank_never_runs_alone_whatever_names_it),
    TEST(rank_0_of_a_lost_server_does_not_run_alone),
    TEST(a_launcher_of_one_rank_needs_no_server),
    TEST(an_allocation_is_not_a_launcher),
    TEST(when_libpmix_could_not_start_its_thread_the_limits_are_named),
    TEST(our_own_guard_ends_ranks_itself),
    TEST(a_rank_ends_when_a_foreign_server_is_lost),
    TEST(rank_and_size_come_from_the_server),
    TEST(a_size_of_any_integer_type_is_read),
    TEST(a_job_without_a_usable_size_is_an_error),
    TEST(a_rank_outside_the_job_is_an_error),
    TEST(ranks_of_this_host_are_a_list),
    TEST(an_invalid_list_is_ignored),
    TEST(a_list_that_is_not_text_is_ignored),
    TEST(alone_nothing_asks_a_server),
    OPEN(what_was_put_is_got_whatever_its_size),
    OPEN(a_failed_put_is_reported_with_its_size),
    OPEN(a_key_that_a_rank_did_not_put_is_an_error_with_its_name),
    OPEN(a_peek_copies_exactly_what_is_expected),
    OPEN(a_peek_that_does_not_fit_or_finds_nothing_is_silent),
    OPEN(a_peek_does_not_wait_for_the_key),
    OPEN(all_are_asked_at_once),
    OPEN(one_that_is_missing_among_all_is_named),
    OPEN(a_value_that_comes_late_is_awaited),
    OPEN(a_server_that_does_not_answer_is_not_awaited_for_ever),
    OPEN(a_fence_of_data_makes_known_what_was_put),
    OPEN(what_was_put_is_committed_once),
    OPEN(a_fence_alone_carries_no_data),
    OPEN(on_one_host_a_fence_carries_no_data),
    OPEN(a_waiter_with_nothing_to_poll_sleeps_until_it_is_woken),
    OPEN(a_poll_that_sleeps_is_rung_for),
    OPEN(a_fence_polls_until_the_answer_comes),
    OPEN(a_fence_past_its_deadline_stays_pending_and_is_gone_on_with),
    OPEN(a_fence_inside_another_is_the_same_fence),
    OPEN(a_fence_that_is_over_in_the_call_is_good),
    OPEN(a_failed_fence_leaves_the_launcher_two_seconds_to_end_the_job),
    OPEN(meanwhile_only_a_caller_with_a_deadline_polls),
    OPEN(a_refused_fence_or_commit_fails_without_a_hang),
    OPEN(only_the_fence_of_leaving_does_without_ranks_that_left),
    OPEN(an_abort_gives_the_launcher_code_and_reason),
    OPEN(closing_early_takes_part_in_the_next_fence_without_waiting),
    OPEN(closing_early_starts_no_second_fence),
    OPEN(closing_in_order_waits_for_no_rank),
    TEST(under_other_launchers_there_is_no_mark),
    OPEN(closing_last_finalizes_without_our_launcher),
    TEST(under_our_launcher_the_mark_is_enough_at_the_end),
    TEST(the_slot_says_that_a_rank_has_left_closing_does_too_and_where_its_waits_are),
    TEST(without_a_file_of_the_guard_there_is_no_mark),
};

UNIT_MAIN(tests)
