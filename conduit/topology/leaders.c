/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See leaders.h. Owns nothing. */
#include "config.h"

#include "topology/leaders.h"
#include "topology/topology.h"

/* Up to this number of leaders there is no tree: dissemination makes few connections too. */
enum { leaders_without_tree = 8 };

enum { AWAIT_FIRST, AWAIT_SECOND, ASK_ABOVE, FREE_FIRST, FREE_SECOND };

static uint32_t leader_of(uint32_t nbrhd)
{
    uint32_t rank = 0;
    while (tk_topology.nbrhd_of[rank] != nbrhd)
        rank++;
    return rank;
}

/* Numbers the tree in preorder: the first child of a node is the next neighbourhood, to which a
 * ring program is connected anyway. */
struct place {
    uint32_t above, below[2];
    uint32_t below_count, which; /* our index among the children of our parent */
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
    step->to = leader_of(nbrhd);
    step->to_step = to_step;
}

static void await(struct tk_leaders_step *step, uint32_t nbrhd)
{
    step->awaits = true;
    step->from = leader_of(nbrhd);
}

static void add_tree(struct tk_leaders *leaders)
{
    struct place place = find_place(tk_topology.my_nbrhd, tk_topology.nbrhds);
    leaders->all = leaders->tree = tk_leaders_tree_steps;
    for (uint32_t i = 0; i < place.below_count; i++) {
        await(&leaders->steps[AWAIT_FIRST + i], place.below[i]);
        send_in(&leaders->steps[FREE_FIRST + i], place.below[i], ASK_ABOVE);
    }
    if (place.above == tk_topology.my_nbrhd)
        return;
    await(&leaders->steps[ASK_ABOVE], place.above);
    send_in(&leaders->steps[ASK_ABOVE], place.above, AWAIT_FIRST + place.which);
}

static void add_dissemination(struct tk_leaders *leaders)
{
    uint32_t nbrhds = tk_topology.nbrhds;
    for (uint64_t distance = 1; distance < nbrhds; distance *= 2) {
        struct tk_leaders_step *step = &leaders->steps[leaders->all];
        await(step, (uint32_t)((tk_topology.my_nbrhd + nbrhds - distance) % nbrhds));
        send_in(step, (uint32_t)((tk_topology.my_nbrhd + distance) % nbrhds), leaders->all++);
    }
}

void tk_leaders_open(struct tk_leaders *leaders, bool on_demand)
{
    *leaders = (struct tk_leaders){.all = 0};
    if (tk_topology.nbrhd_rank != 0)
        return;
    if (on_demand && tk_topology.nbrhds > leaders_without_tree)
        add_tree(leaders);
    add_dissemination(leaders);
}
