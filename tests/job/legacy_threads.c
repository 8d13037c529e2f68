/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet-1 from several threads at once (PAR): implicit operations of each thread are its own, the
 * handle of a value may be waited for by another thread, fills share their blocks, and the two
 * halves of a named barrier may come from different threads. Each thread owns a part of its rank's
 * slots; a mutex and a condition protect handles and barriers that threads pass on. */
#include "config.h"

#include "legacy.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 60, PART = 4096, CELLS = 8 };

static gasnet_seginfo_t *segments;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turns; /* barriers that were notified, times two, plus those waited for */
    gasnet_valget_handle_t handle[THREADS];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static char *part(gasnet_node_t node, int thread)
{
    return (char *)segments[node].addr + (job.rank * (size_t)THREADS + (size_t)thread) * PART;
}

/* A thread that sleeps does not poll, so waits are kept short here. */
static void wait_for_turn(int turn)
{
    pthread_mutex_lock(&shared.lock);
    while (shared.turns != turn)
        pthread_cond_wait(&shared.changed, &shared.lock);
    pthread_mutex_unlock(&shared.lock);
}

static void next_turn(void)
{
    pthread_mutex_lock(&shared.lock);
    shared.turns++;
    pthread_cond_broadcast(&shared.changed);
    pthread_mutex_unlock(&shared.lock);
}

/* Threads 0 and 1 take turns: one notifies, the other waits. */
static void half_a_barrier(int thread, int round)
{
    wait_for_turn(2 * round + thread);
    if (thread == 0)
        gasnet_barrier_notify(round, 0);
    else
        CHECK(gasnet_barrier_wait(round, 0) == GASNET_OK);
    next_turn();
    if (thread == 0)
        wait_for_turn(2 * round + 2);
}

static void implicit_operations(gasnet_node_t to, int thread, int round)
{
    gasnet_register_value_t back[CELLS],
        value = (gasnet_register_value_t)(round * THREADS + thread);

    for (int i = 0; i < CELLS; i++)
        gasnet_put_nbi_val(to, part(to, thread) + i * 8, value + (unsigned)i, 8);
    gasnet_memset_nbi(to, part(to, thread) + CELLS * 8, round, 3 * CELLS);
    gasnet_wait_syncnbi_puts();
    gasnet_get_nbi(back, to, part(to, thread), sizeof back);
    gasnet_wait_syncnbi_gets();
    for (int i = 0; i < CELLS; i++)
        CHECK(back[i] == value + (unsigned)i, "thread %d, cell %d", thread, i);
    gasnet_get(back, to, part(to, thread) + CELLS * 8, 3 * CELLS);
    for (int i = 0; i < 3 * CELLS; i++)
        CHECK(((char *)back)[i] == (char)round, "thread %d, byte %d", thread, i);
}

/* A thread syncs the handle that it finds in its neighbour's slot. */
static void foreign_handles(gasnet_node_t to, int thread, int round)
{
    int other = (thread + 1) % THREADS;
    gasnet_valget_handle_t found;

    gasnet_put_val(to, part(to, thread) + 1024, 77, 2);
    gasnet_valget_handle_t mine = gasnet_get_nb_val(to, part(to, thread) + 1024, 2);
    pthread_mutex_lock(&shared.lock);
    found = shared.handle[other];
    shared.handle[other] = NULL;
    if (!shared.handle[thread]) {
        shared.handle[thread] = mine;
        mine = NULL;
    }
    pthread_mutex_unlock(&shared.lock);
    if (found)
        CHECK(gasnet_wait_syncnb_valget(found) == 77, "round %d", round);
    if (mine)
        CHECK(gasnet_wait_syncnb_valget(mine) == 77, "round %d", round);
}

static void *run(void *number)
{
    int thread = (int)(intptr_t)number;

    for (int round = 0; round < ROUNDS; round++) {
        gasnet_node_t to = (job.rank + (unsigned)(round + thread)) % job.size;

        implicit_operations(to, thread, round);
        foreign_handles(to, thread, round);
        if (thread < 2)
            half_a_barrier(thread, round);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    uintptr_t size;

    job_deadline();
    CHECK(gasnet_init(&argc, &argv) == GASNET_OK);
    job.rank = gasnet_mynode();
    job.size = gasnet_nodes();
    size = job.size * (uintptr_t)THREADS * PART + GASNET_PAGESIZE - 1;
    size -= size % GASNET_PAGESIZE;
    CHECK(gasnet_attach(NULL, 0, size, 0) == GASNET_OK);
    segments = job_memory(job.size * sizeof *segments);
    CHECK(gasnet_getSegmentInfo(segments, (int)job.size) == GASNET_OK);
    for (intptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, run, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        if (shared.handle[i])
            CHECK(gasnet_wait_syncnb_valget(shared.handle[i]) == 77);
    CHECK(gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED) == GASNET_OK);
    if (job.rank == 0)
        printf("ok\n");
    gasnet_exit(0);
}
