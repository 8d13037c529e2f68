/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks wait: the cost if ranks outnumber CPUs, and that every sleeper is woken. The first
 * argument selects the test; the program prints CPU times, which waiting.sh compares. */
#include "config.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gasnet.h"
#include "job.h"

enum { ALL_ROUNDS = 8, REPEATS = 7, IDLE_SECONDS = 1, HAND_OVERS = 300, BARRIERS = 5000 };

/* Results for rank 0, one for each rank, from here on in its segment. */
enum { RESULTS_AT = 64, TURNS_AT = 32768 };

static unsigned asked, told; /* by handlers */
static gex_AM_Index_t ask_index, tell_index, ping_index;

static void tell(gex_Token_t token)
{
    (void)token;
    __atomic_fetch_add(&told, 1, __ATOMIC_RELEASE);
}

static void ask(gex_Token_t token)
{
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELEASE);
    gex_AM_ReplyShort0(token, tell_index, 0);
}

static void ping(gex_Token_t token)
{
    (void)token;
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELEASE);
}

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

static double cpu_used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
}

static const char *how; /* to wait */

/* Waits until `*counter` is at least `goal` or, by events and barriers, until all ranks call it. */
static void await(const unsigned *counter, unsigned goal)
{
    if (!strcmp(how, "until"))
        GASNET_BLOCKUNTIL((int)(job_seen(counter) - goal) >= 0);
    else if (!strcmp(how, "poll"))
        while ((int)(job_seen(counter) - goal) < 0)
            gasnet_AMPoll();
    else if (!strcmp(how, "event"))
        gex_Event_Wait(gex_Coll_BarrierNB(job.tm, 0));
    else
        gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED);
}

/* Puts `mine` where rank 0 can read it; rank 0 learns the sum and the largest. */
static void collect(double mine, double *sum, double *most)
{
    gex_RMA_PutBlocking(job.tm, 0, job_remote(0, RESULTS_AT + job.rank * sizeof(double)), &mine,
                        sizeof mine, 0);
    job_barrier();
    *sum = *most = 0;
    for (gex_Rank_t r = 0; job.rank == 0 && r < job.size; r++) {
        double one = ((double *)(void *)(job.base + RESULTS_AT))[r];
        *sum += one;
        *most = one > *most ? one : *most;
    }
}

static void ask_everybody(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        for (gex_Rank_t step = 1; step < job.size; step++)
            CHECK(gex_AM_RequestShort0(job.tm, (job.rank + step) % job.size, ask_index, 0) == 0);
}

static double exchange_once(unsigned times)
{
    static unsigned goal;
    double sum, most, cpu;

    job_barrier();
    cpu = cpu_used();
    for (unsigned round = 0; round < ALL_ROUNDS; round++) {
        ask_everybody(times);
        await(&told, goal += times * (job.size - 1));
    }
    GASNET_BLOCKUNTIL(job_seen(&told) == goal);
    job_barrier();
    collect(cpu_used() - cpu, &sum, &most);
    return sum;
}

static int by_size(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof *numbers, by_size);
    return numbers[count / 2];
}

/* The same total of messages for every number of ranks. The first exchange is not
 * counted: neighbours' memory is mapped then. */
static void all_to_all(unsigned total)
{
    static const char *const ways[] = {"until", "event", "barrier", "poll"};
    enum { WAYS = sizeof ways / sizeof *ways };
    unsigned times = total / ALL_ROUNDS / (job.size * (job.size - 1));
    double used[WAYS][REPEATS];

    how = "until";
    exchange_once(1);
    for (unsigned i = 0; i < REPEATS; i++)
        for (unsigned w = 0; w < WAYS; w++) {
            how = ways[w];
            job_phase("exchange %u, by %s", i, how);
            used[w][i] = exchange_once(times);
        }
    for (unsigned w = 0; w < WAYS && job.rank == 0; w++)
        printf("%s: %.0f\n", ways[w], median(used[w], REPEATS) * 1e6);
}

/* All wait for rank 0, which sleeps for a while. */
static void idle_by(const char *way)
{
    const struct timespec while_long = {.tv_sec = IDLE_SECONDS};
    static unsigned goal;
    double sum, most, cpu;

    how = way;
    job_barrier();
    job_phase("idle, by %s", how);
    cpu = cpu_used();
    if (job.rank == 0)
        nanosleep(&while_long, NULL);
    for (gex_Rank_t r = 1; job.rank == 0 && r < job.size; r++)
        gex_AM_RequestShort0(job.tm, r, ping_index, 0);
    goal++;
    if (strcmp(how, "until") != 0)
        await(NULL, 0);
    else if (job.rank != 0)
        await(&asked, goal);
    collect(cpu_used() - cpu, &sum, &most);
    GASNET_BLOCKUNTIL(job.rank == 0 || job_seen(&asked) == goal);
    if (job.rank == 0)
        printf("%s: %.0f\n", how, most * 1e6);
}

static void idle(void)
{
    idle_by("until");
    idle_by("event");
    idle_by("barrier");
}

/* ---- hand over and back between two ranks that sleep */

static uint32_t *raw_turn; /* whose turn it is, in rank 0's segment */

static void raw_hand_over(void)
{
    for (uint32_t i = 0; i < HAND_OVERS; i++) {
        uint32_t mine = 2 * i + job.rank, turn;
        while ((turn = __atomic_load_n(raw_turn, __ATOMIC_ACQUIRE)) != mine)
            syscall(SYS_futex, raw_turn, FUTEX_WAIT, turn, NULL, NULL, 0);
        __atomic_store_n(raw_turn, mine + 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, raw_turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static void hand_over(void)
{
    static unsigned had;

    how = "until";
    for (unsigned i = 1; i <= HAND_OVERS; i++) {
        if (job.rank == 0)
            gex_AM_RequestShort0(job.tm, 1, ping_index, 0);
        await(&asked, ++had);
        if (job.rank == 1)
            gex_AM_RequestShort0(job.tm, 0, ping_index, 0);
    }
}

static double time_of(void (*what)(void))
{
    double begin;

    job_barrier();
    begin = job_seconds();
    what();
    return job_seconds() - begin;
}

/* Does as many by a bare futex, alternating, so that both run under the same load. */
static void hand_overs(void)
{
    enum { TURNS = 9 };
    static unsigned used;
    double ratios[TURNS];
    void *there;

    CHECK(job.size == 2);
    CHECK(gex_Segment_QueryBound(job.tm, 0, NULL, &there, NULL) == 0 && there);
    for (unsigned i = 0; i < TURNS; i++) {
        job_phase("hand over %u", i);
        raw_turn = (uint32_t *)(void *)((char *)there + TURNS_AT) + used++;
        double raw = time_of(raw_hand_over);
        ratios[i] = time_of(hand_over) / raw;
    }
    if (job.rank == 0)
        printf("hand: %.1f\n", median(ratios, TURNS));
}

/* Only doorbells end these barriers: each lost one costs much time. */
static void barriers(void)
{
    how = "event";
    job_phase("barriers");
    for (unsigned i = 0; i < BARRIERS; i++)
        await(NULL, 0);
}

/* ---- threads of one process */

static unsigned flag, is_over;

static void *raise_flag(void *unused)
{
    const struct timespec little = {.tv_nsec = 300000};

    for (unsigned i = 1; i <= HAND_OVERS; i++) {
        nanosleep(&little, NULL);
        __atomic_store_n(&flag, i, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* Polls, and so handles messages for which another thread waits. */
static void *poll_along(void *unused)
{
    while (!job_seen(&is_over)) {
        gasnet_AMPoll();
        gex_Event_Wait(GEX_EVENT_INVALID);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t thread;

    __atomic_store_n(&flag, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&is_over, 0, __ATOMIC_RELEASE);
    job_phase("a flag that a thread raises");
    CHECK(pthread_create(&thread, NULL, raise_flag, NULL) == 0);
    for (unsigned i = 1; i <= HAND_OVERS; i++)
        GASNET_BLOCKUNTIL(job_seen(&flag) >= i);
    CHECK(pthread_join(thread, NULL) == 0);
    job_barrier();
    job_phase("messages that another thread takes");
    CHECK(pthread_create(&thread, NULL, poll_along, NULL) == 0);
    barriers();
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    CHECK(pthread_join(thread, NULL) == 0);
    job_barrier();
}

static void in_each_mode(void (*what)(void))
{
    CHECK(gasnet_set_waitmode(GASNET_WAIT_SPIN) == GASNET_OK);
    what();
    CHECK(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK);
    what();
    CHECK(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK) == GASNET_OK);
    what();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ask"},
        {0, (gex_AM_Fn_t)tell, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "tell"},
        {0, (gex_AM_Fn_t)ping, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ping"}};

    job_start(&argc, &argv, 65536);
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 3) == GASNET_OK);
    ask_index = table[0].gex_index;
    tell_index = table[1].gex_index;
    ping_index = table[2].gex_index;
    CHECK(argc > 2, "usage: calm WHAT NUMBER");
    long number = atol(argv[2]);
    job_barrier();
    if (!strcmp(argv[1], "all"))
        all_to_all((unsigned)number);
    else if (!strcmp(argv[1], "idle"))
        idle();
    else if (!strcmp(argv[1], "threads"))
        in_each_mode(threads);
    else if (!strcmp(argv[1], "hand")) {
        in_each_mode(barriers);
        in_each_mode(hand_overs);
    } else
        CHECK(0, "what is %s?", argv[1]);
    job_end();
}
