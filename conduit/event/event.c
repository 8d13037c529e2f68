/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Testing of events. No lock: an event belongs to the one thread that syncs it. */
#include "config.h"

#include "event/event.h"

/* By place in the set: enum tk_nbi_kind. */
static const gex_EC_t category_of[tk_nbi_kinds] = {
    [TK_NBI_PUT] = GEX_EC_PUT,
    [TK_NBI_GET] = GEX_EC_GET,
    [TK_NBI_RMW] = GEX_EC_RMW,
    [TK_NBI_LC] = GEX_EC_LC,
};

static gex_EC_t categories_of(gex_Event_t event)
{
    const struct tk_nbi_set *set = tk_set_of(event);
    uintptr_t place = (uintptr_t)event - (uintptr_t)set;
    return tk_event_is_leaf(event) ? category_of[place / sizeof(set->ops[0])] : GEX_EC_ALL;
}

bool tk_event_ready(gex_Event_t event)
{
    if (tk_event_is_of_set(event))
        return tk_nbi_done(tk_set_of(event), categories_of(event));
    return tk_event_is_leaf(event) ? tk_op_source_free(tk_op_of(event))
                                   : tk_op_done(tk_op_of(event));
}

void tk_event_retire(gex_Event_t event)
{
    if (tk_event_is_leaf(event))
        return;
    if (tk_event_is_of_set(event))
        tk_nbi_give(tk_set_of(event));
    else
        tk_op_give(tk_op_of(event));
}

gex_Event_t tk_event_of_set(struct tk_nbi_set *set)
{
    if (!tk_nbi_done(set, GEX_EC_ALL))
        return (gex_Event_t)((uintptr_t)set | tk_set_bit);
    tk_nbi_give(set);
    return GEX_EVENT_INVALID;
}

gex_Event_t tk_event_leaf(gex_Event_t root, gex_EC_t category)
{
    if (!tk_event_is_of_set(root))
        return category == GEX_EC_LC ? tk_leaf_of(tk_op_of(root)) : GEX_EVENT_INVALID;
    for (int kind = 0; kind < tk_nbi_kinds; kind++)
        if (category_of[kind] == category)
            return (gex_Event_t)((uintptr_t)&tk_set_of(root)->ops[kind] | tk_set_bit | tk_leaf_bit);
    return GEX_EVENT_INVALID;
}

static bool is_leaf_of(gex_Event_t event, gex_Event_t root)
{
    if (!tk_event_is_leaf(event) || tk_event_is_of_set(event) != tk_event_is_of_set(root))
        return false;
    return tk_event_is_of_set(root) ? tk_set_of(event) == tk_set_of(root)
                                    : tk_op_of(event) == tk_op_of(root);
}

/* A root that is done takes its leaves with it; those of this array must not be looked at after its
 * operation is free. */
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
        /* Asked once: an operation that another thread completes between two looks would be freed
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
