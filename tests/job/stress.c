/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads of each rank communicate with all ranks at once: requests with and without
 * replies of all categories, puts and gets, events synced by another thread than their own,
 * handlers that share a lock with the threads. Every byte is verified. In SEQ and PARSYNC one
 * thread does it. Usage: stress [ROUNDS]. What the threads share: the counters, under `lock` or
 * atomic. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANKS = 8, MAX_THREADS = 3, CELL = 16384, MAX_LONG = 6000 };
#if GASNET_PAR
enum { THREADS = MAX_THREADS };
#else
enum { THREADS = 1 };
#endif

/* A segment: for each rank and thread a cell for puts, one for Longs, one for the replies' Longs.
 */
enum { CELLS = 3, PER_RANK = MAX_THREADS * CELLS, SEGMENT = MAX_RANKS * PER_RANK * CELL };

static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static unsigned requests_in, sum_in; /* under lock */
static atomic_uint replies[MAX_THREADS];
static gex_AM_Index_t short_index, medium_index, long_index, reply_index;
static unsigned rounds;

/* Events that threads leave for each other. */
static gex_Event_t offered[MAX_THREADS];
static pthread_mutex_t offer_lock = PTHREAD_MUTEX_INITIALIZER;

static void *cell(gex_Rank_t owner, gex_Rank_t writer, unsigned thread, unsigned which)
{
    return job_remote(owner, ((size_t)writer * PER_RANK + thread * CELLS + which) * CELL);
}

/* ---- handlers: run by any thread of the receiver ---- */

static void count(gex_AM_Arg_t number)
{
    gex_HSL_Lock(&lock);
    requests_in++;
    sum_in += (unsigned)number;
    gex_HSL_Unlock(&lock);
}

static void on_short(gex_Token_t token, gex_AM_Arg_t thread, gex_AM_Arg_t number)
{
    count(number);
    gex_AM_ReplyShort1(token, reply_index, 0, thread);
}

static void on_payload(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t thread,
                       gex_AM_Arg_t number)
{
    CHECK_PATTERN(memory, size, (uint64_t)number);
    count(number);
    gex_AM_ReplyShort1(token, reply_index, 0, thread);
}

static void on_reply(gex_Token_t token, gex_AM_Arg_t thread)
{
    (void)token;
    atomic_fetch_add(&replies[thread], 1);
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
        {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
        {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
        {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 4) == GASNET_OK);
    short_index = table[0].gex_index;
    medium_index = table[1].gex_index;
    long_index = table[2].gex_index;
    reply_index = table[3].gex_index;
}

/* ---- threads ---- */

struct worker {
    unsigned id;
    uint64_t random;
    unsigned requests;
    char data[CELL], back[CELL];
};

/* One request at a time and thread, so that the cell of the Long is free when we come back. */
static void message(struct worker *w, gex_Rank_t to, unsigned number)
{
    gex_AM_Arg_t me = (gex_AM_Arg_t)w->id, n = (gex_AM_Arg_t)number;
    size_t size = (size_t)(job_random(&w->random) % MAX_LONG);

    switch (job_random(&w->random) % 3) {
    case 0:
        gex_AM_RequestShort2(job.tm, to, short_index, 0, me, n);
        break;
    case 1:
        job_fill(w->data, size, number);
        gex_AM_RequestMedium2(job.tm, to, medium_index, w->data, size, GEX_EVENT_NOW, 0, me, n);
        break;
    default:
        job_fill(w->data, size, number);
        gex_AM_RequestLong2(job.tm, to, long_index, w->data, size, cell(to, job.rank, w->id, 1),
                            GEX_EVENT_NOW, 0, me, n);
        break;
    }
    w->requests++;
    GASNET_BLOCKUNTIL(atomic_load(&replies[w->id]) == w->requests);
}

/* Puts to our own cell of a random rank, gets back what is there. */
static void put_and_get(struct worker *w, gex_Rank_t to, unsigned number)
{
    void *there = cell(to, job.rank, w->id, 0);
    size_t size = (size_t)(job_random(&w->random) % CELL);
    gex_Event_t leaf, root;

    job_fill(w->data, size, number * 7u);
    root = gex_RMA_PutNB(job.tm, to, there, w->data, size, number % 2 ? &leaf : GEX_EVENT_NOW, 0);
    if (number % 2)
        gex_Event_Wait(leaf);
    memset(w->data, 0xee, size);
    gex_Event_Wait(root);
    gex_Event_Wait(gex_RMA_GetNB(job.tm, w->back, to, there, size, 0));
    CHECK_PATTERN(w->back, size, number * 7u);
}

/* A put of one thread, synced by whichever thread comes next. Its source stays as it is. */
static void leave_event(struct worker *w, gex_Rank_t to)
{
    static const char source[64] = "read by the device until somebody syncs";
    gex_Event_t before, mine;

    mine = gex_RMA_PutNB(job.tm, to, cell(to, job.rank, w->id, 2), source, sizeof source,
                         GEX_EVENT_DEFER, 0);
    pthread_mutex_lock(&offer_lock);
    before = offered[(w->id + 1) % THREADS];
    offered[(w->id + 1) % THREADS] = GEX_EVENT_INVALID;
    if (offered[w->id] == GEX_EVENT_INVALID) {
        offered[w->id] = mine;
        mine = GEX_EVENT_INVALID;
    }
    pthread_mutex_unlock(&offer_lock);
    gex_Event_Wait(before);
    gex_Event_Wait(mine);
}

static void *work(void *argument)
{
    struct worker *w = argument;

    for (unsigned i = 0; i < rounds; i++) {
        gex_Rank_t to = (gex_Rank_t)(job_random(&w->random) % job.size);

        message(w, to, i);
        put_and_get(w, to, i);
        leave_event(w, to);
    }
    return NULL;
}

static void run_threads(void)
{
    static struct worker workers[MAX_THREADS];
    pthread_t id[MAX_THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].id = i;
        workers[i].random = job_mix(job.rank, i);
        if (i > 0)
            CHECK(pthread_create(&id[i], NULL, work, &workers[i]) == 0);
    }
    work(&workers[0]);
    for (unsigned i = 1; i < THREADS; i++)
        pthread_join(id[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        gex_Event_Wait(offered[i]);
}

/* Rank 0 compares the numbers of all ranks: nothing was lost and nothing came twice. */
static void compare_totals(void)
{
    unsigned *table = (unsigned *)job.base, mine[2], all[2] = {0, 0};

    job_barrier(); /* behind it all requests have been answered */
    mine[0] = requests_in;
    mine[1] = sum_in;
    gex_RMA_PutBlocking(job.tm, 0, job_remote(0, job.rank * sizeof mine), mine, sizeof mine, 0);
    job_barrier();
    for (gex_Rank_t i = 0; i < job.size; i++) {
        all[0] += table[2 * i];
        all[1] += table[2 * i + 1];
    }
    if (job.rank == 0)
        CHECK(all[0] == job.size * THREADS * rounds &&
                  all[1] == job.size * THREADS * (rounds * (rounds - 1) / 2),
              "%u requests arrived", all[0]);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, SEGMENT);
    CHECK(job.size <= MAX_RANKS);
    rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 300;
    register_handlers();
    job_barrier();
    job_phase("%d threads, %u rounds", THREADS, rounds);
    run_threads();
    job_phase("comparing totals");
    compare_totals();
    job_end();
}
