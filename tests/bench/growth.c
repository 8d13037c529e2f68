/* SPDX-License-Identifier: BSD-3-Clause */
/* growth WHAT - counts for make bench-scaling, which starts it with different numbers of ranks.
 *
 * operations: each rank prints its queue pairs and connections after the start, and messages, bytes
 * and the median time of barriers, and of broadcasts, reductions and splits of a team, each with a
 * barrier, because a root could run ahead. "to-all" after it plants a mistake: each rank sends a
 * message to each other one at the start.
 *
 * ranks, connections, regions, teams, threads: the instructions of polls and puts in rank 0 as
 * their number grows. callgrind writes a file each time measured() returns, and a line here says
 * what that was. Another line has counts and the time of the same calls, without callgrind. Nothing
 * waits inside measured(): the other ranks are idle then.
 *
 * The main thread does everything but puts of the mode threads. */
#include "config.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gasnet_coll.h>
#include <gasnetex.h>

#include "growth.h"

enum {
    turns = 8,   /* of each operation: its counts are a mean, in which early and late ones cancel */
    count = 100, /* of each measured() */
    region_puts = 8, /* the same of large ones, each in a measured() of its own */
    segment_size = 1 << 20,
    block = 64 << 10, /* a region of its own: GASNET_FIREHOSE_LEAST is as large */
    regions_max = 256,
    teams_max = 64,
    threads_max = 16,
    settle_us = 20000
};

static gex_EP_t ep;
static gex_TM_t tm;
static gex_Rank_t me, size;
static char *mine;
static volatile unsigned requests_in, replies_in;

static void on_request(gex_Token_t token);
static void on_reply(gex_Token_t token);

static gex_AM_Entry_t table[] = {
    {0, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "request"},
    {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "reply"}};

static void on_request(gex_Token_t token)
{
    requests_in++;
    gex_AM_ReplyShort(token, table[1].gex_index, 0);
}

static void on_reply(gex_Token_t token)
{
    (void)token;
    replies_in++;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void barrier(void)
{
    gex_Coll_BarrierBlocking(tm, 0);
}

/* Connects, and returns when the peer has answered. */
static void greet(gex_Rank_t peer)
{
    unsigned before = replies_in;
    gex_AM_RequestShort(tm, peer, table[0].gex_index, 0);
    GASNET_BLOCKUNTIL(replies_in != before);
}

/* ---- operations of all ranks ---- */

static void broadcast(void)
{
    uint64_t word = me;
    gex_Event_Wait(gex_Coll_BroadcastNB(tm, 0, &word, &word, sizeof(word), 0));
}

static void reduce(void)
{
    uint64_t one = 1, all = 0;
    gex_Event_Wait(
        gex_Coll_ReduceToAllNB(tm, &all, &one, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0));
    if (all != size)
        abort();
}

static void split(void)
{
    gex_TM_t team;
    gex_TM_Split(&team, tm, 0, (int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Destroy(team, NULL, 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {
    {"barrier", barrier}, {"broadcast", broadcast}, {"reduction", reduce}, {"split", split}};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Does the operation `turns` times; the median of their times. The least is that of a rank that
 * came last and did not wait. */
static double time_turns(void (*run)(void))
{
    double took[turns];
    for (int turn = 0; turn < turns; turn++) {
        double began = now();
        run();
        took[turn] = now() - began;
        if (run != barrier)
            barrier();
    }
    qsort(took, turns, sizeof(*took), compare);
    return took[turns / 2];
}

/* One line for each rank: words "NAME.WHAT VALUE". */
static void count_operations(bool is_planted)
{
    char line[1024];
    int at = 0;
    for (gex_Rank_t i = 1; is_planted && i < size; i++)
        greet((me + i) % size);
    barrier();
    struct growth_counts was = growth_counts(), is;
    at += snprintf(line, sizeof(line), "rank %u queue_pairs %ld connections %ld start.messages %lu",
                   (unsigned)me, was.queue_pairs, was.connections, was.messages);
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
        operations[i].run(); /* connections that it needs */
        barrier();
        was = growth_counts();
        double median = time_turns(operations[i].run);
        is = growth_counts();
        const char *name = operations[i].name;
        at += snprintf(line + at, sizeof(line) - (size_t)at,
                       " %s.messages %.3f %s.bytes %.3f %s.us %.1f", name,
                       (double)(is.messages - was.messages) / turns, name,
                       (double)(is.bytes - was.bytes) / turns, name, 1e6 * median);
        barrier();
    }
    printf("%s\n", line);
}

/* ---- instructions of rank 0 ---- */

/* By these names callgrind knows it: --toggle-collect, --dump-after. */
__attribute__((noinline)) void measured(void (*run)(void), int times);

void measured(void (*run)(void), int times)
{
    for (int i = 0; i < times; i++)
        run();
}

static void poll_once(void)
{
    gasnet_AMPoll();
}

static gex_Rank_t target;
static void *there;
static gex_Event_t events[count];
static int events_made;
static char *blocks[regions_max];
static unsigned long block_turn, blocks_used;

static void put_8(void)
{
    gex_Event_Wait(gex_RMA_PutNB(tm, target, there, mine, 8, GEX_EVENT_DEFER, 0));
}

/* Blocks far from each other, in turns. */
static void put_block(void)
{
    char *from = blocks[block_turn++ * 7 % blocks_used];
    events[events_made++] = gex_RMA_PutNB(tm, target, there, from, block, GEX_EVENT_DEFER, 0);
}

static void settle(void)
{
    for (double until = now() + 1e-6 * settle_us; now() < until;)
        gasnet_AMPoll();
    for (int i = 0; i < 64; i++)
        gasnet_AMPoll();
}

/* Of one; without callgrind the time means something. */
static void print_counted(const char *name, unsigned long x, int times, struct growth_counts was,
                          double took)
{
    struct growth_counts is = growth_counts();
    printf("counted %s %lu messages %.3f bytes %.3f queue_pairs %ld us %.4f\n", name, x,
           (double)(is.messages - was.messages) / times, (double)(is.bytes - was.bytes) / times,
           is.queue_pairs, 1e6 * took / times);
}

static void measure(const char *name, unsigned long x, void (*run)(void), int times)
{
    settle();
    run();
    events_made = 0;
    printf("measured %s %lu %d\n", name, x, times);
    fflush(stdout);
    struct growth_counts was = growth_counts();
    double began = now();
    measured(run, times);
    print_counted(name, x, times, was, now() - began);
}

static void target_rank(gex_Rank_t peer)
{
    void *owner = NULL;
    uintptr_t bytes;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, peer, &owner, NULL, &bytes, 0));
    target = peer;
    there = owner;
    greet(peer);
}

static void measure_both(unsigned long x)
{
    measure("poll", x, poll_once, count);
    measure("put", x, put_8, count);
}

static void of_ranks(void)
{
    measure_both(size);
}

/* From as many as the start needs. */
static void of_connections(void)
{
    gex_Rank_t next = 1;
    for (unsigned long x = 8; x < size; x *= 2) {
        while (next < size && growth_counts().connections < (long)x)
            greet(next++);
        measure_both((unsigned long)growth_counts().connections);
    }
}

static void of_regions(void)
{
    for (unsigned long x = 1, made = 0; x <= regions_max; x *= 2) {
        for (; made < x; made++) {
            blocks[made] = aligned_alloc(block, block);
            if (!blocks[made])
                abort();
            memset(blocks[made], 1, block);
            gex_RMA_PutBlocking(tm, target, there, blocks[made], block, 0);
        }
        blocks_used = x;
        /* One at a time: their data are on the way while nothing is counted. */
        settle();
        put_block();
        gex_Event_Wait(events[--events_made]);
        printf("measured region %lu %d\n", x, region_puts);
        struct growth_counts was = growth_counts();
        double took = 0;
        for (int i = 0; i < region_puts; i++) {
            double began = now();
            measured(put_block, 1);
            took += now() - began;
            usleep(1000);
            gex_Event_Wait(events[--events_made]);
        }
        print_counted("region", x, region_puts, was, took);
    }
}

/* Both ranks take part in splits. */
static void of_teams(void)
{
    static gex_TM_t teams[teams_max];
    for (unsigned long x = 1, made = 0; x <= teams_max; x *= 2) {
        struct growth_counts was = growth_counts();
        unsigned long before = made;
        for (; made < x; made++)
            gex_TM_Split(&teams[made], tm, 0, (int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        if (me != 0)
            continue;
        printf("teams %lu messages %.3f\n", x,
               (double)(growth_counts().messages - was.messages) / (double)(made - before));
        measure_both(x);
    }
}

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t threads_moved = PTHREAD_COND_INITIALIZER;
static unsigned threads_ready;
static bool threads_over;

/* Uses the library once, and stays. */
static void *put_and_stay(void *unused)
{
    put_8();
    pthread_mutex_lock(&threads_lock);
    threads_ready++;
    pthread_cond_broadcast(&threads_moved);
    while (!threads_over)
        pthread_cond_wait(&threads_moved, &threads_lock);
    pthread_mutex_unlock(&threads_lock);
    return unused;
}

static void of_threads(void)
{
    pthread_t threads[threads_max];
    unsigned made = 1; /* we */
    for (unsigned long x = 1; x <= threads_max; x *= 2) {
        for (; made < x; made++)
            if (pthread_create(&threads[made], NULL, put_and_stay, NULL))
                abort();
        pthread_mutex_lock(&threads_lock);
        while (threads_ready + 1 < made)
            pthread_cond_wait(&threads_moved, &threads_lock);
        pthread_mutex_unlock(&threads_lock);
        printf("threads %lu queue_pairs %ld\n", x, growth_counts().queue_pairs);
        measure_both(x);
    }
    pthread_mutex_lock(&threads_lock);
    threads_over = true;
    pthread_cond_broadcast(&threads_moved);
    pthread_mutex_unlock(&threads_lock);
    for (unsigned i = 1; i < made; i++)
        pthread_join(threads[i], NULL);
}

/* ---- */

static const struct {
    const char *name;
    void (*of_rank_0)(void), (*of_others)(void);
} modes[] = {{"ranks", of_ranks, NULL},
             {"connections", of_connections, NULL},
             {"regions", of_regions, NULL},
             {"teams", of_teams, of_teams},
             {"threads", of_threads, NULL}};

static void run_mode(const char *name)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
        if (strcmp(modes[i].name, name) != 0)
            continue;
        if (me == 0)
            target_rank(size - 1); /* on another host, if there are several */
        void (*run)(void) = me == 0 ? modes[i].of_rank_0 : modes[i].of_others;
        if (run)
            run();
        return;
    }
    fprintf(stderr,
            "growth: '%s' is none of operations, ranks, connections, regions, teams, "
            "threads\n",
            name);
    gasnet_exit(2);
}

static void start(int *argc, char ***argv)
{
    gex_Client_t client;
    gex_Segment_t segment;
    if (gex_Client_Init(&client, &ep, &tm, "growth", argc, argv, 0) ||
        gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(*table)) ||
        gex_Segment_Attach(&segment, tm, segment_size)) {
        fprintf(stderr, "growth: can't start\n");
        gasnet_exit(1);
    }
    me = gex_TM_QueryRank(tm);
    size = gex_TM_QuerySize(tm);
    mine = gex_Segment_QueryAddr(segment);
    memset(mine, 0, segment_size / 16);
    barrier();
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    if (argc < 2 || size < 2) {
        fprintf(stderr, "usage: gasnetrun_ibv -n N growth WHAT (N from 2)\n");
        gasnet_exit(2);
    }
    if (!strcmp(argv[1], "operations"))
        count_operations(argc > 2 && !strcmp(argv[2], "to-all"));
    else
        run_mode(argv[1]);
    fflush(stdout);
    barrier();
    gasnet_exit(0);
}
