/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One poll: the transports, then the work that handlers may not do themselves because it sends
 * requests. Nested polls (a piece of that work waits) skip the work. No lock. */
#include "config.h"

#include <stddef.h>

#include "base/bits.h"
#include "base/report.h"
#include "progress/progress.h"

TK_PER_THREAD unsigned tk_in_handler;
tk_counter_t tk_work_wanted;

enum { work_max = 4 };

/* What is polled: one transport, or `both` where ranks of this host and others are to be served. */
static const struct tk_transport *network = &tk_transport_self;
static const struct tk_transport *used[2];
static void (*works[work_max])(void);
static unsigned work_count;
static TK_PER_THREAD bool working;

static bool poll_both(void)
{
    bool any = used[0]->poll();
    return used[1]->poll() || any;
}

static bool reap_both(void)
{
    bool any = used[0]->reap();
    return used[1]->reap() || any;
}

static bool reap_both_in_handler(void)
{
    bool any = used[0]->reap_in_handler();
    return used[1]->reap_in_handler() || any;
}

static const struct tk_transport both = {
    .name = "both", .poll = poll_both, .reap = reap_both, .reap_in_handler = reap_both_in_handler};

void tk_progress_use(const struct tk_transport *transport)
{
    network = transport;
}

void tk_progress_use_both(const struct tk_transport *first, const struct tk_transport *second)
{
    used[0] = first;
    used[1] = second;
    network = &both;
}

void tk_progress_add(void (*work)(void))
{
    if (work_count == work_max)
        tk_panic("more than %d kinds of work after polls", work_max);
    works[work_count++] = work;
}

static bool __attribute__((noinline)) work_after(bool any)
{
    if (working)
        return any;
    working = true;
    for (unsigned i = 0; i < work_count; i++)
        works[i]();
    working = false;
    return any;
}

bool tk_poll(void)
{
    bool any = network->poll();
    tk_if_likely(tk_counter_read(&tk_work_wanted) == 0) return any;
    return work_after(any);
}

bool tk_reap(void)
{
    return network->reap();
}

bool tk_reap_in_handler(void)
{
    return network->reap_in_handler();
}
