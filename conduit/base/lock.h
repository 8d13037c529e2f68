/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks that cost nothing where calls cannot run at the same time.
 *
 * Rank (take in this order, never the other way): a peer's lock, then one pool's lock. A completion
 * queue's lock is only tried, never waited for, and is released before any completion is acted
 * upon: handlers may call back into the library. */
#ifndef TK_LOCK_H
#define TK_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/mode.h"

#if TK_THREADED

typedef struct {
    pthread_mutex_t mutex;
} tk_lock_t;

#    define TK_LOCK_INIT                                                                           \
        {                                                                                          \
            PTHREAD_MUTEX_INITIALIZER                                                              \
        }

static inline void tk_lock_init(tk_lock_t *lock)
{
    pthread_mutex_init(&lock->mutex, NULL);
}

static inline void tk_lock(tk_lock_t *lock)
{
    pthread_mutex_lock(&lock->mutex);
}

static inline bool tk_trylock(tk_lock_t *lock)
{
    return pthread_mutex_trylock(&lock->mutex) == 0;
}

static inline void tk_unlock(tk_lock_t *lock)
{
    pthread_mutex_unlock(&lock->mutex);
}

#else

typedef struct {
    char nothing;
} tk_lock_t;

#    define TK_LOCK_INIT                                                                           \
        {                                                                                          \
            0                                                                                      \
        }

static inline void tk_lock_init(tk_lock_t *lock)
{
    (void)lock;
}

static inline void tk_lock(tk_lock_t *lock)
{
    (void)lock;
}

static inline bool tk_trylock(tk_lock_t *lock)
{
    (void)lock;
    return true;
}

static inline void tk_unlock(tk_lock_t *lock)
{
    (void)lock;
}

#endif
#endif
