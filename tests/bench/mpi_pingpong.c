/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_pingpong - the same between two processes by an MPI, for the table of tests/bench/nbrhd,
 * which compiles it with mpicc. Each line of the output: operation, bytes, median, in the unit of
 * that table (us for a round trip, MB/s, 1000 messages/s). Process N stays on the Nth CPU it may
 * use. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pin.h"

enum {
    samples = 21,
    window = 64,      /* sends in flight, in a flood */
    bulk_window = 16, /* and of large ones */
    most_bytes = 1 << 20
};

static char out[most_bytes], in[most_bytes];
static int me;

static void round_trips(int bytes, int count)
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
static void flood(int bytes, int count)
{
    MPI_Request requests[window];
    int depth = bytes > 4096 ? bulk_window : window;
    for (int i = 0; i < count; i += depth) {
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

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the seconds that one message or round trip takes. */
static double median(void (*what)(int bytes, int count), int bytes, int count)
{
    double seconds[samples];
    what(bytes, count);
    for (int i = 0; i < samples; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime();
        what(bytes, count);
        seconds[i] = (MPI_Wtime() - began) / count;
    }
    qsort(seconds, samples, sizeof(*seconds), compare);
    return seconds[samples / 2];
}

static void say(const char *what, int bytes, double value)
{
    if (me == 0)
        printf("%s %d %.4f\n", what, bytes, value);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    bench_pin_to(me);
    memset(out, 1, sizeof(out));
    memset(in, 1, sizeof(in));
    say("round-trip", 8, 1e6 * median(round_trips, 8, 2000));
    say("round-trip", 4096, 1e6 * median(round_trips, 4096, 1000));
    say("bandwidth", most_bytes, 1e-6 * most_bytes / median(flood, most_bytes, 64));
    say("flood", 8, 1e-3 / median(flood, 8, 6400));
    MPI_Finalize();
    return 0;
}
