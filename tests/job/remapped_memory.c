/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets from and to short-lived memory: every thread maps, fills, transfers and checks
 * blocks outside of the segment, then unmaps them in one of many ways, so that the next block gets
 * the address of a block that is gone. Children are forked meanwhile; their writes must not reach
 * the parent's transfers. usage: remapped_memory [rounds]; reads JOB_THREADS. */
#include "config.h"

#include "job.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    threads_max = 4,
    least = 48 << 10, /* some are below the size from which memory is registered, */
    most = 700 << 10, /* and some are several regions */
    slot = 1 << 20,   /* of a thread, in the segment of the next rank */
    fork_every = 10,  /* rounds */
    in_flight = 3
};

static long rounds = 200, threads;

/* ---- memory: every block has the same owner from take() to lose() ---- */

enum way { HEAP, MAPPED, ways };

struct block {
    char *at;
    size_t size;
    enum way way;
};

static struct block take(uint64_t *random)
{
    struct block b = {.size = least + job_random(random) % (most - least),
                      .way = (enum way)(job_random(random) % ways)};

    if (b.way == HEAP) {
        b.at = job_memory(b.size);
        return b;
    }
    b.at = mmap(NULL, b.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(b.at != MAP_FAILED);
    return b;
}

/* Unmaps each address only once: another thread may have it then. */
static void lose_mapped(struct block *b, unsigned how)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), half = b->size / 2 / page * page;
    char *to;

    switch (how) {
    case 0: /* in two parts */
        munmap(b->at + half, b->size - half);
        munmap(b->at, half);
        break;
    case 1: /* moved */
        to = mremap(b->at, b->size, b->size * 2, MREMAP_MAYMOVE);
        CHECK(to != MAP_FAILED || (errno == EFAULT && threads > 1)); /* README, "Limits" */
        if (to == MAP_FAILED)
            munmap(b->at, b->size);
        else
            munmap(to, b->size * 2);
        break;
    case 2: /* cut short */
        CHECK(mremap(b->at, b->size, half, 0) == b->at);
        munmap(b->at, half);
        break;
    default:
        munmap(b->at, b->size);
        break;
    }
}

static void lose(struct block *b, uint64_t *random)
{
    if (b->way == HEAP)
        free(b->at);
    else
        lose_mapped(b, (unsigned)(job_random(random) % 5));
}

/* Gives the block new contents at the same address, by new pages if it is mapped. */
static void renew(struct block *b, uint64_t seed)
{
    if (b->way == MAPPED)
        CHECK(madvise(b->at, b->size, MADV_DONTNEED) == 0);
    job_fill(b->at, b->size, seed);
}

/* ---- traffic ---- */

static void there_and_back(struct block *b, char *remote, uint64_t seed, uint64_t *random)
{
    gex_Rank_t next = (job.rank + 1) % job.size;
    struct block copy = take(random);
    size_t size = copy.size < b->size ? copy.size : b->size;

    gex_RMA_PutBlocking(job.tm, next, remote, b->at, size, 0);
    CHECK_PATTERN(b->at, size, seed);
    memset(copy.at, 0, size);
    gex_RMA_GetBlocking(job.tm, copy.at, next, remote, size, 0);
    CHECK_PATTERN(copy.at, size, seed);
    lose(&copy, random);
}

/* Several transfers at once, each in its part of the slot; some need their source free on
 * return. */
static void many(char *remote, uint64_t seed, uint64_t *random)
{
    gex_Rank_t next = (job.rank + 1) % job.size;
    size_t part = slot / in_flight / 8 * 8, size[in_flight];
    struct block from[in_flight];
    gex_Event_t events[in_flight];

    for (int i = 0; i < in_flight; i++) {
        from[i] = take(random);
        size[i] = from[i].size < part ? from[i].size : part;
        job_fill(from[i].at, size[i], seed + (uint64_t)i);
        events[i] = gex_RMA_PutNB(job.tm, next, remote + (size_t)i * part, from[i].at, size[i],
                                  i & 1 ? GEX_EVENT_NOW : GEX_EVENT_DEFER, 0);
        if (i & 1)
            memset(from[i].at, 0, size[i]);
    }
    for (int i = 0; i < in_flight; i++) {
        char *copy = job_memory(size[i]);

        gex_Event_Wait(events[i]);
        gex_RMA_GetBlocking(job.tm, copy, next, remote + (size_t)i * part, size[i], 0);
        CHECK_PATTERN(copy, size[i], seed + (uint64_t)i);
        free(copy);
        lose(&from[i], random);
    }
}

/* The child has the same addresses: it writes there, and ends without calling the library. */
static void fork_over(struct block *b)
{
    int status;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        memset(b->at, 0x55, b->size);
        if (b->way == MAPPED)
            munmap(b->at, b->size);
        _exit(0);
    }
    memset(b->at, 0x33, 64);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* Children that become another program, or share our memory until they do. */
static void run_others(void)
{
    char line[16] = "";
    FILE *other = popen("echo there", "r");

    CHECK(other && fgets(line, sizeof line, other) && strcmp(line, "there\n") == 0);
    CHECK(pclose(other) == 0);
    CHECK(system("exit 3") == 3 << 8);
}

/* Read-only memory is a legal source of puts: the program's constants, and a block. */
static const char of_program[most] = "of the program";

static void put_constant(struct block *b, char *remote, uint64_t *random)
{
    gex_Rank_t next = (job.rank + 1) % job.size;
    struct block copy = take(random);
    size_t size = copy.size < b->size ? copy.size : b->size;

    gex_RMA_PutBlocking(job.tm, next, remote, of_program, size, 0);
    gex_RMA_GetBlocking(job.tm, copy.at, next, remote, size, 0);
    CHECK(memcmp(copy.at, of_program, size) == 0);
    if (b->way == MAPPED) {
        CHECK(mprotect(b->at, b->size, PROT_READ) == 0);
        gex_RMA_PutBlocking(job.tm, next, remote, b->at, size, 0);
        gex_RMA_GetBlocking(job.tm, copy.at, next, remote, size, 0);
        CHECK(memcmp(copy.at, b->at, size) == 0);
        CHECK(mprotect(b->at, b->size, PROT_READ | PROT_WRITE) == 0);
    }
    lose(&copy, random);
}

static void *thread_main(void *arg)
{
    size_t me = (size_t)arg;
    uint64_t random = job_mix(job.rank, me);
    char *remote = job_remote((job.rank + 1) % job.size, me * slot);

    for (long i = 0; i < rounds; i++) {
        uint64_t seed = job_mix(random, (uint64_t)i);
        struct block b = take(&random);

        job_fill(b.at, b.size, seed);
        there_and_back(&b, remote, seed, &random);
        if (me == 0 && i % fork_every == fork_every - 1) {
            fork_over(&b);
            run_others();
            job_fill(b.at, b.size, seed + 1);
            there_and_back(&b, remote, seed + 1, &random);
        }
        renew(&b, seed + 2);
        there_and_back(&b, remote, seed + 2, &random);
        put_constant(&b, remote, &random);
        lose(&b, &random);
        many(remote, seed + 3, &random);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t others[threads_max];

    job_start(&argc, &argv, (size_t)threads_max * slot);
    if (argc > 1)
        rounds = strtol(argv[1], NULL, 10);
    threads = job_number("JOB_THREADS", 1);
    CHECK(threads >= 1 && threads <= threads_max);
    CHECK(threads == 1 || gex_System_QueryMaxThreads() > 1,
          "JOB_THREADS needs a library for threads");
    job_phase("churning");
    for (long i = 1; i < threads; i++)
        CHECK(pthread_create(&others[i], NULL, thread_main, (void *)i) == 0);
    thread_main((void *)0);
    for (long i = 1; i < threads; i++)
        pthread_join(others[i], NULL);
    job_end();
}
