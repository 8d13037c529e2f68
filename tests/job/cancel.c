/* SPDX-License-Identifier: BSD-3-Clause */
/* Prepares and cancels, COUNT times each: requests to the next rank and replies to it, Medium and
 * Long, in buffers of the library and of the client. Usage: cancel COUNT [THREADS [FILE]].
 * FILE.RANK gets the number of cancelled messages, for cancel.sh to compare with the statistics of
 * the library. Nothing else is sent in between, so a single resource leaked by a Cancel would
 * block, or grow the process. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { REQUEST = 200, REPLY, THREADS_MAX = 8, FORMS = 4, SIZE = 3000, GROWTH_MAX_KIB = 16 << 10 };

static long count;
static atomic_ulong cancelled;
static atomic_uint answers, requests_in;
static char source[THREADS_MAX + 1][SIZE];

static gex_Rank_t next(void)
{
    return (job.rank + 1) % job.size;
}

/* Some with IMMEDIATE, which fails while other threads have all resources. */
static void cancel_request(unsigned form, char *ours, gex_Flags_t flags)
{
    gex_AM_SrcDesc_t sd;
    char *from = form & 1 ? ours : NULL;
    gex_Event_t *lc = from ? GEX_EVENT_NOW : NULL;

    if (form & 2)
        sd = gex_AM_PrepareRequestLong(job.tm, next(), from, 1, SIZE, NULL, lc, flags, 5);
    else
        sd = gex_AM_PrepareRequestMedium(job.tm, next(), from, 1, SIZE, lc, flags, 5);
    if (sd == GEX_AM_SRCDESC_NO_OP)
        return;
    *(char *)gex_AM_SrcDescAddr(sd) = 1;
    if (form & 2)
        CHECK(gex_AM_CancelRequestLong(sd, 0) == 0);
    else
        CHECK(gex_AM_CancelRequestMedium(sd, 0) == 0);
    atomic_fetch_add_explicit(&cancelled, 1, memory_order_relaxed);
}

static void cancel_reply(gex_Token_t token, unsigned form)
{
    gex_AM_SrcDesc_t sd;
    char *from = form & 1 ? source[THREADS_MAX] : NULL;
    gex_Event_t *lc = from ? GEX_EVENT_NOW : NULL;

    if (form & 2)
        sd = gex_AM_PrepareReplyLong(token, from, 1, SIZE, NULL, lc, 0, 5);
    else
        sd = gex_AM_PrepareReplyMedium(token, from, 1, SIZE, lc, 0, 5);
    if (form & 2)
        CHECK(gex_AM_CancelReplyLong(sd, 0) == 0);
    else
        CHECK(gex_AM_CancelReplyMedium(sd, 0) == 0);
    atomic_fetch_add_explicit(&cancelled, 1, memory_order_relaxed);
}

/* A handler may cancel what it prepared, and reply or not. */
static void on_request(gex_Token_t token, gex_AM_Arg_t replies)
{
    for (long i = 0; i < count; i++)
        cancel_reply(token, i % FORMS);
    if (replies)
        gex_AM_ReplyShort0(token, REPLY, 0);
    else
        answers++;
    requests_in++;
}

static void on_reply(gex_Token_t token)
{
    (void)token;
    answers++;
}

static void *work(void *number)
{
    char *ours = source[(uintptr_t)number];

    for (long i = 0; i < count; i++)
        cancel_request(i % FORMS, ours, i % 3 ? 0 : GEX_FLAG_IMMEDIATE);
    return NULL;
}

static void run_threads(long threads)
{
    pthread_t at[THREADS_MAX];

    for (long i = 1; i < threads; i++)
        CHECK(pthread_create(&at[i], NULL, work, (void *)i) == 0);
    work(NULL);
    for (long i = 1; i < threads; i++)
        CHECK(pthread_join(at[i], NULL) == 0);
}

static long resident_kib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void leave_count(const char *path)
{
    char name[4096];

    snprintf(name, sizeof(name), "%s.%u", path, (unsigned)job.rank);
    FILE *file = fopen(name, "w");
    CHECK(file, "%s", name);
    fprintf(file, "%lu\n", (unsigned long)cancelled);
    CHECK(fclose(file) == 0);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        {REQUEST, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
        {REPLY, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
    };

    job_start(&argc, &argv, GASNET_PAGESIZE);
    CHECK(argc > 1 && (count = atol(argv[1])) >= FORMS);
    long threads = argc > 2 ? atol(argv[2]) : 1;
    CHECK(threads >= 1 && threads <= THREADS_MAX);
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    job_barrier();
    for (unsigned form = 0; form < FORMS; form++)
        cancel_request(form, source[0], 0);
    long before = resident_kib();
    job_phase("requests");
    run_threads(threads);
    job_phase("replies");
    job_barrier();
    for (int replies = 0; replies < 2; replies++)
        gex_AM_RequestShort1(job.tm, next(), REQUEST, 0, replies);
    GASNET_BLOCKUNTIL(requests_in == 2 && answers == 2);
    job_barrier();
    long grown = resident_kib() - before;
    CHECK(grown < GROWTH_MAX_KIB, "%ld KiB", grown);
    if (argc > 3)
        leave_count(argv[3]);
    job_end();
}
