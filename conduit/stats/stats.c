/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of counters. Owns the list of all blocks, which only grows and is read without a lock; the
 * list of free blocks, under a lock; and the counts at the last reset. Only its thread writes a
 * block. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "base/wait_record.h"
#include "stats/stats.h"
#include "stats/write.h"

struct tk_stats_block tk_stats_only;

/* Every word is always negative: no process makes 2^62 counts. `next_free` marks it. */
static struct tk_stats_block nobody = {.next_free = &nobody};
TK_PER_THREAD_NEAR struct tk_stats_block *tk_stats_mine = &nobody;

TK_PER_THREAD bool tk_lacks_credit;
TK_PER_THREAD unsigned tk_path_taken;

static struct tk_stats_block *_Atomic blocks; /* of threads */
static struct tk_stats_block *unused;
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tk_stats at_reset;

/* Before main: no thread has counted yet. */
__attribute__((constructor)) static void make_negative(void)
{
    uint64_t *word = (uint64_t *)(void *)&nobody.stats;
    for (unsigned i = 0; TK_THREADED && i < tk_stats_words; i++)
        word[i] = UINT64_C(3) << 62;
}

static void stats_leave(void *block)
{
    struct tk_stats_block *mine = block;
    tk_stats_mine = &nobody; /* later destructors of this thread may still count */
    pthread_mutex_lock(&unused_lock);
    mine->next_free = unused;
    unused = mine;
    pthread_mutex_unlock(&unused_lock);
}

static void stats_make_key(void)
{
    pthread_key_create(&thread_end, stats_leave);
}

static struct tk_stats_block *make_block(void)
{
    /* Whole cache lines: its thread writes there in each operation, and the adjacent memory may
     * belong to another thread. */
    size_t size = tk_align_up(sizeof(struct tk_stats_block), TK_CACHE_LINE);
    struct tk_stats_block *block = aligned_alloc(TK_CACHE_LINE, size);
    if (!block)
        tk_panic("out of memory for %zu bytes of counters", sizeof(*block));
    memset(block, 0, size);
    block->next = atomic_load_explicit(&blocks, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&blocks, &block->next, block,
                                                  memory_order_release, memory_order_relaxed))
        continue;
    return block;
}

void tk_stats_begin_thread(void)
{
    if (!TK_THREADED || tk_stats_mine != &nobody)
        return;
    pthread_once(&once, stats_make_key);
    pthread_mutex_lock(&unused_lock);
    struct tk_stats_block *block = unused;
    if (block)
        unused = block->next_free;
    pthread_mutex_unlock(&unused_lock);
    if (!block)
        block = make_block();
    block->next_free = NULL;
    tk_stats_mine = block;
    pthread_setspecific(thread_end, block);
}

void tk_stats_grant(unsigned requests)
{
    if (TK_THREADED && tk_stats_mine == &nobody)
        tk_stats_begin_thread();
    else
        tk_stats_block()->stats.requests_left++;
    struct tk_stats *stats = &tk_stats_block()->stats;
    stats->requests_granted += requests - stats->requests_left;
    stats->requests_left = requests;
}

void tk_stats_count_first(enum tk_counter counter, uint64_t amount)
{
    tk_stats_begin_thread();
    tk_stats_mine->stats.counts[counter] += amount;
}

void tk_stats_transfer_first(enum tk_path_counted path, enum tk_counter bytes, size_t nbytes)
{
    tk_stats_begin_thread();
    tk_stats_mine->stats.transfers[path][tk_log2(nbytes)]++;
    tk_stats_mine->stats.counts[bytes] += nbytes;
}

bool tk_stats_poll_first(enum tk_counter counter)
{
    tk_stats_count_first(counter, 1);
    return false;
}

static void sum_of_all(struct tk_stats *sum)
{
    memset(sum, 0, sizeof(*sum));
    tk_stats_add(sum, &tk_stats_only.stats, 1);
    for (const struct tk_stats_block *block = atomic_load_explicit(&blocks, memory_order_acquire);
         block; block = block->next)
        tk_stats_add(sum, &block->stats, 1);
}

void tk_stats_sum(struct tk_stats *sum)
{
    sum_of_all(sum);
    tk_stats_add(sum, &at_reset, UINT64_MAX);
    tk_stats_fold(sum);
}

void tk_stats_reset(void)
{
    sum_of_all(&at_reset);
}

_Static_assert(offsetof(struct tk_stats_block, next) == sizeof(struct tk_stats),
               "a reader outside finds the next block behind the words of one");

void tk_stats_show(struct tk_wait_counters *places)
{
    places->shared = (uintptr_t)&tk_stats_only;
    places->list = (uintptr_t)&blocks;
    places->at_reset = (uintptr_t)&at_reset;
    places->layout = tk_stats_layout;
}
