/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Barriers among the leaders (first ranks) of neighbourhoods, and operations of the same form:
 * which messages each leader sends to which others, and which it waits for. */
#ifndef TK_LEADERS_H
#define TK_LEADERS_H

#include <stdbool.h>
#include <stdint.h>

/* Steps of a tree come first, then those of dissemination. */
enum { tk_leaders_tree_steps = 5, tk_leaders_steps_max = tk_leaders_tree_steps + 32 };

/* Number of barriers that use the tree before dissemination is used. A connection costs both ends
 * as much as hundreds of barriers save, so only a job with many barriers makes the connections of
 * dissemination. */
enum { tk_leaders_few = 100 };

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
