/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Barriers among the leaders (first ranks) of neighbourhoods, and operations of the same form:
 * which messages each leader sends to which others, and which it waits for. */
#ifndef TK_LEADERS_H
#define TK_LEADERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/* Steps of a tree come first, then those of dissemination. */
enum { tk_leaders_tree_steps = 5, tk_leaders_steps_max = tk_leaders_tree_steps + 32 };

/* Number of barriers that use the tree before dissemination is used. A connection costs both ends
 * as much as hundreds of barriers save, so only a job with many barriers makes the connections of
 * dissemination. */
enum { tk_leaders_few = 100 };

/* Up to this number of leaders there is no tree: dissemination makes few connections too. */
enum { tk_leaders_without_tree = 8 };

/* A leader sends messages of at most this many barriers beyond those that it has completed. Two, so
 * that a barrier may begin while the one before it is on its way; more are seldom started at once,
 * and each costs receive buffers. */
enum { tk_leaders_ahead = 2 };

/* In each step a leader sends the step's message, if any, then waits for the message of its own
 * step, if any, then begins the next step. A message carries the step of its receiver. */
struct tk_leaders_step {
    uint32_t to;      /* rank */
    uint32_t from;    /* the rank whose message it awaits */
    uint32_t to_step; /* of that rank */
    bool sends, awaits;
};

/* Dissemination (Hensgen, Finkel, Manber 1988): in step k each leader sends to the leader of the
 * neighbourhood 2^k above its own, and waits for the one 2^k below; ceil(log2 of the number of
 * leaders) steps, and each leader communicates with twice as many others. A tree, up and down,
 * takes twice as long, but each leader communicates with 3 others at most. */
struct tk_leaders {
    unsigned tree, all; /* steps; 0: no tree, no other leaders, or this rank is not a leader */
    uint32_t depth;     /* steps up to the root of the tree */
    struct tk_leaders_step steps[tk_leaders_steps_max];
};

/* Whether there is a tree among so many leaders. */
bool tk_leaders_have_tree(uint32_t count, bool on_demand);

/* The steps of the leader of neighbourhood `mine` of `count`, in which `to` and `from` are indices
 * of neighbourhoods. With a tree where connections are made on first use and there are many
 * leaders. Pure: gasnetrun_ibv --simulate computes the steps of all leaders. */
void tk_leaders_plan(struct tk_leaders *leaders, uint32_t mine, uint32_t count, bool on_demand);

/* The same with ranks, for this rank; no steps if it is not a leader. After tk_topology_build(). */
void tk_leaders_open(struct tk_leaders *leaders, bool on_demand);

/* How many messages of barriers and of the agreement at the end can be on their way to a rank of a
 * job of `ranks`, sent and not handled. Of one step all come from one leader.
 *
 * Tree, a = tk_leaders_ahead: a child that sends message m to its parent has completed m - a, so it
 * has received m - a messages of its parent, which the parent sent after it had handled as many of
 * the child. So at most `a` are on their way. A parent that sends message m to a child has handled
 * m messages of the child, which had completed m - a before it sent the last one: again `a`.
 *
 * Dissemination: a leader that sends message m of a step has completed m - a, which all others had
 * entered: each of them had sent a message m - a, and so had completed m - 2a, for which it had
 * handled as many messages of that step. So at most 2a are on their way. The first barrier of
 * dissemination begins in a leader when the tree's last one is over there, with messages of the
 * tree still on their way to others: both count.
 *
 * The agreement sends one message in each step, of the tree if there is one.
 *
 * What is handled needs no buffer any more: it is in its queue again before the handler counts the
 * message, or in the batch to be posted, which the queue has buffers for (credit_loan.c). */
static inline int tk_leaders_messages_max(uint32_t ranks)
{
    enum { tree_awaits = 3 };
    int rounds = 0;
    while (rounds < 32 && (UINT64_C(1) << rounds) < ranks)
        rounds++;
    int tree = ranks > tk_leaders_without_tree ? tree_awaits : 0;
    int at_end = (int)tk_max((size_t)tree, (size_t)rounds);
    return tk_leaders_ahead * (tree + 2 * rounds) + at_end;
}

/* Whether a barrier, counted from 0, uses the steps of the tree: it and the end of the job, which
 * is like barrier 0, then use the steps before `tree`, others those from `tree` on. */
static inline bool tk_leaders_use_tree(const struct tk_leaders *leaders, uint32_t number)
{
    return leaders->tree > 0 && number < tk_leaders_few;
}

/* If a message arrives for a step that does not wait for one, the sender is faulty. */
static inline bool tk_leaders_await(const struct tk_leaders *leaders, uint32_t step)
{
    return step < leaders->all && leaders->steps[step].awaits;
}

#endif
