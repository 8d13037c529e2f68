/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small arithmetic. */
#ifndef TK_BITS_H
#define TK_BITS_H

#include <stddef.h>
#include <stdint.h>

#define tk_if_likely(condition)   if (__builtin_expect(!!(condition), 1))
#define tk_if_unlikely(condition) if (__builtin_expect(!!(condition), 0))

/* For data on hot paths: accessed directly instead of through the GOT. */
#define TK_HIDDEN __attribute__((visibility("hidden")))

/* Keeps the object in memory with contents unknown to the compiler: values needed only when a call
 * fails are then stored before the call, instead of being kept in registers that have to be saved
 * for it. */
#define tk_keep_in_memory(object) __asm__("" : "+m"(object))

/* For use after a call: makes the compiler recompute what it has derived from the value, such as
 * addresses of members, instead of keeping that in registers that have to be saved over the
 * call. */
#define tk_compute_again(value) __asm__("" : "+r"(value))

#define TK_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* Requests the line of `at` for writing. Compilers emit a prefetch for reading unless told that the
 * processor has this instruction; an x86-64 one that lacks it does nothing. */
static inline void tk_prefetch_write(const char *at)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*at));
#else
    __builtin_prefetch(at, 1);
#endif
}

/* `unit` is a power of two. */
static inline size_t tk_align_up(size_t value, size_t unit)
{
    return (value + unit - 1) & ~(unit - 1);
}

/* Of a number above 0, rounded down. */
static inline unsigned tk_log2(uint64_t number)
{
    return 63u - (unsigned)__builtin_clzll(number);
}

static inline size_t tk_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t tk_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
