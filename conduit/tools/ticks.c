/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ticks and their rate. Owns the choice of a source, made on first use under a lock, and the rate,
 * determined on the first conversion under pthread_once(); both are written once. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "common/clock.h"
#include "common/number.h"
#include "base/report.h"
#include "tools/counter.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

enum {
    base_rounds = 16,          /* the fastest of this many readings of both clocks is kept */
    measure_ns = 10 * 1000000, /* two readings have an error of some 50 ns: 5 millionths of this */
    overhead_rounds = 10000
};

/* Allowed deviation of a given rate from the measured one: the clocks of healthy hosts agree to
 * some millionths, and a wrong rate is off by a percent or more. */
static const double tolerance_default = 0.0005, hard_tolerance_default = 0.01;

struct reading {
    uint64_t ticks, ns;
};

int trunkline_ticks_by_counter;
static struct reading base;
static atomic_int is_chosen;
static double ns_per_tick = 1;
static uint64_t multiplier; /* ns per tick as a fixed-point number with 32 fraction bits */

/* An interruption between the clocks makes a reading take longer, so the shortest is the most
 * accurate. */
static struct reading read_both(void)
{
    struct reading best = {0, 0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < base_rounds; i++) {
        uint64_t before = tk_now(), ticks = trunkline_ticks_counter(), after = tk_now();
        if (after - before < least) {
            least = after - before;
            best.ticks = ticks;
            best.ns = before + least / 2;
        }
    }
    return best;
}

static pthread_mutex_t ticks_choice_lock = PTHREAD_MUTEX_INITIALIZER;

static void ticks_choose(void)
{
    pthread_mutex_lock(&ticks_choice_lock);
    if (!atomic_load_explicit(&is_chosen, memory_order_relaxed)) {
        bool good = tk_tools_counter_is_good();
        if (good)
            base = read_both();
        __atomic_store_n(&trunkline_ticks_by_counter, good, __ATOMIC_RELEASE);
        atomic_store_explicit(&is_chosen, 1, memory_order_release);
    }
    pthread_mutex_unlock(&ticks_choice_lock);
}

gasnett_tick_t trunkline_ticks_by_call(void)
{
    if (!atomic_load_explicit(&is_chosen, memory_order_acquire))
        ticks_choose();
    return trunkline_ticks_by_counter ? trunkline_ticks_counter() : tk_now();
}

static double measured_hz(void)
{
    struct reading now = read_both();
    while (now.ns - base.ns < measure_ns)
        now = read_both();
    return (double)(now.ticks - base.ticks) * 1e9 / (double)(now.ns - base.ns);
}

static double tolerance(const char *name, double otherwise)
{
    double value;
    const char *text = tk_tools_lookup(name);
    if (!text || !*text)
        return otherwise;
    if (!tk_number_real(text, &value) || value < 0 || value > 1)
        tk_tools_refuse("%s='%s' is not a number from 0 to 1 (0: no check)", name, text);
    return value;
}

/* A rate given by the user is compared with the clock, because every converted time depends on it.
 */
static void compare(const char *source, double hz, double measured)
{
    double off = fabs(hz - measured) / measured;
    double soft = tolerance("GASNET_TSC_RATE_TOLERANCE", tolerance_default);
    double hard = tolerance("GASNET_TSC_RATE_HARD_TOLERANCE", hard_tolerance_default);
    if (hard > 0 && off > hard)
        tk_tools_refuse("GASNET_TSC_RATE=%s gives %.0f Hz, but %.0f Hz were measured: they "
                        "differ by more than GASNET_TSC_RATE_HARD_TOLERANCE=%g; unset it "
                        "or use walltime",
                        source, hz, measured, hard);
    if (soft > 0 && off > soft)
        tk_log_warn(
            "GASNET_TSC_RATE=%s gives %.0f Hz, but %.0f Hz were measured: they differ by more "
            "than GASNET_TSC_RATE_TOLERANCE=%g",
            source, hz, measured, soft);
}

/* The setting, which is checked on machines without a steady counter too. *given: a number, else
 * 0. */
static const char *rate_source(int64_t *given)
{
    const char *source = tk_tools_lookup("GASNET_TSC_RATE");
    *given = 0;
    if (!source || !*source)
        return "walltime";
    if (strcasecmp(source, "walltime") != 0 && strcasecmp(source, "cpuinfo") != 0 &&
        (!tk_number_whole(source, 0, given) || *given < 1000000))
        tk_tools_refuse("GASNET_TSC_RATE='%s' is not walltime, cpuinfo or a rate from 1000000 Hz",
                        source);
    return source;
}

static double chosen_hz(const char *source, int64_t given)
{
    double known = tk_tools_counter_hz();
    double measured = known > 0 ? known : measured_hz();
    if (!strcasecmp(source, "walltime"))
        return measured;
    double hz = given ? (double)given : tk_tools_cpuinfo_hz();
    if (hz <= 0)
        return measured; /* /proc/cpuinfo has no rate */
    compare(source, hz, measured);
    return hz;
}

static void settle_rate(void)
{
    int64_t given;
    const char *source = rate_source(&given);
    trunkline_ticks_by_call();
    if (trunkline_ticks_by_counter)
        ns_per_tick = 1e9 / chosen_hz(source, given);
    multiplier = (uint64_t)(ns_per_tick * 4294967296.0 + 0.5);
    if (!tk_tools_is_on("GASNET_TSC_VERBOSE", false))
        return;
    if (trunkline_ticks_by_counter)
        tk_log_info("ticks: the processor's counter at %.0f Hz", 1e9 / ns_per_tick);
    else
        tk_log_info(
            "ticks: the monotonic clock; the processor's counter is not known to be steady");
}

uint64_t gasnett_ticks_to_ns(gasnett_tick_t ticks)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, settle_rate);
    return (uint64_t)(((unsigned __int128)ticks * multiplier) >> 32);
}

uint64_t gasnett_ticks_to_us(gasnett_tick_t ticks)
{
    return gasnett_ticks_to_ns(ticks) / 1000;
}

static double granularity, overhead;

static void time_the_timer(void)
{
    uint64_t least = UINT64_MAX;
    gasnett_tick_t first = gasnett_ticks_now(), last = first;
    for (int i = 0; i < overhead_rounds; i++) {
        gasnett_tick_t now = gasnett_ticks_now();
        if (now > last && now - last < least)
            least = now - last;
        last = now;
    }
    overhead = (double)gasnett_ticks_to_ns(last - first) / 1000.0 / overhead_rounds;
    granularity = (double)least * ns_per_tick / 1000.0;
}

static void settle_timer(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, time_the_timer);
}

double gasnett_tick_granularityus(void)
{
    settle_timer();
    return granularity;
}

double gasnett_tick_overheadus(void)
{
    settle_timer();
    return overhead;
}

uint64_t gasnett_gettimeofday_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int gasnett_nsleep(uint64_t ns_delay)
{
    struct timespec wanted = {.tv_sec = (time_t)(ns_delay / TK_SECOND),
                              .tv_nsec = (long)(ns_delay % TK_SECOND)};
    return clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, NULL);
}
