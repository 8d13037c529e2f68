/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread sleeps here until it has something to serve: on the doorbell that neighbours and threads
 * of this process ring (transport/doorbell.h) and, where the network reports events
 * (transport/device_events.h), on those too, in one wait. Owns the bell, and which thread waits for
 * the events.
 *
 * One thread at a time waits for a device's receive events, and for the bell by its socket; one
 * (often the same) waits for its send events. Others sleep on the bell alone: those two serve the
 * device and ring, and when they stop waiting they ring as well, so that another one takes over. A
 * thread takes over first, then arms the queues and takes what is in them, then sleeps: so an event
 * that its predecessor has taken is never missed. No lock. */
#include "config.h"

#include <poll.h>
#include <stdatomic.h>

#include "base/atomic.h"
#include "common/clock.h"
#include "base/report.h"
#include "progress/progress.h"
#include "progress/progress_private.h"
#include "stats/stats.h"
#include "transport/doorbell.h"

/* Without neighbours only threads of this process ring, and they fence. */
static struct tk_doorbell lone = {TK_BELL_FENCED, 0};
static struct tk_doorbell *bell = &lone;
static const struct tk_device_events *events; /* NULL: nothing reports any */

enum { look_max = 6 };

static bool (*looks[look_max])(void);
static unsigned look_count;
static bool (*has_come_in_memory)(bool requests_too); /* NULL: no such function */

static _Atomic uint32_t watched; /* roles whose events a thread waits for */

/* PAR: counts events by threads of this process that other threads may wait for. A thread reads the
 * count before it last checks its condition and sleeps, so either the count changes or the bell
 * rings. */
static tk_counter_t local_event_seq;
tk_counter_t tk_sleeps_expected;
static tk_counter_t asleep;  /* threads of the client */
static tk_counter_t relying; /* threads that sleep because others watch */

/* A device has something pending that it does not report. */
static const uint64_t unsure = TK_SECOND / 1000;

struct nap {
    enum tk_wake_source wake;
    bool is_client;  /* and waits for what other threads of this process do, */
    int32_t seen;    /* after this many such events */
    uint32_t others; /* roles that other threads must watch */
    bool was_over;   /* when it was about to begin */
};

void tk_progress_bell(struct tk_doorbell *own)
{
    bell = own ? own : &lone;
}

/* Threads that do this at the same time may each count: only whether the count is zero matters. */
void tk_sleep_expect(void)
{
    static tk_counter_t is_counted;
    if (tk_counter_read(&is_counted) != 0)
        return;
    tk_counter_add(&tk_sleeps_expected, 1);
    tk_counter_set(&is_counted, 1);
}

void tk_progress_look(bool (*look)(void))
{
    if (look_count == look_max)
        tk_panic("more than %d looks before sleeps", look_max);
    looks[look_count++] = look;
}

/* Whether anything has arrived that serving would find. */
static bool has_come(enum tk_wake_source wake)
{
    if (wake == TK_WAKE_DEVICE)
        return false;
    for (unsigned i = 0; wake != TK_WAKE_REPLY && i < look_count; i++)
        if (looks[i]())
            return true;
    return has_come_in_memory && has_come_in_memory(wake != TK_WAKE_REPLY);
}

void tk_sleep_use(const struct tk_device_events *reporting, bool (*rung_for)(bool requests_too))
{
    has_come_in_memory = rung_for;
    atomic_store_explicit(&watched, 0, memory_order_relaxed);
    tk_counter_set(&asleep, 0);
    tk_counter_set(&relying, 0);
    events = reporting && reporting->is_open() && tk_doorbell_open_socket(bell) ? reporting : NULL;
}

int32_t tk_sleep_events_seen(void)
{
    return tk_counter_read(&local_event_seq);
}

/* Adding zero orders this with a thread that counts itself in: one of the two atomic changes is
 * first, so either that thread sees our change, or we see that thread. */
static bool there_are(tk_counter_t *sleepers)
{
    return tk_counter_add(sleepers, 0) > 0;
}

/* Threads of the library do not sleep for this: each message that a client's thread takes would
 * wake them. */
void tk_wake_sleepers(void)
{
    tk_counter_add(&local_event_seq, 1);
    if (there_are(&asleep))
        tk_doorbell_ring(bell);
}

void tk_progress_ring(void)
{
    tk_doorbell_ring(bell);
}

static bool is_over(void *what)
{
    struct nap *nap = what;
    uint32_t now = atomic_load_explicit(&watched, memory_order_acquire);
    nap->was_over = (nap->is_client && tk_counter_read(&local_event_seq) != nap->seen) ||
                    (now & nap->others) != nap->others || has_come(nap->wake);
    return nap->was_over;
}

static uint32_t watch_begin(uint32_t roles)
{
    return roles & ~atomic_fetch_or_explicit(&watched, roles, memory_order_acq_rel);
}

static void watch_end(uint32_t mine)
{
    if (!mine)
        return;
    atomic_fetch_and_explicit(&watched, ~mine, memory_order_release);
    if (!TK_THREADED)
        return;
    if (there_are(&relying))
        tk_doorbell_ring(bell);
}

bool tk_can_sleep_by_events(void)
{
    return events && events->is_open() && tk_doorbell_has_socket(bell);
}

/* A thread that only watches sends does not listen to the bell, which has only one socket. */
static bool lead(struct nap *nap, uint32_t mine, uint64_t nsec)
{
    struct pollfd files[1 + tk_device_files_max];
    const struct timespec patience = {.tv_sec = (time_t)(nsec / TK_SECOND),
                                      .tv_nsec = (long)(nsec % TK_SECOND)};
    unsigned count = 1 + events->files(mine, files + 1, tk_device_files_max);
    bool woken = mine & TK_DEVICE_RECEIVES
                     ? tk_doorbell_sleep_on(bell, is_over, nap, files, count, nsec)
                     : ppoll(files + 1, count - 1, &patience, NULL) != 0;
    events->take(mine);
    watch_end(mine);
    return woken;
}

enum found { FOUND_NOTHING, FOUND_SOMETHING, FOUND_UNSURE };

/* Takes over as many of `roles` as it can, and serves pending events. */
static enum found prepare(uint32_t roles, uint32_t *mine)
{
    bool is_armed;
    *mine = watch_begin(roles);
    bool any = events->arm(roles, &is_armed);
    if (any || !is_armed)
        watch_end(*mine);
    return any ? FOUND_SOMETHING : is_armed ? FOUND_NOTHING : FOUND_UNSURE;
}

static bool sleep_prepared(struct nap *nap, uint32_t roles, uint32_t mine, uint64_t nsec)
{
    uint32_t first = roles & TK_DEVICE_RECEIVES ? TK_DEVICE_RECEIVES : TK_DEVICE_SENDS;
    bool leads = mine & first;
    if (!leads)
        watch_end(mine);
    nap->others = leads ? roles & ~mine : roles;
    if (nap->others == 0)
        return lead(nap, mine, nsec);
    tk_counter_add(&relying, 1);
    bool woken = leads ? lead(nap, mine, nsec) : tk_doorbell_sleep(bell, is_over, nap, nsec);
    tk_counter_add(&relying, -1);
    return woken;
}

enum tk_slept tk_sleep_until(enum tk_wake_source wake, int32_t seen, uint64_t by_bell,
                             uint64_t by_clock)
{
    struct nap nap = {.wake = wake, .is_client = true, .seen = seen};
    bool uses_events = tk_can_sleep_by_events() && wake <= TK_WAKE_SILENT;
    enum found found = FOUND_UNSURE;
    uint32_t mine;
    if (uses_events)
        found = prepare(TK_DEVICE_ANY, &mine);
    if (TK_THREADED && found == FOUND_SOMETHING)
        tk_wake_own_threads();
    if (found == FOUND_SOMETHING)
        return TK_SLEPT_WOKEN;
    tk_counter_add(&asleep, 1);
    bool woken = found == FOUND_NOTHING
                     ? sleep_prepared(&nap, TK_DEVICE_ANY, mine, by_bell)
                     : tk_doorbell_sleep(bell, is_over, &nap, uses_events ? by_clock : by_bell);
    tk_counter_add(&asleep, -1);
    tk_count(tk_counter_sleeps);
    if (woken)
        tk_count(tk_counter_wakes);
    return nap.was_over ? TK_SLEPT_NOT : woken ? TK_SLEPT_WOKEN : TK_SLEPT_OUT;
}

uint64_t tk_sleep_in_thread(uint32_t roles, uint64_t nsec, bool *found)
{
    struct nap nap = {.wake = roles & TK_DEVICE_RECEIVES ? TK_WAKE_BELL : TK_WAKE_DEVICE};
    uint32_t mine = 0;
    bool by_events = tk_can_sleep_by_events();
    enum found before = by_events ? prepare(roles, &mine) : FOUND_UNSURE;
    if (TK_THREADED && before == FOUND_SOMETHING)
        tk_wake_own_threads();
    *found = true;
    if (before == FOUND_SOMETHING)
        return 0;
    uint64_t begin = tk_now();
    if (before == FOUND_NOTHING)
        *found = sleep_prepared(&nap, roles, mine, nsec);
    else
        *found = tk_doorbell_sleep(bell, is_over, &nap, by_events ? unsure : nsec);
    return tk_now() - begin;
}
