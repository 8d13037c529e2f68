/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_Event_* and barriers. Test forms complete what the device has finished but run no handlers;
 * wait forms poll. */
#include "config.h"

#include "api/check.h"
#include "collective/barrier.h"
#include "event/event.h"

int gex_Event_Test(gex_Event_t event)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Event_Test");
    TK_CHECK(event != GEX_EVENT_NO_OP, "gex_Event_Test of GEX_EVENT_NO_OP");
    if (event == GEX_EVENT_INVALID || tk_event_test(event))
        return GASNET_OK;
    tk_reap();
    return tk_event_test(event) ? GASNET_OK : GASNET_ERR_NOT_READY;
}

static bool is_ready(const void *event)
{
    return tk_event_ready(*(const gex_Event_t *)event);
}

static void __attribute__((noinline)) wait_any(gex_Event_t event)
{
    tk_wait_until(is_ready, &event);
    tk_event_retire(event);
}

void gex_Event_Wait(gex_Event_t event)
{
    TK_CHECK_MAY_COMMUNICATE("gex_Event_Wait");
    TK_CHECK(event != GEX_EVENT_NO_OP, "gex_Event_Wait for GEX_EVENT_NO_OP");
    if (event == GEX_EVENT_INVALID)
        return;
    if (!tk_event_is_plain(event)) {
        wait_any(event);
        return;
    }
    struct tk_op *op = (struct tk_op *)event;
    tk_wait_served(op);
    tk_op_give(op);
}

gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t event_category)
{
    TK_CHECK(root == GEX_EVENT_INVALID || !tk_event_is_leaf(root),
             "gex_Event_QueryLeaf of an event that is no root");
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
    TK_CHECK_MAY_COMMUNICATE("gex_Event_TestSome");
    tk_reap();
    size_t done = tk_events_pass(events, numevents, &left);
    return done || !left ? GASNET_OK : GASNET_ERR_NOT_READY;
}

void gex_Event_WaitSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    size_t left;
    unsigned empty = 0;
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_Event_WaitSome");
    while (tk_events_pass(events, numevents, &left) == 0 && left)
        tk_wait_step(&empty);
}

int gex_Event_TestAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    size_t left;
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_Event_TestAll");
    tk_reap();
    tk_events_pass(events, numevents, &left);
    return left ? GASNET_ERR_NOT_READY : GASNET_OK;
}

void gex_Event_WaitAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags)
{
    size_t left;
    unsigned empty = 0;
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_Event_WaitAll");
    while (tk_events_pass(events, numevents, &left), left)
        tk_wait_step(&empty);
}

gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags)
{
    (void)tm, (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_Coll_BarrierNB");
    struct tk_op *op = tk_op_take();
    tk_barrier_start(op);
    return tk_event_of(op);
}

void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags)
{
    (void)tm, (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_Coll_BarrierBlocking");
    struct tk_op op;
    tk_op_init(&op);
    tk_barrier_start(&op);
    tk_wait_done(&op);
}
