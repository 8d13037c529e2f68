/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events as clients hold them: the address of a counter that is above zero until the event is
 * complete. A root is the address of an operation, that is, of its first counter; its leaf (local
 * completion) is the address of the second. An access region needs more than one counter: its root
 * and leaves are addresses of marks in the region's set, which read as large counts whose value
 * identifies the event. gasnetex.h tests the first kind without a call. Owns no storage. */
#ifndef TK_EVENT_H
#define TK_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/nbi.h"
#include "gasnetex.h"
#include "op/op.h"

enum { tk_leaf_bit = offsetof(struct tk_op, sources) };

_Static_assert(offsetof(struct tk_op, pending) == 0 && (tk_leaf_bit & (tk_leaf_bit - 1)) == 0 &&
                   _Alignof(struct tk_op) > tk_leaf_bit,
               "a bit of the address selects the counter");

static inline tk_counter_t *tk_count_of(gex_Event_t event)
{
    return (tk_counter_t *)event;
}

static inline bool tk_event_is_of_set(gex_Event_t event)
{
    return tk_counter_read(tk_count_of(event)) >= tk_set_mark;
}

/* What a mark stands for: the root, or the leaf of one category. */
static inline enum tk_nbi_kind tk_set_part_of(gex_Event_t event)
{
    return (enum tk_nbi_kind)(tk_counter_read(tk_count_of(event)) - tk_set_mark);
}

static inline bool tk_event_is_leaf(gex_Event_t event)
{
    if (tk_event_is_of_set(event))
        return tk_set_part_of(event) != TK_NBI_ROOT;
    return (uintptr_t)event & tk_leaf_bit;
}

/* The operation of a root or leaf. */
static inline struct tk_op *tk_op_of(gex_Event_t event)
{
    return (struct tk_op *)((uintptr_t)event & ~(uintptr_t)tk_leaf_bit);
}

/* The set of a root or leaf. */
static inline struct tk_nbi_set *tk_set_of(gex_Event_t event)
{
    return TK_CONTAINER_OF(tk_count_of(event) - tk_set_part_of(event), struct tk_nbi_set, marks);
}

/* The root event of an operation. If it is already complete, the operation is freed and
 * GEX_EVENT_INVALID returned. */
static inline gex_Event_t tk_event_of(struct tk_op *op)
{
    if (!tk_op_done(op))
        return (gex_Event_t)op;
    tk_op_give(op);
    return GEX_EVENT_INVALID;
}

/* The leaf event of a put; GEX_EVENT_INVALID if its source is no longer being read. */
static inline gex_Event_t tk_leaf_of(struct tk_op *op)
{
    if (tk_op_source_free(op))
        return GEX_EVENT_INVALID;
    return (gex_Event_t)&op->sources;
}

/* The root event of a set whose region has ended. If it is already complete, the set is freed and
 * GEX_EVENT_INVALID returned. */
gex_Event_t tk_event_of_set(struct tk_nbi_set *set);

/* The leaf of a root for one category; GEX_EVENT_INVALID if there is none. */
gex_Event_t tk_event_leaf(gex_Event_t root, gex_EC_t category);

/* Whether a root was synced before and its operation not reused since; for checks. */
static inline bool tk_event_is_stale(gex_Event_t event)
{
    return event != GEX_EVENT_INVALID && !((uintptr_t)event & tk_leaf_bit) &&
           tk_counter_read(tk_count_of(event)) == tk_op_free;
}

/* Whether it is complete; does not consume it. Not for GEX_EVENT_INVALID. */
bool tk_event_ready(gex_Event_t event);

/* Consumes a complete event. */
void tk_event_retire(gex_Event_t event);

/* Consumes the event and returns true if it is complete. */
static inline bool tk_event_test(gex_Event_t event)
{
    if (!tk_event_ready(event))
        return false;
    tk_event_retire(event);
    return true;
}

/* One pass over an array: consumes the complete events and returns their number; *left is the
 * number of incomplete ones. */
size_t tk_events_pass(gex_Event_t *events, size_t count, size_t *left);

#endif
