/* SPDX-License-Identifier: BSD-3-Clause */
/* See world.h. */
#include "config.h"

#include "world.h"

#include "base/report.h"
#include "base/wait_record.h"
#include "collective/mcast.h"
#include "stats/stats.h"
#include "topology/topology.h"

#include <stdlib.h>

struct tk_topology tk_topology;
struct tk_peers tk_peers;
struct tk_ep_pair tk_pairs[tk_endpoints_max * tk_pair_columns];
struct sim_captured sim_captured;
bool tk_mcast_on;

static struct {
    struct trunkline_tm tm;
    struct tk_coll_team coll;
    const uint32_t *first;
    uint32_t *order; /* 0, 1, ...: tk_list_find() wants it beside a table */
    char *scratch;
    size_t scratch_size;
} world;

/* ---- the team */

bool sim_world_open(const uint32_t *first, uint32_t nbrhds)
{
    world.first = first;
    world.order = calloc(nbrhds, sizeof(*world.order));
    if (!world.order)
        return false;
    for (uint32_t i = 0; i < nbrhds; i++)
        world.order[i] = i;
    tk_peers.size = first[nbrhds];
    tk_topology.nbrhds = nbrhds;
    world.coll.is_node_local = true;
    world.tm = (struct trunkline_tm){
        .jobranks = {.count = first[nbrhds], .step = 1},
        .endpoints = {.count = first[nbrhds]},
        .leaders.ranks = {.count = nbrhds, .values = (uint32_t *)first, .order = world.order},
        .coll = &world.coll};
    tk_coll_choose_open();
    return true;
}

void sim_world_close(void)
{
    free(world.order);
    free(world.scratch);
    free(sim_captured.transfers);
    world.order = NULL;
    world.scratch = NULL;
    world.scratch_size = 0;
    sim_captured = (struct sim_captured){.count = 0};
}

gex_TM_t sim_world_be(uint32_t nbrhd)
{
    uint32_t first = world.first[nbrhd];
    tk_peers.me = world.tm.rank = first;
    world.tm.leaders.mine = nbrhd;
    world.tm.nbrhd.ranks =
        (struct tk_list){.count = world.first[nbrhd + 1] - first, .first = first, .step = 1};
    return (gex_TM_t)(void *)&world.tm;
}

/* ---- in place of the engine */

struct tk_coll *tk_coll_take(void)
{
    sim_captured.coll = (struct tk_coll){.next = NULL};
    return &sim_captured.coll;
}

void tk_coll_begin(struct tk_coll *coll, void (*compose)(struct tk_coll *coll))
{
    compose(coll);
}

/* Its contents mean nothing. */
char *tk_coll_scratch(struct tk_coll *coll, size_t nbytes)
{
    (void)coll;
    if (nbytes > world.scratch_size) {
        free(world.scratch);
        world.scratch = calloc(1, nbytes);
        world.scratch_size = world.scratch ? nbytes : 0;
        sim_captured.has_failed |= !world.scratch;
    }
    return world.scratch;
}

static uint32_t team_rank_of(const struct tk_coll_group *group, uint32_t index)
{
    if (index == group->root && group->stand_in != tk_list_none)
        return group->stand_in;
    return group->ranks ? tk_list_at(group->ranks, index) : index;
}

static void add(const struct tk_coll *coll, uint32_t index, size_t nbytes, uint32_t tag,
                bool is_send)
{
    struct sim_captured *c = &sim_captured;
    if (c->count == c->space) {
        uint32_t space = c->space ? 2 * c->space : 64;
        struct sim_transfer *more = realloc(c->transfers, space * sizeof(*more));
        c->has_failed |= !more;
        if (!more)
            return;
        c->transfers = more;
        c->space = space;
    }
    c->transfers[c->count++] =
        (struct sim_transfer){team_rank_of(tk_coll_group(coll), index), tag, nbytes, is_send};
}

void tk_coll_send(struct tk_coll *coll, uint32_t index, const void *memory, size_t nbytes,
                  uint32_t tag)
{
    (void)memory;
    add(coll, index, nbytes, tag, true);
}

void tk_coll_receive(struct tk_coll *coll, uint32_t index, void *memory, size_t nbytes,
                     uint32_t tag)
{
    (void)memory;
    add(coll, index, nbytes, tag, false);
}

static enum tk_coll_turn node_local(struct tk_coll *coll)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    if (group->me != group->root && coll->call.kind != TK_COLL_REDUCE)
        tk_coll_value_receive(coll);
    return TK_COLL_OVER;
}

struct tk_coll_node_local tk_coll_node_local_algorithm(const struct tk_coll *coll,
                                                       enum tk_coll_kind kind, bool is_all)
{
    (void)coll, (void)kind, (void)is_all;
    return (struct tk_coll_node_local){node_local, 1};
}

bool sim_world_is_node_local(tk_coll_algorithm *algorithm)
{
    return algorithm == node_local;
}

/* ---- what a process has in addition. Teams are counted and looked at; nothing else is reached. */

static struct tk_stats_block counted;
TK_PER_THREAD_NEAR struct tk_stats_block *tk_stats_mine = &counted;
struct tk_wait_page tk_wait_page;

static void unreachable(void)
{
    tk_panic("the simulation has reached a part of the library that it does not have");
}

void tk_stats_count_first(enum tk_counter counter, uint64_t amount)
{
    (void)counter, (void)amount;
    unreachable();
}

gex_Rank_t tk_team_rank_of_jobrank(gex_TM_t tm, gex_Rank_t jobrank)
{
    (void)tm;
    return jobrank;
}

void tk_team_use_hooks(const struct tk_team_hooks *hooks)
{
    (void)hooks;
}

enum tk_coll_turn tk_coll_broadcast_switch(struct tk_coll *coll)
{
    (void)coll;
    unreachable();
    return TK_COLL_OVER;
}

bool tk_mcast_fits(const struct trunkline_tm *tm)
{
    (void)tm;
    return false;
}

void tk_mcast_open(void)
{
}

void tk_coll_match_open(void)
{
}

void tk_coll_engine_open(void)
{
}

void tk_local_open(struct tk_local *local, const uint32_t *jobranks, uint32_t count, uint32_t mine,
                   const struct tk_local_blob *const *blobs)
{
    (void)local, (void)jobranks, (void)count, (void)mine, (void)blobs;
    unreachable();
}

void tk_local_close(struct tk_local *local)
{
    (void)local;
    unreachable();
}

void tk_local_offer(struct tk_local_blob *blob)
{
    (void)blob;
    unreachable();
}

void tk_local_withdraw(const struct tk_local_blob *blob)
{
    (void)blob;
    unreachable();
}
