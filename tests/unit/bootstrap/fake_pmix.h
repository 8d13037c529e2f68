/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A PMIx server that is a table, for test_bootstrap.c only: defines the calls of libpmix that reach
 * a server, and the clock, which advances only by sleeps. */
#ifndef FAKE_PMIX_H
#define FAKE_PMIX_H

#include "config.h"

#include <linux/futex.h>
#include <pmix.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "unit.h"

enum { blob_max = 65536, blobs_max = 8, ranks = 4, me = 2, nap_limit = 200000 };

static struct {
    pmix_status_t init, put, commit, fence_call, fence_result;
    pmix_value_t job_size; /* PMIX_UNDEF: not known */
    const char *nspace;    /* NULL: "job" */
    const char *local_peers;
    pmix_data_type_t peers_type;
    unsigned inits, puts, gets, commits, fences, finalizes, aborts;
    int fence_naps; /* completes this many naps after the call; -1: never, 0: before the call
                       returns */
    pmix_op_cbfunc_t pending;
    pmix_notification_fn_t lost; /* called when the server is lost */
    bool collects, immediate, get_refuses;
    const void *unanswered; /* gets: each stays so */
    bool get_is_silent;
    unsigned gets_until_there; /* of a value: the first ones find none */
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
static unsigned naps, wakes;

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

static void take_a_nap(uint64_t ns)
{
    clock_now += ns;
    if (++naps > nap_limit)
        fail_msg("waits for ever");
    if (server.pending && server.fence_naps > 0 && --server.fence_naps == 0)
        answer_fence();
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)left;
    take_a_nap((uint64_t)wanted->tv_nsec + (uint64_t)wanted->tv_sec * TK_SECOND);
    return 0;
}

/* One of our futexes; only the answer of the fence wakes it before its time. */
long syscall(long number, ...)
{
    va_list args;
    assert_int_equal(number, SYS_futex);
    va_start(args, number);
    const uint32_t *word = va_arg(args, void *);
    int operation = va_arg(args, int);
    uint32_t value = va_arg(args, uint32_t);
    const struct timespec *wanted = va_arg(args, void *);
    va_end(args);
    wakes += operation == FUTEX_WAKE;
    if (operation == FUTEX_WAIT && *word == value)
        take_a_nap((uint64_t)wanted->tv_nsec + (uint64_t)wanted->tv_sec * TK_SECOND);
    return 0;
}

/* ---- the server */

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
    (void)info, (void)ninfo;
    server.inits++;
    PMIX_LOAD_PROCID(proc, server.nspace ? server.nspace : "job", me);
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
    server.collects =
        ninfo == 1 && !strcmp(info[0].key, PMIX_COLLECT_DATA) && info[0].value.data.flag;
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

/* Answers at once, which libpmix may do too. */
pmix_status_t PMIx_Get_nb(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                          size_t ninfo, pmix_value_cbfunc_t cbfunc, void *cbdata)
{
    pmix_value_t *value = NULL;
    if (server.get_refuses)
        return PMIX_ERR_BAD_PARAM;
    server.unanswered = cbdata;
    if (server.get_is_silent)
        return PMIX_SUCCESS;
    pmix_status_t rc = server.gets < server.gets_until_there ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS;
    if (rc != PMIX_SUCCESS)
        server.gets++;
    else
        rc = PMIx_Get(proc, key, info, ninfo, &value);
    cbfunc(rc, value, cbdata);
    if (rc == PMIX_SUCCESS)
        PMIX_VALUE_RELEASE(value);
    return PMIX_SUCCESS;
}

#endif
