/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The PMIx client. Owns our process name and the state of the one fence that may be pending; the
 * fence's callback runs on libpmix's own thread and touches only one atomic; so does the callback
 * for a lost server, which may end the process. */
#include "config.h"

#include <fcntl.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "common/clock.h"
#include "base/futex.h"
#include "base/rank_slot.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "settings/settings.h"

struct tk_bootstrap tk_bootstrap = {.rank = 0, .size = 1, .local_size = 1, .alone = true};

static pmix_proc_t myself;
static char session[4096]; /* the launcher's directory of the job; empty: there is none */

/* Any value that is not a PMIx status: those are zero or negative. Waiters without other work sleep
 * on this word. */
enum { fence_pending = 1 };
static _Atomic uint32_t fence_status;
static void (*_Atomic fence_bell)(void);
static _Atomic bool fence_awaited;
static _Atomic bool is_leaving; /* the server may end before us */
static bool is_committed;       /* nothing was put since the last commit */

/* Launchers pass the size of the job in these variables; if one is set but there is no server,
 * something is broken. PMI_SIZE comes from servers of PMI-1 and PMI-2 (MPICH's hydra, plain srun).
 * SLURM_NTASKS is not among them: it describes an allocation, in which a program may run alone. */
static const char *const size_names[] = {
    "TRUNKLINE_LAUNCHED", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PRTE_JOB_SIZE",
    "PMI_SIZE",           "MV2_COMM_WORLD_SIZE",  "JSM_NAMESPACE_SIZE"};

/* And the rank in these. Rank 0 alone proves nothing: the shell of an allocation is rank 0 of Slurm
 * too. PMIX_RANK does, because only a PMIx server sets it. */
static const char *const rank_names[] = {
    "OMPI_COMM_WORLD_RANK", "PMI_RANK",    "SLURM_PROCID",   "MV2_COMM_WORLD_RANK",
    "JSM_NAMESPACE_RANK",   "PALS_RANKID", "FLUX_TASK_RANK", "ALPS_APP_PE"};

static const char *launcher_with_ranks(long *ranks)
{
    for (size_t i = 0; i < sizeof(size_names) / sizeof(size_names[0]); i++) {
        const char *value = tk_getenv(size_names[i]);
        *ranks = value ? strtol(value, NULL, 10) : 0;
        if (*ranks > 1)
            return size_names[i];
    }
    return NULL;
}

/* The variable that makes this process one of several by its rank; NULL: none does. */
static const char *launcher_with_rank(void)
{
    if (tk_getenv("PMIX_RANK"))
        return "PMIX_RANK";
    for (size_t i = 0; i < sizeof(rank_names) / sizeof(rank_names[0]); i++) {
        const char *value = tk_getenv(rank_names[i]);
        if (value && strtol(value, NULL, 10) > 0)
            return rank_names[i];
    }
    return NULL;
}

static enum tk_status refuse_as_rank(const char *name, pmix_status_t rc)
{
    tk_log_error("started as a rank of a job (%s=%s), but the launcher's PMIx server can't be "
                 "reached (%s); start the program with gasnetrun_ibv, mpirun or srun --mpi=pmix, "
                 "or unset %s to run alone",
                 name, tk_getenv(name), PMIx_Error_string(rc), name);
    return TK_FAIL;
}

static enum tk_status alone(pmix_status_t rc)
{
    long ranks;
    const char *name = launcher_with_ranks(&ranks), *rank = launcher_with_rank();
    if (!name && rank)
        return refuse_as_rank(rank, rc);
    if (!name && (rc == PMIX_ERR_UNREACH || rc == PMIX_ERR_INVALID_NAMESPACE ||
                  !tk_getenv("PMIX_NAMESPACE")))
        return TK_OK;
    if (name)
        tk_log_error(
            "started as one of %ld ranks (%s=%ld), but the launcher's PMIx server can't be "
            "reached (%s); "
            "start the program with gasnetrun_ibv, mpirun or srun --mpi=pmix%s",
            ranks, name, ranks, PMIx_Error_string(rc),
            rc == PMIX_ERROR ? ", and look at ulimit -u and -v" : "");
    else
        tk_log_error("PMIX_NAMESPACE is set, but the PMIx server can't be reached: %s; unset it to "
                     "run alone",
                     PMIx_Error_string(rc));
    return TK_FAIL;
}

/* Servers disagree about the integer type of the job's size. */
static uint32_t value_as_number(const pmix_value_t *value)
{
    switch (value->type) {
    case PMIX_UINT32:
        return value->data.uint32;
    case PMIX_UINT64:
        return (uint32_t)value->data.uint64;
    case PMIX_INT32:
        return (uint32_t)value->data.int32;
    case PMIX_INT:
        return (uint32_t)value->data.integer;
    case PMIX_UINT:
        return value->data.uint;
    case PMIX_SIZE:
        return (uint32_t)value->data.size;
    case PMIX_UINT16:
        return value->data.uint16;
    default:
        return 0;
    }
}

/* A value of the whole job; NULL if the server has none, with the reason in `rc`. */
static pmix_value_t *job_value(const char *key, pmix_status_t *rc)
{
    pmix_proc_t job;
    pmix_value_t *value = NULL;
    pmix_info_t info;
    bool optional = true;
    PMIX_LOAD_PROCID(&job, myself.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_OPTIONAL, &optional, PMIX_BOOL);
    *rc = PMIx_Get(&job, key, &info, 1, &value);
    PMIX_INFO_DESTRUCT(&info);
    return *rc == PMIX_SUCCESS ? value : NULL;
}

static uint32_t job_number(const char *key, pmix_status_t *rc)
{
    pmix_value_t *value = job_value(key, rc);
    if (!value)
        return 0;
    uint32_t number = value_as_number(value);
    PMIX_VALUE_RELEASE(value);
    return number;
}

/* A list of ranks as PMIX_LOCAL_PEERS has it: "0,2,5". `list` has space for one number more than
 * there are commas. False: it is not such a list, or not ascending. */
static bool read_list(const char *text, uint32_t *list, uint32_t *count)
{
    const char *at = text;
    for (*count = 0;; at++) {
        char *end;
        unsigned long rank = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || rank >= tk_bootstrap.size ||
            (*count && rank <= list[*count - 1]))
            return false;
        list[(*count)++] = (uint32_t)rank;
        at = end;
        if (*at != ',')
            return *at == 0;
    }
}

static bool has_me(void)
{
    uint32_t i = 0;
    while (i < tk_bootstrap.local_size && tk_bootstrap.local[i] != myself.rank)
        i++;
    return i < tk_bootstrap.local_size;
}

static void take_local(const char *text)
{
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    tk_bootstrap.local = malloc(tk_bootstrap_local_bytes(most));
    if (tk_bootstrap.local && read_list(text, tk_bootstrap.local, &tk_bootstrap.local_size) &&
        has_me())
        return;
    free(tk_bootstrap.local);
    tk_bootstrap.local = NULL;
    tk_bootstrap.local_size = 0;
}

/* If the server gives no list, or an invalid one, a few unnecessary queue pairs are created. */
static void learn_local(void)
{
    pmix_status_t rc;
    pmix_value_t *value = job_value(PMIX_LOCAL_PEERS, &rc);
    if (!value)
        return;
    if (value->type == PMIX_STRING && value->data.string)
        take_local(value->data.string);
    PMIX_VALUE_RELEASE(value);
}

static enum tk_status learn_sizes(void)
{
    pmix_status_t rc;
    tk_bootstrap.size = job_number(PMIX_JOB_SIZE, &rc);
    learn_local();
    if (tk_bootstrap.size > 0 && myself.rank < tk_bootstrap.size)
        return TK_OK;
    tk_log_error("the PMIx server gives no usable job size: %s", PMIx_Error_string(rc));
    return TK_FAIL;
}

/* Under our own launcher; the client may change its environment later. */
static void take_session(void)
{
    const char *name = tk_getenv("TRUNKLINE_SESSION");
    if (name && strlen(name) < sizeof(session))
        strcpy(session, name);
}

/* Other launchers do not end ranks when a server is killed; they would run until they need it,
 * maybe for hours. Runs on libpmix's thread, while other threads may be anywhere, so only _exit()
 * is reliable. */
static void server_lost(size_t id, pmix_status_t status, const pmix_proc_t *source,
                        pmix_info_t info[], size_t ninfo, pmix_info_t *results, size_t nresults,
                        pmix_event_notification_cbfunc_fn_t done, void *data)
{
    (void)id, (void)status, (void)source, (void)info, (void)ninfo, (void)results, (void)nresults;
    if (!atomic_load_explicit(&is_leaving, memory_order_acquire)) {
        tk_log_error("the PMIx server of the launcher on this host is gone; ending this process");
        _exit(1);
    }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

/* libpmix gives this event only to handlers that name it. */
static void watch_server(void)
{
    static pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    if (!tk_getenv("TRUNKLINE_LAUNCHED")) /* our guard ends the ranks, and names the culprit */
        PMIx_Register_event_handler(&code, 1, NULL, 0, server_lost, NULL, NULL);
}

enum tk_status tk_bootstrap_open(void)
{
    pmix_status_t rc = PMIx_Init(&myself, NULL, 0);
    if (rc != PMIX_SUCCESS)
        return alone(rc);
    tk_bootstrap.alone = false;
    tk_bootstrap.rank = myself.rank;
    is_committed = false;
    take_session();
    watch_server();
    return learn_sizes();
}

static enum tk_status put(pmix_scope_t scope, const char *key, const void *blob, size_t size)
{
    if (tk_bootstrap.alone)
        return TK_OK;
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)blob;
    value.data.bo.size = size;
    pmix_status_t rc = PMIx_Put(scope, key, &value);
    is_committed = false;
    tk_bootstrap.counts.puts++;
    tk_bootstrap.counts.bytes_put += size;
    if (rc == PMIX_SUCCESS)
        return TK_OK;
    tk_log_error("PMIx_Put of %zu bytes failed: %s", size, PMIx_Error_string(rc));
    return TK_FAIL;
}

enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size)
{
    return put(PMIX_GLOBAL, key, blob, size);
}

void tk_bootstrap_withdraw(const char *key)
{
    put(PMIX_GLOBAL, key, "", 1);
}

enum tk_status tk_bootstrap_put_local(const char *key, const void *blob, size_t size)
{
    enum tk_status status = put(PMIX_LOCAL, key, blob, size);
    if (status != TK_OK || tk_bootstrap.alone)
        return status;
    pmix_status_t rc = PMIx_Commit();
    is_committed = rc == PMIX_SUCCESS;
    if (is_committed)
        return TK_OK;
    tk_log_error("PMIx_Commit of %zu bytes failed: %s", size, PMIx_Error_string(rc));
    return TK_FAIL;
}

static void ring_bell(void)
{
    void (*bell)(void) = atomic_load_explicit(&fence_bell, memory_order_acquire);
    if (bell)
        bell();
}

/* On libpmix's thread, or on ours. */
static void fence_done(pmix_status_t rc, void *unused)
{
    (void)unused;
    atomic_store_explicit(&fence_status, (uint32_t)rc, memory_order_release);
    tk_futex_wake_all(&fence_status);
    ring_bell();
}

/* On one host the server already has all data, and collecting would copy everything that was ever
 * put to every rank with each fence. If the launcher does not say where ranks are, there may be
 * other hosts. */
static bool fence_collects(bool data)
{
    return data && tk_bootstrap.local_size < tk_bootstrap.size;
}

/* Even an empty commit waits for the server. Arguments stay unchanged until the callback, as PMIx
 * requires of non-blocking calls. */
static void fence_start(bool data)
{
    static pmix_proc_t job;
    static pmix_info_t info;
    bool collect = fence_collects(data);
    PMIX_LOAD_PROCID(&job, myself.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    atomic_store_explicit(&fence_status, fence_pending, memory_order_relaxed);
    tk_bootstrap.counts.fences++;
    pmix_status_t rc = is_committed ? PMIX_SUCCESS : PMIx_Commit();
    is_committed = rc == PMIX_SUCCESS;
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Fence_nb(&job, 1, &info, 1, fence_done, NULL);
    if (rc != PMIX_SUCCESS) /* no callback will come */
        fence_done(rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc, NULL);
}

void tk_bootstrap_bell(void (*ring)(void))
{
    atomic_store_explicit(&fence_bell, ring, memory_order_release);
}

static int fence_now(void)
{
    return (int)atomic_load_explicit(&fence_status, memory_order_acquire);
}

/* The last answer to a question, for a poll that sleeps. A late answer to a question that was given
 * up sets it too, which ends one sleep early. */
static _Atomic bool is_answered, answers_awaited;

bool tk_bootstrap_has_answer(void)
{
    return (atomic_load_explicit(&fence_awaited, memory_order_relaxed) &&
            fence_now() != fence_pending) ||
           (atomic_load_explicit(&answers_awaited, memory_order_relaxed) &&
            atomic_load_explicit(&is_answered, memory_order_acquire));
}

/* The answer comes through another process and libpmix's thread, which need this CPU more than we
 * do; short sleeps of many waiting ranks would use up the CPUs of the host. */
static void fence_sleep(void (*poll)(void), uint64_t deadline)
{
    uint64_t now = tk_now(), most = TK_SECOND;
    if (deadline)
        most = tk_min(most, deadline - tk_min(now, deadline) + 1);
    if (poll)
        poll();
    else
        tk_futex_wait(&fence_status, fence_pending, most);
}

/* Returns a PMIx status, or fence_pending after the deadline. */
static int fence(bool data, void (*poll)(void), uint64_t deadline)
{
    int rc;
    if (tk_bootstrap.alone)
        return PMIX_SUCCESS;
    if (fence_now() != fence_pending)
        fence_start(data);
    bool outer = atomic_exchange(&fence_awaited, true);
    while ((rc = fence_now()) == fence_pending) {
        fence_sleep(poll, deadline);
        if (deadline && tk_now() > deadline)
            break;
    }
    atomic_store(&fence_awaited, outer);
    return rc;
}

static enum tk_status verdict(int rc, void (*poll)(void), uint64_t deadline)
{
    if (rc == PMIX_SUCCESS)
        return TK_OK;
    if (rc == fence_pending)
        return TK_BUSY;
    /* Another rank ended before the fence was complete. The launcher knows which one and why, and
     * is about to end this process; if this rank logged or exited now it would be blamed. */
    for (uint64_t patience = tk_now() + 2 * TK_SECOND; tk_now() < patience;) {
        const struct timespec little = {.tv_nsec = 1000000};
        if (deadline && poll)
            poll(); /* a caller with a deadline handles that itself */
        nanosleep(&little, NULL);
    }
    tk_log_error("PMIx_Fence failed: %s; a rank of the job has gone", PMIx_Error_string(rc));
    return TK_FAIL;
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    return verdict(fence(false, poll, deadline), poll, deadline);
}

enum tk_status tk_bootstrap_fence_data(void (*poll)(void), uint64_t deadline)
{
    return verdict(fence(true, poll, deadline), poll, deadline);
}

/* libpmix's servers no longer expect the contribution of a rank that ends afterwards, so the fence
 * is complete when all others have arrived. */
enum tk_status tk_bootstrap_part(void (*poll)(void), uint64_t deadline)
{
    int rc = fence(true, poll, deadline);
    return rc == PMIX_ERR_PARTIAL_SUCCESS ? TK_OK : verdict(rc, poll, deadline);
}

/* malloc'ed, with space for a zero byte at the end; NULL: not such a value. */
static void *value_as_blob(const pmix_value_t *value, size_t *size)
{
    if (!value || value->type != PMIX_BYTE_OBJECT)
        return NULL;
    char *blob = malloc(value->data.bo.size + 1);
    *size = value->data.bo.size;
    if (blob)
        memcpy(blob, value->data.bo.bytes, *size);
    return blob;
}

static enum tk_status get_verdict(uint32_t rank, const char *key, pmix_status_t rc,
                                  const void *blob, size_t size)
{
    tk_bootstrap.counts.gets++;
    if (rc == PMIX_SUCCESS && blob) {
        tk_bootstrap.counts.bytes_got += size;
        return TK_OK;
    }
    tk_log_error("PMIx_Get of '%s' of rank %u failed: %s", key, rank, PMIx_Error_string(rc));
    return TK_FAIL;
}

enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size)
{
    pmix_proc_t peer;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&peer, myself.nspace, rank);
    pmix_status_t rc = PMIx_Get(&peer, key, NULL, 0, &value);
    *blob = rc == PMIX_SUCCESS ? value_as_blob(value, size) : NULL;
    if (rc == PMIX_SUCCESS)
        PMIX_VALUE_RELEASE(value);
    return get_verdict(rank, key, rc, *blob, *size);
}

/* Written by libpmix's thread, `rc` last. */
enum { no_answer = 1 /* no PMIx status, see fence_pending */ };
struct answer {
    struct question *question;
    struct tk_bootstrap_blob blob;
    _Atomic pmix_status_t rc;
};

struct question {
    _Atomic uint32_t unanswered;
    pmix_info_t limit; /* in seconds */
    struct answer answers[];
};

static void answered(struct answer *answer, pmix_status_t rc)
{
    _Atomic uint32_t *unanswered = &answer->question->unanswered;
    atomic_store_explicit(&answer->rc, rc, memory_order_release);
    if (atomic_fetch_sub_explicit(unanswered, 1, memory_order_acq_rel) != 1)
        return;
    tk_futex_wake_all(unanswered);
    atomic_store_explicit(&is_answered, true, memory_order_release);
    ring_bell();
}

static void on_value(pmix_status_t rc, pmix_value_t *value, void *object)
{
    struct answer *answer = object;
    if (rc == PMIX_SUCCESS)
        answer->blob.at = value_as_blob(value, &answer->blob.size);
    answered(answer, rc);
}

/* `seconds` 0: without a limit. */
static struct question *ask(const char *key, const uint32_t *ranks, uint32_t count, int seconds)
{
    pmix_proc_t peer;
    struct question *q = calloc(1, sizeof(*q) + count * sizeof(*q->answers));
    if (!q) {
        tk_log_error("out of memory for the data of %u ranks", count);
        return NULL;
    }
    PMIX_INFO_LOAD(&q->limit, PMIX_TIMEOUT, &seconds, PMIX_INT);
    atomic_store(&q->unanswered, count);
    for (uint32_t i = 0; i < count; i++) {
        q->answers[i].question = q;
        atomic_store_explicit(&q->answers[i].rc, no_answer, memory_order_relaxed);
        PMIX_LOAD_PROCID(&peer, myself.nspace, ranks[i]);
        pmix_status_t rc = PMIx_Get_nb(&peer, key, seconds ? &q->limit : NULL, seconds != 0,
                                       on_value, &q->answers[i]);
        if (rc != PMIX_SUCCESS) /* no callback will come */
            answered(&q->answers[i], rc == PMIX_OPERATION_SUCCEEDED ? PMIX_ERROR : rc);
    }
    return q;
}

/* False: answers were still outstanding at the deadline (0: none). */
static bool wait_for_answers(struct question *q, uint64_t deadline)
{
    uint32_t left;
    while ((left = atomic_load_explicit(&q->unanswered, memory_order_acquire)) > 0) {
        if (deadline && tk_now() > deadline)
            return false;
        tk_futex_wait(&q->unanswered, left, TK_SECOND);
    }
    return true;
}

static bool poll_for_answers(struct question *q, void (*poll)(void), uint64_t deadline)
{
    bool all;
    atomic_store(&is_answered, false);
    atomic_store(&answers_awaited, true);
    while (!(all = atomic_load_explicit(&q->unanswered, memory_order_acquire) == 0) &&
           !(deadline && tk_now() > deadline))
        poll();
    atomic_store(&answers_awaited, false);
    return all;
}

/* A server keeps a request for missing data of a rank of its host, but not for long: libpmix 4
 * answers after 2 s if there is no limit, and as soon as that rank has put anything else. */
static bool is_too_early(pmix_status_t rc)
{
    return rc == PMIX_ERR_TIMEOUT || rc == PMIX_ERR_NOT_FOUND;
}

/* How long to wait for values, and how. */
struct patience {
    void (*poll)(void); /* NULL: there is nothing else to do */
    uint64_t deadline;  /* 0: none */
    int limit;          /* s, for the server; 0: its own */
};

static bool is_over(const struct patience *p)
{
    return p->deadline && tk_now() > p->deadline;
}

/* False: out of memory. An answer that has not come in time is no_answer; it may still be written,
 * so the memory that it goes to is leaked then. */
static bool ask_and_wait(const char *key, const uint32_t *ranks, uint32_t count,
                         struct tk_bootstrap_blob *blobs, pmix_status_t *rcs,
                         const struct patience *p)
{
    struct question *q = ask(key, ranks, count, p->limit);
    if (!q)
        return false;
    bool all =
        p->poll ? poll_for_answers(q, p->poll, p->deadline) : wait_for_answers(q, p->deadline);
    for (uint32_t i = 0; i < count; i++) {
        rcs[i] = atomic_load_explicit(&q->answers[i].rc, memory_order_acquire);
        if (rcs[i] != no_answer)
            blobs[i] = q->answers[i].blob;
    }
    if (all)
        free(q);
    return true;
}

static void pause_with_poll(uint64_t ns, void (*poll)(void))
{
    const struct timespec pause = {.tv_nsec = (long)ns};
    uint64_t until = tk_now() + ns;
    if (!poll)
        nanosleep(&pause, NULL);
    while (poll && tk_now() < until)
        poll();
}

/* Until the rank has put it. Each answer may come at once, from another host. */
static bool ask_again(const char *key, uint32_t rank, struct tk_bootstrap_blob *blob,
                      pmix_status_t *rc, const struct patience *p)
{
    enum { shortest = 1000000, longest = 100000000 /* ns */ };
    for (uint64_t ns = shortest; is_too_early(*rc) && !is_over(p);
         ns = tk_min(2 * ns, (uint64_t)longest)) {
        pause_with_poll(ns, p->poll);
        if (!ask_and_wait(key, &rank, 1, blob, rc, p))
            return false;
    }
    return true;
}

/* `rcs` has space for the status of each. */
static enum tk_status get_with_patience(const char *key, const uint32_t *ranks, uint32_t count,
                                        struct tk_bootstrap_blob *blobs, pmix_status_t *rcs,
                                        const struct patience *p)
{
    enum tk_status status = TK_OK;
    if (!ask_and_wait(key, ranks, count, blobs, rcs, p))
        return TK_FAIL;
    for (uint32_t i = 0; i < count && status == TK_OK; i++) {
        if (!ask_again(key, ranks[i], &blobs[i], &rcs[i], p))
            return TK_FAIL;
        if (p->deadline && (is_too_early(rcs[i]) || rcs[i] == no_answer)) {
            tk_log_error("rank %u has not published '%s' in %.17g s (GASNET_CONNECT_TIMEOUT): it "
                         "has ended, or runs another version of the library",
                         ranks[i], key, tk_settings.connect_timeout);
            return TK_FAIL;
        }
        status = get_verdict(ranks[i], key, rcs[i], blobs[i].at, blobs[i].size);
    }
    return status;
}

static enum tk_status get_patiently(const char *key, const uint32_t *ranks, uint32_t count,
                                    struct tk_bootstrap_blob *blobs, const struct patience *p)
{
    pmix_status_t *rcs = calloc(count, sizeof(*rcs));
    enum tk_status status = TK_FAIL;
    if (rcs)
        status = get_with_patience(key, ranks, count, blobs, rcs, p);
    else
        tk_log_error("out of memory for the data of %u ranks", count);
    free(rcs);
    return status;
}

/* If a rank ends before it has put, the launcher ends the job. */
enum tk_status tk_bootstrap_get_local(const char *key, const uint32_t *ranks, uint32_t count,
                                      struct tk_bootstrap_blob *blobs, void (*poll)(void))
{
    enum { limit = 3600 /* s: in place of the 2 s; it is asked again anyway */ };
    const struct patience patience = {.poll = poll, .limit = limit};
    return get_patiently(key, ranks, count, blobs, &patience);
}

/* Sequential requests would each wait for the server, on a busy host for a time slice of other
 * processes. Since the fence all values are there, but for those of a rank that leaves: the fence
 * of its exit counts as this one. Its exit reaches us in the poll then. */
enum tk_status tk_bootstrap_get_many(const char *key, const uint32_t *ranks, uint32_t count,
                                     struct tk_bootstrap_blob *blobs, void (*poll)(void))
{
    /* libpmix and the server have a copy of each question and answer until it is taken. */
    enum { at_once_max = 1024 };
    enum tk_status status = TK_OK;
    for (uint32_t first = 0; first < count && status == TK_OK; first += at_once_max) {
        double limit = tk_settings.connect_timeout;
        const struct patience patience = {
            .poll = poll, .deadline = limit > 0 ? tk_now() + (uint64_t)(limit * 1e9) : 0};
        status = get_patiently(key, ranks + first, tk_min(count - first, at_once_max),
                               blobs + first, &patience);
    }
    return status;
}

/* Servers keep a request for missing data until it is put, or the time limit has passed. A server
 * that does not support limits may answer at any time, so the memory that it would write to is
 * leaked then. */
enum tk_status tk_bootstrap_await_local(const char *key, const uint32_t *ranks, uint32_t count,
                                        struct tk_bootstrap_blob *blobs, int seconds,
                                        uint32_t *missing)
{
    enum { grace = 2 };
    enum tk_status status = TK_OK;
    struct question *q = ask(key, ranks, count, seconds);
    *missing = ranks[0];
    if (!q || !wait_for_answers(q, tk_now() + (uint64_t)(seconds + grace) * TK_SECOND))
        return TK_FAIL;
    for (uint32_t i = 0; i < count; i++) {
        blobs[i] = q->answers[i].blob;
        tk_bootstrap.counts.gets++;
        tk_bootstrap.counts.bytes_got += blobs[i].size;
        if (blobs[i].at)
            continue;
        status = TK_FAIL;
        *missing = ranks[i];
    }
    free(q);
    return status;
}

/* Without PMIX_IMMEDIATE libpmix's servers wait for a key that no rank put: 2 s for one of a rank
 * of their host, for ever for another. */
enum tk_status tk_bootstrap_peek(uint32_t rank, const char *key, void *blob, size_t size)
{
    pmix_proc_t peer;
    pmix_info_t info;
    pmix_value_t *value = NULL;
    bool yes = true;
    if (tk_bootstrap.alone)
        return TK_FAIL;
    PMIX_LOAD_PROCID(&peer, myself.nspace, rank);
    PMIX_INFO_LOAD(&info, PMIX_IMMEDIATE, &yes, PMIX_BOOL);
    pmix_status_t rc = PMIx_Get(&peer, key, &info, 1, &value);
    PMIX_INFO_DESTRUCT(&info);
    if (rc != PMIX_SUCCESS)
        return TK_FAIL;
    bool fits = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == size;
    if (fits)
        memcpy(blob, value->data.bo.bytes, size);
    PMIX_VALUE_RELEASE(value);
    return fits ? TK_OK : TK_FAIL;
}

void tk_bootstrap_abort(int code, const char *why)
{
    if (!tk_bootstrap.alone)
        PMIx_Abort(code, why, NULL, 0);
}

/* Writes a part of our slot in the file of the launcher's guard; false: there is no file. Safe in
 * signal handlers. */
static bool write_slot(size_t offset, const void *from, size_t size)
{
    char path[sizeof(session) + sizeof(TK_RANK_SLOTS_NAME) + 1];
    if (tk_bootstrap.alone || !session[0])
        return false;
    snprintf(path, sizeof(path), "%s/" TK_RANK_SLOTS_NAME, session);
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    off_t place = tk_rank_slot_place(tk_bootstrap.rank) + (off_t)offset;
    bool is_written = pwrite(fd, from, size, place) == (ssize_t)size;
    close(fd);
    return is_written;
}

/* The guard reads it when the rank has ended (spawner/guard/session.h). PMIx cannot be used for
 * this: its calls wait for the server, PMIx_Commit() of libpmix 4.2 without a time limit. */
bool tk_bootstrap_leave_mark(void)
{
    static _Atomic bool is_left; /* it is needed at each step of leaving */
    const uint32_t yes = 1;
    if (atomic_load_explicit(&is_left, memory_order_relaxed))
        return true;
    bool is_written = write_slot(offsetof(struct tk_rank_slot, has_left), &yes, sizeof(yes));
    atomic_store_explicit(&is_left, is_written, memory_order_relaxed);
    return is_written;
}

/* FNV-1a: names of jobs differ in their last characters. */
static unsigned long long number_of_job(void)
{
    unsigned long long hash = 0xcbf29ce484222325;
    for (const char *c = myself.nspace; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
    return hash;
}

/* For gasnetrun_ibv --top and --explain, which have no guard to ask. Nothing else depends on it. */
static void keep_socket(const void *record)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, TK_RANK_SOCKET_NAME,
                     (unsigned)geteuid(), (int)getpid(), (unsigned)tk_bootstrap.rank,
                     (unsigned)tk_bootstrap.size, (unsigned long long)(uintptr_t)record,
                     number_of_job());
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&name, size) != 0)
        close(fd);
}

void tk_bootstrap_show_waits(const void *record)
{
    if (!tk_bootstrap.alone && !session[0]) {
        keep_socket(record);
        return;
    }
    struct tk_rank_slot slot = {.wait_page = (uintptr_t)record, .pid = (uint32_t)getpid()};
    write_slot(0, &slot, sizeof(slot));
}

void tk_bootstrap_show_stacks(uint32_t signal)
{
    write_slot(offsetof(struct tk_rank_slot, stack_signal), &signal, sizeof(signal));
}

int tk_bootstrap_stack_file(void)
{
    char path[sizeof(session) + 32];
    if (tk_bootstrap.alone || !session[0])
        return -1;
    snprintf(path, sizeof(path), "%s/" TK_RANK_STACK_NAME, session, (unsigned)tk_bootstrap.rank);
    return open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
}

void tk_bootstrap_close(void)
{
    if (tk_bootstrap.alone)
        return;
    tk_bootstrap_leave_mark();
    atomic_store_explicit(&is_leaving, true, memory_order_release);
    PMIx_Finalize(NULL, 0);
}

/* A job of another launcher inside one of ours inherits the session, but not the namespace. */
static bool is_of_our_launcher(void)
{
    static const char prefix[] = "trunkline-";
    return strncmp(myself.nspace, prefix, sizeof(prefix) - 1) == 0;
}

/* PMIx_Finalize() of libpmix 4.2 releases what the kernel releases anyway: a tenth of the CPU time
 * of a rank that starts and ends. The guard takes the mark for it when the process has ended. */
void tk_bootstrap_close_last(void)
{
    if (!tk_bootstrap.alone && is_of_our_launcher() && tk_bootstrap_leave_mark())
        return;
    tk_bootstrap_close();
}

void tk_bootstrap_close_early(void)
{
    if (!tk_bootstrap.alone && fence_now() != fence_pending)
        fence_start(true);
    tk_bootstrap_close();
}
