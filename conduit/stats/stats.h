/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of the library, always enabled. In PAR each thread counts in a block of its own; SEQ and
 * PARSYNC have one block in all. No lock, no atomics, one addition for each count. Blocks are never
 * freed; a new thread reuses the block of a thread that ended, so the sum over all blocks is exact
 * whenever no thread is counting. */
#ifndef TK_STATS_H
#define TK_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/mode.h"
#include "base/platform.h"
#include "base/thread_own.h"
#include "base/traced.h"
#include "stats/table.h"

struct tk_stats_block {
    struct tk_stats stats;
    struct tk_stats_block *next, *next_free;
};

/* The block of all threads if calls can't run at the same time; in PAR for rare events. */
extern TK_HIDDEN struct tk_stats_block tk_stats_only;

/* In PAR: the block of this thread. Initially it is a shared dummy block in which every word stays
 * negative: the first count of a thread detects that, and gets the thread a block of its own. */
extern TK_HIDDEN TK_PER_THREAD_NEAR struct tk_stats_block *tk_stats_mine;

/* Gives this thread its block, if it has none. */
void tk_stats_begin_thread(void);

/* Only in PAR, called by the above. */
void tk_stats_count_first(enum tk_counter counter, uint64_t amount);
void tk_stats_transfer_first(enum tk_path_counted path, enum tk_counter bytes, size_t nbytes);

/* ThreadSanitizer must not see threads that count in the dummy block. */
static inline bool tk_stats_is_first(const struct tk_stats_block *block, uint64_t count)
{
    return TK_THREADED && (TK_IS_TSAN ? block->next_free == block : (int64_t)count < 0);
}

static inline struct tk_stats_block *tk_stats_block(void)
{
    return TK_THREADED ? tk_stats_mine : &tk_stats_only;
}

static inline void tk_count_add(enum tk_counter counter, uint64_t amount)
{
    struct tk_stats_block *block = tk_stats_block();
    if (TK_IS_TSAN && tk_stats_is_first(block, 0)) {
        tk_stats_count_first(counter, amount);
        return;
    }
    uint64_t *at = &block->stats.counts[counter];
    *at += amount;
    tk_if_unlikely(!TK_IS_TSAN && tk_stats_is_first(block, *at))
        tk_stats_count_first(counter, amount);
}

static inline void tk_count(enum tk_counter counter)
{
    tk_count_add(counter, 1);
}

/* For a thread that has its block: it has counted before, or has called tk_count_mine(). */
static inline void tk_count_more(enum tk_counter counter, uint64_t amount)
{
    tk_stats_block()->stats.counts[counter] += amount;
}

/* The same for hot paths, which handle the rare case by a tail call: false if nothing was counted
 * because the thread has no block. The caller then passes its own arguments to a function that
 * gives it one and starts again. */
static inline bool tk_count_mine(enum tk_counter counter)
{
    struct tk_stats_block *block = tk_stats_block();
    if (TK_IS_TSAN && tk_stats_is_first(block, 0))
        return false;
    uint64_t *at = &block->stats.counts[counter];
    *at += 1;
    return TK_IS_TSAN || !tk_stats_is_first(block, *at);
}

/* ---- The budget of requests: how many this thread may send before one polls (progress.h) ---- */

/* For a Short, which this also counts. False: the budget is used up, or the thread has no block;
 * nothing was counted, and tk_stats_grant() must be called next. */
static inline bool tk_stats_take_turn(void)
{
    struct tk_stats_block *block = tk_stats_block();
    if (TK_IS_TSAN && tk_stats_is_first(block, 0))
        return false;
    return (int64_t)--block->stats.requests_left >= 0;
}

/* For a request other than a Short. */
static inline bool tk_stats_take_turn_uncounted(void)
{
    tk_if_unlikely(!tk_stats_take_turn()) return false;
    tk_stats_block()->stats.requests_granted--;
    return true;
}

/* After the budget was used up: grants the next that many requests. */
void tk_stats_grant(unsigned requests);

/* A Short was not sent after all; it still used up its part of the budget. */
static inline void tk_stats_uncount_short_request(void)
{
    tk_stats_block()->stats.requests_granted--;
}

/* For traces: the path of this thread's last transfer plus 1; 0: none yet. */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_path_taken;

/* For traces: bytes of a call by rail. Rails beyond the last one that fits count as that one. */
enum { tk_rails_taken_max = 16 };
struct tk_rails_taken {
    uint32_t used; /* a bit for each rail; bytes of others are not set */
    uint64_t bytes[tk_rails_taken_max];
};

/* Of this thread's current call. NULL: it is not recorded, or it polls for others. Only libraries
 * that trace use it, so it takes no static TLS of the others. */
static inline struct tk_rails_taken **tk_rails_taken(void)
{
    return tk_thread_own(TK_OWN_RAILS, sizeof(struct tk_rails_taken *));
}

/* Part of the current call was posted on this rail. */
static inline void tk_rail_take(unsigned rail, size_t nbytes)
{
    struct tk_rails_taken *taken = tk_is_traced ? *tk_rails_taken() : NULL;
    if (!taken)
        return;
    unsigned at = rail < tk_rails_taken_max ? rail : tk_rails_taken_max - 1;
    if (!(taken->used & 1U << at))
        taken->bytes[at] = 0;
    taken->used |= 1U << at;
    taken->bytes[at] += nbytes;
}

static inline bool tk_count_transfer_mine(enum tk_path_counted path, enum tk_counter bytes,
                                          size_t nbytes)
{
    struct tk_stats_block *block = tk_stats_block();
    if (tk_is_traced)
        tk_path_taken = 1 + path;
    if (TK_IS_TSAN && tk_stats_is_first(block, 0))
        return false;
    uint64_t *at = &block->stats.transfers[path][tk_log2(nbytes)];
    *at += 1;
    tk_if_unlikely(!TK_IS_TSAN && tk_stats_is_first(block, *at)) return false;
    block->stats.counts[bytes] += nbytes;
    return true;
}

/* The same for an inline put of up to tk_small_put_max bytes. */
static inline bool tk_count_small_put_mine(size_t nbytes)
{
    struct tk_stats_block *block = tk_stats_block();
    if (tk_is_traced)
        tk_path_taken = 1 + tk_path_puts_inline;
    if (TK_IS_TSAN && tk_stats_is_first(block, 0))
        return false;
    uint64_t *at = &block->stats.small_puts[nbytes];
    *at += 1;
    return TK_IS_TSAN || !tk_stats_is_first(block, *at);
}

/* Counts an empty poll; returns the result of the poll. */
bool tk_stats_poll_first(enum tk_counter counter);
static inline bool tk_count_empty_poll(enum tk_counter counter)
{
    tk_if_unlikely(!tk_count_mine(counter)) return tk_stats_poll_first(counter);
    return false;
}

/* For rare events, and for threads and places that may not allocate: one atomic addition. A counter
 * uses this function everywhere or nowhere. */
static inline void tk_count_rare(enum tk_counter counter)
{
    __atomic_fetch_add(&tk_stats_only.stats.counts[counter], 1, __ATOMIC_RELAXED);
}

/* For a counter that one lock guards everywhere. */
static inline void tk_count_locked(enum tk_counter counter)
{
    tk_stats_only.stats.counts[counter]++;
}

/* Undoes a count of this thread. */
static inline void tk_uncount(enum tk_counter counter)
{
    tk_stats_block()->stats.counts[counter]--;
}

/* A put or get of at least one byte. */
static inline void tk_count_transfer(enum tk_path_counted path, enum tk_counter bytes,
                                     size_t nbytes)
{
    tk_if_unlikely(!tk_count_transfer_mine(path, bytes, nbytes))
        tk_stats_transfer_first(path, bytes, nbytes);
}

/* This thread's last attempt failed for lack of a credit: set where that is detected, cleared where
 * the thread waits for it. */
extern TK_HIDDEN TK_PER_THREAD bool tk_lacks_credit;

#endif
