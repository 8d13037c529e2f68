/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The plan of a put or get: which path its bytes take, the sizes of its pieces, and whether they go
 * over one connection or all of a pair. Pure, owns nothing: sizes, limits, flags and registration
 * state go in, a plan comes out; it must not look at a device, a connection or a setting.
 * rma_post.c posts by the plan. */
#ifndef TK_VERBS_RMA_PLAN_H
#define TK_VERBS_RMA_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"

struct tk_rma;

/* Constant while a job runs: properties of ports and queues, and settings. Sizes in bytes; [0] for
 * gets, [1] for puts. */
struct tk_rma_limits {
    size_t inline_max;       /* of a put whose bytes are in the work request */
    size_t message_max;      /* of a piece: the least of all ports */
    size_t bounce_max;       /* of a piece in a bounce buffer */
    size_t stripe_above[2];  /* transfers larger than this are striped */
    size_t stripe[2];        /* of a piece of such a transfer */
    size_t blocking_stripe;  /* the same, if the caller blocks until the put is complete */
    size_t copy_max;         /* of a put that is copied to free its source early */
    size_t register_min;     /* of a transfer whose local memory is registered; SIZE_MAX: none */
    uint32_t conns;          /* to a peer */
    uint32_t work_requests;  /* of the process */
    uint32_t bounce_buffers; /* of the process */
    bool is_whole_judged; /* register_min applies to the whole transfer of which this is a part */
};

enum tk_rma_path {
    TK_RMA_INLINE,  /* put: the bytes are in the work request; the source is free on return */
    TK_RMA_BOUNCE,  /* through a bounce buffer; the source is free on return */
    TK_RMA_IN_PLACE /* from or to registered memory, without a copy */
};

struct tk_rma_piece {
    size_t nbytes;
    enum tk_rma_path path;
};

/* For one call of a transport's rma.post(). */
struct tk_rma_plan {
    size_t inline_max;   /* the last piece is inline if it is not larger; 0: never */
    size_t piece_max;    /* of a piece in place */
    size_t bounce_max;   /* of a bounced piece */
    bool is_striped;     /* over all connections of the pair; else over the primary */
    bool is_copied;      /* bounced although it may be registered */
    bool wants_register; /* register local memory on the fly, if that is safe */
    bool wants_fence;    /* on a fenced connection a write needs a read behind it */
};

/* `is_registered`: local memory is registered from the first unposted byte to the end. */
void tk_rma_plan_make(struct tk_rma_plan *plan, const struct tk_rma *rma,
                      const struct tk_rma_limits *limits, bool is_registered);

static inline void tk_rma_plan_in_place(struct tk_rma_plan *plan)
{
    plan->inline_max = 0;
    plan->is_copied = false;
    plan->wants_register = false;
}

/* Changes a plan to one for local memory of a device, which is registered: always in place. A get
 * has no piece that is small enough to be scattered to its completion. */
void tk_rma_plan_for_device(struct tk_rma_plan *plan, const struct tk_rma *rma);

/* The next piece of the rest. After a piece that is not bounced no later one is bounced. This
 * function and the two below are inline, because each piece of a transfer passes here. */
static inline struct tk_rma_piece tk_rma_plan_piece(const struct tk_rma_plan *plan, size_t left,
                                                    bool is_registered)
{
    if (left <= plan->inline_max)
        return (struct tk_rma_piece){tk_min(left, plan->piece_max), TK_RMA_INLINE};
    if (is_registered && !plan->is_copied)
        return (struct tk_rma_piece){tk_min(left, plan->piece_max), TK_RMA_IN_PLACE};
    return (struct tk_rma_piece){tk_min(left, plan->bounce_max), TK_RMA_BOUNCE};
}

/* With registration on the fly: whether to look for a region that contains the next `reach` bytes.
 * For fewer bytes a copy takes less time than finding or making a region. */
static inline bool tk_rma_plan_seeks_region(size_t reach)
{
    enum { region_min = 16 << 10 };
    return reach >= region_min;
}

/* The next piece, in a region that covers `reach` bytes; without a region it is bounced. */
static inline struct tk_rma_piece
tk_rma_plan_region_piece(const struct tk_rma_plan *plan, size_t left, size_t reach, bool has_region)
{
    size_t max = has_region ? plan->piece_max : plan->bounce_max;
    return (struct tk_rma_piece){tk_min(tk_min(reach, left), max),
                                 has_region ? TK_RMA_IN_PLACE : TK_RMA_BOUNCE};
}

/* The number of work requests that an immediate transfer must have before it posts its first piece:
 * one for each piece, but at most as many as idle queues hold, or the largest transfers would
 * always be refused. `idle_slots`: the capacity of its send queues when they are idle. */
size_t tk_rma_plan_reserve(const struct tk_rma_plan *plan, const struct tk_rma_limits *limits,
                           size_t left, bool is_registered, size_t idle_slots);

#endif
