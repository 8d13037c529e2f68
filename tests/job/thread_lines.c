/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that put to and get from peers of different lanes touch no cache line that the other one
 * writes, except each 16th time, when they look for messages of other peers. Two threads of rank 0
 * do the same operations, one after the other, and the lines that both touched are compared. Stacks
 * with thread-local words are left out.
 *
 * Usage: thread_lines [RANK...]: puts to these ranks first, in this order; the first and the last
 * of them are the peers (default 1 and 2). It needs two CPUs, so that rank 0 has several lanes. */
#include "config.h"

#include "job.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "touched_lines.h"

enum {
    threads = 2,
    slot = 4096,   /* of a thread, in each segment */
    runs = 32,     /* of each operation, when watched */
    rare = 3,      /* of these may touch what the other thread writes */
    in_flight = 6, /* one look at the completion queue finds all of them */
    warm = 400     /* operations before the test: softhca maps memory at first use */
};

static struct worker {
    _Alignas(128) pthread_t id;
    gex_Rank_t peer;
    char *here, *there;
    struct touched_lines *lines;
} workers[threads];

static pthread_barrier_t turn;

/* ---- operations ---- */

static void put(const void *worker)
{
    const struct worker *w = worker;
    gex_RMA_PutBlocking(job.tm, w->peer, w->there, w->here, 8, 0);
}

static void get(const void *worker)
{
    const struct worker *w = worker;
    gex_RMA_GetBlocking(job.tm, w->here, w->peer, w->there, 8, 0);
}

static void put_many(const void *worker)
{
    const struct worker *w = worker;
    for (int i = 0; i < in_flight; i++)
        gex_RMA_PutNBI(job.tm, w->peer, w->there, w->here, 8, GEX_EVENT_DEFER, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

static void put_event(const void *worker)
{
    const struct worker *w = worker;
    gex_Event_Wait(gex_RMA_PutNB(job.tm, w->peer, w->there, w->here, 8, GEX_EVENT_NOW, 0));
}

static const struct operation {
    const char *name;
    void (*run)(const void *);
} operations[] = {
    {"blocking puts", put},
    {"blocking gets", get},
    {"many puts in flight", put_many},
    {"puts with events", put_event},
};

enum { operation_count = sizeof operations / sizeof *operations };

/* ---- what was touched ---- */

/* Of code, for addr2line. */
static void print_place(uintptr_t at)
{
    Dl_info info;
    if (dladdr((void *)at, &info) && info.dli_fname)
        fprintf(stderr, " %s+0x%lx", info.dli_fname,
                (unsigned long)(at - (uintptr_t)info.dli_fbase));
    else
        fprintf(stderr, " 0x%lx", (unsigned long)at);
}

static void print_side(const struct touched_line *line)
{
    fprintf(stderr, ", in %u of %d runs, written in %u, by", line->runs, (int)runs,
            line->writing_runs);
    print_place(line->written_by ? line->written_by : line->read_by);
}

static bool is_shared(const struct touched_line *one, const struct touched_line *other)
{
    return other && ((one->writing_runs > rare && other->runs > rare) ||
                     (one->runs > rare && other->writing_runs > rare));
}

static unsigned count_shared(const char *name)
{
    const struct touched_lines *all = workers[0].lines;
    unsigned shared = 0;
    for (size_t i = 0; i < all->count; i++) {
        const struct touched_line *one = &all->lines[i];
        const struct touched_line *other = touched_lines_find(workers[1].lines, one->line);
        if (!is_shared(one, other))
            continue;
        fprintf(stderr, "%s: both threads touch line 0x%lx", name, (unsigned long)one->line);
        print_side(one);
        print_side(other);
        fprintf(stderr, "\n");
        shared++;
    }
    CHECK(all->count > 10, "%s touched %zu lines", name, all->count);
    return shared;
}

/* ---- threads ---- */

static void *work(void *argument)
{
    struct worker *w = argument;
    for (int n = 0; n < warm; n++)
        put(w);
    for (int i = 0; i < operation_count; i++)
        for (int t = 0; t < threads; t++) {
            pthread_barrier_wait(&turn);
            for (int n = 0; n < runs && t == 0; n++) /* at the same time */
                operations[i].run(w);
            pthread_barrier_wait(&turn);
            if (w == &workers[t])
                touched_lines_watch(w->lines, runs, operations[i].run, w);
        }
    return NULL;
}

/* Connects. */
static void put_first(int count, char **ranks)
{
    for (int i = 0; i < count; i++) {
        gex_Rank_t rank = (gex_Rank_t)atoi(ranks[i]);
        CHECK(rank > 0 && rank < job.size);
        gex_RMA_PutBlocking(job.tm, rank, job_remote(rank, 0), job.base, 8, 0);
    }
    workers[0].peer = count ? (gex_Rank_t)atoi(ranks[0]) : 1;
    workers[1].peer = count ? (gex_Rank_t)atoi(ranks[count - 1]) : 2;
}

static unsigned watch_all(void)
{
    unsigned shared = 0;
    CHECK(pthread_barrier_init(&turn, NULL, threads + 1) == 0);
    for (int i = 0; i < threads; i++) {
        size_t offset = (size_t)(1 + i) * slot;
        workers[i].here = job.base + offset;
        workers[i].there = job_remote(workers[i].peer, offset);
        workers[i].lines = touched_lines_new();
        CHECK(pthread_create(&workers[i].id, NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < 2 * threads * operation_count; i++) {
        pthread_barrier_wait(&turn);
        if (i > 0 && i % (2 * threads) == 0)
            shared += count_shared(operations[i / (2 * threads) - 1].name);
    }
    for (int i = 0; i < threads; i++)
        CHECK(pthread_join(workers[i].id, NULL) == 0);
    return shared + count_shared(operations[operation_count - 1].name);
}

int main(int argc, char **argv)
{
    unsigned shared = 0;
    job_start(&argc, &argv, (size_t)(1 + threads) * slot);
    CHECK(job.size > threads);
    if (job.rank == 0) {
        put_first(argc - 1, argv + 1);
        shared = watch_all();
    }
    CHECK(shared == 0, "%u lines", shared);
    job_end();
}
