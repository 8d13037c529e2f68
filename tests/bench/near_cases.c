/* SPDX-License-Identifier: BSD-3-Clause */
/* What is measured between neighbours, with the aims, and the operations that only neighbours
 * have: puts and gets of a size known to the compiler are loads and stores in place. Takes the
 * place of cases.c. */
#include "config.h"

#include <string.h>

#include "bench.h"

static void near_put_8(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_RMA_PutBlocking(bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET,
                            bench_job.mine + BENCH_SOURCE, 8, 0);
}

static void near_get_8(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_RMA_GetBlocking(bench_job.tm, bench_job.mine + BENCH_SOURCE, bench_job.peer,
                            bench_job.theirs + BENCH_TARGET, 8, 0);
}

static void near_poll(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gasnet_AMPoll();
}

static void near_barrier(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; i < count; i++)
        gex_Event_Wait(gex_Coll_BarrierNB(bench_job.tm, 0));
}

struct bench_case bench_cases[bench_cases_max];

static const struct bench_case cases[] = {
    {"Short round trip", "ping-pong", bench_am_short, near_raw_ping_pong, BENCH_US, 8, 1.3, 0},
    {"Medium round trip", "copies", bench_am_medium, near_raw_copies, BENCH_US, 4096, 1.2, 0},
    {"put bandwidth", "memcpy", bench_put, near_raw_memcpy, BENCH_MBPS, 1 << 20, 0.95, 0},
    {"get bandwidth", "memcpy", bench_get, near_raw_memcpy, BENCH_MBPS, 1 << 20, 0, 0},
    {"Short flood", "ring", bench_am_short_flood, near_raw_flood, BENCH_KOPS, 8, 0, 10000},
    {"empty poll", "look", near_poll, near_raw_look, BENCH_NS, 0, 0, 0},
    {"put latency", "store", near_put_8, near_raw_store, BENCH_NS, 8, 0, 0},
    {"get latency", "load", near_get_8, near_raw_load, BENCH_NS, 8, 0, 0},
    {"barrier of 2", "two flags", near_barrier, near_raw_both, BENCH_US, 0, 0, 0},
};

int bench_cases_fill(void)
{
    memcpy(bench_cases, cases, sizeof(cases));
    return sizeof(cases) / sizeof(*cases);
}
