/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See team.h. Owns the teams of this process and a table of them by id, which a lock guards. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "team/objects.h"
#include "team/team.h"
#include "topology/topology.h"

enum { team_buckets = 64 };

static tk_lock_t teams_lock = TK_LOCK_INIT;
static struct trunkline_tm *teams[team_buckets];
static uint32_t ids; /* given out by this process */
static const struct tk_team_hooks *hooks;

void tk_team_use_hooks(const struct tk_team_hooks *of_collectives)
{
    hooks = of_collectives;
}

void tk_team_fill_blob(void *blob)
{
    memset(blob, 0, tk_team_blob_size);
    if (hooks)
        hooks->fill(blob);
}

/* ---- translation */

gex_Rank_t tk_team_rank_of_jobrank(gex_TM_t tm, gex_Rank_t jobrank)
{
    if (tk_is_pair(tm))
        return jobrank < tk_peers.size ? jobrank : GEX_RANK_INVALID;
    return tk_list_find(&tm->jobranks, jobrank);
}

_Static_assert(GEX_RANK_INVALID == UINT32_MAX, "what tk_list_find() returns is a rank");

struct trunkline_ep *tk_team_ep(gex_TM_t tm)
{
    return tk_is_pair(tm) ? tk_ep_at(tk_pair_local(tm)) : tm->ep;
}

struct tk_peer *tk_team_peer(gex_TM_t tm, gex_Rank_t rank)
{
    return tk_peer(tk_team_jobrank(tm, rank));
}

/* ---- the table of teams */

static struct trunkline_tm **team_bucket(uint64_t id)
{
    return &teams[(id ^ id >> 32) % team_buckets];
}

uint64_t tk_team_next_id(void)
{
    tk_lock(&teams_lock);
    uint32_t count = ++ids;
    tk_unlock(&teams_lock);
    return (uint64_t)tk_peers.me << 32 | count;
}

struct trunkline_tm *tk_team_find(uint64_t id, gex_Rank_t rank)
{
    tk_lock(&teams_lock);
    struct trunkline_tm *tm = *team_bucket(id);
    while (tm && (tm->id != id || tm->rank != rank))
        tm = tm->next;
    tk_unlock(&teams_lock);
    return tm;
}

static void team_enter(struct trunkline_tm *tm)
{
    tk_lock(&teams_lock);
    struct trunkline_tm **bucket = team_bucket(tm->id);
    tm->next = *bucket;
    *bucket = tm;
    tk_unlock(&teams_lock);
}

static void team_remove(struct trunkline_tm *tm)
{
    tk_lock(&teams_lock);
    struct trunkline_tm **at = team_bucket(tm->id);
    while (*at != tm)
        at = &(*at)->next;
    *at = tm->next;
    tk_unlock(&teams_lock);
}

/* ---- subsets */

static void *team_memory(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        tk_panic("out of memory for a team (%zu bytes)", count * size);
    return memory;
}

/* Members whose entry in `place_of`, by job rank, is `ours`. */
static void subset_alike(struct tk_team_subset *subset, const struct trunkline_tm *tm,
                         uint32_t *list, const uint32_t *place_of, uint32_t ours)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r < tm->jobranks.count; r++)
        if (place_of[tk_list_at(&tm->jobranks, r)] == ours)
            list[count++] = r;
    tk_list_make(&subset->ranks, list, count);
    subset->mine = tk_list_find(&subset->ranks, tm->rank);
}

static void subset_leaders(struct trunkline_tm *tm, uint32_t *list)
{
    uint8_t *is_seen = team_memory(tk_topology.nbrhds, 1);
    uint32_t count = 0;
    for (uint32_t r = 0; r < tm->jobranks.count; r++) {
        uint32_t nbrhd = tk_topology.nbrhd_of[tk_list_at(&tm->jobranks, r)];
        if (!is_seen[nbrhd])
            list[count++] = r;
        is_seen[nbrhd] = 1;
    }
    free(is_seen);
    tk_list_make(&tm->leaders.ranks, list, count);
    tm->leaders.mine = tk_list_find(&tm->leaders.ranks, tk_list_at(&tm->nbrhd.ranks, 0));
}

static void team_make_subsets(struct trunkline_tm *tm)
{
    uint32_t *list = team_memory(tm->jobranks.count, sizeof(*list));
    subset_alike(&tm->nbrhd, tm, list, tk_topology.nbrhd_of, tk_topology.my_nbrhd);
    subset_alike(&tm->host, tm, list, tk_topology.host_of, tk_topology.my_host);
    subset_leaders(tm, list);
    free(list);
}

/* ---- creation and destruction */

/* Inline code in clients reads address offsets by rank. A range uses a part of the job's table; in
 * other teams every offset is tk_unmapped, so that the library serves them.
 */
static void team_set_head(struct trunkline_tm *tm)
{
    bool zeros = tm->endpoints.first == 0 && tm->endpoints.step == 0 && !tm->endpoints.values;
    if (tk_list_is_range(&tm->jobranks) && zeros) {
        tm->head.peers = tk_peer(tm->jobranks.first);
        tm->head.offsets = &tk_peers.offsets[tm->jobranks.first];
    } else if (tm->jobranks.count <= tk_peers.size) {
        tm->head.offsets = tk_peers.unmapped;
    } else {
        tm->own_offsets = team_memory(tm->jobranks.count, sizeof(*tm->own_offsets));
        for (uint32_t r = 0; r < tm->jobranks.count; r++)
            tm->own_offsets[r] = tk_unmapped;
        tm->head.offsets = tm->own_offsets;
    }
}

static void team_open(struct trunkline_tm *tm, const void *blobs)
{
    tm->is_plural = tk_list_has_repeats(&tm->jobranks);
    team_set_head(tm);
    team_make_subsets(tm);
    team_enter(tm);
    if (hooks)
        hooks->open(tm, blobs);
}

struct trunkline_tm *tk_team_make(const struct tk_team_plan *plan)
{
    struct trunkline_tm *tm = team_memory(1, sizeof(*tm));
    tm->ep = plan->ep;
    tm->id = plan->id;
    tm->rank = plan->rank;
    tm->flags = plan->flags;
    tm->scratch = plan->scratch;
    tk_list_make(&tm->jobranks, plan->jobranks, plan->count);
    if (plan->endpoints)
        tk_list_make(&tm->endpoints, plan->endpoints, plan->count);
    else
        tk_list_make_rule(&tm->endpoints, 0, 0, plan->count);
    team_open(tm, plan->blobs);
    return tm;
}

void tk_team_drop(struct trunkline_tm *tm)
{
    if (hooks)
        hooks->close(tm);
    team_remove(tm);
    tk_list_drop(&tm->jobranks);
    tk_list_drop(&tm->endpoints);
    tk_list_drop(&tm->nbrhd.ranks);
    tk_list_drop(&tm->host.ranks);
    tk_list_drop(&tm->leaders.ranks);
    free(tm->own_offsets);
    free(tm);
}

/* The pair of endpoints 0 gets the same peers as the team of all processes. */
void tk_teams_open(void)
{
    static bool is_reopened;
    for (size_t i = 0; i < sizeof(tk_pairs) / sizeof(tk_pairs[0]); i++)
        tk_pairs[i].head.offsets = tk_peers.unmapped;
    tk_pairs[0].head.peers = tk_peer(0);
    if (is_reopened) /* else they are zeroed: 8 pages that need not be touched */
        memset(teams, 0, sizeof(teams));
    is_reopened = true;
    tk_tm.rank = tk_peers.me;
    tk_list_make_rule(&tk_tm.jobranks, 0, 1, tk_peers.size);
    tk_list_make_rule(&tk_tm.endpoints, 0, 0, tk_peers.size);
    team_open(&tk_tm, NULL);
}
