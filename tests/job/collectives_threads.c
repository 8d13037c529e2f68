/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of each rank start, poll for and sync collectives at the same time, each on a team of
 * its own, and pass events to each other. A poll of any thread advances the collectives of all
 * threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gasnet_coll.h"
#include "job.h"

enum { THREADS = 3, ROUNDS = 30, MOST = 20000 };

static struct work {
    pthread_t thread;
    uint64_t number;
    gex_TM_t tm;
    uint32_t in[MOST], out[MOST], sum[MOST];
} works[THREADS];

/* The same on all ranks. */
static size_t count_of(uint64_t number, uint64_t round)
{
    uint64_t dice = job_mix(number, round);
    return 1 + dice % (dice % 5 ? 100 : MOST - 1);
}

static void check(const struct work *work, uint64_t round, size_t count, gex_Rank_t root)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t sum = 0;
        for (gex_Rank_t r = 0; r < job.size; r++)
            sum += (uint32_t)job_mix(work->number + round, r + i);
        CHECK(work->sum[i] == sum, "sum %zu of %zu in round %d", i, count, (int)round);
        CHECK(work->out[i] == (uint32_t)job_mix(work->number + round, root + i),
              "word %zu of %zu in round %d", i, count, (int)round);
    }
}

static void *run(void *argument)
{
    struct work *work = argument;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        size_t count = count_of(work->number, round);
        gex_Rank_t root = (gex_Rank_t)(round % job.size);
        for (size_t i = 0; i < count; i++)
            work->in[i] = (uint32_t)job_mix(work->number + round, job.rank + i);
        gex_Event_t events[] = {
            gex_Coll_ReduceToAllNB(work->tm, work->sum, work->in, GEX_DT_U32, 4, count, GEX_OP_ADD,
                                   NULL, NULL, 0),
            gex_Coll_BroadcastNB(work->tm, root, work->out, work->in, 4 * count, 0),
            gex_Coll_BarrierNB(work->tm, 0)};
        if (round % 2)
            gex_Event_WaitAll(events, 3, 0);
        else
            for (int i = 3; i-- > 0;)
                gex_Event_Wait(events[i]);
        check(work, round, count, root);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, GASNET_PAGESIZE);
    for (uint64_t t = 0; t < THREADS; t++) {
        works[t].number = 1000 * t;
        gex_TM_Split(&works[t].tm, job.tm, 0, (int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&works[t].thread, NULL, run, &works[t]) == 0);
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_join(works[t].thread, NULL) == 0);
    job_end();
}
