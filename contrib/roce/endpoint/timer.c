/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The times of a requester: when packets are repeated (measured round trips, doubled at each
 * repetition), when it gives up (the time-outs and counts of the queue pair), and waiting for a
 * receiver that is not ready. Owns the timer of the end point; reads no clock. */
#include "config.h"

#include "endpoint/private.h"

enum { rnr_unit = 10000, doublings = 6 };

static const uint64_t patience = UINT64_C(1000000000); /* between repetitions when timeout is 0 */

/* Specification table 45, in 10 us. */
static const uint16_t rnr_short[32] = {0,    1,    2,    3,     4,     6,     8,     12,
                                       16,   24,   32,   48,    64,    96,    128,   192,
                                       256,  384,  512,  768,   1024,  1536,  2048,  3072,
                                       4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};

uint64_t roce_rnr_ns(unsigned code)
{
    return (code & 31) == 0 ? UINT64_C(65536) * rnr_unit
                            : (uint64_t)rnr_short[code & 31] * rnr_unit;
}

uint64_t roce_timeout_ns(unsigned code)
{
    return UINT64_C(4096) << (code & 31);
}

/* How long a packet may stay without an answer. */
static uint64_t limit_of(const struct roce_endpoint *e)
{
    uint64_t limit = e->a.timeout ? roce_timeout_ns(e->a.timeout) : patience;

    return limit > e->a.repeat_least ? limit : e->a.repeat_least;
}

static uint64_t repeat_after(const struct roce_endpoint *e)
{
    uint64_t time = e->tx.timer.repeat << e->tx.timer.doubled, limit = limit_of(e);

    return time < limit ? time : limit;
}

void roce_timer_start(struct roce_endpoint *e)
{
    memset(&e->tx.timer, 0, sizeof e->tx.timer);
    e->tx.timer.repeat = e->a.repeat_first;
    e->tx.rewound = e->tx.broken_at = UINT64_MAX;
}

void roce_timer_sent(struct roce_endpoint *e, roce_time now, uint64_t number, bool asks)
{
    struct roce_timer *t = &e->tx.timer;

    if (number == e->tx.q.una && t->tries == 0) {
        if (now - t->progress > repeat_after(e))
            roce_window_rest(e);
        t->since = now;
        t->progress = now;
    }
    if (asks && !t->timing) {
        t->timing = true;
        t->timed = number;
        t->timed_at = now;
    }
}

/* RFC 6298's estimator. */
static void measure(struct roce_endpoint *e, uint64_t sample)
{
    struct roce_timer *t = &e->tx.timer;
    uint64_t off = t->smooth > sample ? t->smooth - sample : sample - t->smooth;

    if (t->smooth == 0) {
        t->smooth = sample;
        t->variance = sample / 2;
    } else {
        t->variance = (3 * t->variance + off) / 4;
        t->smooth = (7 * t->smooth + sample) / 8;
    }
    t->repeat = t->smooth + 4 * t->variance;
    if (t->repeat < e->a.repeat_least)
        t->repeat = e->a.repeat_least;
}

void roce_timer_alive(struct roce_endpoint *e, roce_time now)
{
    e->tx.timer.since = e->tx.timer.progress = now;
    e->tx.timer.tries = 0;
}

void roce_timer_progress(struct roce_endpoint *e, roce_time now)
{
    struct roce_timer *t = &e->tx.timer;

    roce_timer_alive(e, now);
    t->doubled = 0;
    t->rnr_tries = 0;
    if (t->timing && e->tx.q.una > t->timed) {
        t->timing = false;
        measure(e, now - t->timed_at);
    }
}

roce_time roce_timer_deadline(const struct roce_endpoint *e)
{
    const struct roce_timer *t = &e->tx.timer;

    if (t->rnr_waiting)
        return t->rnr_until;
    /* Packets that were sent and not set back, or were set back and wait for the window: both have
     * a time. / */
    return e->tx.q.high > e->tx.q.una ? t->since + repeat_after(e) : ROCE_NEVER;
}

static bool used_up(const struct roce_endpoint *e, roce_time now)
{
    const struct roce_timer *t = &e->tx.timer;
    uint32_t count = e->a.retry_count;

    if (e->a.timeout == 0 || (count == 7 && e->a.retry_for_ever))
        return false;
    /* Repetitions are more frequent than the time-out, but only the time-out decides when to give
     * up. */
    return t->tries >= count && now - t->progress >= (count + 1) * limit_of(e);
}

static void repeat(struct roce_endpoint *e, roce_time now)
{
    struct roce_timer *t = &e->tx.timer;

    t->since = now;
    t->tries++;
    t->timing = false;
    if (t->doubled < doublings)
        t->doubled++;
    e->counters.timeouts++;
    e->tx.rewound = e->tx.q.una;
    roce_window_collapse(e);
    roce_queue_rewind(&e->tx.q);
}

void roce_timer_check(struct roce_endpoint *e, roce_time now)
{
    struct roce_timer *t = &e->tx.timer;

    if (now < roce_timer_deadline(e))
        return;
    if (t->rnr_waiting) {
        t->rnr_waiting = false;
        t->since = now;
    } else if (used_up(e, now)) {
        roce_requester_fail(e, ROCE_RETRIES_EXCEEDED);
    } else {
        repeat(e, now);
    }
}

bool roce_timer_rnr(struct roce_endpoint *e, roce_time now, unsigned code)
{
    struct roce_timer *t = &e->tx.timer;

    if (e->a.rnr_retry != 7 && t->rnr_tries >= e->a.rnr_retry)
        return false;
    t->rnr_tries++;
    roce_timer_alive(e, now);
    t->timing = false;
    t->rnr_waiting = true;
    t->rnr_until = now + roce_rnr_ns(code);
    return true;
}
