/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets over the conduit, between segments: one at a time, and a window of them in flight.
 * Rank 1 only waits in the barrier that follows. */
#include "config.h"

#include "bench.h"

void bench_put(size_t nbytes, long count)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_RMA_PutBlocking(bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET,
                            bench_job.mine + BENCH_SOURCE, nbytes, 0);
}

void bench_get(size_t nbytes, long count)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        gex_RMA_GetBlocking(bench_job.tm, bench_job.mine + BENCH_SOURCE, bench_job.peer,
                            bench_job.theirs + BENCH_TARGET, nbytes, 0);
}

static gex_Event_t put_nb(size_t nbytes)
{
    return gex_RMA_PutNB(bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET,
                         bench_job.mine + BENCH_SOURCE, nbytes, GEX_EVENT_DEFER, 0);
}

static gex_Event_t get_nb(size_t nbytes)
{
    return gex_RMA_GetNB(bench_job.tm, bench_job.mine + BENCH_SOURCE, bench_job.peer,
                         bench_job.theirs + BENCH_TARGET, nbytes, 0);
}

static void window(gex_Event_t (*start)(size_t nbytes), size_t nbytes, long count)
{
    gex_Event_t events[bench_window];
    for (int i = 0; i < bench_window; i++)
        events[i] = GEX_EVENT_INVALID;
    for (long i = 0; bench_job.me == 0 && i < count; i++) {
        gex_Event_Wait(events[i % bench_window]);
        events[i % bench_window] = start(nbytes);
    }
    gex_Event_WaitAll(events, bench_window, 0);
}

void bench_put_window(size_t nbytes, long count)
{
    window(put_nb, nbytes, count);
}

void bench_get_window(size_t nbytes, long count)
{
    window(get_nb, nbytes, count);
}
