/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gasnet_barrier_*: the named barrier. Calls out of order are errors in release builds too, because
 * the job would hang. No state, no lock. */
#include "config.h"

#include "api/check.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "collective/named.h"
#include "trace/trace.h"

#define CHECK_FLAGS(call, flags)                                                                   \
    TK_CHECK(((flags) & ~(GASNET_BARRIERFLAG_UNNAMED | GASNET_BARRIERFLAG_MISMATCH)) == 0,         \
             "%s: flags 0x%x are not GASNET_BARRIERFLAG_*", call, (unsigned)(flags))

static void must_be_notified(const char *call)
{
    if (!tk_named_pending())
        tk_panic("%s was called without gasnet_barrier_notify before it", call);
}

void gasnet_barrier_notify(int id, int flags)
{
    TK_TRACED(barrier_notify, tk_trace_no_peer, 0);
    TK_MUST_BE_OUTSIDE_HANDLERS("gasnet_barrier_notify");
    TK_CHECK_MAY_COMMUNICATE("gasnet_barrier_notify");
    CHECK_FLAGS("gasnet_barrier_notify", flags);
    if (!tk_named_notify(id, flags))
        tk_panic("gasnet_barrier_notify was called again before gasnet_barrier_wait");
    tk_count(tk_counter_named_barriers);
}

int gasnet_barrier_wait(int id, int flags)
{
    TK_TRACED(barrier_wait, tk_trace_no_peer, 0);
    TK_MUST_BE_OUTSIDE_HANDLERS("gasnet_barrier_wait");
    TK_CHECK_MAY_COMMUNICATE("gasnet_barrier_wait");
    CHECK_FLAGS("gasnet_barrier_wait", flags);
    must_be_notified("gasnet_barrier_wait");
    tk_named_wait();
    return tk_named_end(id, flags) ? GASNET_OK : GASNET_ERR_BARRIER_MISMATCH;
}

int gasnet_barrier_try(int id, int flags)
{
    TK_TRACED(barrier_try, tk_trace_no_peer, 0);
    TK_MUST_BE_OUTSIDE_HANDLERS("gasnet_barrier_try");
    TK_CHECK_MAY_COMMUNICATE("gasnet_barrier_try");
    CHECK_FLAGS("gasnet_barrier_try", flags);
    must_be_notified("gasnet_barrier_try");
    tk_poll();
    if (!tk_named_done())
        return GASNET_ERR_NOT_READY;
    return tk_named_end(id, flags) ? GASNET_OK : GASNET_ERR_BARRIER_MISMATCH;
}

int gasnet_barrier(int id, int flags)
{
    gasnet_barrier_notify(id, flags);
    return gasnet_barrier_wait(id, flags);
}

int gasnet_barrier_result(int *id)
{
    return !tk_named_result(id);
}
