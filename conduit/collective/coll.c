/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Composes collectives of phases, and owns their state of each team (struct tk_coll_team), which
 * the lock of the engine protects.
 *
 * If only some members share memory, a payload enters each neighbourhood once: its first member, or
 * the root for its own, exchanges messages for all of it. The order of a reduction then depends on
 * the placement of members, so GASNET_COLL_REPRODUCIBLE turns that off. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "collective/coll_private.h"
#include "collective/mcast.h"
#include "stats/stats.h"
#include "topology/topology.h"

/* ---- groups */

static struct tk_coll_group group_of_all(const struct tk_coll *coll)
{
    const gex_TM_t tm = coll->call.tm;
    return (struct tk_coll_group){.size = tk_team_size(tm),
                                  .me = tk_team_rank(tm),
                                  .root = coll->call.root,
                                  .stand_in = tk_list_none};
}

static uint32_t nbrhd_of(gex_TM_t tm, uint32_t rank)
{
    return tk_topology.nbrhd_of[tk_team_jobrank(tm, rank)];
}

static uint32_t leader_of_root(gex_TM_t tm, uint32_t root)
{
    uint32_t at = tk_list_find(&tm->leaders.ranks, root);
    if (at != tk_list_none)
        return at;
    for (at = 0; nbrhd_of(tm, tk_list_at(&tm->leaders.ranks, at)) != nbrhd_of(tm, root);)
        at++;
    return at;
}

/* The root leads its neighbourhood. */
static struct tk_coll_group group_of_leaders(const struct tk_coll *coll)
{
    const gex_TM_t tm = coll->call.tm;
    return (struct tk_coll_group){.ranks = &tm->leaders.ranks,
                                  .size = tm->leaders.ranks.count,
                                  .me = tm->leaders.mine,
                                  .root = leader_of_root(tm, coll->call.root),
                                  .stand_in = coll->call.root};
}

static struct tk_coll_group group_of_neighbours(const struct tk_coll *coll)
{
    const gex_TM_t tm = coll->call.tm;
    uint32_t root = tk_list_find(&tm->nbrhd.ranks, coll->call.root);
    return (struct tk_coll_group){.ranks = &tm->nbrhd.ranks,
                                  .size = tm->nbrhd.ranks.count,
                                  .me = tm->nbrhd.mine,
                                  .root = root == tk_list_none ? 0 : root,
                                  .stand_in = tk_list_none};
}

/* ---- phases */

static void phase_add(struct tk_coll *coll, tk_coll_algorithm *next,
                      const struct tk_coll_group *group)
{
    coll->phases[coll->phase_count++] = (struct tk_coll_phase){.next = next, .group = *group};
}

static void phase_choose(struct tk_coll *coll, enum tk_coll_kind kind,
                         const struct tk_coll_group *group)
{
    phase_add(coll, tk_coll_choose(kind, coll->call.nbytes, group->size), group);
}

static void phase_of_leaders(struct tk_coll *coll, enum tk_coll_kind kind,
                             const struct tk_coll_group *neighbours)
{
    const struct tk_coll_group leaders = group_of_leaders(coll);
    if (neighbours->me == neighbours->root)
        phase_choose(coll, kind, &leaders);
    else
        phase_add(coll, NULL, &leaders);
}

static bool is_rooted_below(enum tk_coll_kind kind)
{
    return kind == TK_COLL_BARRIER || kind == TK_COLL_REDUCE || kind == TK_COLL_REDUCE_ALL;
}

static bool is_node_local(const struct tk_coll *coll)
{
    return coll->call.tm->coll->is_node_local && tk_local_reducible(coll->call.fold.element);
}

/* Through shared memory if possible, else by messages. */
static void phase_of_neighbours(struct tk_coll *coll, enum tk_coll_kind kind,
                                const struct tk_coll_group *neighbours, bool is_all)
{
    if (!is_node_local(coll)) {
        phase_choose(coll, kind == TK_COLL_BARRIER && !is_all ? TK_COLL_REDUCE : kind, neighbours);
        return;
    }
    const struct tk_coll_node_local node_local = tk_coll_node_local_algorithm(coll, kind, is_all);
    phase_add(coll, node_local.next, neighbours);
    coll->phases[coll->phase_count - 1].ticket =
        tk_local_take_tickets(&coll->call.tm->coll->local, node_local.tickets);
}

static void compose_levels(struct tk_coll *coll)
{
    const struct tk_coll_group neighbours = group_of_neighbours(coll);
    enum tk_coll_kind kind = coll->call.kind;
    if (is_rooted_below(kind))
        phase_of_neighbours(coll, kind == TK_COLL_BARRIER ? kind : TK_COLL_REDUCE, &neighbours,
                            false);
    phase_of_leaders(coll, kind, &neighbours);
    if (kind != TK_COLL_REDUCE)
        phase_of_neighbours(coll, TK_COLL_BROADCAST, &neighbours, false);
}

/* ---- over a multicast switch */

/* Leaders send and receive, also for a root that is not one: it gives its leader the payload. */
static struct tk_coll_group group_of_switch(const struct tk_coll *coll, uint32_t root)
{
    struct tk_coll_group leaders = group_of_leaders(coll);
    leaders.root = root;
    leaders.stand_in = tk_list_none;
    return leaders;
}

static void phase_of_switch(struct tk_coll *coll, uint32_t root, enum tk_coll_kind kind)
{
    const struct tk_coll_group leaders = group_of_switch(coll, root);
    bool leads = coll->call.tm->nbrhd.mine == 0;
    if (kind == TK_COLL_REDUCE)
        phase_add(coll, leads ? tk_coll_reduce_binomial : NULL, &leaders);
    else
        phase_add(coll, leads ? tk_coll_broadcast_switch : NULL, &leaders);
}

static enum tk_coll_turn broadcast_rest(struct tk_coll *coll)
{
    if (coll->is_switched)
        return TK_COLL_OVER;
    return tk_coll_choose(TK_COLL_BROADCAST, coll->call.nbytes, tk_coll_group(coll)->size)(coll);
}

/* Payloads that did not go over the switch because the destinations do not all lie at the same
 * offset of their segments. */
static void phase_of_rest(struct tk_coll *coll, uint32_t root)
{
    const struct tk_coll_group leaders = group_of_switch(coll, root);
    if (coll->call.nbytes > tk_mcast_eager)
        phase_add(coll, coll->call.tm->nbrhd.mine == 0 ? broadcast_rest : NULL, &leaders);
}

static void phase_below(struct tk_coll *coll, enum tk_coll_kind kind, bool takes_part,
                        bool from_root)
{
    struct tk_coll_group neighbours = group_of_neighbours(coll);
    if (!from_root)
        neighbours.root = 0;
    if (takes_part && neighbours.size > 1)
        phase_of_neighbours(coll, kind, &neighbours, false);
    else
        phase_add(coll, NULL, &neighbours);
}

/* Phases differ between neighbourhoods, but not their numbers, which are in messages: those that a
 * neighbourhood lacks are empty. */
static void compose_switched(struct tk_coll *coll)
{
    const gex_TM_t tm = coll->call.tm;
    if (coll->call.kind == TK_COLL_REDUCE_ALL) {
        phase_below(coll, TK_COLL_REDUCE, true, false);
        phase_of_switch(coll, 0, TK_COLL_REDUCE);
        phase_of_switch(coll, 0, TK_COLL_BROADCAST);
        phase_below(coll, TK_COLL_BROADCAST, true, false);
        return;
    }
    uint32_t leader = leader_of_root(tm, coll->call.root);
    bool leads = tk_list_at(&tm->leaders.ranks, leader) == coll->call.root;
    bool is_ours = leader == tm->leaders.mine;
    phase_below(coll, TK_COLL_BROADCAST, is_ours && !leads, true);
    phase_of_switch(coll, leader, TK_COLL_BROADCAST);
    phase_of_rest(coll, leader);
    phase_below(coll, TK_COLL_BROADCAST, !is_ours || leads, false);
}

static void compose_data(struct tk_coll *coll, const struct tk_coll_group *all)
{
    uint32_t leaders = coll->call.tm->leaders.ranks.count;
    bool has_levels = leaders > 1 && leaders < all->size;
    if (coll->is_all_node_local)
        phase_of_neighbours(coll, coll->call.kind, all, true);
    else if (tk_coll_is_switched(coll->call.kind, coll->call.tm->coll, coll->call.nbytes))
        compose_switched(coll);
    else if (has_levels && tk_coll_by_levels(coll->call.kind))
        compose_levels(coll);
    else
        phase_choose(coll, coll->call.kind, all);
}

/* Copies the payload if it is not in its destination, or if a broadcast's source is not its
 * destination. */
static enum tk_coll_turn copy_out(struct tk_coll *coll)
{
    if (coll->value != coll->call.dst && coll->call.nbytes)
        memcpy(coll->call.dst, coll->value, coll->call.nbytes);
    return TK_COLL_OVER;
}

static bool has_result(const struct tk_coll *coll)
{
    enum tk_coll_kind kind = coll->call.kind;
    return kind == TK_COLL_BROADCAST || kind == TK_COLL_REDUCE_ALL ||
           (kind == TK_COLL_REDUCE && coll->call.root == tk_team_rank(coll->call.tm));
}

static void compose(struct tk_coll *coll)
{
    const struct tk_coll_call *call = &coll->call;
    const struct tk_coll_group all = group_of_all(coll);
    coll->sequence = ++call->tm->coll->last;
    tk_wait_collective(call->tm->id, coll->sequence);
    if (call->syncs_in)
        phase_choose(coll, TK_COLL_BARRIER, &all);
    compose_data(coll, &all);
    if (has_result(coll))
        phase_add(coll, copy_out, &all);
    if (call->syncs_out)
        phase_choose(coll, TK_COLL_BARRIER, &all);
}

/* ---- start */

static bool is_all_node_local(const struct tk_coll *coll)
{
    return coll->call.tm->leaders.ranks.count == 1 && tk_coll_by_levels(coll->call.kind) &&
           is_node_local(coll);
}

/* Destinations serve as buffers; members that do not get the result combine in scratch memory. */
static void set_buffers(struct tk_coll *coll)
{
    const struct tk_coll_call *call = &coll->call;
    bool reduces = !coll->is_all_node_local &&
                   (call->kind == TK_COLL_REDUCE || call->kind == TK_COLL_REDUCE_ALL);
    size_t size = tk_align_up(call->nbytes, TK_CACHE_LINE);
    coll->value = (char *)call->src;
    coll->buffers[0] = call->dst;
    coll->buffers[1] = NULL;
    if (call->kind == TK_COLL_BROADCAST && call->root != tk_team_rank(call->tm))
        coll->value = call->dst;
    if (reduces && has_result(coll)) {
        coll->buffers[1] = tk_coll_scratch(coll, size);
    } else if (reduces) {
        coll->buffers[0] = tk_coll_scratch(coll, 2 * size);
        coll->buffers[1] = coll->buffers[0] + size;
    }
}

static const enum tk_counter coll_counters[tk_coll_kinds] = {
    [TK_COLL_BARRIER] = tk_counter_barriers,
    [TK_COLL_BROADCAST] = tk_counter_broadcasts,
    [TK_COLL_REDUCE] = tk_counter_reductions,
    [TK_COLL_REDUCE_ALL] = tk_counter_reductions_to_all,
    [TK_COLL_SCATTER] = tk_counter_scatters,
    [TK_COLL_GATHER] = tk_counter_gathers,
    [TK_COLL_GATHER_ALL] = tk_counter_gathers_to_all,
    [TK_COLL_EXCHANGE] = tk_counter_exchanges};

void tk_coll_start(const struct tk_coll_call *call, struct tk_op *op)
{
    struct tk_coll *coll = tk_coll_take();
    tk_count(coll_counters[call->kind]);
    tk_counter_add(&op->pending, 1);
    coll->call = *call;
    coll->op = op;
    if (coll->call.fold.element == 0)
        coll->call.fold.element = 1;
    coll->is_all_node_local = is_all_node_local(coll);
    set_buffers(coll);
    tk_coll_begin(coll, compose);
}

/* ---- teams */

_Static_assert((int)tk_local_blob_size <= (int)tk_team_blob_size, "a team's blob holds ours");

static void team_fill(void *blob)
{
    tk_local_offer(blob);
}

static const struct tk_local_blob *blob_of(const char *blobs, uint32_t rank)
{
    return (const void *)(blobs + (size_t)rank * tk_team_blob_size);
}

static void open_local(struct trunkline_tm *tm, const char *blobs)
{
    uint32_t count = tm->nbrhd.ranks.count;
    uint32_t *jobranks = calloc(count, sizeof(*jobranks));
    const struct tk_local_blob **theirs = calloc(count, sizeof(*theirs));
    if (!jobranks || !theirs)
        tk_panic("out of memory for a team of %u neighbours", count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = tk_list_at(&tm->nbrhd.ranks, i);
        jobranks[i] = tk_team_jobrank(tm, rank);
        if (blobs)
            theirs[i] = blob_of(blobs, rank);
    }
    tk_local_open(&tm->coll->local, jobranks, count, tm->nbrhd.mine, blobs ? theirs : NULL);
    tm->coll->is_node_local = count > 1 && tk_local_usable(&tm->coll->local);
    free(jobranks);
    free(theirs);
}

/* A process that is several members has contributed one channel, which they can't share. */
static void team_opened(struct trunkline_tm *tm, const void *blobs)
{
    tm->coll = calloc(1, sizeof(*tm->coll));
    if (!tm->coll)
        tk_panic("out of memory for the collectives of a team");
    if (!tm->is_plural)
        open_local(tm, blobs);
    else if (tk_team_rank_of_jobrank(tm, tk_peers.me) == tm->rank)
        tk_local_withdraw(blob_of(blobs, tm->rank));
    tm->coll->is_switched = tk_mcast_on && tk_mcast_fits(tm);
}

static void team_closed(struct trunkline_tm *tm)
{
    tk_local_close(&tm->coll->local);
    free(tm->coll);
    tm->coll = NULL;
}

void tk_coll_open(void)
{
    static const struct tk_team_hooks hooks = {team_fill, team_opened, team_closed};
    tk_team_use_hooks(&hooks);
    tk_coll_match_open();
    tk_mcast_open();
    tk_coll_engine_open();
    tk_coll_choose_open();
}
