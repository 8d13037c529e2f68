/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The two kinds of locks of softhca. struct shca_lock is private to a process (a short spin, then
 * yield). The responder lock (shca_rx_*) is in shared memory and holds the pid of its owner; when
 * that process has died the lock is taken over, and shca_rx_lock repairs the receive that it left
 * half-done. */
#ifndef SHCA_LOCK_H
#define SHCA_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment_layout.h"

struct shca_lock {
    _Atomic int word;
};

/* The processor's hint for spin loops. */
#if defined(__x86_64__) || defined(__i386__)
static inline void shca_pause(void)
{
    __builtin_ia32_pause();
}
#else
static inline void shca_pause(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}
#endif

static inline void shca_relax(unsigned *turns)
{
    if (++*turns % 64 == 0)
        sched_yield();
    else
        shca_pause();
}

__attribute__((always_inline)) static inline bool shca_trylock(struct shca_lock *l)
{
    return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(&l->word, 1, memory_order_acquire) == 0;
}

void shca_lock_slow(struct shca_lock *l);

/* Always inlined, even if a function calls it often: it is on the path of each request. */
__attribute__((always_inline)) static inline void shca_lock(struct shca_lock *l)
{
    if (__builtin_expect(!shca_trylock(l), 0))
        shca_lock_slow(l);
}

static inline void shca_unlock(struct shca_lock *l)
{
    atomic_store_explicit(&l->word, 0, memory_order_release);
}

/* Takes a lock that holds the pid of its owner; true: taken over from a dead process. */
bool shca_pid_lock_slow(_Atomic uint32_t *word, uint32_t pid);

static inline bool shca_pid_lock(_Atomic uint32_t *word, uint32_t pid)
{
    uint32_t free = 0;

    /* seq_cst: pairs with ibv_dereg_mr, which clears the key before it reads the locks. */
    return !atomic_compare_exchange_strong(word, &free, pid) && shca_pid_lock_slow(word, pid);
}

static inline void shca_pid_unlock(_Atomic uint32_t *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
}

/* Takes the responder lock of a queue pair that lives in segment seg; the slow path waits, and
 * takes over from dead processes. pid is the caller's. */
void shca_rx_lock_slow(struct shca_segment *seg, struct shca_qp_sh *q, uint32_t pid);

static inline void shca_rx_lock(struct shca_segment *seg, struct shca_qp_sh *q, uint32_t pid)
{
    uint32_t free = 0;

    /* seq_cst: pairs with ibv_dereg_mr, which clears the key before it reads the locks. */
    if (!atomic_compare_exchange_strong(&q->lock, &free, pid))
        shca_rx_lock_slow(seg, q, pid);
}

static inline void shca_rx_unlock(struct shca_qp_sh *q)
{
    atomic_store_explicit(&q->lock, 0, memory_order_release);
}

/* Whether the process that holds a lock in shared memory has died. Costs a read of the registry. */
bool shca_holder_gone(uint32_t pid);

/* Returns when the current holder, if any, has released the lock: nothing that it decided before
 * the call can still reach memory. */
void shca_pid_quiesce(_Atomic uint32_t *word);

#endif
