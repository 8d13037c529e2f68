/* SPDX-License-Identifier: BSD-3-Clause */
/* peers_ours - puts, gets and messages between two processes, alone: the side of Trunkline in the
 * table of tests/bench/peers. Each line of the output is "operation bytes us": the time of one
 * operation, median of the samples; for a ping-pong half of a round trip. mpi_pingpong.c prints the
 * same for an MPI. Mediums as far as they reach, Longs above. */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { samples_max = 101, first_count = 4, count_max = 100000, spins_max = 100000 };

static const size_t sizes[] = {8, 512, 4096, 65536, 1048576};

/* Operations that are started before all are awaited, as in mpi_pingpong.c. */
static long window_of(size_t nbytes)
{
    return nbytes > 4096 ? 16 : 64;
}

static void put_window(size_t nbytes, long count)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++) {
        gex_RMA_PutNBI(bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET,
                       bench_job.mine + BENCH_SOURCE, nbytes, GEX_EVENT_DEFER, 0);
        if ((i + 1) % window_of(nbytes) == 0 || i + 1 == count)
            gex_NBI_Wait(GEX_EC_PUT, 0);
    }
}

static void get_window(size_t nbytes, long count)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++) {
        gex_RMA_GetNBI(bench_job.tm, bench_job.mine + BENCH_SOURCE, bench_job.peer,
                       bench_job.theirs + BENCH_TARGET, nbytes, 0);
        if ((i + 1) % window_of(nbytes) == 0 || i + 1 == count)
            gex_NBI_Wait(GEX_EC_GET, 0);
    }
}

/* The other's put of round `mark` is here: its ends are, and all that is between them when the
 * device or the copy writes in order, which ucx_perftest takes for granted, too. */
static void await_put(size_t nbytes, char mark)
{
    const volatile char *target = bench_job.mine + BENCH_TARGET;
    long spins = 0;
    while (target[0] != mark || target[nbytes - 1] != mark)
        if (++spins % spins_max == 0) {
            gasnet_AMPoll();
            sched_yield();
        }
}

static void put_and_wait(size_t nbytes, char mark)
{
    char *source = bench_job.mine + BENCH_SOURCE;
    source[0] = source[nbytes - 1] = mark;
    gex_RMA_PutBlocking(bench_job.tm, bench_job.peer, bench_job.theirs + BENCH_TARGET, source,
                        nbytes, 0);
}

/* Both look at their memory, nobody polls. Each call begins with a mark that is not there yet, the
 * first one with 2, because a segment begins as bytes of 1: rank 0, which took them for an answer,
 * would put its next mark over the one that rank 1 still has to see, and both would wait. */
static void put_pong(size_t nbytes, long count)
{
    static char mark = 1;
    for (long i = 0; i < count; i++) {
        mark = (char)(mark % 100 + 1);
        if (bench_job.me == 1)
            await_put(nbytes, mark);
        put_and_wait(nbytes, mark);
        if (bench_job.me == 0)
            await_put(nbytes, mark);
    }
}

static bool is_medium(size_t nbytes)
{
    return nbytes <= gex_AM_LUBRequestMedium();
}

static void message_pong(size_t nbytes, long count)
{
    (is_medium(nbytes) ? bench_am_medium : bench_am_long)(nbytes, count);
}

static void message_flood(size_t nbytes, long count)
{
    (is_medium(nbytes) ? bench_am_medium_flood : bench_am_long_flood)(nbytes, count);
}

static const struct {
    const char *name;
    bench_op *run;
    double share; /* of a turn of the loop that is one operation */
} operations[] = {
    {"put", bench_put, 1},          {"put-pong", put_pong, 0.5}, {"puts", put_window, 1},
    {"get", bench_get, 1},          {"gets", get_window, 1},     {"message", message_pong, 0.5},
    {"messages", message_flood, 1},
};

enum {
    sizes_count = sizeof(sizes) / sizeof(*sizes),
    rows = sizes_count * sizeof(operations) / sizeof(*operations)
};

/* Both ranks, the same command. Returns rank 0's seconds. */
static double run(struct bench_command command)
{
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    double start = bench_now();
    operations[command.index / sizes_count].run(sizes[command.index % sizes_count], command.count);
    double seconds = bench_now() - start;
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    return seconds;
}

static double order(int row, long count)
{
    struct bench_command command = {.index = row, .count = (int32_t)count};
    bench_command_send(command);
    return run(command);
}

/* Operations of a sample of `wanted` seconds; warms up as it finds out. */
static long calibrate(int row, double wanted)
{
    long count = first_count;
    double seconds = order(row, count);
    while (seconds < wanted / 4 && count < count_max) {
        count *= 4;
        seconds = order(row, count);
    }
    count = (long)((double)count * wanted / seconds);
    return count < first_count ? first_count : count > count_max ? count_max : count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int row, int samples, double wanted)
{
    double seconds[samples_max];
    long count = calibrate(row, wanted);
    for (int i = 0; i < samples; i++)
        seconds[i] = order(row, count) / (double)count;
    qsort(seconds, (size_t)samples, sizeof(*seconds), compare);
    printf("%s %zu %.5f\n", operations[row / sizes_count].name, sizes[row % sizes_count],
           1e6 * operations[row / sizes_count].share * seconds[samples / 2]);
}

/* peers_ours [SAMPLES [MILLISECONDS]]: of each row, and of each sample */
int main(int argc, char **argv)
{
    bench_job_start(&argc, &argv);
    int samples = argc > 1 ? atoi(argv[1]) : 7;
    double wanted = 1e-3 * (argc > 2 ? atof(argv[2]) : 1);
    if (samples < 1 || samples > samples_max || wanted <= 0)
        bench_die("usage: peers_ours [SAMPLES [MILLISECONDS]]");
    bench_pin();
    if (bench_job.me == 0) {
        for (int row = 0; row < rows; row++)
            measure(row, samples, wanted);
        bench_command_send((struct bench_command){.index = -1});
    } else {
        bench_obey(run);
    }
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
    gasnet_exit(0);
}
