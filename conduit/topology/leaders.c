/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See leaders.h. Owns nothing. */
#include "config.h"

#include <stdlib.h>

#include "topology/leaders.h"
#include "topology/topology.h"

enum { AWAIT_FIRST, AWAIT_SECOND, ASK_ABOVE, FREE_FIRST, FREE_SECOND };

/* Numbers the tree in preorder: the first child of a node is the next neighbourhood, to which a
 * ring program is connected anyway. */
struct place {
    uint32_t above, below[2];
    uint32_t below_count, which; /* our index among the children of our parent */
    uint32_t depth;
};

static struct place find_place(uint32_t mine, uint32_t count)
{
    struct place place = {.above = mine};
    uint32_t root = 0, size = count;
    while (root != mine) {
        uint32_t first = size / 2; /* the larger half of the subtree */
        bool is_second = mine > root + first;
        place.above = root;
        place.which = is_second;
        place.depth++;
        root += is_second ? first + 1 : 1;
        size = is_second ? size - 1 - first : first;
    }
    if (size > 1)
        place.below[place.below_count++] = mine + 1;
    if (size > 2)
        place.below[place.below_count++] = mine + 1 + size / 2;
    return place;
}

static void send_in(struct tk_leaders_step *step, uint32_t nbrhd, uint32_t to_step)
{
    step->sends = true;
    step->to = nbrhd;
    step->to_step = to_step;
}

static void await(struct tk_leaders_step *step, uint32_t nbrhd)
{
    step->awaits = true;
    step->from = nbrhd;
}

static void add_tree(struct tk_leaders *leaders, uint32_t mine, uint32_t count)
{
    struct place place = find_place(mine, count);
    leaders->all = leaders->tree = tk_leaders_tree_steps;
    leaders->depth = place.depth;
    for (uint32_t i = 0; i < place.below_count; i++) {
        await(&leaders->steps[AWAIT_FIRST + i], place.below[i]);
        send_in(&leaders->steps[FREE_FIRST + i], place.below[i], ASK_ABOVE);
    }
    if (place.above == mine)
        return;
    await(&leaders->steps[ASK_ABOVE], place.above);
    send_in(&leaders->steps[ASK_ABOVE], place.above, AWAIT_FIRST + place.which);
}

static void add_dissemination(struct tk_leaders *leaders, uint32_t mine, uint32_t count)
{
    for (uint64_t distance = 1; distance < count; distance *= 2) {
        struct tk_leaders_step *step = &leaders->steps[leaders->all];
        await(step, (uint32_t)((mine + count - distance) % count));
        send_in(step, (uint32_t)((mine + distance) % count), leaders->all++);
    }
}

bool tk_leaders_have_tree(uint32_t count, bool on_demand)
{
    return on_demand && count > tk_leaders_without_tree;
}

void tk_leaders_plan(struct tk_leaders *leaders, uint32_t mine, uint32_t count, bool on_demand)
{
    *leaders = (struct tk_leaders){.all = 0};
    if (tk_leaders_have_tree(count, on_demand))
        add_tree(leaders, mine, count);
    add_dissemination(leaders, mine, count);
}

/* ---- from neighbourhoods to their first ranks */

struct end {
    uint32_t nbrhd, *rank;
};

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    return x->nbrhd < y->nbrhd ? -1 : x->nbrhd > y->nbrhd;
}

/* One pass over the ranks, whatever the number of steps: neighbourhoods are numbered in the order
 * of their first ranks. A pass for each step would cost a leader of a million ranks 50 of them. */
static void name_ranks(struct tk_leaders *leaders)
{
    struct end ends[2 * tk_leaders_steps_max];
    unsigned count = 0, at = 0;
    for (unsigned i = 0; i < leaders->all; i++) {
        struct tk_leaders_step *step = &leaders->steps[i];
        if (step->sends)
            ends[count++] = (struct end){step->to, &step->to};
        if (step->awaits)
            ends[count++] = (struct end){step->from, &step->from};
    }
    qsort(ends, count, sizeof(ends[0]), compare_ends);
    for (uint32_t rank = 0; at < count; rank++)
        while (at < count && tk_topology.nbrhd_of[rank] == ends[at].nbrhd)
            *ends[at++].rank = rank;
}

void tk_leaders_open(struct tk_leaders *leaders, bool on_demand)
{
    *leaders = (struct tk_leaders){.all = 0};
    if (tk_topology.nbrhd_rank != 0)
        return;
    tk_leaders_plan(leaders, tk_topology.my_nbrhd, tk_topology.nbrhds, on_demand);
    name_ranks(leaders);
}
