/* SPDX-License-Identifier: BSD-3-Clause */
/* nbrhd_flood COUNT - the rate of Shorts to rank 0 from all other ranks together, COUNT in all, in
 * 1000/s: the median of a few floods. With 2 processes it is the rate of a pair. Ranks are not
 * bound, because there may be more ranks than CPUs. One thread; no locks. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gasnetex.h>

enum { floods = 5 };

static gex_TM_t tm;
static volatile long handled;

static void on_message(gex_Token_t token)
{
    (void)token;
    handled++;
}

static gex_AM_Entry_t table[] = {
    {0, (gex_AM_Fn_t)on_message, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "message"}};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns seconds; only rank 0's count. */
static double flood(long each)
{
    long all = each * (long)(gex_TM_QuerySize(tm) - 1);
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    double began = now();
    if (gex_TM_QueryRank(tm) == 0)
        GASNET_BLOCKUNTIL(handled >= all);
    else
        for (long i = 0; i < each; i++)
            gex_AM_RequestShort(tm, 0, table[0].gex_index, 0);
    double seconds = now() - began;
    handled = 0;
    gex_Event_Wait(gex_Coll_BarrierNB(tm, 0));
    return seconds;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    double seconds[floods];
    if (gex_Client_Init(&client, &ep, &tm, "nbrhd_flood", &argc, &argv, 0) ||
        gex_EP_RegisterHandlers(ep, table, 1))
        return 1;
    long count = argc == 2 ? atol(argv[1]) : 0;
    long senders = (long)gex_TM_QuerySize(tm) - 1;
    if (senders < 1 || count < senders) {
        fprintf(stderr, "usage: gasnetrun_ibv -n N nbrhd_flood COUNT (N from 2, COUNT from N-1)\n");
        gasnet_exit(2);
    }
    flood(count / senders / 4 + 1); /* warms up */
    for (int i = 0; i < floods; i++)
        seconds[i] = flood(count / senders);
    qsort(seconds, floods, sizeof(*seconds), compare);
    if (gex_TM_QueryRank(tm) == 0)
        printf("%.2f\n", 1e-3 * (double)(count / senders * senders) / seconds[floods / 2]);
    gasnet_exit(0);
}
