/* SPDX-License-Identifier: BSD-3-Clause */
/* Eight threads of each rank (one in SEQ) mix every call of the interface for some seconds, with
 * verified data: active messages, puts and gets, GASNet-1 (mix_*.c have them), and between them one
 * thread of each rank goes through barriers of every kind. Made for the thread sanitizer. usage:
 * mix [--seconds N] [--threads T] [--seed S]. Rank 0 decides which round is the last. */
#include "config.h"

#include "random_mix.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ACTIONS_A_ROUND = 20, BURST = 40 };

static unsigned seconds = 2, threads = MAX_THREADS;
static uint64_t seed = 1;
static struct worker workers[MAX_THREADS];
static atomic_int over;     /* threads begin no new action */
static atomic_uint at_work; /* threads beside the first */

unsigned mix_below(struct worker *w, unsigned limit)
{
    return (unsigned)(job_random(&w->random) % limit);
}

/* ---- where things are ---- */

static void *cells(gex_Rank_t owner, gex_Rank_t writer, unsigned thread)
{
    return job_remote(owner, CONTROL + (size_t)writer * PER_WRITER + (size_t)thread * PER_THREAD);
}

void *mix_request_cell(gex_Rank_t owner, gex_Rank_t writer, unsigned thread, unsigned slot)
{
    return (char *)cells(owner, writer, thread) + (size_t)slot * CELL;
}

void *mix_reply_cell(gex_Rank_t owner, unsigned thread, unsigned slot)
{
    return (char *)cells(owner, owner, thread) + (size_t)(WINDOW + slot) * CELL;
}

void *mix_area(gex_Rank_t owner, const struct worker *w)
{
    return (char *)cells(owner, job.rank, w->id) + (size_t)2 * WINDOW * CELL;
}

/* ---- threads ---- */

static void act(struct worker *w)
{
    static const struct mix_part *const parts[] = {&mix_am,  &mix_am,     &mix_rma,
                                                   &mix_rma, &mix_legacy, &mix_misc};
    const struct mix_part *part = parts[mix_below(w, sizeof parts / sizeof *parts)];

    part->actions[mix_below(w, part->count)](w, mix_below(w, job.size));
}

/* A thread that starts and ends: its place in the library becomes free. */
static void *burst(void *argument)
{
    struct worker *w = argument;

    for (int i = 0; i < BURST && !atomic_load(&over); i++)
        act(w);
    mix_am_finish(w);
    return NULL;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    pthread_t child;

    while (!atomic_load(&over)) {
        if (w->id % 2) {
            CHECK(pthread_create(&child, NULL, burst, w) == 0);
            pthread_join(child, NULL);
        } else
            act(w);
    }
    mix_am_finish(w);
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

/* ---- rounds of the first thread ---- */

static uint64_t *control(unsigned word)
{
    return (uint64_t *)job.base + word;
}

static void some_actions(struct worker *w)
{
    for (int i = 0; i < ACTIONS_A_ROUND; i++)
        act(w);
}

/* The kind follows from the round, so that all ranks enter the same. */
static void barrier(struct worker *w, unsigned round)
{
    int named = round % 2 == 0, flags = named ? 0 : GASNET_BARRIERFLAG_ANONYMOUS, status, value;
    gex_Event_t event;

    if (round % 5 == 4) {
        event = gex_Coll_BarrierNB(job.tm, 0);
        some_actions(w);
        gex_Event_Wait(event);
        return;
    }
    gasnet_barrier_notify((int)round, flags);
    some_actions(w);
    if (round % 3)
        status = gasnet_barrier_wait((int)round, flags);
    else
        while ((status = gasnet_barrier_try((int)round, flags)) == GASNET_ERR_NOT_READY)
            gasnet_AMPoll();
    CHECK(status == GASNET_OK, "round %u: %s", round, gasnet_ErrorName(status));
    CHECK(gasnet_barrier_result(&value) == !named && (!named || value == (int)round));
}

/* Announces the last round to all ranks, one round ahead. */
static void announce(unsigned last)
{
    for (gex_Rank_t to = 0; to < job.size; to++)
        gex_RMA_PutBlockingVal(job.tm, to, job_remote(to, 0), last, 8, 0);
}

static unsigned first_thread(struct worker *w)
{
    time_t end = time(NULL) + (time_t)seconds;
    unsigned round = 1;
    int announced = 0;

    for (;; round++) {
        if (job.rank == 0 && !announced && time(NULL) >= end) {
            announce(round);
            announced = 1;
        }
        some_actions(w);
        barrier(w, round);
        if (__atomic_load_n(control(0), __ATOMIC_ACQUIRE) == round)
            return round;
    }
}

/* Answers requests of other ranks until all have finished. */
static unsigned run(void)
{
    pthread_t id[MAX_THREADS];
    unsigned rounds;

    atomic_store(&at_work, threads - 1);
    for (unsigned i = 0; i < threads; i++) {
        workers[i].id = i;
        workers[i].random = job_mix(seed, job.rank * MAX_THREADS + i);
        if (i > 0)
            CHECK(pthread_create(&id[i], NULL, work, &workers[i]) == 0);
    }
    rounds = first_thread(&workers[0]);
    atomic_store(&over, 1);
    mix_am_finish(&workers[0]);
    GASNET_BLOCKUNTIL(atomic_load(&at_work) == 0);
    for (unsigned i = 1; i < threads; i++)
        pthread_join(id[i], NULL);
    return rounds;
}

/* ---- nothing was lost, nothing came twice ---- */

static uint64_t wait_for_notes(uint64_t expected)
{
    uint64_t count, sum;

    do {
        gasnet_AMPoll();
        mix_am_totals(&count, &sum);
    } while (count < expected);
    CHECK(count == expected, "%llu notes came, not %llu", (unsigned long long)count,
          (unsigned long long)expected);
    return sum;
}

/* All notes go to the next rank, so that each knows how many come from its predecessor. */
static void compare_notes(void)
{
    uint64_t mine[2] = {0, 0};
    gex_Rank_t next = (job.rank + 1) % job.size;

    for (unsigned i = 0; i < threads; i++) {
        mine[0] += workers[i].notes;
        mine[1] += (uint64_t)workers[i].notes * (workers[i].notes + 1) / 2;
    }
    gex_RMA_PutBlocking(job.tm, next, job_remote(next, 64), mine, sizeof mine, 0);
    job_barrier();
    CHECK(wait_for_notes(*control(8)) == *control(9));
}

/* ---- start ---- */

static void start(int *argc, char ***argv)
{
    uintptr_t size;

    job_deadline();
    CHECK(gasnet_init(argc, argv) == GASNET_OK);
    job.rank = gasnet_mynode();
    job.size = gasnet_nodes();
    CHECK(job.size <= MAX_RANKS);
    size = CONTROL + job.size * (uintptr_t)PER_WRITER + GASNET_PAGESIZE - 1;
    CHECK(gasnet_attach(NULL, 0, size - size % GASNET_PAGESIZE, 0) == GASNET_OK);
    gasnet_QueryGexObjects(&job.client, &job.ep, &job.tm, &job.segment);
    job_use(job.segment);
}

static void read_arguments(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        unsigned long value = strtoul(argv[i + 1], NULL, 0);

        if (!strcmp(argv[i], "--seconds"))
            seconds = (unsigned)value;
        else if (!strcmp(argv[i], "--threads"))
            threads = (unsigned)value;
        else if (!strcmp(argv[i], "--seed"))
            seed = value;
        else
            job_fail(__FILE__, __LINE__, argv[i], "no such option");
    }
#if !GASNET_PAR
    threads = 1;
#endif
    CHECK(threads >= 1 && threads <= MAX_THREADS);
}

int main(int argc, char **argv)
{
    unsigned rounds;

    start(&argc, &argv);
    read_arguments(argc, argv);
    mix_am_start();
    mix_rma_start();
    job_phase("%u threads, seed %llu", threads, (unsigned long long)seed);
    job_barrier();
    rounds = run();
    job_phase("comparing notes");
    compare_notes();
    if (job.rank == 0)
        printf("%u rounds, seed %llu\n", rounds, (unsigned long long)seed);
    job_end();
}
