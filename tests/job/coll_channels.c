/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_channels [asleep] - collectives through shared memory while teams are created and destroyed:
 * two teams that exist at the same time never use the same memory, also after teams with several
 * members in a process, and with more teams than GASNET_COLL_CHANNELS. asleep: a collective wakes
 * ranks that sleep in it; without that a sleeper wakes up only after 20 ms. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gasnet.h>
#include <gasnet_coll.h>

#include "job.h"

enum { teams = 6, rounds = 40 };

static gex_TM_t split(void)
{
    gex_TM_t tm;
    gex_TM_Split(&tm, job.tm, 0, (int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    return tm;
}

/* Team t is a few collectives ahead of team t + 1, and none has waited for another. */
static void reduce_on_all(const gex_TM_t *tms, unsigned count)
{
    static uint64_t in[rounds][teams], out[rounds][teams];
    static gex_Event_t events[rounds][teams];
    for (unsigned i = 0; i < rounds + 3 * count; i++)
        for (unsigned t = 0; t < count; t++) {
            unsigned r = i - 3 * t;
            if (r >= rounds)
                continue;
            in[r][t] = 1000 * r + t + job.rank;
            events[r][t] = gex_Coll_ReduceToAllNB(tms[t], &out[r][t], &in[r][t], GEX_DT_U64, 8, 1,
                                                  GEX_OP_ADD, NULL, NULL, 0);
        }
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned t = 0; t < count; t++) {
            uint64_t sum = (uint64_t)job.size * (1000 * r + t) + job.size * (job.size - 1) / 2;
            gex_Event_Wait(events[r][t]);
            CHECK(out[r][t] == sum, "team %u, round %u", t, r);
        }
}

static void reduce_on_several(unsigned count)
{
    gex_TM_t tms[teams];
    job_phase("%u teams", count);
    for (unsigned t = 0; t < count; t++)
        tms[t] = split();
    reduce_on_all(tms, count);
    for (unsigned t = 0; t < count; t++)
        gex_TM_Destroy(tms[t], NULL, 0);
}

/* Destroys the second member when a new team already has the channel of the first. */
static void each_process_is_two_members(void)
{
    gex_EP_t second;
    gex_TM_t both[2], tms[3];
    gex_EP_Location_t *args = job_memory(2 * job.size * sizeof *args);
    job_phase("two members in each process");
    CHECK(gex_EP_Create(&second, job.client, GEX_EP_CAPABILITY_ALL, 0) == GASNET_OK);
    for (gex_Rank_t i = 0; i < 2 * job.size; i++) {
        args[i].gex_rank = i / 2;
        args[i].gex_ep_index = i % 2 ? gex_EP_QueryIndex(second) : 0;
    }
    gex_TM_Create(both, 2, job.tm, args, 2 * job.size, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    tms[0] = split();
    job_barrier();
    gex_TM_Destroy(both[0], NULL, GEX_FLAG_GLOBALLY_QUIESCED);
    tms[1] = split();
    job_barrier();
    gex_TM_Destroy(both[1], NULL, GEX_FLAG_GLOBALLY_QUIESCED);
    tms[2] = split();
    reduce_on_all(tms, 3);
    for (unsigned t = 0; t < 3; t++)
        gex_TM_Destroy(tms[t], NULL, 0);
    free(args);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One rank at a time comes late, and all others wait for it. A rank that is not woken sleeps for 20
 * ms. The limit is for the median, so that a busy machine passes too. */
static void sleepers_are_woken(size_t nbytes, double most)
{
    enum { times = 51 };
    static double ms[times];
    job_phase("asleep, %zu bytes", nbytes);
    char *to = job_memory(nbytes), *from = job_memory(nbytes);
    memset(from, 0, nbytes);
    for (unsigned i = 0; i < times; i++) {
        if (i % job.size == job.rank)
            usleep(500);
        double began = now_ms();
        gex_Event_Wait(gex_Coll_ReduceToAllNB(job.tm, to, from, GEX_DT_U64, 8, nbytes / 8,
                                              GEX_OP_ADD, NULL, NULL, 0));
        gex_Event_Wait(gex_Coll_BroadcastNB(job.tm, i % job.size, to, from, nbytes, 0));
        ms[i] = now_ms() - began;
    }
    qsort(ms, times, sizeof *ms, compare);
    CHECK(ms[times / 2] < most, "%zu bytes took %.1f ms", nbytes, ms[times / 2]);
    free(to);
    free(from);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 1 << 20);
    if (argc > 1 && !strcmp(argv[1], "asleep")) {
        gasnet_set_waitmode(GASNET_WAIT_BLOCK);
        double most = argc > 2 ? atof(argv[2]) : 15;
        sleepers_are_woken(8, most);
        sleepers_are_woken(80000, most);
        job_end();
    }
    for (unsigned count = 1; count <= teams; count++)
        reduce_on_several(count);
    each_process_is_two_members();
    reduce_on_several(teams);
    job_end();
}
