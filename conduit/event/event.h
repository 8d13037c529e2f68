/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events as clients hold them: an address with two bits that say what it is. A root is the address
 * of an operation, its leaf (local completion) the same with the leaf's bit. The root of an access
 * region is the address of a set of implicit operations with the set's bit, its leaves are
 * addresses inside it with both bits. No storage of its own. */
#ifndef TK_EVENT_H
#define TK_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "event/nbi.h"
#include "gasnetex.h"
#include "transport/op.h"

enum { tk_leaf_bit = 1, tk_set_bit = 2 };

static inline bool tk_event_is_leaf(gex_Event_t event)
{
    return (uintptr_t)event & tk_leaf_bit;
}

static inline bool tk_event_is_of_set(gex_Event_t event)
{
    return (uintptr_t)event & tk_set_bit;
}

/* The root of an operation. */
static inline bool tk_event_is_plain(gex_Event_t event)
{
    return !((uintptr_t)event & (tk_leaf_bit | tk_set_bit));
}

/* Root or leaf of an operation. */
static inline struct tk_op *tk_op_of(gex_Event_t event)
{
    return (struct tk_op *)((uintptr_t)event & ~(uintptr_t)tk_leaf_bit);
}

/* Root or leaf of a set. */
static inline struct tk_nbi_set *tk_set_of(gex_Event_t event)
{
    return (struct tk_nbi_set *)((uintptr_t)event & ~(uintptr_t)(tk_nbi_alignment - 1));
}

/* The root event of an operation; one that is done already is freed and needs none. */
static inline gex_Event_t tk_event_of(struct tk_op *op)
{
    if (!tk_op_done(op))
        return (gex_Event_t)op;
    tk_op_give(op);
    return GEX_EVENT_INVALID;
}

/* The leaf event of a put whose source is still being read. */
static inline gex_Event_t tk_leaf_of(struct tk_op *op)
{
    if (tk_op_source_free(op))
        return GEX_EVENT_INVALID;
    return (gex_Event_t)((uintptr_t)op | tk_leaf_bit);
}

/* The root event of a set that was closed; one that is done already is freed and needs none. */
gex_Event_t tk_event_of_set(struct tk_nbi_set *set);

/* The leaf of a root for one category; GEX_EVENT_INVALID when there is none. */
gex_Event_t tk_event_leaf(gex_Event_t root, gex_EC_t category);

/* Is it complete? Consumes nothing. Not for GEX_EVENT_INVALID. */
bool tk_event_ready(gex_Event_t event);

/* Consumes an event that is complete. */
void tk_event_retire(gex_Event_t event);

/* True and consumed when complete. */
static inline bool tk_event_test(gex_Event_t event)
{
    if (tk_event_is_plain(event)) {
        if (!tk_op_done((struct tk_op *)event))
            return false;
        tk_op_give((struct tk_op *)event);
        return true;
    }
    if (!tk_event_ready(event))
        return false;
    tk_event_retire(event);
    return true;
}

/* One pass over an array: consumes what is complete. Returns how many were; *left says how many are
 * not. */
size_t tk_events_pass(gex_Event_t *events, size_t count, size_t *left);

#endif
