/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Phases among members that share memory: the engine's side of local.h. The only state is the
 * collective's and its team's part in shared memory, which the lock of the engine protects. */
#include "config.h"

#include <string.h>

#include "collective/coll_private.h"

static struct tk_local *local_of(const struct tk_coll *coll)
{
    return &coll->call.tm->coll->local;
}

static uint32_t ticket_of(const struct tk_coll *coll)
{
    return coll->phases[coll->phase].ticket;
}

static enum tk_coll_turn node_local_turn(struct tk_coll *coll, void (*begin)(struct tk_coll *coll))
{
    if (coll->stage == 0)
        begin(coll);
    coll->stage = 1;
    coll->is_node_local = !tk_local_step(&coll->node_local);
    return coll->is_node_local ? TK_COLL_LATER : TK_COLL_OVER;
}

static void begin_meeting(struct tk_coll *coll)
{
    tk_local_meet(&coll->node_local, local_of(coll), ticket_of(coll));
}

static void begin_gathering(struct tk_coll *coll)
{
    tk_local_gather(&coll->node_local, local_of(coll), ticket_of(coll), tk_coll_group(coll)->root);
}

static void begin_release(struct tk_coll *coll)
{
    tk_local_release(&coll->node_local, local_of(coll), ticket_of(coll), tk_coll_group(coll)->root);
}

static void begin_broadcast(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    if (group->me != group->root)
        tk_coll_value_receive(coll);
    tk_local_broadcast(&coll->node_local, local_of(coll), ticket_of(coll), group->root, coll->value,
                       coll->value, coll->call.nbytes);
}

static struct tk_local_reduction reduction_of(const struct tk_coll *coll)
{
    const struct tk_coll_fold *fold = &coll->call.fold;
    size_t nbytes = coll->call.nbytes;
    size_t count = nbytes == fold->element ? 1 : nbytes / fold->element;
    return (struct tk_local_reduction){.destination = coll->buffers[0],
                                       .source = coll->value,
                                       .element = fold->element,
                                       .count = count,
                                       .fn = fold->fn,
                                       .cdata = fold->cdata};
}

static void begin_reduction(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    const struct tk_local_reduction how = reduction_of(coll);
    tk_local_reduce(&coll->node_local, local_of(coll), ticket_of(coll), group->root, &how);
    if (group->me == group->root)
        tk_coll_value_receive(coll);
}

static void begin_reduction_to_all(struct tk_coll *coll)
{
    const struct tk_local_reduction how = reduction_of(coll);
    tk_local_reduce_to_all(&coll->node_local, local_of(coll), ticket_of(coll), &how);
    tk_coll_value_receive(coll);
}

static enum tk_coll_turn node_local_meet(struct tk_coll *coll)
{
    return node_local_turn(coll, begin_meeting);
}

static enum tk_coll_turn node_local_gather(struct tk_coll *coll)
{
    return node_local_turn(coll, begin_gathering);
}

static enum tk_coll_turn node_local_release(struct tk_coll *coll)
{
    return node_local_turn(coll, begin_release);
}

/* The root copies to its own destination while others copy to theirs. */
static enum tk_coll_turn node_local_broadcast(struct tk_coll *coll)
{
    enum tk_coll_turn turn = node_local_turn(coll, begin_broadcast);
    if (coll->is_all_node_local && coll->value != coll->call.dst && coll->call.nbytes) {
        memcpy(coll->call.dst, coll->value, coll->call.nbytes);
        coll->value = coll->call.dst;
    }
    return turn;
}

static enum tk_coll_turn node_local_reduce(struct tk_coll *coll)
{
    return node_local_turn(coll, begin_reduction);
}

static enum tk_coll_turn node_local_reduce_all(struct tk_coll *coll)
{
    return node_local_turn(coll, begin_reduction_to_all);
}

struct tk_coll_node_local tk_coll_node_local_algorithm(const struct tk_coll *coll,
                                                       enum tk_coll_kind kind, bool is_all)
{
    const struct tk_local *local = local_of(coll);
    switch (kind) {
    case TK_COLL_BARRIER:
        return is_all ? (struct tk_coll_node_local){node_local_meet, tk_local_meet_tickets(local)}
                      : (struct tk_coll_node_local){node_local_gather, 1};
    case TK_COLL_BROADCAST:
        return coll->call.kind == TK_COLL_BARRIER
                   ? (struct tk_coll_node_local){node_local_release, 1}
                   : (struct tk_coll_node_local){node_local_broadcast, 1};
    case TK_COLL_REDUCE_ALL:
        return (struct tk_coll_node_local){node_local_reduce_all,
                                           tk_local_to_all_tickets(local, coll->call.nbytes)};
    default:
        return (struct tk_coll_node_local){node_local_reduce, 1};
    }
}
