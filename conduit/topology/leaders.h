/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Barriers among the leaders (first ranks) of neighbourhoods, and what has their form: what each
 * leader sends to which others, and awaits. */
#ifndef TK_LEADERS_H
#define TK_LEADERS_H

#include <stdbool.h>
#include <stdint.h>

/* Steps of a tree come first, then those of dissemination. */
enum { tk_leaders_tree_steps = 5, tk_leaders_steps_max = tk_leaders_tree_steps + 32 };

/* Barriers by the tree, before dissemination. To be connected costs both ends as much as hundreds
 * of barriers save, so only a job with many of them gets that. */
enum { tk_leaders_few = 100 };

/* A leader sends the step's message, then waits for the one that belongs to the step here, if there
 * are any; then it goes on with the next step. Messages are named by the step of their receiver. */
struct tk_leaders_step {
    uint32_t to;      /* rank */
    uint32_t from;    /* the rank whose message it awaits */
    uint32_t to_step; /* of that rank */
    bool sends, awaits;
};

/* Dissemination (Hensgen, Finkel, Manber 1988): in step k each leader sends to the leader of the
 * neighbourhood 2^k above its own, and waits for the one 2^k below; ceil(log2 of the number of
 * leaders) steps, and twice as many others that it talks to. With a tree, up and down, it takes
 * twice as long, but each talks to 3 others at most. */
struct tk_leaders {
    unsigned tree, all; /* steps; 0: there is no tree; there are no others, or we do not lead */
    struct tk_leaders_step steps[tk_leaders_steps_max];
};

/* With a tree where connections are made on first use and there are many leaders. After
 * tk_topology_build(). */
void tk_leaders_open(struct tk_leaders *leaders, bool on_demand);

/* A message for a step that awaits none is a fault of the sender. */
static inline bool tk_leaders_await(const struct tk_leaders *leaders, uint32_t step)
{
    return step < leaders->all && leaders->steps[step].awaits;
}

#endif
