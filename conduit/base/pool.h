/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A pool of equal items: a stack of free ones under a lock. Last in, first out, so that the items
 * in use stay in cache. The first word of a free item belongs to the pool. */
#ifndef TK_POOL_H
#define TK_POOL_H

#include <stddef.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/pool_type.h"

static inline void tk_pool_init(struct tk_pool *pool)
{
    tk_lock_init(&pool->lock);
    pool->free = NULL;
}

/* NULL when the pool is empty. */
static inline void *tk_pool_take(struct tk_pool *pool)
{
    tk_lock(&pool->lock);
    struct tk_pool_item *item = pool->free;
    if (item)
        pool->free = item->next;
    tk_unlock(&pool->lock);
    return item;
}

/* As tk_pool_take(), but also NULL if another thread holds the lock: for callers with an
 * alternative. */
static inline void *tk_pool_try(struct tk_pool *pool)
{
    tk_if_unlikely(!tk_trylock_free(&pool->lock)) return NULL;
    struct tk_pool_item *item = pool->free;
    if (item)
        pool->free = item->next;
    tk_unlock(&pool->lock);
    return item;
}

static inline void tk_pool_give(struct tk_pool *pool, void *item)
{
    struct tk_pool_item *first = item;
    tk_lock(&pool->lock);
    first->next = pool->free;
    pool->free = first;
    tk_unlock(&pool->lock);
}

/* Several at once, already linked from `first` to `last`. */
static inline void tk_pool_give_all(struct tk_pool *pool, struct tk_pool_item *first,
                                    struct tk_pool_item *last)
{
    tk_lock(&pool->lock);
    last->next = pool->free;
    pool->free = first;
    tk_unlock(&pool->lock);
}

#endif
