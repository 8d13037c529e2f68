/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See team_create.h. All members of the parent exchange one record each; from these each computes
 * its own team alone. A barrier of the parent ends the creation, so that no message for a team can
 * come to a member that does not know it yet. Owns nothing but temporary tables; no lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "collective/exchange.h"
#include "collective/team_create.h"
#include "team/objects.h"

/* The record of a member of the parent. */
struct entry {
    uint64_t id;      /* for the new team if it is its rank 0 */
    uint64_t members; /* Create: a hash of the list; 0: it only takes part */
    uint64_t scratch; /* bytes; 0: none */
    int32_t color, key;
    uint32_t is_member;
    _Alignas(16) char blob[tk_team_blob_size];
};

static void *create_table(size_t count, size_t size)
{
    void *table = malloc(tk_max(count, 1) * size);
    if (!table)
        tk_panic("out of memory for creating a team (%zu bytes)", count * size);
    return table;
}

static struct entry *create_exchange(struct trunkline_tm *parent, enum tk_wait_call call,
                                     struct entry *mine)
{
    struct entry *all = create_table(tk_team_size(parent), sizeof(*all));
    if (mine->is_member) {
        mine->id = tk_team_next_id();
        tk_team_fill_blob(mine->blob);
    }
    tk_exchange(parent, call, mine, all, sizeof(*mine));
    return all;
}

/* The blobs of a team's members; `parents` are their ranks in the parent. */
static char *create_blobs(const struct entry *all, const uint32_t *parents, uint32_t count)
{
    char *blobs = create_table(count, tk_team_blob_size);
    for (uint32_t r = 0; r < count; r++)
        memcpy(blobs + (size_t)r * tk_team_blob_size, all[parents[r]].blob, tk_team_blob_size);
    return blobs;
}

static void check_scratch(const char *call, const struct trunkline_tm *parent,
                          const struct entry *all, const uint32_t *parents, uint32_t count)
{
    const struct entry *mine = &all[parent->rank];
    for (uint32_t r = 0; r < count; r++) {
        uint32_t theirs = parents[r];
        if (all[theirs].scratch != mine->scratch)
            tk_panic("%s: ranks %u and %u of the parent are in one team, with %llu and %llu bytes "
                     "of scratch memory; all must give the same size, or none",
                     call, parent->rank, theirs, (unsigned long long)mine->scratch,
                     (unsigned long long)all[theirs].scratch);
    }
}

/* ---- Split */

struct place {
    int32_t key;
    uint32_t parent;
};

/* Equal keys: by rank in the parent. */
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->parent < y->parent ? -1 : 1;
}

/* The ranks in the parent of the members of our team, in the order of the new ranks. */
static uint32_t *split_members(const struct trunkline_tm *parent, const struct entry *all,
                               uint32_t *count)
{
    uint32_t size = parent->jobranks.count, found = 0;
    struct place *places = create_table(size, sizeof(*places));
    for (uint32_t r = 0; r < size; r++)
        if (all[r].is_member && all[r].color == all[parent->rank].color)
            places[found++] = (struct place){all[r].key, r};
    qsort(places, found, sizeof(*places), compare_places);
    uint32_t *parents = create_table(found, sizeof(*parents));
    for (uint32_t i = 0; i < found; i++)
        parents[i] = places[i].parent;
    free(places);
    *count = found;
    return parents;
}

static struct trunkline_tm *split_make(struct trunkline_tm *parent, const struct entry *all,
                                       gex_Memvec_t scratch, gex_Flags_t flags)
{
    uint32_t count;
    uint32_t *parents = split_members(parent, all, &count);
    check_scratch("gex_TM_Split", parent, all, parents, count);
    uint32_t *jobranks = create_table(count, sizeof(*jobranks));
    uint32_t *endpoints = create_table(count, sizeof(*endpoints));
    char *blobs = create_blobs(all, parents, count);
    struct tk_team_plan plan = {.jobranks = jobranks,
                                .endpoints = endpoints,
                                .blobs = blobs,
                                .id = all[parents[0]].id,
                                .count = count,
                                .ep = parent->ep,
                                .flags = flags,
                                .scratch = scratch};
    for (uint32_t r = 0; r < count; r++) {
        jobranks[r] = tk_team_jobrank(parent, parents[r]);
        endpoints[r] = tk_team_ep_index(parent, parents[r]);
        if (parents[r] == parent->rank)
            plan.rank = r;
    }
    struct trunkline_tm *tm = tk_team_make(&plan);
    free(parents);
    free(jobranks);
    free(endpoints);
    free(blobs);
    return tm;
}

struct trunkline_tm *tk_team_split(struct trunkline_tm *parent, bool is_member, int color, int key,
                                   gex_Memvec_t scratch, gex_Flags_t flags)
{
    struct entry mine = {
        .is_member = is_member, .color = color, .key = key, .scratch = scratch.gex_len};
    struct entry *all = create_exchange(parent, TK_CALL_SPLIT, &mine);
    struct trunkline_tm *tm = is_member ? split_make(parent, all, scratch, flags) : NULL;
    free(all);
    tk_exchange_barrier(parent, TK_CALL_SPLIT);
    return tm;
}

/* ---- Create */

/* FNV-1a over the members: detects members that name different lists. */
static uint64_t list_hash(const struct tk_team_list *list)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t r = 0; r < list->count; r++) {
        hash = (hash ^ list->jobranks[r]) * UINT64_C(0x100000001b3);
        hash = (hash ^ list->endpoints[r]) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

static void check_members(const struct trunkline_tm *parent, const struct entry *all,
                          const struct tk_team_list *list)
{
    for (uint32_t r = 0; r < list->count; r++) {
        uint32_t theirs = list->parents[r];
        if (all[theirs].members != all[parent->rank].members)
            tk_panic("gex_TM_Create: rank %u of the parent names rank %u as a member, which names "
                     "%s",
                     parent->rank, theirs,
                     all[theirs].members ? "other members or another order" : "no team at all");
    }
}

void tk_team_create(struct trunkline_tm **tms, struct trunkline_tm *parent,
                    const struct tk_team_list *list, gex_Flags_t flags)
{
    struct entry mine = {.is_member = list->count > 0};
    if (mine.is_member) {
        mine.members = list_hash(list);
        mine.scratch = list->scratch[0].gex_len;
    }
    struct entry *all = create_exchange(parent, TK_CALL_CREATE, &mine);
    check_members(parent, all, list);
    check_scratch("gex_TM_Create", parent, all, list->parents, list->count);
    char *blobs = create_blobs(all, list->parents, list->count);
    for (uint32_t i = 0; i < list->count_ours; i++) {
        uint32_t rank = list->ours[i];
        struct tk_team_plan plan = {.jobranks = list->jobranks,
                                    .endpoints = list->endpoints,
                                    .blobs = blobs,
                                    .id = all[list->parents[0]].id,
                                    .count = list->count,
                                    .rank = rank,
                                    .ep = tk_ep_at((gex_EP_Index_t)list->endpoints[rank]),
                                    .flags = flags,
                                    .scratch = list->scratch[i]};
        tms[i] = tk_team_make(&plan);
    }
    free(blobs);
    free(all);
    tk_exchange_barrier(parent, TK_CALL_CREATE);
}

void tk_team_destroy(struct trunkline_tm *tm, bool is_quiesced)
{
    if (!is_quiesced && !tm->is_plural)
        tk_exchange_barrier(tm, TK_CALL_DESTROY);
    tk_team_drop(tm);
}
