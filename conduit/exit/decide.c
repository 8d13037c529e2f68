/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "base/bits.h"
#include "common/clock.h"
#include "exit/decide.h"
#include "settings/settings.h"
#include "topology/tree.h"

/* Time for all ranks to leave by themselves before the others are notified: a collective exit is
 * over long before. Where ranks outnumber CPUs some wait for a CPU; a notice would run their
 * SIGQUIT handlers for nothing, and have rank 0 talk to all. */
static const uint64_t grace_alone = TK_SECOND / 10, grace_in_crowd = TK_SECOND / 5,
                      grace_of_each = TK_SECOND / 200;

/* Time for rank 0 to answer. If it polls, it takes microseconds. */
static const uint64_t patience = TK_SECOND / 10;

/* After that, the difference between the waits of two ranks: enough for a leader's requests to
 * reach leaving ranks, which only poll. All waits together take less than a second. */
static const uint64_t turn_max = TK_SECOND / 200, all_turns = TK_SECOND / 5;

/* Part of the grace period: for a question, its answer and a notice along the tree, before the
 * ranks one step below ask too: with each question rank 0 makes a connection. A tree of a million
 * leaders has 20 steps. */
enum { pauses_of_grace = 10 };

/* What the launcher needs to take an abort on a busy machine. */
static const uint64_t aside_margin = TK_SECOND / 2;

uint64_t tk_exit_grace(bool oversubscribed, uint32_t ranks, uint32_t cpus)
{
    if (!oversubscribed)
        return grace_alone;
    return tk_max(grace_in_crowd, grace_of_each * (ranks / cpus));
}

double tk_exit_timeout_of(uint32_t ranks)
{
    double linear = tk_settings.exit_timeout_min + tk_settings.exit_timeout_factor * (double)ranks;
    if (tk_settings.exit_timeout > 0)
        return tk_settings.exit_timeout;
    return linear < tk_settings.exit_timeout_max ? linear : tk_settings.exit_timeout_max;
}

void tk_agree_at_begin(struct tk_agree_place *place, const struct tk_leaders *leaders)
{
    *place = (struct tk_agree_place){.end = tk_leaders_use_tree(leaders, 0) ? leaders->tree
                                                                            : leaders->all};
}

enum tk_agree_action tk_agree_next(const struct tk_agree_place *place,
                                   const struct tk_leaders *leaders, bool has_come)
{
    if (place->step >= place->end)
        return TK_AGREE_OVER;
    const struct tk_leaders_step *step = &leaders->steps[place->step];
    if (step->sends && !place->has_sent)
        return TK_AGREE_SEND;
    return step->awaits && !has_come ? TK_AGREE_WAIT : TK_AGREE_PASS;
}

bool tk_agree_awaits_above(const struct tk_agree_place *place, const struct tk_leaders *leaders)
{
    if (leaders->tree == 0 || place->step >= place->end)
        return false;
    const struct tk_leaders_step *step = &leaders->steps[place->step];
    return step->sends && step->awaits && place->has_sent;
}

static enum tk_role role_of_rank_0(const struct tk_elect_view *view)
{
    return view->is_taken ? TK_ROLE_MEMBER : TK_ROLE_LEADER;
}

/* Silence of rank 0 after which this rank leads. */
static uint64_t our_turn(const struct tk_elect_view *view)
{
    uint64_t turn = all_turns / view->ranks;
    return view->asks_after + patience + view->me * (turn < turn_max ? turn : turn_max);
}

struct tk_elect_step tk_elect_next(const struct tk_elect_view *view)
{
    struct tk_elect_step step = {.role = TK_ROLE_OPEN};
    if (view->is_notified)
        step.role = TK_ROLE_MEMBER;
    else if (view->me == 0)
        step.role = role_of_rank_0(view);
    else if (view->answer == TK_ELECT_LEAD || (!view->answer && view->waited > our_turn(view)))
        step.role = TK_ROLE_LEADER;
    else if (view->answer == TK_ELECT_FOLLOW)
        step.role = TK_ROLE_MEMBER;
    step.asks =
        !view->is_notified && view->me != 0 && !view->has_asked && view->waited >= view->asks_after;
    return step;
}

uint64_t tk_elect_pause(uint32_t depth, uint64_t grace)
{
    return depth * grace / pauses_of_grace;
}

uint32_t tk_elect_depth_of_neighbour(uint32_t nbrhds, uint32_t index)
{
    uint32_t depth = 1;
    while (depth < 32 && UINT32_C(1) << depth <= nbrhds)
        depth++;
    for (; index > 0; depth++)
        index = tk_tree_place(index, index + 1).above;
    return depth;
}

enum tk_elect_question tk_elect_answer(uint32_t leader, uint32_t asker)
{
    return leader == asker ? TK_ELECT_LEAD : TK_ELECT_FOLLOW;
}

unsigned tk_notice_over_tree(const struct tk_leaders *leaders, uint32_t from,
                             uint32_t to[tk_notice_over_tree_max])
{
    unsigned count = 0;
    for (unsigned i = 0; i < leaders->tree; i++)
        if (leaders->steps[i].sends && leaders->steps[i].to != from)
            to[count++] = leaders->steps[i].to;
    return count;
}

uint64_t tk_notice_patience(uint64_t grace)
{
    return grace;
}

bool tk_leave_parts(bool has_network, bool has_agreed, bool is_grace_over)
{
    return !has_network || has_agreed || is_grace_over;
}

uint64_t tk_leave_aside_max(uint32_t depth, uint64_t grace)
{
    uint64_t of_tree = depth ? tk_elect_pause(depth, grace) + tk_notice_patience(grace) : 0;
    return tk_min(3 * grace + of_tree, tk_aside_watchdog * TK_SECOND - aside_margin);
}

bool tk_leave_puts_code(uint32_t ranks, int code, bool has_agreed, bool is_carried)
{
    return ranks > 1 && !is_carried && !(code == 0 && has_agreed);
}
