/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Algorithms of the GASNet-1 collectives in which each rank has a block of its own. Each block goes
 * directly from its source to its destination; they are simple because only old programs use them.
 * The only state is the collective's. */
#include "config.h"

#include <string.h>

#include "collective/coll_private.h"

static char *block_at(const void *memory, const struct tk_coll *coll, uint32_t index)
{
    return (char *)memory + index * coll->call.nbytes;
}

static void block_copy(const struct tk_coll *coll, void *to, const void *from)
{
    if (to != from && coll->call.nbytes)
        memmove(to, from, coll->call.nbytes);
}

enum tk_coll_turn tk_coll_scatter_linear(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    const struct tk_coll_call *call = &coll->call;
    uint32_t me = group->me;
    if (coll->round > 0) {
        /* Do this last: the root's own block may overwrite another block. */
        if (me == group->root)
            block_copy(coll, call->dst, block_at(call->src, coll, me));
        return TK_COLL_OVER;
    }
    if (me != group->root)
        tk_coll_receive(coll, group->root, call->dst, call->nbytes, 0);
    for (uint32_t i = 0; me == group->root && i < group->size; i++)
        if (i != me)
            tk_coll_send(coll, i, block_at(call->src, coll, i), call->nbytes, 0);
    return TK_COLL_GO_ON;
}

enum tk_coll_turn tk_coll_gather_linear(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    const struct tk_coll_call *call = &coll->call;
    uint32_t me = group->me;
    if (coll->round > 0)
        return TK_COLL_OVER;
    if (me != group->root)
        tk_coll_send(coll, group->root, call->src, call->nbytes, 0);
    else
        block_copy(coll, block_at(call->dst, coll, me), call->src);
    for (uint32_t i = 0; me == group->root && i < group->size; i++)
        if (i != me)
            tk_coll_receive(coll, i, block_at(call->dst, coll, i), call->nbytes, 0);
    return TK_COLL_GO_ON;
}

/* Step s sends the block of rank me - s to the next rank. */
enum tk_coll_turn tk_coll_gather_all_ring(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    const struct tk_coll_call *call = &coll->call;
    uint32_t size = group->size, me = group->me, s = coll->round;
    if (s == 0)
        block_copy(coll, block_at(call->dst, coll, me), call->src);
    if (s + 1 >= size)
        return TK_COLL_OVER;
    tk_coll_send(coll, (me + 1) % size, block_at(call->dst, coll, (me + size - s) % size),
                 call->nbytes, s);
    tk_coll_receive(coll, (me + size - 1) % size,
                    block_at(call->dst, coll, (me + 2 * size - s - 1) % size), call->nbytes, s);
    return TK_COLL_GO_ON;
}

/* Number of members with which a member exchanges at a time: bounds the list, and the memory of
 * unexpected messages at slower members. */
enum { window = 16 };

enum tk_coll_turn tk_coll_exchange_window(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    const struct tk_coll_call *call = &coll->call;
    uint32_t size = group->size, me = group->me, first = coll->round * window;
    if (first >= size)
        return TK_COLL_OVER;
    if (first == 0)
        block_copy(coll, block_at(call->dst, coll, me), block_at(call->src, coll, me));
    for (uint32_t d = tk_max(first, 1u); d < size && d < first + window; d++) {
        uint32_t to = (me + d) % size, from = (me + size - d) % size;
        tk_coll_send(coll, to, block_at(call->src, coll, to), call->nbytes, 0);
        tk_coll_receive(coll, from, block_at(call->dst, coll, from), call->nbytes, 0);
    }
    return TK_COLL_GO_ON;
}
