/* SPDX-License-Identifier: BSD-3-Clause */
/* The two processes of the benchmark: start-up, exchange of small records, commands from rank 0 to
 * rank 1. Owns bench_job. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "pin.h"

struct bench_job bench_job;

static char exchanged[512];
static volatile int exchanges_in;
static volatile struct bench_command commanded;
static volatile int commands_in;

void bench_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "bench: rank %u: ", (unsigned)bench_job.me);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    gasnet_exit(1);
}

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void bench_pin(void)
{
    bench_pin_to((int)bench_job.me);
}

static void on_exchange(gex_Token_t token, void *data, size_t nbytes)
{
    (void)token;
    memcpy(exchanged, data, nbytes);
    exchanges_in++;
}

static void on_command(gex_Token_t token, gex_AM_Arg_t index, gex_AM_Arg_t raw, gex_AM_Arg_t count)
{
    (void)token;
    commanded.index = index;
    commanded.raw = raw;
    commanded.count = count;
    commands_in++;
}

static gex_AM_Entry_t table[] = {
    {0, (gex_AM_Fn_t)on_exchange, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "exchange"},
    {0, (gex_AM_Fn_t)on_command, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 3, NULL, "command"},
};

static void attach(void)
{
    gex_Segment_t segment;
    void *theirs = NULL;
    uintptr_t size = 0;
    if (gex_Segment_Attach(&segment, bench_job.tm, BENCH_SEGMENT_SIZE))
        bench_die("no segment of %zu bytes", (size_t)BENCH_SEGMENT_SIZE);
    bench_job.mine = gex_Segment_QueryAddr(segment);
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(bench_job.tm, bench_job.peer, &theirs, NULL, &size, 0));
    bench_job.theirs = theirs;
    /* Page faults must not be in any measurement. */
    memset(bench_job.mine, 1, BENCH_SEGMENT_SIZE);
}

void bench_job_start(int *argc, char ***argv)
{
    gex_Client_t client;
    if (gex_Client_Init(&client, &bench_job.ep, &bench_job.tm, "bench", argc, argv, 0))
        exit(1);
    bench_job.me = gex_TM_QueryRank(bench_job.tm);
    bench_job.peer = 1 - bench_job.me;
    if (gex_TM_QuerySize(bench_job.tm) != 2) {
        if (bench_job.me == 0)
            fprintf(stderr, "bench: needs 2 processes, has %u: start it with gasnetrun_ibv -n 2\n",
                    (unsigned)gex_TM_QuerySize(bench_job.tm));
        gasnet_exit(2);
    }
    if (gex_EP_RegisterHandlers(bench_job.ep, table, sizeof(table) / sizeof(*table)) ||
        gex_EP_RegisterHandlers(bench_job.ep, bench_am_table, bench_am_count))
        bench_die("handlers can't be registered");
    attach();
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
}

void bench_exchange(const void *mine, void *theirs, size_t size)
{
    static int exchanges;
    gex_AM_RequestMedium(bench_job.tm, bench_job.peer, table[0].gex_index, mine, size,
                         GEX_EVENT_NOW, 0);
    exchanges++;
    GASNET_BLOCKUNTIL(exchanges_in == exchanges);
    memcpy(theirs, exchanged, size);
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
}

void bench_command_send(struct bench_command command)
{
    gex_AM_RequestShort(bench_job.tm, bench_job.peer, table[1].gex_index, 0, command.index,
                        command.raw, command.count);
}

void bench_obey(double (*run)(struct bench_command command))
{
    for (int commands = 1;; commands++) {
        GASNET_BLOCKUNTIL(commands_in == commands);
        struct bench_command command = commanded;
        if (command.index < 0)
            return;
        run(command);
    }
}
