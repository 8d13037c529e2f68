/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Testing of events. No lock: an event belongs to the one thread that syncs it. */
#include "config.h"

#include "event/event.h"

bool tk_event_test(gex_Event_t event)
{
    struct tk_op *op = tk_op_of(event);
    if (tk_event_is_leaf(event))
        return tk_op_source_free(op);
    if (!tk_op_done(op))
        return false;
    tk_op_give(op);
    return true;
}

/* A root that is done takes its leaves with it; those of this array must not be looked at after its
 * operation is free. */
static size_t drop_leaves(gex_Event_t *events, size_t count, gex_Event_t root)
{
    size_t dropped = 0;
    gex_Event_t leaf = (gex_Event_t)((uintptr_t)root | tk_leaf_bit);
    for (size_t i = 0; i < count; i++)
        if (events[i] == leaf) {
            events[i] = GEX_EVENT_INVALID;
            dropped++;
        }
    return dropped;
}

static bool has_leaf(const gex_Event_t *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tk_event_is_leaf(events[i]))
            return true;
    return false;
}

size_t tk_events_pass(gex_Event_t *events, size_t count, size_t *left)
{
    size_t done = 0;
    bool leaves = has_leaf(events, count);
    for (size_t i = 0; i < count; i++) {
        gex_Event_t event = events[i];
        if (event == GEX_EVENT_INVALID)
            continue;
        /* Asked once: an operation that another thread completes between two looks would be freed
         * with its leaves still in the array. */
        bool is_root = !tk_event_is_leaf(event);
        if (is_root && !tk_op_done(tk_op_of(event)))
            continue;
        if (is_root && leaves)
            done += drop_leaves(events, count, event);
        if (!tk_event_test(event))
            continue;
        events[i] = GEX_EVENT_INVALID;
        done++;
    }
    *left = 0;
    for (size_t i = 0; i < count; i++)
        *left += events[i] != GEX_EVENT_INVALID;
    return done;
}
