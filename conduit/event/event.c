/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tests and consumes events. Owns nothing and takes no lock: an event belongs to the one thread
 * that syncs it. */
#include "config.h"

#include "event/event.h"

static const gex_EC_t category_of[] = {
    [TK_NBI_PUT] = GEX_EC_PUT, [TK_NBI_GET] = GEX_EC_GET,  [TK_NBI_RMW] = GEX_EC_RMW,
    [TK_NBI_LC] = GEX_EC_LC,   [TK_NBI_ROOT] = GEX_EC_ALL,
};

bool tk_event_ready(gex_Event_t event)
{
    if (tk_event_is_of_set(event))
        return tk_nbi_done(tk_set_of(event), category_of[tk_set_part_of(event)]);
    return tk_counter_read(tk_count_of(event)) <= 0;
}

void tk_event_retire(gex_Event_t event)
{
    if (!tk_event_is_of_set(event))
        tk_counter_leave(tk_count_of(event), tk_op_free);
    else if (tk_set_part_of(event) == TK_NBI_ROOT)
        tk_nbi_give(tk_set_of(event));
}

static gex_Event_t event_part(struct tk_nbi_set *set, enum tk_nbi_kind kind)
{
    return (gex_Event_t)&set->marks[kind];
}

gex_Event_t tk_event_of_set(struct tk_nbi_set *set)
{
    if (!tk_nbi_done(set, GEX_EC_ALL))
        return event_part(set, TK_NBI_ROOT);
    tk_nbi_give(set);
    return GEX_EVENT_INVALID;
}

gex_Event_t tk_event_leaf(gex_Event_t root, gex_EC_t category)
{
    if (!tk_event_is_of_set(root))
        return category == GEX_EC_LC ? tk_leaf_of(tk_op_of(root)) : GEX_EVENT_INVALID;
    for (int kind = 0; kind < tk_nbi_kinds; kind++)
        if (category_of[kind] == category)
            return event_part(tk_set_of(root), kind);
    return GEX_EVENT_INVALID;
}

static bool is_leaf_of(gex_Event_t event, gex_Event_t root)
{
    if (event == GEX_EVENT_INVALID || !tk_event_is_leaf(event) ||
        tk_event_is_of_set(event) != tk_event_is_of_set(root))
        return false;
    return tk_event_is_of_set(root) ? tk_set_of(event) == tk_set_of(root)
                                    : tk_op_of(event) == tk_op_of(root);
}

/* Consuming a completed root invalidates its leaves: those in this array must not be tested after
 * the operation has been freed. */
static size_t drop_leaves(gex_Event_t *events, size_t count, gex_Event_t root)
{
    size_t dropped = 0;
    for (size_t i = 0; i < count; i++)
        if (is_leaf_of(events[i], root)) {
            events[i] = GEX_EVENT_INVALID;
            dropped++;
        }
    return dropped;
}

static bool has_leaf(const gex_Event_t *events, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (events[i] != GEX_EVENT_INVALID && tk_event_is_leaf(events[i]))
            return true;
    return false;
}

size_t tk_events_pass(gex_Event_t *events, size_t count, size_t *left)
{
    size_t done = 0;
    bool leaves = has_leaf(events, count);
    for (size_t i = 0; i < count; i++) {
        gex_Event_t event = events[i];
        /* Tested once: an operation that another thread completes between two tests would be freed
         * with its leaves still in the array. */
        if (event == GEX_EVENT_INVALID || !tk_event_ready(event))
            continue;
        if (leaves && !tk_event_is_leaf(event))
            done += drop_leaves(events, count, event);
        tk_event_retire(event);
        events[i] = GEX_EVENT_INVALID;
        done++;
    }
    *left = 0;
    for (size_t i = 0; i < count; i++)
        *left += events[i] != GEX_EVENT_INVALID;
    return done;
}
