/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Algorithms of reductions, and the buffers that they use. The only state is the collective's.
 *
 * Order. Binomial trees and recursive doubling combine blocks of neighbouring indices, the lower
 * one as first operand; the tree counts indices from the root. A ring combines part i in the order
 * i, i + 1, ... of indices. So the order depends on the algorithm, which sizes choose, the number
 * of members, and for trees the root; it never depends on which message came first. */
#include "config.h"

#include <string.h>

#include "collective/coll_private.h"

/* ---- buffers */

char *tk_coll_spare(struct tk_coll *coll)
{
    return coll->value == coll->buffers[0] ? coll->buffers[1] : coll->buffers[0];
}

void tk_coll_value_receive(struct tk_coll *coll)
{
    coll->value = coll->buffers[0];
}

void tk_coll_value_copy(struct tk_coll *coll)
{
    char *from = coll->value;
    tk_coll_value_receive(coll);
    if (from != coll->value && coll->call.nbytes)
        memcpy(coll->value, from, coll->call.nbytes);
}

struct tk_coll_part tk_coll_part(const struct tk_coll *coll, uint32_t index)
{
    size_t element = coll->call.fold.element, count = coll->call.nbytes / element;
    size_t size = tk_coll_group(coll)->size, each = count / size, more = count % size;
    size_t first = index * each + tk_min((size_t)index, more);
    return (struct tk_coll_part){first * element, (each + (index < more)) * element};
}

static void fold(struct tk_coll *coll, const void *first, void *second, size_t nbytes)
{
    const struct tk_coll_fold *how = &coll->call.fold;
    if (nbytes)
        how->fn(first, second, nbytes / how->element, how->cdata);
}

/* The spare buffer holds contributions of members with higher indices than those in the value. */
static void fold_higher(struct tk_coll *coll)
{
    char *received = tk_coll_spare(coll);
    fold(coll, coll->value, received, coll->call.nbytes);
    coll->value = received;
}

/* The same for members with lower indices. The result takes the place of the value, unless that is
 * the client's source. */
static void fold_lower(struct tk_coll *coll)
{
    char *received = tk_coll_spare(coll);
    if (coll->value != coll->buffers[0] && coll->value != coll->buffers[1]) {
        char *copy = received == coll->buffers[0] ? coll->buffers[1] : coll->buffers[0];
        if (coll->call.nbytes)
            memcpy(copy, coll->value, coll->call.nbytes);
        coll->value = copy;
    }
    fold(coll, received, coll->value, coll->call.nbytes);
}

/* ---- binomial tree: round k receives from the member 2^k above, or sends to the one below and is
 * over */

enum { has_received = 1, has_sent = 2 };

enum tk_coll_turn tk_coll_reduce_binomial(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t turned = tk_coll_turned(group, group->me);
    uint64_t distance = UINT64_C(1) << coll->round;
    if (coll->stage == has_received)
        fold_higher(coll);
    if (coll->stage == has_sent || distance >= group->size)
        return TK_COLL_OVER;
    coll->stage = 0;
    if (turned & distance) {
        tk_coll_send(coll, tk_coll_turned_back(group, (uint32_t)(turned - distance)), coll->value,
                     coll->call.nbytes, 0);
        coll->stage = has_sent;
    } else if (turned + distance < group->size) {
        tk_coll_receive(coll, tk_coll_turned_back(group, (uint32_t)(turned + distance)),
                        tk_coll_spare(coll), coll->call.nbytes, 0);
        coll->stage = has_received;
    }
    return TK_COLL_GO_ON;
}

/* ---- recursive doubling: in round k, members whose indices differ in bit k exchange values. Where
 * there are more members than the power of two below, the first ones form pairs, and the lower
 * member of a pair exchanges for both */

enum { higher_received = 1, lower_received = 2 };

/* Above the number of any step: a ring has as many steps as members. */
enum { last_tag = 1 << 23 };

static void exchange_values(struct tk_coll *coll, uint32_t mine, uint32_t other, uint32_t extra)
{
    uint32_t index = other < extra ? 2 * other : other + extra;
    tk_coll_send(coll, index, coll->value, coll->call.nbytes, coll->round);
    tk_coll_receive(coll, index, tk_coll_spare(coll), coll->call.nbytes, coll->round);
    coll->stage = other > mine ? higher_received : lower_received;
}

static void fold_received(struct tk_coll *coll)
{
    if (coll->stage == higher_received)
        fold_higher(coll);
    else if (coll->stage == lower_received)
        fold_lower(coll);
    coll->stage = 0;
}

/* The upper member of a pair: sends its value, and receives the result. */
static enum tk_coll_turn doubled_by_other(struct tk_coll *coll, uint32_t me)
{
    if (coll->round == 0) {
        tk_coll_send(coll, me - 1, coll->value, coll->call.nbytes, 0);
    } else if (coll->round == 1) {
        tk_coll_value_receive(coll);
        tk_coll_receive(coll, me - 1, coll->value, coll->call.nbytes, last_tag);
    }
    return coll->round < 2 ? TK_COLL_GO_ON : TK_COLL_OVER;
}

enum tk_coll_turn tk_coll_reduce_all_doubling(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t me = group->me, power = 1;
    while (power <= group->size / 2)
        power *= 2;
    uint32_t extra = group->size - power;
    bool is_paired = me < 2 * extra;
    if (is_paired && me % 2)
        return doubled_by_other(coll, me);
    fold_received(coll);
    if (coll->round == 0) {
        if (is_paired) {
            tk_coll_receive(coll, me + 1, tk_coll_spare(coll), coll->call.nbytes, 0);
            coll->stage = higher_received;
        }
        return TK_COLL_GO_ON;
    }
    uint64_t bit = UINT64_C(1) << (coll->round - 1);
    uint32_t mine = is_paired ? me / 2 : me - extra;
    if (bit < power)
        exchange_values(coll, mine, mine ^ (uint32_t)bit, extra);
    else if (bit == power && is_paired)
        tk_coll_send(coll, me + 1, coll->value, coll->call.nbytes, last_tag);
    else
        return TK_COLL_OVER;
    return TK_COLL_GO_ON;
}

/* ---- ring: each member sends and receives about as much as one payload, or two for all. Step s
 * sends part me - s, combined so far, and receives the part before it; after all steps member i has
 * the result of part i + 1 */

static void ring_reduce(struct tk_coll *coll, uint32_t s)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t size = group->size, me = group->me;
    struct tk_coll_part out = tk_coll_part(coll, (me + size - s) % size);
    struct tk_coll_part in = tk_coll_part(coll, (me + 2 * size - s - 1) % size);
    tk_coll_send(coll, (me + 1) % size, coll->value + out.offset, out.nbytes, s);
    tk_coll_receive(coll, (me + size - 1) % size, coll->buffers[1], in.nbytes, s);
}

static void ring_fold(struct tk_coll *coll, uint32_t s)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t size = group->size;
    struct tk_coll_part in = tk_coll_part(coll, (group->me + 2 * size - s - 1) % size);
    fold(coll, coll->buffers[1], coll->value + in.offset, in.nbytes);
}

/* False when all parts are combined. */
static bool ring_combines(struct tk_coll *coll)
{
    uint32_t steps = tk_coll_group(coll)->size - 1;
    if (coll->round == 0)
        tk_coll_value_copy(coll);
    else if (coll->round <= steps)
        ring_fold(coll, coll->round - 1);
    if (coll->round < steps)
        ring_reduce(coll, coll->round);
    return coll->round < steps;
}

static void ring_gather_all(struct tk_coll *coll, uint32_t s)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t size = group->size, me = group->me;
    struct tk_coll_part out = tk_coll_part(coll, (me + 1 + size - s) % size);
    struct tk_coll_part in = tk_coll_part(coll, (me + size - s) % size);
    tk_coll_send(coll, (me + 1) % size, coll->value + out.offset, out.nbytes, coll->round);
    tk_coll_receive(coll, (me + size - 1) % size, coll->value + in.offset, in.nbytes, coll->round);
}

enum tk_coll_turn tk_coll_reduce_all_ring(struct tk_coll *coll)
{
    uint32_t steps = tk_coll_group(coll)->size - 1;
    if (ring_combines(coll))
        return TK_COLL_GO_ON;
    if (coll->round >= 2 * steps)
        return TK_COLL_OVER;
    ring_gather_all(coll, coll->round - steps);
    return TK_COLL_GO_ON;
}

/* Each member sends the root the part that it has combined. */
enum tk_coll_turn tk_coll_reduce_ring(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t size = group->size, me = group->me, steps = size - 1;
    if (ring_combines(coll))
        return TK_COLL_GO_ON;
    if (coll->round > steps || size == 1)
        return TK_COLL_OVER;
    for (uint32_t i = 0; i < size; i++) {
        struct tk_coll_part part = tk_coll_part(coll, (i + 1) % size);
        if (i != me && me == group->root)
            tk_coll_receive(coll, i, coll->value + part.offset, part.nbytes, last_tag);
        else if (i == me && me != group->root)
            tk_coll_send(coll, group->root, coll->value + part.offset, part.nbytes, last_tag);
    }
    return TK_COLL_GO_ON;
}
