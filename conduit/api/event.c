/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_Event_* and barriers. Test forms reap completions of the device but run no handlers; wait
 * forms poll. No state, no lock. */
#include "config.h"

#include "api/check.h"
#include "event/event.h"
#include "progress/progress.h"
#include "trace/trace.h"

#define CHECK_EVENT(call, event)                                                                   \
    TK_CHECK((event) != GEX_EVENT_NO_OP, "%s: GEX_EVENT_NO_OP must not be synced", call);          \
    TK_CHECK(!tk_event_is_stale(event), "%s: the event was synced already", call)

#define CHECK_EVENTS(call, events, count)                                                          \
    do {                                                                                           \
        TK_CHECK_MAY_COMMUNICATE(call);                                                            \
        for (size_t i = 0; TK_IS_DEBUG && i < (count); i++) {                                      \
            CHECK_EVENT(call, (events)[i]);                                                        \
        }                                                                                          \
    } while (0)

int trunkline_event_test(gex_Event_t event)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Event_Test");
    CHECK_EVENT("gex_Event_Test", event);
    if (event == GEX_EVENT_INVALID || tk_event_test(event))
        return GASNET_OK;
    tk_reap();
    return tk_event_test(event) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

static void __attribute__((noinline)) wait_slowly(gex_Event_t event)
{
    unsigned empty = 0;
    while (!tk_event_ready(event))
        tk_wait_step(&empty);
    tk_wait_over();
    tk_event_retire(event);
}

/* What the inline form (trunkline_rma.h) calls: not for GEX_EVENT_INVALID. The counter of an access
 * region's event never reads zero, so it takes the slow path like an incomplete event. */
void trunkline_event_wait(gex_Event_t event);
void trunkline_event_wait(gex_Event_t event)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Event_Wait");
    CHECK_EVENT("gex_Event_Wait", event);
    TK_TRACED(event_wait, tk_trace_no_peer, 0);
    tk_serve(tk_count_of(event));
    tk_if_unlikely(tk_counter_read(tk_count_of(event)) > 0) wait_slowly(event);
    else tk_counter_leave(tk_count_of(event), tk_op_free);
}

void gex_Event_Wait(gex_Event_t event)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Event_Wait");
    tk_if_likely(event != GEX_EVENT_INVALID) trunkline_event_wait(event);
    else tk_serve_now_and_then();
}

gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t event_category)
{
    TK_CHECK(root != GEX_EVENT_NO_OP, "gex_Event_QueryLeaf: the event is GEX_EVENT_NO_OP");
    TK_CHECK(root == GEX_EVENT_INVALID || !tk_event_is_leaf(root),
             "gex_Event_QueryLeaf: the event is not a root event");
    TK_CHECK(event_category == GEX_EC_PUT || event_category == GEX_EC_GET ||
                 event_category == GEX_EC_RMW || event_category == GEX_EC_LC,
             "gex_Event_QueryLeaf: event_category 0x%x is not exactly one of GEX_EC_PUT, _GET, "
             "_RMW, _LC",
             event_category);
    return root == GEX_EVENT_INVALID ? GEX_EVENT_INVALID : tk_event_leaf(root, event_category);
}

int gex_Event_TestSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    size_t left;
    (void)flags;
    CHECK_EVENTS("gex_Event_TestSome", events, numevents);
    tk_reap();
    size_t done = tk_events_pass(events, numevents, &left);
    return done || !left ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gex_Event_WaitSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    size_t left;
    unsigned empty = 0;
    (void)flags;
    TK_TRACED(event_wait, tk_trace_no_peer, 0);
    CHECK_EVENTS("gex_Event_WaitSome", events, numevents);
    tk_serve_now_and_then();
    while (tk_events_pass(events, numevents, &left) == 0 && left)
        tk_wait_step(&empty);
    tk_wait_over();
}

int gex_Event_TestAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    size_t left;
    (void)flags;
    CHECK_EVENTS("gex_Event_TestAll", events, numevents);
    tk_reap();
    tk_events_pass(events, numevents, &left);
    return left ? GASNET_ERR_NOT_READY : GASNET_OK;
}

void gex_Event_WaitAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    size_t left;
    unsigned empty = 0;
    (void)flags;
    TK_TRACED(event_wait, tk_trace_no_peer, 0);
    CHECK_EVENTS("gex_Event_WaitAll", events, numevents);
    tk_serve_now_and_then();
    while (tk_events_pass(events, numevents, &left), left)
        tk_wait_step(&empty);
    tk_wait_over();
}
