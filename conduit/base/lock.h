/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks that cost nothing where calls cannot run at the same time.
 *
 * Lock order: a peer's lock, then one pool's lock, never the other way. A thread only tries a
 * completion queue's lock, never waits for it, and releases it before it handles any completion:
 * handlers may call back into the library. */
#ifndef TK_LOCK_H
#define TK_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/counter.h"
#include "base/mode.h"

#if TK_THREADED

/* A thread holds a lock for some tens of instructions and takes several locks in each operation:
 * one exchange to take and one store to release cost half as much as a mutex. A thread that finds
 * it taken spins a little, then yields its CPU: the holder may be waiting for that very CPU.
 *
 * A process with one thread takes the locks too, except in the fast paths of puts, gets and
 * atomics. A flag that the second thread sets would not do: the first may be preempted between
 * reading it and the accesses that the lock guards, and a membarrier orders those accesses but does
 * not move the thread back out of the critical section. But the kernel tells a thread whether it
 * has started another one itself, which it does not do inside of these paths: tk_is_only_inside()
 * of process/alone.h, four instructions for all locks of an operation. That takes 21 of the 162
 * instructions of a put of 8 bytes, and five locked ones of 5 ns each. A free lock takes five
 * instructions; recv_cq_lock, which is read before it is taken, takes eight.
 */
static inline void tk_lock_init(tk_lock_t *lock)
{
    atomic_init(&lock->held, false);
}

static inline bool tk_trylock(tk_lock_t *lock)
{
    return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

/* tk_trylock() for locks that are nearly always free. It skips the load before the exchange: the
 * load pays only under contention, where it leaves the cache line with the holder. */
static inline bool tk_trylock_free(tk_lock_t *lock)
{
    return !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

/* lock.c. Takes a lock that another thread holds; not inline, so that hot paths keep no register
 * for it. */
void tk_lock_wait(tk_lock_t *lock);

static inline void tk_lock(tk_lock_t *lock)
{
    if (__builtin_expect(!tk_trylock_free(lock), 0))
        tk_lock_wait(lock);
}

static inline void tk_unlock(tk_lock_t *lock)
{
    atomic_store_explicit(&lock->held, false, memory_order_release);
}

#else

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

static inline bool tk_trylock_free(tk_lock_t *lock)
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
