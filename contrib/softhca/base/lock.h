/* SPDX-License-Identifier: BSD-3-Clause */
/* The two locks of softhca. struct shca_lock is private to a process (a short spin, then yield).
 * The responder lock (shca_rx_*) lives in shared memory and holds the pid of its owner; when that
 * process is gone it is taken over, and shca_rx_lock repairs the half-done receive it left. */
#ifndef SHCA_LOCK_H
#define SHCA_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "layout.h"

struct shca_lock {
    _Atomic int word;
};

/* Tells the core that this is a spin. */
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

static inline bool shca_trylock(struct shca_lock *l)
{
    return atomic_load_explicit(&l->word, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(&l->word, 1, memory_order_acquire) == 0;
}

static inline void shca_lock(struct shca_lock *l)
{
    unsigned turns = 0;

    while (!shca_trylock(l))
        shca_relax(&turns);
}

static inline void shca_unlock(struct shca_lock *l)
{
    atomic_store_explicit(&l->word, 0, memory_order_release);
}

/* Takes a lock that holds the pid of its owner; true when it was taken over from a dead process. */
bool shca_pid_lock_slow(_Atomic uint32_t *word, uint32_t pid);

static inline bool shca_pid_lock(_Atomic uint32_t *word, uint32_t pid)
{
    uint32_t free = 0;

    /* seq_cst: pairs with the key that ibv_dereg_mr clears before it looks at the locks. */
    return !atomic_compare_exchange_strong(word, &free, pid) && shca_pid_lock_slow(word, pid);
}

static inline void shca_pid_unlock(_Atomic uint32_t *word)
{
    atomic_store_explicit(word, 0, memory_order_release);
}

/* Takes the responder lock of a queue pair that lives in segment seg; the slow part waits and takes
 * over from the dead. pid is the caller's. */
void shca_rx_lock_slow(struct shca_segment *seg, struct shca_qp_sh *q, uint32_t pid);

static inline void shca_rx_lock(struct shca_segment *seg, struct shca_qp_sh *q, uint32_t pid)
{
    uint32_t free = 0;

    /* seq_cst: pairs with the key that ibv_dereg_mr clears before it looks at the locks. */
    if (!atomic_compare_exchange_strong(&q->lock, &free, pid))
        shca_rx_lock_slow(seg, q, pid);
}

static inline void shca_rx_unlock(struct shca_qp_sh *q)
{
    atomic_store_explicit(&q->lock, 0, memory_order_release);
}

/* Is the process that holds a lock of shared memory no longer there? Costs a look at the registry.
 */
bool shca_holder_gone(uint32_t pid);

/* Returns when every holder that was inside at the call has left: nothing it decided earlier can
 * still reach memory. */
void shca_pid_quiesce(_Atomic uint32_t *word);

#endif
