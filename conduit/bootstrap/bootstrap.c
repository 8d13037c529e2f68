/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The PMIx client. Owns our process name and the state of the one fence that may be pending; the
 * fence's callback runs on libpmix's own thread and touches nothing but one atomic, as does that of
 * a lost server, which may end the process. */
#include "config.h"

#include <fcntl.h>
#include <pmix.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "settings/settings.h"

struct tk_bootstrap tk_bootstrap = {.rank = 0, .size = 1, .local_size = 1, .alone = true};

static pmix_proc_t myself;
static char session[4096]; /* the launcher's directory of the job; empty: there is none */

enum { fence_pending = 1 }; /* any value that is no PMIx status: those are zero or negative */
static _Atomic int fence_status;
static _Atomic bool is_leaving; /* the server may go before us */

/* Launchers pass the size of the job in these variables; if one is set but there is no server,
 * something is broken. PMI_SIZE is of servers of PMI-1 and PMI-2 (MPICH's hydra, plain srun).
 * SLURM_NTASKS is not among them: it describes an allocation, in which a program may run alone. */
static const char *const size_names[] = {
    "TRUNKLINE_LAUNCHED", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "PRTE_JOB_SIZE",
    "PMI_SIZE",           "MV2_COMM_WORLD_SIZE"};

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

static enum tk_status alone(pmix_status_t rc)
{
    long ranks;
    const char *name = launcher_with_ranks(&ranks);
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

/* A list of ranks as PMIX_LOCAL_PEERS has it: "0,2,5". `list` has room for one number more than
 * there are commas. False: it is no such list, or not ascending. */
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

static void take_local(const char *text)
{
    size_t most = 1;
    for (const char *at = text; *at; at++)
        most += *at == ',';
    tk_bootstrap.local = malloc(tk_bootstrap_local_bytes(most));
    if (tk_bootstrap.local && read_list(text, tk_bootstrap.local, &tk_bootstrap.local_size))
        return;
    free(tk_bootstrap.local);
    tk_bootstrap.local = NULL;
    tk_bootstrap.local_size = 0;
}

/* If the server gives no list, or an invalid one, a few queue pairs too many are made. */
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

/* Servers other than our own have nothing that ends ranks when a server is killed; they would go on
 * until they need it, for hours maybe. Runs on libpmix's thread, while any other may be anywhere,
 * so nothing but _exit() can be relied upon. */
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
    take_session();
    watch_server();
    return learn_sizes();
}

enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size)
{
    if (tk_bootstrap.alone)
        return TK_OK;
    pmix_value_t value;
    PMIX_VALUE_CONSTRUCT(&value);
    value.type = PMIX_BYTE_OBJECT;
    value.data.bo.bytes = (char *)blob;
    value.data.bo.size = size;
    pmix_status_t rc = PMIx_Put(PMIX_GLOBAL, key, &value);
    if (rc == PMIX_SUCCESS)
        return TK_OK;
    tk_log_error("PMIx_Put of %zu bytes failed: %s", size, PMIx_Error_string(rc));
    return TK_FAIL;
}

static void fence_done(pmix_status_t rc, void *unused)
{
    (void)unused;
    atomic_store_explicit(&fence_status, rc, memory_order_release);
}

/* Arguments stay as they are until the callback came, as PMIx wants of calls that do not block. */
static void fence_start(void)
{
    static pmix_proc_t job;
    static pmix_info_t info;
    bool collect = true;
    PMIX_LOAD_PROCID(&job, myself.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    atomic_store_explicit(&fence_status, fence_pending, memory_order_relaxed);
    pmix_status_t rc = PMIx_Commit();
    if (rc == PMIX_SUCCESS)
        rc = PMIx_Fence_nb(&job, 1, &info, 1, fence_done, NULL);
    if (rc != PMIX_SUCCESS) /* no callback will come */
        fence_done(rc == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : rc, NULL);
}

/* The answer comes through another process and libpmix's thread: both want this CPU more than we
 * do. */
static void poll_and_nap(void (*poll)(void))
{
    const struct timespec little = {.tv_nsec = 50000};
    if (poll)
        poll();
    nanosleep(&little, NULL);
}

static int fence_now(void)
{
    return atomic_load_explicit(&fence_status, memory_order_acquire);
}

/* Returns a PMIx status, or fence_pending after the deadline. */
static int fence(void (*poll)(void), uint64_t deadline)
{
    int rc;
    if (tk_bootstrap.alone)
        return PMIX_SUCCESS;
    if (fence_now() != fence_pending)
        fence_start();
    while ((rc = fence_now()) == fence_pending) {
        poll_and_nap(poll);
        if (deadline && tk_now() > deadline)
            break;
    }
    return rc;
}

static enum tk_status verdict(int rc, void (*poll)(void), uint64_t deadline)
{
    if (rc == PMIX_SUCCESS)
        return TK_OK;
    if (rc == fence_pending)
        return TK_BUSY;
    /* Another rank went before the fence was complete. The launcher knows which one and why, and is
     * about to end this process; to log or exit now would blame this rank. */
    for (uint64_t patience = tk_now() + 2 * TK_SECOND; tk_now() < patience;)
        poll_and_nap(deadline ? poll : NULL); /* one that may give up knows what to do meanwhile */
    tk_log_error("PMIx_Fence failed: %s; a rank of the job has gone", PMIx_Error_string(rc));
    return TK_FAIL;
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    return verdict(fence(poll, deadline), poll, deadline);
}

/* libpmix's servers take the contribution of a rank that goes afterwards out of the count, so the
 * fence is complete when all others have come. */
enum tk_status tk_bootstrap_part(void (*poll)(void), uint64_t deadline)
{
    int rc = fence(poll, deadline);
    return rc == PMIX_ERR_PARTIAL_SUCCESS ? TK_OK : verdict(rc, poll, deadline);
}

enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size)
{
    pmix_proc_t peer;
    pmix_value_t *value = NULL;
    PMIX_LOAD_PROCID(&peer, myself.nspace, rank);
    pmix_status_t rc = PMIx_Get(&peer, key, NULL, 0, &value);
    if (rc == PMIX_SUCCESS && value->type == PMIX_BYTE_OBJECT) {
        *size = value->data.bo.size;
        *blob = malloc(*size + 1);
        if (*blob)
            memcpy(*blob, value->data.bo.bytes, *size);
        PMIX_VALUE_RELEASE(value);
        return *blob ? TK_OK : TK_FAIL;
    }
    tk_log_error("PMIx_Get of '%s' of rank %u failed: %s", key, rank, PMIx_Error_string(rc));
    return TK_FAIL;
}

/* Without PMIX_IMMEDIATE libpmix's servers wait for a key that nobody put, for ever. */
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

/* A file in the launcher's directory of the job, which the guard looks for when the rank has ended
 * (spawner/guard/session.h). PMIx cannot serve instead: its calls wait for the server,
 * PMIx_Commit() of libpmix 4.2 without a time limit. */
bool tk_bootstrap_leave_mark(void)
{
    char path[sizeof(session) + 32];
    if (tk_bootstrap.alone || !session[0])
        return false;
    snprintf(path, sizeof(path), "%s/left.%u", session, tk_bootstrap.rank);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

void tk_bootstrap_close(void)
{
    if (tk_bootstrap.alone)
        return;
    tk_bootstrap_leave_mark();
    atomic_store_explicit(&is_leaving, true, memory_order_release);
    PMIx_Finalize(NULL, 0);
}

void tk_bootstrap_close_early(void)
{
    if (!tk_bootstrap.alone && fence_now() != fence_pending)
        fence_start();
    tk_bootstrap_close();
}
