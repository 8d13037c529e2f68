/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Algorithms of barriers and broadcasts (coll_private.h defines what an algorithm is). The only
 * state is the collective's. */
#include "config.h"

#include "collective/coll_private.h"

/* ---- dissemination (Hensgen, Finkel, Manber 1988): in round k a message to the member 2^k above;
 * ceil(log2 n) rounds */

enum tk_coll_turn tk_coll_dissemination(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint64_t distance = UINT64_C(1) << coll->round;
    if (distance >= group->size)
        return TK_COLL_OVER;
    uint32_t to = (uint32_t)((group->me + distance) % group->size);
    uint32_t from = (uint32_t)((group->me + group->size - distance) % group->size);
    tk_coll_send(coll, to, NULL, 0, coll->round);
    tk_coll_receive(coll, from, NULL, 0, coll->round);
    return TK_COLL_GO_ON;
}

/* ---- binomial tree: member v, counted from the root, has v without its lowest bit above it, and
 * v + m below it for each power of two m under its lowest bit */

static uint64_t lowest_bit(uint32_t turned, uint32_t size)
{
    uint64_t bit = 1;
    if (turned)
        return turned & (0 - turned);
    while (bit < size)
        bit *= 2;
    return bit;
}

/* Children with the largest subtrees first. */
static void send_to_all_below(struct tk_coll *coll, uint32_t turned)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    for (uint64_t m = lowest_bit(turned, group->size) / 2; m > 0; m /= 2)
        if (turned + m < group->size)
            tk_coll_send(coll, tk_coll_turned_back(group, (uint32_t)(turned + m)), coll->value,
                         coll->call.nbytes, 0);
}

enum tk_coll_turn tk_coll_broadcast_binomial(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t turned = tk_coll_turned(group, group->me);
    if (coll->round == 0 && turned) {
        tk_coll_value_receive(coll);
        tk_coll_receive(coll, tk_coll_turned_back(group, turned & (turned - 1)), coll->value,
                        coll->call.nbytes, 0);
    } else if (coll->round == 1) {
        send_to_all_below(coll, turned);
    }
    return coll->round < 2 ? TK_COLL_GO_ON : TK_COLL_OVER;
}

uint32_t tk_coll_tree_parent(const struct tk_coll_group *group)
{
    uint32_t turned = tk_coll_turned(group, group->me);
    return tk_coll_turned_back(group, turned & (turned - 1));
}

unsigned tk_coll_tree_below(const struct tk_coll_group *group, uint32_t below[32])
{
    uint32_t turned = tk_coll_turned(group, group->me);
    unsigned count = 0;
    for (uint64_t m = lowest_bit(turned, group->size) / 2; m > 0; m /= 2)
        if (turned + m < group->size)
            below[count++] = tk_coll_turned_back(group, (uint32_t)(turned + m));
    return count;
}

/* ---- scatter down the same tree, then all parts round a ring: each member sends and receives each
 * byte about once, where an inner member of the tree above sends it several times */

enum { ring_tag = 0x100 };

/* Parts belong to rotated indices; member v gets the parts of its subtree, from v on. */
static struct tk_coll_part parts_below(const struct tk_coll *coll, uint32_t turned)
{
    uint32_t size = tk_coll_group(coll)->size;
    uint64_t end = tk_min(turned + lowest_bit(turned, size), (uint64_t)size);
    struct tk_coll_part first = tk_coll_part(coll, turned);
    struct tk_coll_part last = tk_coll_part(coll, (uint32_t)end - 1);
    first.nbytes = last.offset + last.nbytes - first.offset;
    return first;
}

static void scatter_receive(struct tk_coll *coll, uint32_t turned)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    struct tk_coll_part part = parts_below(coll, turned);
    tk_coll_value_receive(coll);
    tk_coll_receive(coll, tk_coll_turned_back(group, turned & (turned - 1)),
                    coll->value + part.offset, part.nbytes, 0);
}

static void scatter_send(struct tk_coll *coll, uint32_t turned)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    for (uint64_t m = lowest_bit(turned, group->size) / 2; m > 0; m /= 2) {
        if (turned + m >= group->size)
            continue;
        uint32_t to = (uint32_t)(turned + m);
        struct tk_coll_part part = parts_below(coll, to);
        tk_coll_send(coll, tk_coll_turned_back(group, to), coll->value + part.offset, part.nbytes,
                     0);
    }
}

/* In step s member v sends part v - s and receives part v - 1 - s. The root has all parts and
 * receives nothing. */
static void ring_step(struct tk_coll *coll, uint32_t turned, uint32_t s)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t size = group->size, above = (turned + 1) % size, below = (turned + size - 1) % size;
    struct tk_coll_part out = tk_coll_part(coll, (turned + size - s) % size);
    struct tk_coll_part in = tk_coll_part(coll, (below + size - s) % size);
    if (above)
        tk_coll_send(coll, tk_coll_turned_back(group, above), coll->value + out.offset, out.nbytes,
                     ring_tag + s);
    if (turned)
        tk_coll_receive(coll, tk_coll_turned_back(group, below), coll->value + in.offset, in.nbytes,
                        ring_tag + s);
}

enum tk_coll_turn tk_coll_broadcast_scatter(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t turned = tk_coll_turned(group, group->me);
    if (coll->round == 0 && turned)
        scatter_receive(coll, turned);
    else if (coll->round == 1)
        scatter_send(coll, turned);
    else if (coll->round > group->size)
        return TK_COLL_OVER;
    else if (coll->round > 1)
        ring_step(coll, turned, coll->round - 2);
    return TK_COLL_GO_ON;
}

/* ---- flat: the root sends to each member itself. No forwarding, but the root's link carries the
 * payload n - 1 times; also the baseline that a multicast in the network is compared with */

enum tk_coll_turn tk_coll_broadcast_flat(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    if (coll->round == 1)
        return TK_COLL_OVER;
    if (group->me != group->root) {
        tk_coll_value_receive(coll);
        tk_coll_receive(coll, group->root, coll->value, coll->call.nbytes, 0);
        return TK_COLL_GO_ON;
    }
    for (uint32_t i = 0; i < group->size; i++)
        if (i != group->root)
            tk_coll_send(coll, i, coll->value, coll->call.nbytes, 0);
    return TK_COLL_GO_ON;
}

/* ---- chain: each member passes the pieces of the payload on to the next; a piece travels on while
 * the one behind it arrives, so each link carries each byte once */

enum { chain_piece = 64 << 10 };

static void chain_pass(struct tk_coll *coll, uint32_t turned, size_t piece, bool is_send)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    size_t offset = piece * chain_piece;
    size_t nbytes = tk_min(coll->call.nbytes - offset, (size_t)chain_piece);
    if (is_send)
        tk_coll_send(coll, tk_coll_turned_back(group, turned), coll->value + offset, nbytes,
                     (uint32_t)piece);
    else
        tk_coll_receive(coll, tk_coll_turned_back(group, turned), coll->value + offset, nbytes,
                        (uint32_t)piece);
}

/* In round r a member receives piece r and sends piece r - 1. */
enum tk_coll_turn tk_coll_broadcast_chain(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t turned = tk_coll_turned(group, group->me);
    size_t pieces = coll->call.nbytes ? (coll->call.nbytes - 1) / chain_piece + 1 : 1;
    if (coll->round > pieces)
        return TK_COLL_OVER;
    if (turned && coll->round == 0)
        tk_coll_value_receive(coll);
    if (turned && coll->round < pieces)
        chain_pass(coll, turned - 1, coll->round, false);
    if (turned + 1 < group->size && coll->round)
        chain_pass(coll, turned + 1, coll->round - 1, true);
    return TK_COLL_GO_ON;
}
