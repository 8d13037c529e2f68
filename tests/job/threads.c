/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads start and end: ended threads do not count against GASNET_MAX_THREADS, live ones do. The
 * first thread owns `job`; the others put and get, and wait for each other under a barrier.
 *
 * Usage: threads AT_ONCE [RUNS]: AT_ONCE threads beside the first, alive at the same time,
 * RUNS times. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_barrier_t all_here;

static void *use_all(void *number)
{
    size_t offset = 8 + 8 * (size_t)(uintptr_t)number;
    gex_Rank_t peer = (job.rank + 1) % job.size;
    uint64_t value = offset + job.rank, back = 0;
    gex_Event_t event;

    event = gex_RMA_PutNB(job.tm, peer, job_remote(peer, offset), &value, sizeof value,
                          GEX_EVENT_NOW, 0);
    pthread_barrier_wait(&all_here);
    gex_Event_Wait(event);
    gex_RMA_GetNBI(job.tm, &back, peer, job_remote(peer, offset), sizeof back, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(back == value, "thread at %zu", offset);
    pthread_barrier_wait(&all_here);
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned at_once = argc > 1 ? (unsigned)atoi(argv[1]) : 3, runs = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t *id = job_memory(at_once * sizeof *id);
    int evaluated = 0;

    job_start(&argc, &argv, GASNET_PAGESIZE);
    CHECK(gex_System_QueryMaxThreads() == (uint64_t)job_number("GASNET_MAX_THREADS", 256));
    GASNET_BLOCKUNTIL(evaluated++ > 0);
    CHECK(pthread_barrier_init(&all_here, NULL, at_once) == 0);
    for (unsigned run = 0; run < runs; run++) {
        for (unsigned i = 0; i < at_once; i++)
            CHECK(pthread_create(&id[i], NULL, use_all, (void *)(uintptr_t)i) == 0);
        for (unsigned i = 0; i < at_once; i++)
            CHECK(pthread_join(id[i], NULL) == 0);
    }
    pthread_barrier_destroy(&all_here);
    free(id);
    job_end();
}
