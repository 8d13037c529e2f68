/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The PMIx client, against a PMIx server that is a table in this test: the calls of libpmix that
 * reach a server are defined here, and so is the clock, which only naps move. */
#include "config.h"

#include <pmix.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bootstrap/bootstrap.h"
#include "unit.h"

enum { blob_max = 65536, blobs_max = 4, ranks = 4, me = 2, nap_limit = 200000 };

static struct {
    pmix_status_t init, put, commit, fence_call, fence_result;
    pmix_value_t job_size; /* PMIX_UNDEF: not known */
    const char *local_peers;
    pmix_data_type_t peers_type;
    unsigned inits, puts, gets, commits, fences, finalizes, aborts;
    int fence_naps; /* completes this many naps after the call; -1: never, 0: before the call
                       returns */
    pmix_op_cbfunc_t pending;
    pmix_notification_fn_t lost; /* called when the server is lost */
    bool collects, immediate;
    int abort_code;
    char abort_text[32];
    struct {
        uint32_t rank;
        char key[16];
        char bytes[blob_max];
        size_t size;
        bool is_text;
    } blobs[blobs_max];
    unsigned blob_count;
} server;

/* ---- the clock */

static uint64_t clock_now = TK_SECOND;
static unsigned naps;

int clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){.tv_sec = (time_t)(clock_now / TK_SECOND),
                           .tv_nsec = (long)(clock_now % TK_SECOND)};
    return 0;
}

static void answer_fence(void)
{
    pmix_op_cbfunc_t done = server.pending;
    server.pending = NULL;
    done(server.fence_result, NULL);
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    clock_now += (uint64_t)wanted->tv_nsec + (uint64_t)wanted->tv_sec * TK_SECOND;
    if (++naps > nap_limit)
        fail_msg("waits for ever");
    if (server.pending && server.fence_naps > 0 && --server.fence_naps == 0)
        answer_fence();
    return 0;
}

/* ---- the server */

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
    (void)info, (void)ninfo;
    server.inits++;
    PMIX_LOAD_PROCID(proc, "job", me);
    return server.init;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
    (void)info, (void)ninfo;
    server.finalizes++;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Abort(int status, const char msg[], pmix_proc_t procs[], size_t nprocs)
{
    (void)procs, (void)nprocs;
    server.aborts++;
    server.abort_code = status;
    snprintf(server.abort_text, sizeof(server.abort_text), "%s", msg);
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Register_event_handler(pmix_status_t codes[], size_t ncodes, pmix_info_t info[],
                                          size_t ninfo, pmix_notification_fn_t handler,
                                          pmix_hdlr_reg_cbfunc_t registered, void *cbdata)
{
    (void)info, (void)ninfo, (void)registered, (void)cbdata;
    assert_int_equal(ncodes, 1); /* libpmix gives it only to handlers that name it */
    assert_int_equal(codes[0], PMIX_ERR_LOST_CONNECTION);
    server.lost = handler;
    return 0;
}

static void publish(uint32_t rank, const char *key, const void *bytes, size_t size)
{
    unsigned i = server.blob_count++;
    assert_true(i < blobs_max && size <= blob_max);
    server.blobs[i].rank = rank;
    server.blobs[i].size = size;
    snprintf(server.blobs[i].key, sizeof(server.blobs[i].key), "%s", key);
    memcpy(server.blobs[i].bytes, bytes, size);
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
    server.puts++;
    assert_int_equal(scope, PMIX_GLOBAL); /* ranks of this host and of others */
    assert_int_equal(val->type, PMIX_BYTE_OBJECT);
    if (server.put == PMIX_SUCCESS)
        publish(me, key, val->data.bo.bytes, val->data.bo.size);
    return server.put;
}

pmix_status_t PMIx_Commit(void)
{
    server.commits++;
    return server.commit;
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                            size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
    (void)cbdata;
    server.fences++;
    assert_int_equal(nprocs, 1);
    assert_int_equal(procs[0].rank, PMIX_RANK_WILDCARD);
    assert_null(server.pending); /* one at a time */
    server.collects = ninfo == 1 && !strcmp(info[0].key, PMIX_COLLECT_DATA);
    if (server.fence_call != PMIX_SUCCESS)
        return server.fence_call;
    server.pending = cbfunc;
    if (server.fence_naps == 0)
        answer_fence();
    return PMIX_SUCCESS;
}

static pmix_status_t job_value(const char *key, pmix_value_t *value)
{
    if (!strcmp(key, PMIX_JOB_SIZE) && server.job_size.type != PMIX_UNDEF) {
        *value = server.job_size;
        return PMIX_SUCCESS;
    }
    if (!strcmp(key, PMIX_LOCAL_PEERS) && server.local_peers) {
        value->type = server.peers_type;
        if (value->type == PMIX_STRING)
            value->data.string = strdup(server.local_peers);
        return PMIX_SUCCESS;
    }
    return PMIX_ERR_NOT_FOUND;
}

static pmix_status_t rank_value(uint32_t rank, const char *key, pmix_value_t *value)
{
    for (unsigned i = 0; i < server.blob_count; i++) {
        if (server.blobs[i].rank != rank || strcmp(server.blobs[i].key, key))
            continue;
        value->type = server.blobs[i].is_text ? PMIX_STRING : PMIX_BYTE_OBJECT;
        if (server.blobs[i].is_text) {
            value->data.string = strdup("text");
            return PMIX_SUCCESS;
        }
        value->data.bo.size = server.blobs[i].size;
        value->data.bo.bytes = malloc(server.blobs[i].size + 1);
        memcpy(value->data.bo.bytes, server.blobs[i].bytes, server.blobs[i].size);
        return PMIX_SUCCESS;
    }
    return PMIX_ERR_NOT_FOUND;
}

pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                       size_t ninfo, pmix_value_t **val)
{
    server.gets++;
    server.immediate = ninfo == 1 && !strcmp(info[0].key, PMIX_IMMEDIATE);
    pmix_value_t *value = calloc(1, sizeof(*value));
    pmix_status_t rc = proc->rank == PMIX_RANK_WILDCARD ? job_value(key, value)
                                                        : rank_value(proc->rank, key, value);
    if (rc == PMIX_SUCCESS)
        *val = value;
    else
        free(value);
    return rc;
}

/* ---- */

static const char *const names[] = {
    "TRUNKLINE_LAUNCHED", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PRTE_JOB_SIZE",
    "PMI_SIZE",           "MV2_COMM_WORLD_SIZE",  "PMIX_NAMESPACE",       "SLURM_NTASKS"};
enum { launchers = 6 };

/* A server that knows a job of four, and that this process is rank 2. */
static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    memset(&server, 0, sizeof(server));
    server.job_size = (pmix_value_t){.type = PMIX_UINT32, .data.uint32 = ranks};
    server.peers_type = PMIX_STRING;
    naps = 0;
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
    (void)state;
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
    (void)state;
    assert_alone(PMIX_ERR_UNREACH);
    assert_alone(PMIX_ERR_INVALID_NAMESPACE);
    assert_alone(PMIX_ERROR);
}

static void a_namespace_whose_server_is_gone_still_leaves_a_job_of_one(void **state)
{
    (void)state;
    setenv("PMIX_NAMESPACE", "old", 1);
    assert_alone(PMIX_ERR_UNREACH);
}

static void a_namespace_whose_server_refuses_is_an_error(void **state)
{
    (void)state;
    setenv("PMIX_NAMESPACE", "old", 1);
    server.init = PMIX_ERROR;
    assert_open_fails("unset it to run alone");
}

/* A rank of several that runs as a job of one would give wrong results, several times. */
static void a_rank_of_several_never_runs_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < launchers; i++) {
        char text[64];
        set_up(state);
        setenv(names[i], "4", 1);
        server.init = PMIX_ERR_UNREACH;
        snprintf(text, sizeof(text), "one of 4 ranks (%s=4)", names[i]);
        assert_open_fails(text);
    }
}

static void a_launcher_of_one_rank_needs_no_server(void **state)
{
    (void)state;
    for (unsigned i = 0; i < launchers; i++)
        setenv(names[i], "1", 1);
    assert_alone(PMIX_ERR_UNREACH);
}

/* In the shell of an allocation for several tasks. */
static void an_allocation_is_not_a_launcher(void **state)
{
    (void)state;
    setenv("SLURM_NTASKS", "4", 1);
    assert_alone(PMIX_ERR_UNREACH);
}

static void when_libpmix_could_not_start_its_thread_the_limits_are_named(void **state)
{
    (void)state;
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

/* mpirun was killed: its ranks must not go on without an end. */
static void a_rank_ends_when_a_foreign_server_is_lost(void **state)
{
    (void)state;
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_non_null(server.lost);
    assert_int_equal(status_without_server(), 1);
    tk_bootstrap_close();
    assert_int_equal(status_without_server(), -1); /* it may go first */
}

static void our_own_guard_ends_ranks_itself(void **state)
{
    (void)state;
    setenv("TRUNKLINE_LAUNCHED", "4", 1);
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_null(server.lost);
}

static void rank_and_size_come_from_the_server(void **state)
{
    (void)state;
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
    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        server.job_size = forms[i];
        assert_int_equal(tk_bootstrap_open(), TK_OK);
        assert_int_equal(tk_bootstrap.size, 5);
    }
}

static void a_job_without_a_usable_size_is_an_error(void **state)
{
    (void)state;
    server.job_size.type = PMIX_UNDEF;
    assert_open_fails(because("no usable job size", PMIX_ERR_NOT_FOUND));
    server.job_size = (pmix_value_t){.type = PMIX_BOOL, .data.flag = true};
    assert_open_fails("no usable job size");
}

static void a_rank_outside_the_job_is_an_error(void **state)
{
    (void)state;
    server.job_size.data.uint32 = me;
    assert_open_fails("no usable job size");
}

/* ---- ranks of this host */

static void ranks_of_this_host_are_a_list(void **state)
{
    const uint32_t expected[] = {0, 2, 3};
    (void)state;
    server.local_peers = "0,2,3";
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_int_equal(tk_bootstrap.local_size, 3);
    assert_memory_equal(tk_bootstrap.local, expected, sizeof(expected));
}

/* Neighbours are only foreseen by it: a bad list costs queue pairs, no job. */
static void a_list_that_makes_no_sense_is_none(void **state)
{
    const char *const bad[] = {"",    ",",    "0,",  ",2",     "2,0",
                               "2,2", "0-2",  "0;2", "x",      "-1",
                               "2 ",  " 2",   "0,4", "0,2,3,", "99999999999999999999",
                               "+2",  "0,,2", "2,x"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        server.local_peers = bad[i];
        assert_int_equal(tk_bootstrap_open(), TK_OK);
        if (tk_bootstrap.local || tk_bootstrap.local_size)
            fail_msg("'%s' was taken for a list", bad[i]);
    }
}

static void a_list_that_is_no_text_is_none(void **state)
{
    (void)state;
    server.local_peers = "0,2";
    server.peers_type = PMIX_BOOL;
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    assert_null(tk_bootstrap.local);
}

/* ---- a job of one */

static void alone_nothing_asks_a_server(void **state)
{
    char byte = 1;
    (void)state;
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
    (void)state;
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

static void a_put_that_fails_tells_how_much_it_was(void **state)
{
    (void)state;
    server.put = PMIX_ERR_OUT_OF_RESOURCE;
    unit_listen();
    enum tk_status status = tk_bootstrap_put("k", names, 17);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, "PMIx_Put of 17 bytes failed");
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
    (void)state;
    assert_get_fails(1);
    publish(1, "k", "x", 1);
    server.blobs[0].is_text = true;
    assert_get_fails(1);
}

static void a_peek_copies_exactly_what_is_expected(void **state)
{
    char got[4] = "...";
    (void)state;
    publish(1, "k", "abc", 4);
    assert_int_equal(tk_bootstrap_peek(1, "k", got, 4), TK_OK);
    assert_string_equal(got, "abc");
}

static void a_peek_that_fits_not_or_finds_nothing_is_silent(void **state)
{
    char got[8] = "as is";
    (void)state;
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
    (void)state;
    tk_bootstrap_peek(1, "k", &byte, 1);
    assert_true(server.immediate);
}

/* ---- fences */

static unsigned polls;

static void count_poll(void)
{
    polls++;
}

static void a_fence_makes_known_what_was_put(void **state)
{
    (void)state;
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(server.commits, 1);
    assert_int_equal(server.fences, 1);
    assert_true(server.collects);
}

static void a_fence_polls_until_the_answer_comes(void **state)
{
    (void)state;
    polls = 0;
    server.fence_naps = 5;
    assert_int_equal(tk_bootstrap_fence(count_poll, 0), TK_OK);
    assert_int_equal(polls, 5);
    assert_int_equal(naps, 5);
}

static void a_fence_past_its_deadline_stays_pending_and_is_gone_on_with(void **state)
{
    (void)state;
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
    (void)state;
    polls = 0;
    server.fence_naps = 10;
    assert_int_equal(tk_bootstrap_fence(fence_inside, 0), TK_OK);
    assert_int_equal(server.fences, 1);
    assert_int_equal(tk_bootstrap_fence(NULL, 0), TK_OK);
    assert_int_equal(server.fences, 2);
}

static void a_fence_that_is_over_in_the_call_is_good(void **state)
{
    (void)state;
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
    (void)state;
    server.fence_result = PMIX_ERR_LOST_CONNECTION;
    unit_assert_says(failed_fence(tk_bootstrap_fence, 0), "a rank of the job has gone");
    assert_int_equal(polls, 0);
}

static void meanwhile_only_a_caller_with_a_deadline_polls(void **state)
{
    (void)state;
    server.fence_result = PMIX_ERR_LOST_CONNECTION;
    failed_fence(tk_bootstrap_fence, tk_now() + 60 * TK_SECOND);
    assert_true(polls > 1000);
}

static void a_fence_or_commit_that_is_refused_fails_and_hangs_nobody(void **state)
{
    (void)state;
    server.fence_call = PMIX_ERR_BAD_PARAM;
    unit_assert_says(failed_fence(tk_bootstrap_fence, 0),
                     because("PMIx_Fence failed", PMIX_ERR_BAD_PARAM));
    server.commit = PMIX_ERR_COMM_FAILURE;
    failed_fence(tk_bootstrap_fence, 0);
    assert_int_equal(server.fences, 1);
}

static void only_the_fence_of_leaving_does_without_ranks_that_left(void **state)
{
    (void)state;
    server.fence_result = PMIX_ERR_PARTIAL_SUCCESS;
    assert_int_equal(tk_bootstrap_part(NULL, 0), TK_OK);
    failed_fence(tk_bootstrap_fence, 0);
    server.fence_result = PMIX_ERR_LOST_CONNECTION;
    failed_fence(tk_bootstrap_part, 0);
}

/* ---- the end */

static void an_abort_gives_the_launcher_code_and_reason(void **state)
{
    (void)state;
    tk_bootstrap_abort(37, "gave up");
    assert_int_equal(server.aborts, 1);
    assert_int_equal(server.abort_code, 37);
    assert_string_equal(server.abort_text, "gave up");
}

static void closing_early_takes_part_in_the_next_fence_without_waiting(void **state)
{
    (void)state;
    server.fence_naps = -1;
    tk_bootstrap_close_early();
    assert_int_equal(server.fences, 1);
    assert_int_equal(server.finalizes, 1);
    assert_int_equal(naps, 0);
}

static void closing_early_starts_no_second_fence(void **state)
{
    (void)state;
    server.fence_naps = -1;
    assert_int_equal(tk_bootstrap_fence(NULL, tk_now()), TK_BUSY);
    tk_bootstrap_close_early();
    assert_int_equal(server.fences, 1);
    assert_int_equal(server.finalizes, 1);
}

static void closing_in_order_fences_nobody(void **state)
{
    (void)state;
    tk_bootstrap_close();
    assert_int_equal(server.fences, 0);
    assert_int_equal(server.finalizes, 1);
}

/* ---- the mark of a rank that leaves in order */

static void assert_no_mark(void *unused)
{
    (void)unused;
    assert_int_equal(tk_bootstrap_open(), TK_OK);
    _exit(tk_bootstrap_leave_mark());
}

static void under_other_launchers_there_is_no_mark(void **state)
{
    (void)state;
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

static void the_mark_is_a_file_of_the_rank_and_closing_leaves_it_too(void **state)
{
    char directory[] = "/tmp/unit-session-XXXXXX", mark[sizeof(directory) + 16];
    (void)state;
    assert_non_null(mkdtemp(directory));
    snprintf(mark, sizeof(mark), "%s/left.%d", directory, me);
    setenv("TRUNKLINE_SESSION", directory, 1);
    unit_assert_exit(leave_a_mark, NULL, 0);
    int after_leaving = unlink(mark);
    unit_assert_exit(leave_a_mark, mark, 0);
    int after_closing = unlink(mark);
    unsetenv("TRUNKLINE_SESSION");
    assert_int_equal(rmdir(directory), 0);
    assert_int_equal(after_leaving, 0);
    assert_int_equal(after_closing, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define OPEN(name) cmocka_unit_test_setup_teardown(name, set_up_open, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(without_a_server_a_process_is_a_job_of_one),
    TEST(a_namespace_whose_server_is_gone_still_leaves_a_job_of_one),
    TEST(a_namespace_whose_server_refuses_is_an_error),
    TEST(a_rank_of_several_never_runs_alone),
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
    TEST(a_list_that_makes_no_sense_is_none),
    TEST(a_list_that_is_no_text_is_none),
    TEST(alone_nothing_asks_a_server),
    OPEN(what_was_put_is_got_whatever_its_size),
    OPEN(a_put_that_fails_tells_how_much_it_was),
    OPEN(a_key_that_a_rank_did_not_put_is_an_error_with_its_name),
    OPEN(a_peek_copies_exactly_what_is_expected),
    OPEN(a_peek_that_fits_not_or_finds_nothing_is_silent),
    OPEN(a_peek_does_not_wait_for_the_key),
    OPEN(a_fence_makes_known_what_was_put),
    OPEN(a_fence_polls_until_the_answer_comes),
    OPEN(a_fence_past_its_deadline_stays_pending_and_is_gone_on_with),
    OPEN(a_fence_inside_another_is_the_same_fence),
    OPEN(a_fence_that_is_over_in_the_call_is_good),
    OPEN(a_failed_fence_leaves_the_launcher_two_seconds_to_end_the_job),
    OPEN(meanwhile_only_a_caller_with_a_deadline_polls),
    OPEN(a_fence_or_commit_that_is_refused_fails_and_hangs_nobody),
    OPEN(only_the_fence_of_leaving_does_without_ranks_that_left),
    OPEN(an_abort_gives_the_launcher_code_and_reason),
    OPEN(closing_early_takes_part_in_the_next_fence_without_waiting),
    OPEN(closing_early_starts_no_second_fence),
    OPEN(closing_in_order_fences_nobody),
    TEST(under_other_launchers_there_is_no_mark),
    TEST(the_mark_is_a_file_of_the_rank_and_closing_leaves_it_too),
};

UNIT_MAIN(tests)
