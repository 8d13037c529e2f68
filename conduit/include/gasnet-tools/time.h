/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ticks: the processor's counter if its rate is constant, otherwise the monotonic clock. The
 * library owns the choice and the rate; both are determined at first use. */
#ifndef GASNET_TOOLS_TIME_H
#define GASNET_TOOLS_TIME_H

GASNETT_BEGIN_EXTERNC

/* Comparable between all threads of a host, not between hosts. */
typedef uint64_t gasnett_tick_t;
#define GASNETT_TICK_MIN ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX (~(gasnett_tick_t)0)

/* Non-zero once the counter is known to be usable; until then, and always if it is not, ticks come
 * from the function. */
extern int trunkline_ticks_by_counter;
gasnett_tick_t trunkline_ticks_by_call(void);

#if defined(PLATFORM_ARCH_X86_64)
TRUNKLINE_TOOLS_INLINE gasnett_tick_t trunkline_ticks_counter(void)
{
    uint32_t low, high;
    __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return ((gasnett_tick_t)high << 32) | low;
}
#elif defined(PLATFORM_ARCH_AARCH64)
TRUNKLINE_TOOLS_INLINE gasnett_tick_t trunkline_ticks_counter(void)
{
    uint64_t count;
    __asm__ __volatile__("isb; mrs %0, cntvct_el0" : "=r"(count) : : "memory");
    return count;
}
#else
#    define trunkline_ticks_counter() trunkline_ticks_by_call()
#endif

TRUNKLINE_TOOLS_INLINE gasnett_tick_t gasnett_ticks_now(void)
{
    return GASNETT_PREDICT_TRUE(__atomic_load_n(&trunkline_ticks_by_counter, __ATOMIC_RELAXED))
               ? trunkline_ticks_counter()
               : trunkline_ticks_by_call();
}

/* The first conversion measures the rate, up to 10 ms long (GASNET_TSC_RATE). */
uint64_t gasnett_ticks_to_ns(gasnett_tick_t ticks);
uint64_t gasnett_ticks_to_us(gasnett_tick_t ticks);

/* The smallest step between two readings, and the cost of one; in microseconds. */
double gasnett_tick_granularityus(void);
double gasnett_tick_overheadus(void);

/* Wall clock. */
uint64_t gasnett_gettimeofday_us(void);

/* Sleeps at least that long; non-zero (an errno) if interrupted by a signal. */
int gasnett_nsleep(uint64_t ns_delay);

GASNETT_END_EXTERNC

#endif
