/* SPDX-License-Identifier: BSD-3-Clause */
/* A job with something to see in a report: steps of a ring and of a transpose with source lines,
 * puts of several sizes, messages that wait for credits, and a rank that comes late to barriers.
 * REPORT_STEPS: how many; REPORT_END=abort: rank 1 aborts. */
#include "config.h"

#include "tests/job/job.h"

#include "gasnet_tools.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEGMENT = 1 << 20, ASKED = 200, ANSWERED, BURST = 60, SLOT = 65536 };

static unsigned answers;
static char bytes[SLOT];

static void asked(gex_Token_t token, void *payload, size_t nbytes)
{
    (void)payload, (void)nbytes;
    gex_AM_ReplyShort0(token, ANSWERED, 0);
}

static void answered(gex_Token_t token)
{
    (void)token;
    __atomic_add_fetch(&answers, 1, __ATOMIC_RELAXED);
}

static void work(unsigned microseconds)
{
    struct timespec time = {0, microseconds * 1000L};
    nanosleep(&time, NULL);
}

static void ring(unsigned step)
{
    gex_Rank_t next = (job.rank + 1) % job.size;
    GASNETT_TRACE_SETSOURCELINE("ring.c", 20);
    for (size_t size = 8; size <= SLOT; size *= 8)
        gex_RMA_PutBlocking(job.tm, next, job_remote(next, 0), bytes, size, 0);
    GASNETT_TRACE_SETSOURCELINE("ring.c", 25);
    gex_RMA_GetBlocking(job.tm, bytes, next, job_remote(next, 0), 4096 + step, 0);
}

static void transpose(void)
{
    GASNETT_TRACE_SETSOURCELINE("transpose.c", 40);
    for (gex_Rank_t i = 1; i < job.size; i++) {
        gex_Rank_t to = (job.rank + i) % job.size;
        gex_RMA_PutNBI(job.tm, to, job_remote(to, SLOT + job.rank * 2048), bytes, 2048,
                       GEX_EVENT_DEFER, 0);
    }
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

static void messages(void)
{
    gex_Rank_t to = job.rank == 0 ? 1 % job.size : 0;
    unsigned wanted = __atomic_load_n(&answers, __ATOMIC_RELAXED) + BURST;
    GASNETT_TRACE_SETSOURCELINE("messages.c", 55);
    for (int i = 0; i < BURST; i++)
        gex_AM_RequestMedium0(job.tm, to, ASKED, bytes, 256, GEX_EVENT_NOW, 0);
    GASNET_BLOCKUNTIL(__atomic_load_n(&answers, __ATOMIC_RELAXED) >= wanted);
}

int main(int argc, char **argv)
{
    const char *steps = getenv("REPORT_STEPS"), *end = getenv("REPORT_END");
    job_start(&argc, &argv, SEGMENT);
    gex_AM_Entry_t table[] = {
        {ASKED, (gex_AM_Fn_t)asked, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "asked"},
        {ANSWERED, (gex_AM_Fn_t)answered, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL,
         "answered"}};
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    job_barrier();
    for (int step = 0; step < (steps ? atoi(steps) : 5); step++) {
        ring((unsigned)step);
        transpose();
        messages();
        work(job.rank == job.size - 1 ? 4000 : 500);
        GASNETT_TRACE_SETSOURCELINE("main.c", 70);
        job_barrier();
        GASNETT_TRACE_PRINTF("step %d is done", step);
    }
    if (end && job.rank == 1)
        abort();
    job_end();
}
