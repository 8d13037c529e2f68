/* SPDX-License-Identifier: BSD-3-Clause */
/* collectives [SAMPLES] - times of collectives over all ranks, as rank 0 sees them. Each sample has
 * every operation in turn, so ratios are of neighbouring measurements. Two ranks stay on a CPU
 * each; more are left to the scheduler, for there may be more than CPUs. A line for each operation:
 * name, bytes, median (us; MB/s of all receivers together for the last two), then the name of what
 * it is compared with, median and quartiles of the ratio. One thread; no locks. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gasnet_coll.h>
#include <gasnetex.h>

#include "pin.h"

enum { samples_max = 201, large = 1 << 20, segment_size = 4 << 20 };

static gex_TM_t tm;
static gex_Rank_t me, size;
static char *mine, *roots; /* our segment; that of rank 0 as we see it, if all ranks share memory */
static char *landing;
static volatile long requests_in, replies_in;

static void on_request(gex_Token_t token);
static void on_reply(gex_Token_t token);

static gex_AM_Entry_t table[] = {
    {0, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "request"},
    {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "reply"}};

static void on_request(gex_Token_t token)
{
    requests_in++;
    gex_AM_ReplyShort(token, table[1].gex_index, 0);
}

static void on_reply(gex_Token_t token)
{
    (void)token;
    replies_in++;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void barriers(long count)
{
    for (long i = 0; i < count; i++)
        gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

static void shorts(long count)
{
    requests_in = replies_in = 0;
    barriers(1);
    for (long i = 1; me == 0 && i <= count; i++) {
        gex_AM_RequestShort(tm, 1, table[0].gex_index, 0);
        GASNET_BLOCKUNTIL(replies_in == i);
    }
    if (me == 1)
        GASNET_BLOCKUNTIL(requests_in == count);
}

static void reductions(long count)
{
    uint64_t one = 1, all = 0;
    for (long i = 0; i < count; i++) {
        gex_Event_Wait(
            gex_Coll_ReduceToAllNB(tm, &all, &one, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
        if (all != size)
            abort();
    }
}

static void broadcast(long count, size_t nbytes)
{
    char *to = me == 0 ? mine : landing;
    for (long i = 0; i < count; i++)
        gex_Event_Wait(gex_Coll_BroadcastNB(tm, 0, to, mine, nbytes, 0));
}

/* Each waits for the last: the root alone would run ahead. */
static void broadcasts_8(long count)
{
    for (long i = 0; i < count; i++) {
        broadcast(1, 8);
        gex_Event_Wait(gex_Coll_BroadcastNB(tm, size - 1, landing, mine, 8, 0));
    }
}

static void broadcasts_large(long count)
{
    broadcast(count, large);
    barriers(1);
}

static void copies_large(long count)
{
    for (long i = 0; me != 0 && i < count; i++) {
        memcpy(landing, roots, large);
        __asm__ __volatile__("" : : : "memory");
    }
    barriers(1);
}

static const struct operation {
    const char *name, *against; /* what it is compared with */
    long bytes, most;           /* of a sample */
    void (*run)(long count);
    double parts;     /* of a run that count as one operation */
    int for_two;      /* ranks alone */
    int needs_memory; /* of rank 0, in all */
} operations[] = {
    {"short", NULL, 0, 1000, shorts, 1, 1, 0},
    {"barrier", "short", 0, 1000, barriers, 1, 0, 0},
    {"reduce-to-all", "barrier", 8, 1000, reductions, 1, 0, 0},
    {"broadcast", "barrier", 8, 500, broadcasts_8, 2, 0, 0},
    {"copy", NULL, large, 16, copies_large, 1, 0, 1},
    {"broadcast", "copy", large, 16, broadcasts_large, 1, 0, 0},
};
enum { operation_count = sizeof(operations) / sizeof(operations[0]) };

static double values[operation_count][samples_max];
static long counts[operation_count]; /* of each sample */

static int is_skipped(const struct operation *op)
{
    return (op->for_two && size != 2) || (op->needs_memory && !roots);
}

static double seconds_of(const struct operation *op, long count)
{
    double began = now();
    barriers(1);
    if (size == 2)
        began = now(); /* of more ranks than CPUs ours may be the last to leave */
    op->run(count);
    return (now() - began) / (double)count / op->parts;
}

/* As many as take a millisecond or two, by rank 0's clock. */
static void find_counts(void)
{
    enum { few = 4 };
    for (int k = 0; k < operation_count; k++) {
        if (is_skipped(&operations[k]))
            continue;
        seconds_of(&operations[k], few);
        double fit = 1e-3 / seconds_of(&operations[k], few);
        counts[k] = fit > (double)operations[k].most ? operations[k].most
                    : fit < few                      ? few
                                                     : (long)fit;
        gex_Event_Wait(gex_Coll_BroadcastNB(tm, 0, &counts[k], &counts[k], sizeof(counts[k]), 0));
    }
}

/* Rates for what is large. */
static double sample(int index)
{
    const struct operation *op = &operations[index];
    double seconds = seconds_of(op, counts[index]);
    return op->bytes == large ? 1e-6 * large * (size - 1) / seconds : 1e6 * seconds;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *all, int samples, int part)
{
    double sorted[samples_max];
    memcpy(sorted, all, (size_t)samples * sizeof(*all));
    qsort(sorted, (size_t)samples, sizeof(*sorted), compare);
    return sorted[(samples - 1) * part / 4];
}

static int find(const char *name)
{
    int i = 0;
    while (strcmp(operations[i].name, name) != 0)
        i++;
    return i;
}

static void report(int index, int samples)
{
    const struct operation *op = &operations[index];
    double ratios[samples_max];
    printf("%s %ld %.4f", op->name, op->bytes, quantile(values[index], samples, 2));
    int other = op->against ? find(op->against) : -1;
    if (other < 0 || is_skipped(&operations[other])) {
        printf(" - - - -\n");
        return;
    }
    for (int i = 0; i < samples; i++)
        ratios[i] = values[index][i] / values[other][i];
    printf(" %s %.3f %.3f %.3f\n", op->against, quantile(ratios, samples, 2),
           quantile(ratios, samples, 1), quantile(ratios, samples, 3));
}

static void start(int *argc, char ***argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;
    void *theirs = NULL;
    if (gex_Client_Init(&client, &ep, &tm, "collectives", argc, argv, 0) ||
        gex_EP_RegisterHandlers(ep, table, 2) || gex_Segment_Attach(&segment, tm, segment_size))
        exit(1);
    me = gex_TM_QueryRank(tm);
    size = gex_TM_QuerySize(tm);
    mine = gex_Segment_QueryAddr(segment);
    landing = aligned_alloc(4096, large);
    if (!landing || size < 2) {
        fprintf(stderr, "usage: gasnetrun_ibv -n N collectives [SAMPLES] (N from 2)\n");
        gasnet_exit(2);
    }
    /* Page faults must not be in any measurement. */
    memset(mine, 1, segment_size);
    memset(landing, 1, large);
    gex_Rank_t neighbours;
    gex_System_QueryNbrhdInfo(NULL, &neighbours, NULL);
    if (neighbours == size)
        gex_Segment_QueryBound(tm, 0, NULL, &theirs, NULL);
    roots = theirs;
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    int samples = argc == 2 ? atoi(argv[1]) : 51;
    if (samples < 1 || samples > samples_max)
        gasnet_exit(2);
    if (size == 2)
        bench_pin_to((int)me);
    find_counts();
    for (int i = 0; i < samples; i++)
        for (int k = 0; k < operation_count; k++)
            if (!is_skipped(&operations[k]))
                values[k][i] = sample(k);
    for (int k = 0; me == 0 && k < operation_count; k++)
        if (!is_skipped(&operations[k]))
            report(k, samples);
    barriers(1);
    gasnet_exit(0);
}
