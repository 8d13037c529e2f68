/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events as clients hold them: a root is the address of an operation, a leaf (local completion) the
 * same address plus one. No storage of its own. */
#ifndef TK_EVENT_H
#define TK_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "gasnetex.h"
#include "transport/op.h"

enum { tk_leaf_bit = 1 };

static inline struct tk_op *tk_op_of(gex_Event_t event)
{
    return (struct tk_op *)((uintptr_t)event & ~(uintptr_t)tk_leaf_bit);
}

static inline bool tk_event_is_leaf(gex_Event_t event)
{
    return (uintptr_t)event & tk_leaf_bit;
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

/* True and consumed when complete. */
bool tk_event_test(gex_Event_t event);

/* One pass over an array: consumes what is complete. Returns how many were; *left says how many are
 * not. */
size_t tk_events_pass(gex_Event_t *events, size_t count, size_t *left);

#endif
