/* SPDX-License-Identifier: BSD-3-Clause */
/* Time of the workloads: monotonic nanoseconds, CPU time of the calling thread, and the phases of a
 * measured run (warm-up, then what counts). */
#ifndef WL_CLOCK_H
#define WL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define WL_SECOND UINT64_C(1000000000)

static inline uint64_t wl_clock(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * WL_SECOND + (uint64_t)t.tv_nsec;
}

static inline uint64_t wl_now(void)
{
    return wl_clock(CLOCK_MONOTONIC);
}

static inline uint64_t wl_cpu(void)
{
    return wl_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* A CPU counter with a constant rate, for intervals so short that reading the time must be cheap;
 * nanoseconds if the CPU has no such counter. */
#if defined(__x86_64__)
static inline uint64_t wl_cycles(void)
{
    return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
static inline uint64_t wl_cycles(void)
{
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
}
#else
static inline uint64_t wl_cycles(void)
{
    return wl_now();
}
#endif

enum wl_phase { wl_warming, wl_measuring, wl_over };

/* A thread's measurement: time and CPU time between the end of the warm-up and the end of the run.
 */
struct wl_span {
    enum wl_phase phase;
    uint64_t warm_until, over_at; /* over_at: UINT64_MAX when something else ends the run */
    uint64_t began, began_cpu, ended, ended_cpu;
};

/* `duration` 0: until wl_span_end(). */
static inline struct wl_span wl_span_start(uint64_t now, uint64_t warmup, uint64_t duration)
{
    return (struct wl_span){.phase = wl_warming,
                            .warm_until = now + warmup,
                            .over_at = duration ? now + warmup + duration : UINT64_MAX};
}

static inline void wl_span_end(struct wl_span *span, uint64_t now)
{
    if (span->phase == wl_warming) {
        span->began = now;
        span->began_cpu = wl_cpu();
    }
    if (span->phase != wl_over) {
        span->ended = now;
        span->ended_cpu = wl_cpu();
        span->phase = wl_over;
    }
}

/* True once: when the warm-up is over, and the counters start anew. */
static inline bool wl_span_step(struct wl_span *span, uint64_t now)
{
    if (now >= span->over_at) {
        wl_span_end(span, now);
        return false;
    }
    if (span->phase != wl_warming || now < span->warm_until)
        return false;
    span->phase = wl_measuring;
    span->began = now;
    span->began_cpu = wl_cpu();
    return true;
}

#endif
