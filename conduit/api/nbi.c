/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_NBI_*. No state, no lock: sets of implicit operations belong to their threads. */
#include "config.h"

#include "api/check.h"
#include "event/event.h"
#include "event/nbi_now.h"
#include "progress/progress.h"
#include "trace/trace.h"

#define CHECK_OUTSIDE(call)                                                                        \
    TK_CHECK(!tk_nbi_in_region(), "%s between gex_NBI_BeginAccessRegion and EndAccessRegion", call)

/* The condition of a wait. */
struct wanted {
    const struct tk_nbi_set *set;
    gex_EC_t categories;
};

static bool is_done(const void *what)
{
    const struct wanted *wanted = what;
    return tk_nbi_done(wanted->set, wanted->categories);
}

int gex_NBI_Test(gex_EC_t event_mask, gex_Flags_t flags)
{
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_NBI_Test");
    CHECK_OUTSIDE("gex_NBI_Test");
    if (!tk_nbi_now)
        return GASNET_OK;
    if (!tk_nbi_done(tk_nbi_now, event_mask)) {
        tk_reap();
        if (!tk_nbi_done(tk_nbi_now, event_mask))
            return GASNET_ERR_NOT_READY;
    }
    if (TK_IS_DEBUG)
        tk_nbi_synced(tk_nbi_now, event_mask);
    return GASNET_OK;
}

void gex_NBI_Wait(gex_EC_t event_mask, gex_Flags_t flags)
{
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_NBI_Wait");
    CHECK_OUTSIDE("gex_NBI_Wait");
    TK_TRACED(nbi_wait, tk_trace_no_peer, 0);
    if (!tk_nbi_now)
        tk_nbi_begin_thread();
    struct wanted wanted = {.set = tk_nbi_now, .categories = event_mask};
    tk_wait_until(is_done, &wanted);
    if (TK_IS_DEBUG)
        tk_nbi_synced(tk_nbi_now, event_mask);
}

void gex_NBI_BeginAccessRegion(gex_Flags_t flags)
{
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_NBI_BeginAccessRegion");
    CHECK_OUTSIDE("gex_NBI_BeginAccessRegion");
    tk_nbi_begin_region();
}

gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags)
{
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_NBI_EndAccessRegion");
    TK_CHECK(tk_nbi_in_region(), "gex_NBI_EndAccessRegion without gex_NBI_BeginAccessRegion");
    return tk_event_of_set(tk_nbi_end_region());
}
