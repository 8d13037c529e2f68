/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One poll: the transport, then the work that handlers may not do themselves because it sends
 * requests. Nested polls (a piece of that work waits) skip the work. No lock. */
#include "config.h"

#include <stddef.h>

#include "base/bits.h"
#include "base/report.h"
#include "progress/progress.h"

TK_PER_THREAD unsigned tk_in_handler;
tk_counter_t tk_work_wanted;

enum { work_max = 4 };

static const struct tk_transport *network = &tk_transport_self;
static void (*works[work_max])(void);
static unsigned work_count;
static TK_PER_THREAD bool working;

void tk_progress_use(const struct tk_transport *transport)
{
    network = transport;
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
