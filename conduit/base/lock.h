/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks that cost nothing where calls cannot run at the same time.
 *
 * Lock order: a peer's lock, then one pool's lock, never the other way. A completion queue's lock
 * is only tried, never waited for, and is released before any completion is handled: handlers may
 * call back into the library. */
#ifndef TK_LOCK_H
#define TK_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/counter.h"
#include "base/mode.h"

#if TK_THREADED

/* Held for some tens of instructions, and taken several times in each operation: one exchange to
 * take and one store to release cost half of a mutex. A thread that finds it taken spins a little,
 * then yields its CPU: the holder may be waiting for that very CPU.
 *
 * No lock is left out while a process has one thread. To read a word that says so is not enough:
 * the thread may be stopped between that read and what the lock guards, and a membarrier by the
 * second thread orders its accesses but does not bring it back. So it would have to store that it
 * is inside before it reads the word, and the second thread would wait until it is out: store,
 * compare, jump, store, where a free lock takes five instructions, and recv_cq_lock, which is
 * looked at first, eight. That is 4 of the 42 of an empty poll of the network, none of the 32 of
 * one of neighbours, which takes no lock, and 12 of the 467 of a Short's round trip, as long as no
 * caller saves registers for the slow way: where they did a put was 50 dearer. In time a lock is 5
 * ns, and that would be 1. Threads of the library, as those that serve the network, are second ones
 * too. */
static inline void tk_lock_init(tk_lock_t *lock)
{
    atomic_init(&lock->held, false);
}

static inline bool tk_trylock(tk_lock_t *lock)
{
    return !atomic_load_explicit(&lock->held, memory_order_relaxed) &&
           !atomic_exchange_explicit(&lock->held, true, memory_order_acquire);
}

/* As tk_trylock() for locks that are nearly always free: no load beforehand, which only pays under
 * contention, where it leaves the cache line with the holder. */
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
