/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_pingpong - puts, gets and messages between two processes of an MPI, for the tables of
 * tests/bench/peers and tests/bench/nbrhd, which compile it with the mpicc of each. Each line of
 * the output is "operation bytes us", as peers.c prints them: the time of one operation, median of
 * the samples; for a ping-pong half of a round trip. Process N stays on the Nth CPU it may use.
 *   mpi_pingpong [SAMPLES [MILLISECONDS]]    of each row, and of each sample */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pin.h"

enum {
    samples_max = 101,
    first_count = 4,
    count_max = 100000,
    window_max = 64,
    looks_max = 8, /* at memory between two calls that let an MPI without hardware for puts work */
    bytes_max = 1 << 20
};

static const int sizes[] = {8, 512, 4096, 65536, bytes_max};

static char out[bytes_max], in[bytes_max];
static char *target; /* the window's memory */
static MPI_Win win;
static int me;

static int window_of(int bytes)
{
    return bytes > 4096 ? 16 : window_max;
}

static void put(int bytes)
{
    MPI_Put(out, bytes, MPI_CHAR, 1 - me, 0, bytes, MPI_CHAR, win);
}

static void get(int bytes)
{
    MPI_Get(in, bytes, MPI_CHAR, 1 - me, 0, bytes, MPI_CHAR, win);
}

/* `depth` of them, then a flush, which also completes them at the target. */
static void one_sided(void (*start)(int bytes), int bytes, int count, int depth)
{
    for (int i = 0; me == 0 && i < count; i++) {
        start(bytes);
        if ((i + 1) % depth == 0 || i + 1 == count)
            MPI_Win_flush(1, win);
    }
}

static void puts_one_by_one(int bytes, int count)
{
    one_sided(put, bytes, count, 1);
}

static void puts_in_windows(int bytes, int count)
{
    one_sided(put, bytes, count, window_of(bytes));
}

static void gets_one_by_one(int bytes, int count)
{
    one_sided(get, bytes, count, 1);
}

static void gets_in_windows(int bytes, int count)
{
    one_sided(get, bytes, count, window_of(bytes));
}

static void await_put(int bytes, char mark)
{
    const volatile char *seen = target;
    for (int looks = 1; seen[0] != mark || seen[bytes - 1] != mark; looks++) {
        int flag;
        MPI_Win_sync(win);
        if (looks % looks_max == 0)
            MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

/* The first mark is 2: puts that were measured before have left bytes of 1. */
static void put_pong(int bytes, int count)
{
    static char mark = 1;
    for (int i = 0; i < count; i++) {
        mark = (char)(mark % 100 + 1);
        if (me == 1)
            await_put(bytes, mark);
        out[0] = out[bytes - 1] = mark;
        put(bytes);
        MPI_Win_flush(1 - me, win);
        if (me == 0)
            await_put(bytes, mark);
    }
}

static void message_pong(int bytes, int count)
{
    for (int i = 0; i < count; i++) {
        if (me == 0)
            MPI_Send(out, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, 1 - me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me == 1)
            MPI_Send(out, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

/* Windows of sends that do not block; an empty message back confirms the last. */
static void message_flood(int bytes, int count)
{
    MPI_Request requests[window_max];
    for (int left = count; left > 0; left -= window_of(bytes)) {
        int depth = left < window_of(bytes) ? left : window_of(bytes);
        for (int k = 0; k < depth; k++)
            if (me == 0)
                MPI_Isend(out, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &requests[k]);
            else
                MPI_Irecv(in, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &requests[k]);
        MPI_Waitall(depth, requests, MPI_STATUSES_IGNORE);
    }
    if (me == 0)
        MPI_Recv(in, 0, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, 0, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*run)(int bytes, int count);
    double share; /* of a turn of the loop that is one operation */
} operations[] = {
    {"put", puts_one_by_one, 1},    {"put-pong", put_pong, 0.5},  {"puts", puts_in_windows, 1},
    {"get", gets_one_by_one, 1},    {"gets", gets_in_windows, 1}, {"message", message_pong, 0.5},
    {"messages", message_flood, 1},
};

static double run(int operation, int bytes, int count)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    operations[operation].run(bytes, count);
    return MPI_Wtime() - began;
}

/* Operations of a sample of `wanted` seconds, as process 0 finds; the other one follows. */
static int calibrate(int operation, int bytes, double wanted)
{
    int count = first_count, next = first_count;
    do {
        count = next;
        double seconds = run(operation, bytes, count);
        if (seconds < wanted / 4 && count < count_max)
            next = count * 4;
        else
            next = -(int)(1 + (wanted / seconds > 4 ? 4 : wanted / seconds) * count);
        MPI_Bcast(&next, 1, MPI_INT, 0, MPI_COMM_WORLD);
    } while (next > 0);
    return -next < first_count ? first_count : -next;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(int operation, int bytes, int samples, double wanted)
{
    double seconds[samples_max];
    int count = calibrate(operation, bytes, wanted);
    for (int i = 0; i < samples; i++)
        seconds[i] = run(operation, bytes, count) / count;
    qsort(seconds, (size_t)samples, sizeof(*seconds), compare);
    if (me == 0)
        printf("%s %d %.5f\n", operations[operation].name, bytes,
               1e6 * operations[operation].share * seconds[samples / 2]);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int samples = argc > 1 ? atoi(argv[1]) : 7;
    double wanted = 1e-3 * (argc > 2 ? atof(argv[2]) : 1);
    if (samples < 1 || samples > samples_max || wanted <= 0)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    bench_pin_to(me);
    memset(out, 1, sizeof(out));
    memset(in, 1, sizeof(in));
    MPI_Win_allocate(bytes_max, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &target, &win);
    memset(target, 0, bytes_max);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++)
            measure((int)i, sizes[k], samples, wanted);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
