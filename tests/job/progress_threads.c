/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library that serve the network while the program makes no calls: GASNET_RCV_THREAD
 * answers, GASNET_SND_THREAD completes. What to do is the first argument; progress_threads.sh reads
 * what is printed here and, at the end, by the library. The middle rank computes. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gasnetex.h"
#include "job.h"

enum { QUESTIONS = 200, PUTS = 60, NAP_MS = 3 };

static gex_AM_Index_t ask_index, tell_index, work_index, go_index;
static unsigned answers, asked, worked, may_ask; /* by handlers */
static unsigned by_client, by_other;             /* questions answered, by which thread */
static int is_open, is_away; /* of the computing rank: it asks for questions; it does not poll */
static pthread_t client;
static gex_Rank_t computing; /* the rank that computes */

static void count_thread(void)
{
    if (!pthread_equal(pthread_self(), client))
        __atomic_fetch_add(&by_other, __atomic_load_n(&is_open, __ATOMIC_ACQUIRE),
                           __ATOMIC_RELEASE);
    else
        __atomic_fetch_add(&by_client, is_away, __ATOMIC_RELEASE);
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELEASE);
}

static void go(gex_Token_t token)
{
    (void)token;
    __atomic_fetch_add(&may_ask, 1, __ATOMIC_RELEASE);
}

static void tell(gex_Token_t token)
{
    (void)token;
    __atomic_fetch_add(&answers, 1, __ATOMIC_RELEASE);
}

static void ask(gex_Token_t token)
{
    count_thread();
    gex_AM_ReplyShort0(token, tell_index, 0);
}

static void compute_for(double seconds)
{
    for (double end = job_seconds() + seconds; job_seconds() < end;)
        for (volatile unsigned i = 0; i < 1000; i++)
            continue;
}

static void work(gex_Token_t token)
{
    (void)token;
    compute_for(0.0002);
    __atomic_fetch_add(&worked, 1, __ATOMIC_RELEASE);
}

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int is_served(void)
{
    return job_seen(&asked) >= QUESTIONS * (job.size - 1);
}

/* Others ask the computing rank, one question after the other. */
static void ask_all(void)
{
    static double took[QUESTIONS];
    GASNET_BLOCKUNTIL(job_seen(&may_ask));
    for (unsigned i = 0; i < QUESTIONS; i++) {
        double begin = job_seconds();
        gex_AM_RequestShort0(job.tm, computing, ask_index, 0);
        GASNET_BLOCKUNTIL(job_seen(&answers) > i);
        took[i] = job_seconds() - begin;
        usleep(200); /* so that it sleeps again: this is not about a flood */
    }
    qsort(took, QUESTIONS, sizeof(took[0]), by_time);
    printf("rank %u: median %.0f us, longest %.0f us\n", job.rank, took[QUESTIONS / 2] * 1e6,
           took[QUESTIONS - 1] * 1e6);
    fflush(stdout);
}

/* One step of the client, which polls only if `how` says so. */
static void busy(const char *how)
{
    if (!strcmp(how, "poll"))
        gasnet_AMPoll();
    else if (!strcmp(how, "spin"))
        compute_for(0.001);
    else
        usleep(1000);
}

/* Computes until all questions are answered, or the time is over. */
static void compute(double seconds, const char *how)
{
    __atomic_store_n(&is_open, 1, __ATOMIC_RELEASE);
    for (gex_Rank_t rank = 0; rank < job.size; rank++)
        if (rank != computing)
            gex_AM_RequestShort0(job.tm, rank, go_index, 0);
    double end = job_seconds() + seconds;
    while (job_seen(&by_other) == 0 &&
           job_seconds() < end) /* it may not run yet, nor keep the queues */
        usleep(1000);
    is_away = 1;
    while (!is_served() && job_seconds() < end)
        busy(how);
    is_away = 0;
    printf("served by the client's thread %u, by another %u\n", job_seen(&by_client),
           job_seen(&by_other));
    fflush(stdout);
}

static void ping(double seconds, const char *how)
{
    job_barrier();
    if (job.rank == computing)
        compute(seconds, how);
    else
        ask_all();
    job_barrier();
}

/* As many messages as the credits allow, each some work. The client polls or not, but not before
 * the thread runs. */
static void flood(double seconds, const char *how)
{
    job_barrier();
    for (double end = job_seconds() + seconds; job.rank != computing && job_seconds() < end;)
        gex_AM_RequestShort0(job.tm, computing, work_index, 0);
    while (job.rank == computing && job_seen(&worked) == 0)
        usleep(1000);
    for (double end = job_seconds() + seconds; job.rank == computing && job_seconds() < end;)
        busy(how);
    job_barrier();
}

/* Transfers that complete while the client makes no call. */
static void put_apart(void)
{
    char source[64] = "";
    job_barrier();
    for (int i = 0; i < PUTS && job.rank == computing; i++) {
        gex_Event_t event =
            gex_RMA_PutNB(job.tm, 0, job_remote(0, 0), source, sizeof(source), GEX_EVENT_DEFER, 0);
        usleep(NAP_MS * 1000);
        gex_Event_Wait(event);
    }
    job_barrier();
}

static void expect_list(unsigned count, const gex_ProgressThreadInfo_t *info)
{
    const char *device = getenv("EXPECT_DEVICE");
    for (unsigned i = 0; i < count; i++) {
        CHECK(info[i].gex_device_list && info[i].gex_progress_fn);
        CHECK(info[i].gex_thread_roles == GEX_THREAD_ROLE_RCV ||
              info[i].gex_thread_roles == GEX_THREAD_ROLE_SND);
        CHECK(!device || !strcmp(info[i].gex_device_list, device), "%s", info[i].gex_device_list);
        printf("thread %u: '%s' role %u\n", i, info[i].gex_device_list, info[i].gex_thread_roles);
    }
    fflush(stdout);
}

static void start_deferred(int starts)
{
    const gex_ProgressThreadInfo_t *info;
    pthread_t thread;
    unsigned count;
    CHECK(gex_System_QueryProgressThreads(job.client, &count, &info, 0) == GASNET_OK);
    expect_list(count, info);
    for (unsigned i = 0; i < count && starts; i++)
        CHECK(pthread_create(&thread, NULL, info[i].gex_progress_fn, info[i].gex_progress_arg) ==
              0);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "none";
}

static void open_job(gex_Flags_t flags)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
        {0, (gex_AM_Fn_t)tell, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "tell"},
        {0, (gex_AM_Fn_t)work, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "work"},
        {0, (gex_AM_Fn_t)go, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "go"}};
    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "threads", NULL, NULL, flags) ==
          GASNET_OK);
    job.rank = gex_TM_QueryRank(job.tm);
    job.size = gex_TM_QuerySize(job.tm);
    job_deadline();
    job_attach(65536);
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 4) == GASNET_OK);
    ask_index = table[0].gex_index;
    tell_index = table[1].gex_index;
    work_index = table[2].gex_index;
    go_index = table[3].gex_index;
    client = pthread_self();
    computing = job.size / 2; /* of three ranks on two hosts: has a neighbour and another peer */
}

/* One rank asks for the end while the other computes for long. */
static void end_one(const char *how)
{
    job_barrier();
    if (job.rank == computing)
        compute_for(30);
    usleep(50000);
    if (!strcmp(how, "exit"))
        gasnet_exit(7);
    if (!strcmp(how, "return"))
        exit(7);
    abort();
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    double seconds = argc > 2 ? atof(argv[2]) : 1;
    int defers = !strncmp(what, "defer", 5);
    open_job(defers ? GEX_FLAG_DEFER_THREADS : 0);
#ifdef GASNET_PAR
    CHECK(GASNET_RCV_THREAD == 1 && GASNET_SND_THREAD == 1 && GASNETC_IBV_RCV_THREAD == 1);
#elif defined(GASNET_RCV_THREAD) || defined(GASNET_SND_THREAD)
#    error "there are no such threads"
#endif
    CHECK(gex_System_QueryHiddenAMConcurrencyLevel() <= GASNET_HIDDEN_AM_CONCURRENCY_LEVEL);
    if (job.rank == 0)
        printf("hidden %d, drivers %s %s\n", gex_System_QueryHiddenAMConcurrencyLevel(),
               setting("MLX4_SINGLE_THREADED"), setting("MLX5_SINGLE_THREADED"));
    if (defers)
        start_deferred(!strcmp(what, "defer"));
    if (!strcmp(what, "ping") || !strcmp(what, "defer"))
        ping(seconds, argc > 3 ? argv[3] : "sleep");
    else if (!strcmp(what, "flood"))
        flood(seconds, argc > 3 ? argv[3] : "sleep");
    else if (!strcmp(what, "puts"))
        put_apart();
    else if (!strcmp(what, "end"))
        end_one(argv[2]);
    else
        CHECK(!strcmp(what, "defer-none"), "usage: progress_threads WHAT");
    job_end();
}
