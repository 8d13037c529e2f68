/* SPDX-License-Identifier: BSD-3-Clause */
/* For top.sh: a rank does operations that depend on its number, writes their counts to the file
 * MARKS.RANK, one "name number" a line, and then makes no call until the file MARKS.go exists. In
 * PAR programs half of the Shorts come from a second thread, which then ends. */
#include "config.h"

#include "job.h"

#include "gasnet_tools.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { REQUEST_SHORT = 200, REQUEST_MEDIUM };
enum { MEDIUM_BYTES = 100, PUT_BYTES = 64, GET_BYTES = 32, SEGMENT = 65536 };

static unsigned shorts, mediums; /* that arrived */
static gex_Rank_t next;

static void on_short(gex_Token_t token)
{
    (void)token;
    __atomic_fetch_add(&shorts, 1, __ATOMIC_RELEASE);
}

static void on_medium(gex_Token_t token, void *buffer, size_t nbytes)
{
    (void)token, (void)buffer;
    CHECK(nbytes == MEDIUM_BYTES);
    __atomic_fetch_add(&mediums, 1, __ATOMIC_RELEASE);
}

static gex_AM_Entry_t handlers[] = {
    {REQUEST_SHORT, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 0, NULL, NULL},
    {REQUEST_MEDIUM, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 0, NULL,
     NULL}};

static unsigned shorts_of(gex_Rank_t rank)
{
    return 10 + 2 * rank;
}

static unsigned mediums_of(gex_Rank_t rank)
{
    return 5 + rank;
}

static unsigned puts_of(gex_Rank_t rank)
{
    return 3 + rank;
}

static void *send_half(void *unused)
{
    for (unsigned i = 0; i < shorts_of(job.rank) / 2; i++)
        CHECK(gex_AM_RequestShort0(job.tm, next, REQUEST_SHORT, 0) == 0);
    return unused;
}

static void send_shorts(void)
{
#ifdef GASNET_PAR
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, send_half, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
#else
    send_half(NULL);
#endif
    send_half(NULL);
}

/* Operations before a reset do not count. */
static void send_forgotten(gex_Rank_t former)
{
    job_barrier();
    for (unsigned i = 0; i <= job.rank; i++)
        CHECK(gex_AM_RequestShort0(job.tm, next, REQUEST_SHORT, 0) == 0);
    GASNET_BLOCKUNTIL(job_seen(&shorts) == former + 1);
    shorts = 0;
    GASNETT_STATS_DUMP(1);
}

static void transfer(void)
{
    static char here[PUT_BYTES];

    for (unsigned i = 0; i < puts_of(job.rank); i++)
        gex_RMA_PutBlocking(job.tm, next, job_remote(next, 0), here, PUT_BYTES, 0);
    for (unsigned i = 0; i < 2; i++)
        gex_RMA_GetBlocking(job.tm, here, next, job_remote(next, 0), GET_BYTES, 0);
}

static void leave_mark(const char *marks)
{
    gex_Rank_t former = (job.rank + job.size - 1) % job.size;
    char path[4096], whole[4096 + 8];
    snprintf(path, sizeof(path), "%s.%u", marks, (unsigned)job.rank);
    snprintf(whole, sizeof(whole), "%s.new", path);
    FILE *file = fopen(whole, "w");
    CHECK(file, "%s", whole);
    fprintf(file, "pid %d\n", (int)getpid());
    fprintf(file, "short_requests %u\nmedium_requests %u\nlong_requests 0\n", shorts_of(job.rank),
            mediums_of(job.rank));
    fprintf(file, "shorts_received %u\nmediums_received %u\n", shorts_of(former),
            mediums_of(former));
    fprintf(file, "message_bytes %u\n", mediums_of(job.rank) * MEDIUM_BYTES);
    fprintf(file, "puts %u\nput_bytes %u\ngets 2\nget_bytes %u\n", puts_of(job.rank),
            puts_of(job.rank) * PUT_BYTES, 2 * GET_BYTES);
    CHECK(fclose(file) == 0 && rename(whole, path) == 0, "%s", path);
}

int main(int argc, char **argv)
{
    static char payload[MEDIUM_BYTES];
    char go[4096];

    job_start(&argc, &argv, SEGMENT);
    CHECK(argc == 2);
    CHECK(gex_EP_RegisterHandlers(job.ep, handlers, 2) == GASNET_OK);
    next = (job.rank + 1) % job.size;
    gex_Rank_t former = (job.rank + job.size - 1) % job.size;
    send_forgotten(former);
    job_barrier();
    send_shorts();
    for (unsigned i = 0; i < mediums_of(job.rank); i++)
        CHECK(gex_AM_RequestMedium0(job.tm, next, REQUEST_MEDIUM, payload, sizeof(payload),
                                    GEX_EVENT_NOW, 0) == 0);
    transfer();
    GASNET_BLOCKUNTIL(job_seen(&shorts) == shorts_of(former) &&
                      job_seen(&mediums) == mediums_of(former));
    job_barrier();
    leave_mark(argv[1]);
    snprintf(go, sizeof(go), "%s.go", argv[1]);
    while (access(go, F_OK) != 0)
        usleep(10000);
    job_end();
}
