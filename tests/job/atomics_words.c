/* SPDX-License-Identifier: BSD-3-Clause */
/* Few words that all ranks and threads change at once: no change is lost. Amounts are moved
 * from word to word, so that the sum is constant; each operation that can increment increments
 * counters. */
#include "config.h"

#include "atomics.h"

#include <pthread.h>
#include <string.h>

enum { ACCOUNTS = 3, START = 1000, THREADS_MAX = 4 };
enum { COUNT_INC, COUNT_FADD, COUNT_FCAS, COUNT_NBI, COUNTERS };
/* Operations of a burst, per turn. Ranks that share memory are faster and do more, so that they are
 * always busy. / */
enum { BURST_NEAR = 100, BURST_FAR = 10, BURST_WORDS = 96 << 10 };

static gex_AD_t of_u64, of_i32, of_dbl;
static unsigned turn_count;

/* Words are on rank 0 and on the last rank: of 64 bits, of 32, floating point, then counters. */
static gex_Rank_t owner(unsigned number)
{
    return number % 2 ? job.size - 1 : 0;
}

static void *account(unsigned number)
{
    return job_remote(owner(number), WORDS + 8 * number);
}

static void *account_i32(unsigned number)
{
    return job_remote(owner(number), WORDS + 512 + 4 * number);
}

static void *account_dbl(unsigned number)
{
    return job_remote(owner(number), WORDS + 1024 + 8 * number);
}

static void *counter(unsigned number)
{
    return job_remote(owner(number), WORDS + 2048 + 8 * number);
}

void finish_event(gex_Event_t event)
{
    CHECK(event != GEX_EVENT_NO_OP);
    gex_Event_Wait(event);
}

static void move(unsigned from, unsigned to, unsigned amount)
{
    uint64_t was;
    int32_t was_i32;
    gex_Event_t events[6];
    events[0] =
        gex_AD_OpNB_U64(of_u64, &was, owner(from), account(from), GEX_OP_FSUB, amount, 0, 0);
    events[1] = gex_AD_OpNB_U64(of_u64, NULL, owner(to), account(to), GEX_OP_ADD, amount, 0, 0);
    events[2] = gex_AD_OpNB_I32(of_i32, NULL, owner(from), account_i32(from), GEX_OP_SUB,
                                (int32_t)amount, 0, 0);
    events[3] = gex_AD_OpNB_I32(of_i32, &was_i32, owner(to), account_i32(to), GEX_OP_FADD,
                                (int32_t)amount, 0, 0);
    events[4] =
        gex_AD_OpNB_DBL(of_dbl, NULL, owner(from), account_dbl(from), GEX_OP_SUB, amount, 0, 0);
    events[5] = gex_AD_OpNB_DBL(of_dbl, NULL, owner(to), account_dbl(to), GEX_OP_ADD, amount, 0, 0);
    gex_Event_WaitAll(events, 6, 0);
}

static void count_by_cas(void)
{
    uint64_t seen = 0, was;
    for (;;) {
        finish_event(gex_AD_OpNB_U64(of_u64, &was, owner(COUNT_FCAS), counter(COUNT_FCAS),
                                     GEX_OP_FCAS, seen, seen + 1, 0));
        if (was == seen)
            return;
        seen = was;
    }
}

/* Only additions to one word of each type, at full speed. */
static unsigned burst_length(void)
{
    return turn_count * (job_is_neighbour(0) ? BURST_NEAR : BURST_FAR);
}

/* Polls after each operation; otherwise a neighbour would finish before another rank starts. */
static void *burst(void *unused)
{
    unsigned length = burst_length();
    uint64_t was;
    for (unsigned i = 0; i < length; i++, gasnet_AMPoll())
        finish_event(
            gex_AD_OpNB_U64(of_u64, &was, 0, job_remote(0, BURST_WORDS), GEX_OP_FADD, 1, 0, 0));
    for (unsigned i = 0; i < length; i++, gasnet_AMPoll())
        finish_event(
            gex_AD_OpNB_I32(of_i32, NULL, 0, job_remote(0, BURST_WORDS + 64), GEX_OP_ADD, 1, 0, 0));
    for (unsigned i = 0; i < length; i++, gasnet_AMPoll())
        finish_event(gex_AD_OpNB_DBL(of_dbl, NULL, 0, job_remote(0, BURST_WORDS + 128), GEX_OP_ADD,
                                     1, 0, 0));
    return NULL;
}

static void *work(void *number)
{
    uint64_t seed = 77 * job.rank + (uintptr_t)number + 1, was;
    for (unsigned turn = 0; turn < turn_count; turn++) {
        uint64_t random = job_random(&seed);
        move((unsigned)(random % ACCOUNTS), (unsigned)(random >> 8) % ACCOUNTS,
             (unsigned)(random >> 16) % 100);
        finish_event(gex_AD_OpNB_U64(of_u64, NULL, owner(COUNT_INC), counter(COUNT_INC), GEX_OP_INC,
                                     0, 0, 0));
        finish_event(gex_AD_OpNB_U64(of_u64, &was, owner(COUNT_FADD), counter(COUNT_FADD),
                                     GEX_OP_FADD, 1, 0, GEX_FLAG_RANK_IS_JOBRANK));
        CHECK(gex_AD_OpNBI_U64(of_u64, NULL, owner(COUNT_NBI), counter(COUNT_NBI), GEX_OP_ADD, 1, 0,
                               0) == 0);
        count_by_cas();
    }
    gex_NBI_Wait(GEX_EC_RMW, 0);
    return NULL;
}

/* All ranks know the number of threads of each. */
static unsigned threads_of(gex_Rank_t rank)
{
#if GASNET_PAR
    return 1 + rank % THREADS_MAX;
#else
    (void)rank;
    return 1;
#endif
}

static void in_threads(void *(*work)(void *))
{
    pthread_t id[THREADS_MAX];
    unsigned threads = threads_of(job.rank);
    for (unsigned i = 1; i < threads; i++)
        CHECK(pthread_create(&id[i], NULL, work, (void *)(uintptr_t)i) == 0);
    work(NULL);
    for (unsigned i = 1; i < threads; i++)
        CHECK(pthread_join(id[i], NULL) == 0);
}

static void check_burst(void)
{
    uint64_t mine = burst_length() * threads_of(job.rank), sum = 0;
    uint64_t *counts = (uint64_t *)(void *)(job.base + HISTORY);
    char *words = job.base + BURST_WORDS;
    gex_RMA_PutBlocking(job.tm, 0, job_remote(0, HISTORY + 8 * job.rank), &mine, sizeof mine, 0);
    job_barrier();
    for (gex_Rank_t r = 0; r < job.size && job.rank == 0; r++)
        sum += counts[r];
    CHECK(job.rank || *(uint64_t *)(void *)words == sum, "%llu of %llu additions",
          (unsigned long long)*(uint64_t *)(void *)words, (unsigned long long)sum);
    CHECK(job.rank || *(int32_t *)(void *)(words + 64) == (int32_t)sum,
          "%d of %llu additions of 32 bits", *(int32_t *)(void *)(words + 64),
          (unsigned long long)sum);
    CHECK(job.rank || *(double *)(void *)(words + 128) == (double)sum,
          "%g of %llu additions of doubles", *(double *)(void *)(words + 128),
          (unsigned long long)sum);
}

static uint64_t get(unsigned number, void *(*place)(unsigned))
{
    uint64_t value;
    finish_event(
        gex_AD_OpNB_U64(of_u64, &value, owner(number), place(number), GEX_OP_GET, 0, 0, 0));
    return value;
}

/* The words are private to their owners before the domain is used. */
static void set_words(void)
{
    char *words = job.base + WORDS;
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        ((uint64_t *)(void *)words)[i] = START;
        ((int32_t *)(void *)(words + 512))[i] = START;
        ((double *)(void *)(words + 1024))[i] = START;
    }
    for (unsigned i = 0; i < COUNTERS; i++)
        ((uint64_t *)(void *)(words + 2048))[i] = 0;
    memset(job.base + BURST_WORDS, 0, 256);
}

static void check_sums(uint64_t turns)
{
    uint64_t sum = 0;
    int64_t sum_i32 = 0;
    double sum_dbl = 0;
    for (unsigned i = 0; i < ACCOUNTS; i++) {
        int32_t value;
        double real;
        sum += get(i, account);
        finish_event(
            gex_AD_OpNB_I32(of_i32, &value, owner(i), account_i32(i), GEX_OP_GET, 0, 0, 0));
        finish_event(gex_AD_OpNB_DBL(of_dbl, &real, owner(i), account_dbl(i), GEX_OP_GET, 0, 0, 0));
        sum_i32 += value;
        sum_dbl += real;
    }
    CHECK(sum == ACCOUNTS * START, "the sum is %lld, not %d", (long long)sum, ACCOUNTS * START);
    CHECK(sum_i32 == ACCOUNTS * START, "the sum of 32 bits is %lld", (long long)sum_i32);
    CHECK(sum_dbl == ACCOUNTS * START, "the sum of doubles is %g", sum_dbl);
    for (unsigned i = 0; i < COUNTERS; i++)
        CHECK(get(i, counter) == turns, "counter %u is %llu, not %llu", i,
              (unsigned long long)get(i, counter), (unsigned long long)turns);
}

static uint64_t all_turns(void)
{
    uint64_t turns = 0;
    for (gex_Rank_t r = 0; r < job.size; r++)
        turns += turn_count * threads_of(r);
    return turns;
}

void hammer(unsigned turns)
{
    gex_OP_t ops = GEX_OP_ADD | GEX_OP_SUB | GEX_OP_FADD | GEX_OP_GET;
    turn_count = turns;
    job_phase("all ranks change a few words");
    set_words();
    gex_AD_Create(&of_u64, job.tm, GEX_DT_U64, DEVICE_OPS, 0);
    gex_AD_Create(&of_i32, job.tm, GEX_DT_I32, ops, GEX_FLAG_AD_FAVOR_REMOTE);
    gex_AD_Create(&of_dbl, job.tm, GEX_DT_DBL, ops, GEX_FLAG_AD_FAVOR_MY_NBRHD);
    job_barrier();
    in_threads(work);
    job_barrier();
    check_sums(all_turns());
    job_phase("all ranks add to one word");
    job_barrier();
    in_threads(burst);
    check_burst();
    job_barrier();
    gex_AD_Destroy(of_u64);
    gex_AD_Destroy(of_i32);
    gex_AD_Destroy(of_dbl);
}
