/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters shared by threads in PAR, plain integers elsewhere.
 *
 * A decrement releases and a read acquires: a thread that reads zero sees everything done before
 * the decrements. */
#ifndef TK_ATOMIC_H
#define TK_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/mode.h"
#include "base/platform.h"

#if TK_THREADED

static inline int32_t tk_counter_read(const tk_counter_t *counter)
{
    return atomic_load_explicit((tk_counter_t *)counter, memory_order_acquire);
}

static inline void tk_counter_set(tk_counter_t *counter, int32_t value)
{
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

/* Releases, as a decrement does. */
static inline void tk_counter_leave(tk_counter_t *counter, int32_t value)
{
    atomic_store_explicit(counter, value, memory_order_release);
}

static inline int32_t tk_counter_add(tk_counter_t *counter, int32_t value)
{
    return atomic_fetch_add_explicit(counter, value, memory_order_acq_rel) + value;
}

/* Like tk_counter_add(), for a counter whose writers hold a lock and whose readers do not. Wraps.
 * On x86-64 a single add to memory is enough: its store is not torn and is ordered after all
 * earlier loads and stores, like any store there. Compilers make three instructions of an atomic
 * load and store, and a put does this four times. */
static inline void tk_counter_add_locked(tk_counter_t *counter, int32_t value)
{
#    if defined(__x86_64__) && !TK_IS_TSAN
    __asm__ volatile("addl %1, %0" : "+m"(*counter) : "ri"(value) : "memory", "cc");
#    else
    uint32_t seen = (uint32_t)atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, (int32_t)(seen + (uint32_t)value), memory_order_release);
#    endif
}

/* Takes one if at least `left` then remain. */
static inline bool tk_counter_take_above(tk_counter_t *counter, int32_t left)
{
    int32_t seen = atomic_load_explicit(counter, memory_order_relaxed);
    while (seen > left)
        if (atomic_compare_exchange_weak_explicit(counter, &seen, seen - 1, memory_order_acq_rel,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* Relaxed access to words that a lock guards and that threads without the lock read too. */
#    define TK_UNLOCKED          _Atomic
#    define tk_peek(word)        atomic_load_explicit(word, memory_order_relaxed)
#    define tk_poke(word, value) atomic_store_explicit(word, value, memory_order_relaxed)

#else

static inline int32_t tk_counter_read(const tk_counter_t *counter)
{
    return *(const volatile int32_t *)counter;
}

static inline void tk_counter_set(tk_counter_t *counter, int32_t value)
{
    *(int32_t *)counter = value;
}

static inline void tk_counter_leave(tk_counter_t *counter, int32_t value)
{
    *(int32_t *)counter = value;
}

static inline int32_t tk_counter_add(tk_counter_t *counter, int32_t value)
{
    return *(int32_t *)counter += value;
}

static inline void tk_counter_add_locked(tk_counter_t *counter, int32_t value)
{
    *(int32_t *)counter += value;
}

static inline bool tk_counter_take_above(tk_counter_t *counter, int32_t left)
{
    if (*(int32_t *)counter <= left)
        return false;
    --*(int32_t *)counter;
    return true;
}

#    define TK_UNLOCKED
#    define tk_peek(word)        (*(word))
#    define tk_poke(word, value) ((void)(*(word) = (value)))

#endif

/* Takes one if the counter is above zero. */
static inline bool tk_counter_take(tk_counter_t *counter)
{
    return tk_counter_take_above(counter, 0);
}

#endif
