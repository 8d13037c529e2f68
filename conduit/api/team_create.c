/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_TM_Split, gex_TM_Create, gex_TM_Destroy: checks their arguments and turns them into calls of
 * collective/. Wrong arguments end the job, in release builds too: the calls are rare, and other
 * members would wait for ever. No state, no lock. */
#include "config.h"

#include <stdlib.h>

#include "api/check.h"
#include "base/client_mode.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "collective/team_create.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "team/objects.h"
#include "trace/trace.h"

enum {
    query_flags = GEX_FLAG_TM_SCRATCH_SIZE_MIN | GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED,
    split_flags = query_flags | GEX_FLAG_TM_NO_SCRATCH,
    scratch_flags = GEX_FLAG_TM_SYMMETRIC_SCRATCH | GEX_FLAG_TM_LOCAL_SCRATCH |
                    GEX_FLAG_TM_GLOBAL_SCRATCH | GEX_FLAG_TM_NO_SCRATCH
};
static const gex_Flags_t create_flags =
    (gex_Flags_t)query_flags | (gex_Flags_t)scratch_flags | GEX_FLAG_RANK_IS_JOBRANK;

static void must_be_team(const char *call, gex_TM_t tm)
{
    TK_MUST_BE_OUTSIDE_HANDLERS(call);
    TK_CHECK_MAY_COMMUNICATE(call);
    if (tm == GEX_TM_INVALID || tk_is_pair(tm))
        tk_misused("%s: the team is %s", call, tm ? "a pair" : "GEX_TM_INVALID");
}

/* All members call at the same time, which one thread cannot do for two of them. */
static void must_be_able_to_wait(const char *call, gex_TM_t tm)
{
    if (tm->is_plural && !TK_SEVERAL_CLIENT_THREADS)
        tk_panic("%s: a process has several members in the team; each needs a thread, which only "
                 "a GASNET_PAR client has",
                 call);
}

static void must_be_flags(const char *call, gex_Flags_t flags, gex_Flags_t allowed)
{
    if (flags & ~allowed)
        tk_panic("%s: flags 0x%x, of which 0x%x are not allowed", call, (unsigned)flags,
                 (unsigned)(flags & ~allowed));
}

/* Collectives use no scratch memory of the client, so any size works; the setting gives one size
 * for all teams. */
static size_t scratch_size_wanted(gex_Flags_t flags)
{
    static bool is_warned;
    if ((flags & GEX_FLAG_TM_SCRATCH_SIZE_MIN) && !is_warned) {
        is_warned = true;
        if (tk_peers.me == 0)
            tk_log_warn("GEX_FLAG_TM_SCRATCH_SIZE_MIN is deprecated; use "
                        "GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED");
    }
    return tk_settings.coll_scratch_size;
}

static gex_Memvec_t scratch_of(const char *call, const struct trunkline_ep *ep, void *address,
                               size_t size)
{
    const struct trunkline_segment *segment = ep->segment;
    uintptr_t offset = segment ? (uintptr_t)address - (uintptr_t)segment->base : 0;
    bool is_inside = segment ? offset < segment->size && size <= segment->size - offset
                             : tk_is_everything && ep->index == 0;
    if (size == 0)
        tk_panic("%s: 0 bytes of scratch memory; give some, or GEX_FLAG_TM_NO_SCRATCH", call);
    if (!is_inside)
        tk_panic("%s: scratch memory [%p, +%zu) is not inside the segment bound to endpoint %u",
                 call, address, size, ep->index);
    return (gex_Memvec_t){address, size};
}

size_t gex_TM_Split(gex_TM_t *new_tm_p, gex_TM_t parent_tm, int color, int key, void *scratch_addr,
                    size_t scratch_size, gex_Flags_t flags)
{
    TK_TRACED(team_create, tk_trace_no_peer, 0);
    bool is_member = new_tm_p != NULL;
    gex_Memvec_t scratch = {NULL, 0};
    must_be_team("gex_TM_Split", parent_tm);
    must_be_flags("gex_TM_Split", flags, split_flags);
    if (flags & query_flags)
        return is_member ? scratch_size_wanted(flags) : 0;
    must_be_able_to_wait("gex_TM_Split", parent_tm);
    if (is_member && color < 0)
        tk_panic("gex_TM_Split: color %d is negative", color);
    if (is_member && !(flags & GEX_FLAG_TM_NO_SCRATCH))
        scratch = scratch_of("gex_TM_Split", parent_tm->ep, scratch_addr, scratch_size);
    gex_TM_t tm = tk_team_split(parent_tm, is_member, color, key, scratch, flags);
    if (is_member)
        *new_tm_p = tm;
    return 1;
}

/* ---- gex_TM_Create() */

static void *create_memory(size_t count, size_t size)
{
    void *memory = calloc(tk_max(count, 1), size);
    if (!memory)
        tk_panic("out of memory for the members of a team (%zu bytes)", count * size);
    return memory;
}

static void must_be_scratch(gex_Flags_t flags, const gex_Addr_t *addresses)
{
    gex_Flags_t kind = flags & scratch_flags;
    if (kind == 0 || (kind & (kind - 1)) != 0)
        tk_panic("gex_TM_Create: flags 0x%x must have one of GEX_FLAG_TM_SYMMETRIC_SCRATCH, "
                 "_LOCAL_SCRATCH, _GLOBAL_SCRATCH and _NO_SCRATCH",
                 (unsigned)flags);
    if (kind != GEX_FLAG_TM_NO_SCRATCH && !addresses)
        tk_panic("gex_TM_Create: scratch_addrs is NULL, without GEX_FLAG_TM_NO_SCRATCH");
}

struct members {
    uint32_t *jobranks, *endpoints, *parents, *ours;
    gex_Memvec_t *scratch;
    uint32_t count_ours;
};

static void member_add(struct members *m, gex_TM_t parent, const gex_EP_Location_t *arg,
                       uint32_t rank, gex_Flags_t flags)
{
    bool by_jobrank = flags & GEX_FLAG_RANK_IS_JOBRANK;
    gex_Rank_t in_parent =
        by_jobrank ? tk_team_rank_of_jobrank(parent, arg->gex_rank) : arg->gex_rank;
    if (in_parent >= tk_team_size(parent))
        tk_panic("gex_TM_Create: member %u has %s %u, which is not in the parent of %u", rank,
                 by_jobrank ? "job rank" : "rank", arg->gex_rank, tk_team_size(parent));
    if (arg->gex_ep_index >= GASNET_MAXEPS)
        tk_panic("gex_TM_Create: member %u is endpoint %u; a process has up to %d", rank,
                 arg->gex_ep_index, GASNET_MAXEPS);
    m->parents[rank] = in_parent;
    m->jobranks[rank] = tk_team_jobrank(parent, in_parent);
    m->endpoints[rank] = arg->gex_ep_index;
    if (m->jobranks[rank] != tk_peers.me)
        return;
    if (!tk_ep_at(arg->gex_ep_index))
        tk_panic("gex_TM_Create: member %u is endpoint %u of this process, which has none", rank,
                 arg->gex_ep_index);
    m->ours[m->count_ours++] = rank;
}

/* Encodes each member (job rank and endpoint) as one number and looks for repeats. */
static void must_differ(const struct members *m, uint32_t count)
{
    uint32_t *keys = create_memory(count, sizeof(*keys));
    for (uint32_t r = 0; r < count; r++)
        keys[r] = m->jobranks[r] * tk_pair_columns + m->endpoints[r];
    struct tk_list list;
    tk_list_make(&list, keys, count);
    if (tk_list_has_repeats(&list))
        tk_panic("gex_TM_Create: an endpoint is named twice among %u members", count);
    tk_list_drop(&list);
    free(keys);
}

static void members_scratch(struct members *m, gex_Addr_t *addresses, size_t size,
                            gex_Flags_t flags)
{
    for (uint32_t i = 0; i < m->count_ours && !(flags & GEX_FLAG_TM_NO_SCRATCH); i++) {
        uint32_t index = flags & GEX_FLAG_TM_SYMMETRIC_SCRATCH ? 0
                         : flags & GEX_FLAG_TM_LOCAL_SCRATCH   ? i
                                                               : m->ours[i];
        const struct trunkline_ep *ep = tk_ep_at((gex_EP_Index_t)m->endpoints[m->ours[i]]);
        m->scratch[i] = scratch_of("gex_TM_Create", ep, addresses[index], size);
    }
}

static void members_drop(struct members *m)
{
    free(m->jobranks);
    free(m->endpoints);
    free(m->parents);
    free(m->ours);
    free(m->scratch);
}

static struct members members_of(gex_TM_t parent, const gex_EP_Location_t *args, size_t count,
                                 size_t num_new_tms, gex_Flags_t flags)
{
    if (count > (size_t)tk_team_size(parent) * GASNET_MAXEPS)
        tk_panic("gex_TM_Create: %zu members of a parent of %u", count, tk_team_size(parent));
    struct members m = {.jobranks = create_memory(count, sizeof(*m.jobranks)),
                        .endpoints = create_memory(count, sizeof(*m.endpoints)),
                        .parents = create_memory(count, sizeof(*m.parents)),
                        .ours = create_memory(count, sizeof(*m.ours))};
    for (uint32_t r = 0; r < count; r++)
        member_add(&m, parent, &args[r], r, flags);
    if (m.count_ours != num_new_tms || (count > 0 && m.count_ours == 0))
        tk_panic("gex_TM_Create: %zu teams for %u members of this process, of %zu members",
                 num_new_tms, m.count_ours, count);
    must_differ(&m, (uint32_t)count);
    m.scratch = create_memory(m.count_ours, sizeof(*m.scratch));
    return m;
}

/* Without members the call takes part in the parent's collective and creates nothing: all other
 * arguments, num_new_tms included, are ignored. */
size_t gex_TM_Create(gex_TM_t *new_tms, size_t num_new_tms, gex_TM_t parent_tm,
                     gex_EP_Location_t *args, size_t numargs, gex_Addr_t *scratch_addrs,
                     size_t scratch_size, gex_Flags_t flags)
{
    TK_TRACED(team_create, tk_trace_no_peer, 0);
    must_be_team("gex_TM_Create", parent_tm);
    if (numargs == 0) {
        if (flags & query_flags)
            return 0;
        num_new_tms = 0;
        flags = 0;
    } else {
        must_be_flags("gex_TM_Create", flags, create_flags);
        if (flags & query_flags)
            return scratch_size_wanted(flags);
        must_be_scratch(flags, scratch_addrs);
        if (!args || (num_new_tms > 0 && !new_tms))
            tk_panic("gex_TM_Create: %s is NULL", args ? "new_tms" : "args");
    }
    must_be_able_to_wait("gex_TM_Create", parent_tm);
    struct members m = members_of(parent_tm, args, numargs, num_new_tms, flags);
    members_scratch(&m, scratch_addrs, scratch_size, flags);
    struct tk_team_list list = {.jobranks = m.jobranks,
                                .endpoints = m.endpoints,
                                .parents = m.parents,
                                .count = (uint32_t)numargs,
                                .count_ours = m.count_ours,
                                .ours = m.ours,
                                .scratch = m.scratch};
    tk_team_create(new_tms, parent_tm, &list, flags);
    members_drop(&m);
    return 1;
}

int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch_p, gex_Flags_t flags)
{
    TK_TRACED(team_destroy, tk_trace_no_peer, 0);
    must_be_team("gex_TM_Destroy", tm);
    must_be_flags("gex_TM_Destroy", flags, GEX_FLAG_GLOBALLY_QUIESCED);
    if (tm == &tk_tm)
        tk_panic("gex_TM_Destroy: the team of gex_Client_Init cannot be destroyed");
    gex_Memvec_t scratch = tm->scratch;
    tk_team_destroy(tm, flags & GEX_FLAG_GLOBALLY_QUIESCED);
    if (scratch.gex_len == 0 || !scratch_p)
        return 0;
    *scratch_p = scratch;
    return 1;
}
