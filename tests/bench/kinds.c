/* SPDX-License-Identifier: BSD-3-Clause */
/* kinds staged|ipc [REPETITIONS] - transfers between memory of two devices, rank 0 to rank 1 and
 * back, compared with their parts, in one run:
 *
 *     staged   several transfers in flight, beside copies of the driver to host memory, and beside
 *              puts between host segments: the slower of both is the limit of a pipeline
 *     ipc      one transfer, beside one copy within the device
 *
 * Prints medians over the repetitions; a ratio is of one repetition. Two processes, one thread. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gasnet_coll.h>
#include <gasnet_mk.h>

#include "tests/job/accelerator.h"

enum {
    in_flight = 4,
    reps_max = 100,
    segment_size = 64 << 20, /* two halves: sources and destinations */
    repetition = 16 << 20    /* bytes moved, at least */
};

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm, host, device;
static gex_Rank_t peer;
static char *host_mine, *host_theirs, *device_mine, *device_theirs;

static _Noreturn void bench_fail(const char *what)
{
    fprintf(stderr, "kinds: %s\n", what);
    gasnet_exit(1);
    abort();
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what is measured: `count` transfers of `size` bytes, from half to half ---- */

static char *source(char *base, size_t size, int i)
{
    return base + (size_t)(i % in_flight) * size;
}

static char *target(char *base, size_t size, int i)
{
    return base + segment_size / 2 + (size_t)(i % in_flight) * size;
}

static void puts_between(gex_TM_t pair, char *from, char *to, size_t size, int count)
{
    gex_Event_t events[in_flight] = {GEX_EVENT_INVALID};
    for (int i = 0; i < count; i++) {
        gex_Event_Wait(events[i % in_flight]);
        events[i % in_flight] = gex_RMA_PutNB(pair, peer, target(to, size, i),
                                              source(from, size, i), size, GEX_EVENT_DEFER, 0);
    }
    for (int i = 0; i < in_flight; i++)
        gex_Event_Wait(events[i]);
}

static void host_puts(size_t size, int count)
{
    puts_between(host, host_mine, host_theirs, size, count);
}

static void device_puts(size_t size, int count)
{
    puts_between(device, device_mine, device_theirs, size, count);
}

static void device_gets(size_t size, int count)
{
    gex_Event_t events[in_flight] = {GEX_EVENT_INVALID};
    for (int i = 0; i < count; i++) {
        gex_Event_Wait(events[i % in_flight]);
        events[i % in_flight] = gex_RMA_GetNB(device, target(device_mine, size, i), peer,
                                              source(device_theirs, size, i), size, 0);
    }
    for (int i = 0; i < in_flight; i++)
        gex_Event_Wait(events[i]);
}

static void device_put_alone(size_t size, int count)
{
    for (int i = 0; i < count; i++)
        gex_RMA_PutBlocking(device, peer, target(device_theirs, size, i),
                            source(device_mine, size, i), size, 0);
}

static void device_get_alone(size_t size, int count)
{
    for (int i = 0; i < count; i++)
        gex_RMA_GetBlocking(device, target(device_mine, size, i), peer,
                            source(device_theirs, size, i), size, 0);
}

static void copies_out(size_t size, int count)
{
    for (int i = 0; i < count; i++)
        acc_read(0, target(host_mine, size, i), source(device_mine, size, i), size);
}

static void copies_within(size_t size, int count)
{
    for (int i = 0; i < count; i++)
        acc_copy(0, target(device_mine, size, i), source(device_mine, size, i), size);
}

/* MB/s */
static double speed(void (*transfers)(size_t size, int count), size_t size)
{
    int count = (int)(repetition / size);
    double begin = now();
    transfers(size, count);
    return (double)size * count / (now() - begin) / 1e6;
}

/* ---- medians ---- */

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

static void (*const rows[2][4])(size_t size, int count) = {
    {copies_out, host_puts, device_puts, device_gets},
    {copies_within, copies_within, device_put_alone, device_get_alone}};

static void measure(bool is_ipc, size_t size, int reps)
{
    static double speeds[4][reps_max], ratios[2][reps_max];
    const double aim = is_ipc ? 0.9 : 0.8;
    for (int r = -1; r < reps; r++) /* the first one is not counted */
        for (int i = 0; i < 4; i++) {
            double mbs = speed(rows[is_ipc][i], size);
            int at = r < 0 ? 0 : r;
            speeds[i][at] = mbs;
            double limit = speeds[0][at] < speeds[1][at] ? speeds[0][at] : speeds[1][at];
            if (i >= 2)
                ratios[i - 2][at] = mbs / limit;
        }
    printf("%-8s %10zu", is_ipc ? "ipc" : "staged", size);
    for (int i = 0; i < 4; i++)
        printf(" %10.0f", median(speeds[i], reps));
    double put = median(ratios[0], reps), get = median(ratios[1], reps);
    printf(" %8.2f %8.2f %8.2f  %s\n", put, get, aim, put >= aim && get >= aim ? "met" : "missed");
    fflush(stdout);
}

/* ---- */

static void *known(gex_TM_t pair)
{
    void *owner = NULL;
    uintptr_t size;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, peer, &owner, NULL, &size, 0));
    return owner;
}

static void start(int *argc, char ***argv)
{
    gex_Segment_t segment;
    gex_MK_t kind;
    gex_EP_t other;
    if (gex_Client_Init(&client, &ep, &tm, "kinds", argc, argv, 0) || gex_TM_QuerySize(tm) != 2 ||
        gex_Segment_Attach(&segment, tm, segment_size))
        bench_fail("can't start on two processes");
    peer = 1 - gex_TM_QueryRank(tm);
    host = tm;
    host_mine = gex_Segment_QueryAddr(segment);
    memset(host_mine, 1, segment_size);
    host_theirs = known(tm);
    acc_open();
    const gex_MK_Create_args_t args = acc_args(0);
    if (gex_MK_Create(&kind, client, &args, 0) ||
        gex_Segment_Create(&segment, client, NULL, segment_size, kind, 0) ||
        gex_EP_Create(&other, client, GEX_EP_CAPABILITY_RMA, 0) ||
        gex_EP_BindSegment(other, segment, 0) || gex_EP_PublishBoundSegment(tm, &other, 1, 0))
        bench_fail("there is no segment in memory of a device");
    device = gex_TM_Pair(other, gex_EP_QueryIndex(other));
    device_mine = gex_Segment_QueryAddr(segment);
    device_theirs = known(device);
    for (size_t at = 0; at < segment_size; at += 1 << 20) /* its pages are there */
        acc_write(0, device_mine + at, host_mine, 1 << 20);
    gex_Coll_BarrierBlocking(tm, 0);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {256 << 10, 1 << 20, 4 << 20};
    start(&argc, &argv);
    int reps = argc > 2 ? atoi(argv[2]) : 9;
    if (argc < 2 || (strcmp(argv[1], "staged") && strcmp(argv[1], "ipc")) || reps < 1 ||
        reps > reps_max) {
        fprintf(stderr, "usage: kinds staged|ipc [REPETITIONS]\n");
        gasnet_exit(2);
    }
    /* softgpu's threads need the CPUs, which waiting ranks would occupy. */
    if (!strcmp(argv[1], "staged"))
        gasnet_set_waitmode(GASNET_WAIT_BLOCK);
    if (peer == 1)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            measure(!strcmp(argv[1], "ipc"), sizes[i], reps);
    gex_Coll_BarrierBlocking(tm, 0);
    gasnet_exit(0);
}
