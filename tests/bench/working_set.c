/* SPDX-License-Identifier: BSD-3-Clause */
/* working_set [TURNS] - puts and gets of 256 KiB, round and round through twice as much memory
 * outside of the segment as may be registered (GASNET_FIREHOSE_MAXVICTIM_M, which make
 * bench-working-set sets), and through as much inside, where nothing is copied. They take turns,
 * and the best of each counts, because other programs disturb it least. Two processes, one thread.
 * Both begin with a page: where the destination lies less than 64 bytes behind the source, modulo a
 * page, as memory of malloc() does, the CPU that copies for a software device takes twice as long,
 * registered or not (4K aliasing).
 */
#include "config.h"

#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { turns_max = 1000, seconds_of_turn = 20 /* thousandths */ };

static const size_t block = 256 * BENCH_KIB, blocks = 32; /* twice 4 MiB */
static const double aim = 0.5;
enum { page = 4096 };

static gex_Event_t start(bool is_put, char *local)
{
    char *remote = bench_job.theirs + BENCH_TARGET;
    if (is_put)
        return gex_RMA_PutNB(bench_job.tm, bench_job.peer, remote, local, block, GEX_EVENT_DEFER,
                             0);
    return gex_RMA_GetNB(bench_job.tm, local, bench_job.peer, remote, block, 0);
}

static void go_round(bool is_put, char *set)
{
    gex_Event_t events[bench_window];
    for (size_t i = 0; i < blocks + bench_window; i++) {
        if (i >= bench_window)
            gex_Event_Wait(events[i % bench_window]);
        if (i < blocks)
            events[i % bench_window] = start(is_put, set + i * block);
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* MB/s */
static double rate(bool is_put, char *set)
{
    double begin = bench_now(), end;
    long rounds = 0;
    do {
        go_round(is_put, set);
        rounds++;
        end = bench_now();
    } while (end - begin < seconds_of_turn / 1e3);
    return (double)(rounds * (long)blocks) * (double)block / 1e6 / (end - begin);
}

static void measure(bool is_put, char *outside, int turns)
{
    double inner = 0, outer = 0;
    for (int i = 0; i < turns; i++) {
        outer = larger(outer, rate(is_put, outside));
        inner = larger(inner, rate(is_put, bench_job.mine));
    }
    double ratio = outer / inner;
    printf(
        "%s 256 KiB, twice the pool %9.1f MB/s, segment %9.1f MB/s, ratio %5.2f, at least %.2f%s\n",
        is_put ? "put" : "get", outer, inner, ratio, aim, ratio < aim ? " MISSED" : "");
}

int main(int argc, char **argv)
{
    bench_job_start(&argc, &argv);
    int turns = argc > 1 ? atoi(argv[1]) : 50;
    char *outside = aligned_alloc(page, blocks * block);
    if (turns < 1 || turns > turns_max || !outside)
        bench_die("usage: working_set [TURNS], 1 to %d", turns_max);
    memset(outside, 1, blocks * block);
    bench_pin();
    if (bench_job.me == 0) {
        measure(true, outside, turns);
        measure(false, outside, turns);
    }
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    gasnet_exit(0);
}
