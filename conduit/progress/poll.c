/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One poll: the transports, then the work that handlers may not do themselves because it sends
 * requests. Nested polls (a piece of that work waits) skip the work. No lock. */
#include "config.h"

#include <sched.h>
#include <stddef.h>

#include "base/bits.h"
#include "base/report.h"
#include "progress/progress.h"
#include "progress/progress_private.h"

TK_PER_THREAD_NEAR unsigned tk_in_handler;
tk_counter_t tk_deferred_work_wanted;
tk_counter_t tk_deferred_work_lacks_space;

enum { work_max = 12 };

/* The polled transports: one, or `all` of several; `none` in a job of one. */
static const struct tk_transport *const *used;
static unsigned used_count;
static bool (*works[work_max])(void);
static unsigned work_count;
static TK_PER_THREAD bool working;
static bool all_ring, all_report;

bool tk_is_in_handler(void)
{
    return tk_in_handler != 0;
}

static bool poll_nothing(void)
{
    return false;
}

static const struct tk_transport none = {
    .name = "none", .poll = poll_nothing, .reap = poll_nothing, .reap_in_handler = poll_nothing};
static const struct tk_transport *network = &none;
bool (*tk_poll_transports)(void) = poll_nothing;
bool (*tk_reap_transports)(void) = poll_nothing;

static bool poll_all(void)
{
    bool any = false;
    for (unsigned i = 0; i < used_count; i++)
        any |= used[i]->poll();
    return any;
}

static bool reap_all(void)
{
    bool any = false;
    for (unsigned i = 0; i < used_count; i++)
        any |= used[i]->reap();
    return any;
}

static bool reap_all_in_handler(void)
{
    bool any = false;
    for (unsigned i = 0; i < used_count; i++)
        any |= used[i]->reap_in_handler();
    return any;
}

/* Queries the transports that ring. */
static bool has_come_to_any(bool requests_too)
{
    for (unsigned i = 0; i < used_count; i++)
        if (used[i]->has_come && used[i]->has_come(requests_too))
            return true;
    return false;
}

static const struct tk_transport all = {.name = "all",
                                        .poll = poll_all,
                                        .reap = reap_all,
                                        .reap_in_handler = reap_all_in_handler,
                                        .has_come = has_come_to_any};

/* Where ranks outnumber CPUs: a client that polls in a loop of its own waits too, and the rank it
 * waits for may need this CPU. Other jobs do not count empty polls: tk_poll() has an instruction
 * budget. */
enum { empty_in_crowd = 20 /* polls in a row: an answer in flight has arrived by then */ };

static bool (*poll_network)(void);
TK_PER_THREAD unsigned tk_empty_polls;

static bool poll_in_crowd(void)
{
    bool any = poll_network();
    if (any)
        tk_empty_polls = 0;
    else if (++tk_empty_polls > empty_in_crowd)
        sched_yield();
    return any;
}

void tk_progress_crowded(void)
{
    tk_sleep_expect();
    poll_network = network->poll;
    tk_poll_transports = poll_in_crowd;
}

bool tk_all_rings(void)
{
    return all_ring;
}

bool tk_all_report(void)
{
    return all_report;
}

void tk_progress_use(const struct tk_transport *transport)
{
    network = transport;
    tk_poll_transports = transport->poll;
    tk_reap_transports = transport->reap;
    all_ring = transport->has_come != NULL;
    all_report = all_ring || transport->events;
    tk_sleep_use(transport->events, transport->has_come);
}

void tk_progress_use_all(const struct tk_transport *const *transports, unsigned count)
{
    used = transports;
    used_count = count;
    if (count == 0)
        return;
    tk_progress_use(count > 1 ? &all : transports[0]);
    for (unsigned i = 0; i < count; i++) {
        all_ring = all_ring && transports[i]->has_come;
        all_report = all_report && (transports[i]->has_come || transports[i]->events);
        if (transports[i]->events)
            tk_sleep_use(transports[i]->events, network->has_come);
    }
}

void tk_progress_add(bool (*work)(void))
{
    if (work_count == work_max)
        tk_panic("more than %d kinds of work after polls", work_max);
    works[work_count++] = work;
}

bool tk_deferred_work_after(bool any)
{
    if (working)
        return any;
    working = true;
    for (unsigned i = 0; i < work_count; i++)
        any |= works[i]();
    working = false;
    if (TK_THREADED && any)
        tk_wake_own_threads();
    return any;
}

bool tk_reap_in_handler(void)
{
    bool any = network->reap_in_handler();
    if (TK_THREADED && any)
        tk_wake_own_threads();
    return any;
}
