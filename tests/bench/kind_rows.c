/* SPDX-License-Identifier: BSD-3-Clause */
/* kind_rows [ROW [ROWS [REPETITIONS]]] - strided transfers with memory of devices between two
 * ranks, beside as many single puts or gets of a row, in one run. Prints medians over the
 * repetitions in microseconds; the ratio is of one repetition. One thread of each rank. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gasnet_coll.h>
#include <gasnet_mk.h>
#include <gasnet_vis.h>

enum { reps_max = 100, host = 0, device = 1 };

static gex_Client_t client;
static gex_EP_t eps[2];
static gex_TM_t tm;
static gex_Rank_t peer;
static char *mine[2], *theirs[2]; /* host, device */
static size_t row = 64, rows = 1000;

static _Noreturn void rows_fail(const char *what)
{
    fprintf(stderr, "kind_rows: %s\n", what);
    gasnet_exit(1);
    abort();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static void barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
}

/* ---- what is measured: every second row ---- */

static void all_rows(int from, int to, bool is_put)
{
    const ptrdiff_t stride = 2 * (ptrdiff_t)row;
    gex_TM_t pair = gex_TM_Pair(eps[from], (gex_EP_Index_t)to);
    if (is_put)
        gex_VIS_StridedPutBlocking(pair, peer, theirs[to], &stride, mine[from], &stride, row, &rows,
                                   1, 0);
    else
        gex_VIS_StridedGetBlocking(pair, mine[from], &stride, peer, theirs[to], &stride, row, &rows,
                                   1, 0);
}

static void each_row(int from, int to, bool is_put)
{
    gex_TM_t pair = gex_TM_Pair(eps[from], (gex_EP_Index_t)to);
    for (size_t i = 0; i < rows; i++)
        if (is_put)
            gex_RMA_PutNBI(pair, peer, theirs[to] + 2 * i * row, mine[from] + 2 * i * row, row,
                           GEX_EVENT_DEFER, 0);
        else
            gex_RMA_GetNBI(pair, mine[from] + 2 * i * row, peer, theirs[to] + 2 * i * row, row, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static double time_of(void (*move)(int from, int to, bool is_put), int from, int to, bool is_put)
{
    double begin = now();
    move(from, to, is_put);
    return now() - begin;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void measure(int from, int to, bool is_put, int reps)
{
    static const char *const names[] = {"host", "device"};
    double whole[reps_max], each[reps_max], ratio[reps_max];
    for (int i = 0; i < reps; i++) {
        whole[i] = time_of(all_rows, from, to, is_put);
        each[i] = time_of(each_row, from, to, is_put);
        ratio[i] = each[i] / whole[i];
    }
    printf("%-4s %-6s %-6s %12.0f %12.0f %8.1f\n", is_put ? "put" : "get", names[from], names[to],
           median(whole, reps), median(each, reps), median(ratio, reps));
}

/* ---- the job ---- */

static void bind_device(size_t size)
{
    gex_MK_Create_args_t args = {.gex_class = GEX_MK_CLASS_CUDA_UVA};
    gex_MK_t kind;
    gex_Segment_t segment;
    if (gex_MK_Create(&kind, client, &args, 0) != GASNET_OK ||
        gex_Segment_Create(&segment, client, NULL, size, kind, 0) != GASNET_OK ||
        gex_EP_Create(&eps[device], client, GEX_EP_CAPABILITY_RMA, 0) != GASNET_OK ||
        gex_EP_BindSegment(eps[device], segment, 0) != GASNET_OK)
        rows_fail("no device memory; run it as softgpu run does");
    mine[device] = gex_Segment_QueryAddr(segment);
    if (gex_EP_PublishBoundSegment(tm, &eps[device], 1, 0) != GASNET_OK)
        rows_fail("gex_EP_PublishBoundSegment");
}

static void find_peer(void)
{
    for (int e = 0; e < 2; e++) {
        void *base;
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(eps[0], (gex_EP_Index_t)e), peer,
                                                  &base, NULL, NULL, 0));
        theirs[e] = base;
    }
}

int main(int argc, char **argv)
{
    gex_Segment_t segment;
    if (gex_Client_Init(&client, &eps[0], &tm, "rows", &argc, &argv, 0) != GASNET_OK)
        return 1;
    row = argc > 1 ? strtoul(argv[1], NULL, 0) : row;
    rows = argc > 2 ? strtoul(argv[2], NULL, 0) : rows;
    int reps = argc > 3 ? atoi(argv[3]) : 9;
    if (gex_TM_QuerySize(tm) != 2 || row < 1 || rows < 1 || reps < 1 || reps > reps_max)
        rows_fail("two ranks, at least one byte and one row, 1 to 100 repetitions");
    size_t size = (2 * row * rows + GASNET_PAGESIZE) / GASNET_PAGESIZE * GASNET_PAGESIZE;
    if (gex_Segment_Attach(&segment, tm, size) != GASNET_OK)
        rows_fail("gex_Segment_Attach");
    peer = 1 - gex_TM_QueryRank(tm);
    mine[host] = gex_Segment_QueryAddr(segment);
    bind_device(size);
    find_peer();
    barrier();
    for (int mix = 1; peer == 1 && mix < 4; mix++)
        for (int is_put = 1; is_put >= 0; is_put--)
            measure(mix & 1, mix >> 1, is_put, reps);
    barrier();
    gasnet_exit(0);
}
