/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_collectives - the same collectives by an MPI, for the table of tests/bench/collectives, which
 * compiles it with mpicc. Each line of the output: operation, bytes, median, in the units of that
 * table (us; MB/s of all receivers together for large ones). Two processes stay on a CPU each. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pin.h"

enum { samples = 51, large = 1 << 20 };

static char buffer[large];
static int me, size;

static void barriers(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Barrier(MPI_COMM_WORLD);
}

static void reductions(int count)
{
    uint64_t one = 1, all;
    for (int i = 0; i < count; i++)
        MPI_Allreduce(&one, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcasts_8(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Bcast(buffer, 8, MPI_CHAR, i % 2 ? size - 1 : 0, MPI_COMM_WORLD);
}

static void broadcasts_large(int count)
{
    for (int i = 0; i < count; i++)
        MPI_Bcast(buffer, large, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of the microseconds that one takes. */
static double median(void (*what)(int count), int count)
{
    double us[samples];
    what(count);
    for (int i = 0; i < samples; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double began = MPI_Wtime();
        what(count);
        us[i] = 1e6 * (MPI_Wtime() - began) / count;
    }
    qsort(us, samples, sizeof(*us), compare);
    return us[samples / 2];
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
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size == 2)
        bench_pin_to(me);
    memset(buffer, 1, sizeof(buffer));
    say("barrier", 0, median(barriers, 1000));
    say("reduce-to-all", 8, median(reductions, 1000));
    say("broadcast", 8, median(broadcasts_8, 1000));
    say("broadcast", large, (double)large * (size - 1) / median(broadcasts_large, 16));
    MPI_Finalize();
    return 0;
}
