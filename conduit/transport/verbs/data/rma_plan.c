/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See rma_plan.h. Owns nothing; no lock; must depend only on its arguments. */
#include "config.h"

#include "base/bits.h"
#include "transport/transport.h"
#include "transport/verbs/data/rma_plan.h"

/* A transfer that must stay in order (the payload of a Long whose head does not wait for it) is not
 * striped. */
static bool is_striped(const struct tk_rma *rma, const struct tk_rma_limits *limits)
{
    return limits->conns > 1 && rma->nbytes > limits->stripe_above[rma->is_put] &&
           !rma->sources_only;
}

/* An immediate transfer is not registered: it would need regions for all its pieces before the
 * first is posted. */
static bool wants_register(const struct tk_rma *rma, const struct tk_rma_limits *limits)
{
    size_t whole = limits->is_whole_judged ? tk_max(rma->nbytes, rma->whole) : rma->nbytes;
    return whole >= limits->register_min && !rma->immediate;
}

void tk_rma_plan_make(struct tk_rma_plan *plan, const struct tk_rma *rma,
                      const struct tk_rma_limits *limits, bool is_registered)
{
    plan->is_striped = is_striped(rma, limits);
    /* A lent source is not registered on the fly: that would take longer than the copy. */
    bool wants_copy = rma->copy_source || (rma->is_lent && !is_registered);
    plan->is_copied = wants_copy && rma->nbytes <= limits->copy_max;
    plan->wants_register = !is_registered && !plan->is_copied && wants_register(rma, limits);
    plan->wants_fence = rma->is_put && !rma->sources_only;
    plan->inline_max = rma->is_put && !plan->is_striped ? limits->inline_max : 0;
    plan->piece_max = limits->message_max;
    if (plan->is_striped)
        plan->piece_max = rma->is_blocking ? limits->blocking_stripe : limits->stripe[rma->is_put];
    plan->bounce_max = tk_min(plan->piece_max, limits->bounce_max);
}

/* The last piece has what others leave over: the size of those is reduced until that is nothing, or
 * enough. It depends on the whole transfer, so that a later call cuts the rest in the same way. */
void tk_rma_plan_for_device(struct tk_rma_plan *plan, const struct tk_rma *rma)
{
    enum { step = tk_rma_scattered_max };
    tk_rma_plan_in_place(plan);
    if (rma->is_put || rma->nbytes <= plan->piece_max)
        return;
    size_t last;
    while ((last = rma->nbytes % plan->piece_max) > 0 && last <= tk_rma_scattered_max)
        plan->piece_max -= step;
}

size_t tk_rma_plan_reserve(const struct tk_rma_plan *plan, const struct tk_rma_limits *limits,
                           size_t left, bool is_registered, size_t idle_slots)
{
    bool is_bounced = tk_rma_plan_piece(plan, left, is_registered).path == TK_RMA_BOUNCE;
    size_t piece_max = is_bounced ? plan->bounce_max : plan->piece_max;
    size_t idle = tk_min(idle_slots, limits->work_requests);
    if (is_bounced)
        idle = tk_min(idle, limits->bounce_buffers);
    return tk_min((left + piece_max - 1) / piece_max, tk_max(idle, 1));
}
