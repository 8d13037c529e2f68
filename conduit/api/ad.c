/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_AD_*. No state, no lock. Arguments of domains are always checked, those of operations in
 * debug builds. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "atomic/atomic.h"
#include "collective/exchange.h"
#include "progress/progress.h"
#include "trace/trace.h"

/* ---- Domains ---- */

static bool has_one_bit(uint32_t set)
{
    return set && !(set & (set - 1));
}

/* Flags are hints. Unknown ones have no effect and are kept for gex_AD_QueryFlags(): clients pass
 * some, such as GEX_FLAG_PEER_SEG_OFFSET. */
static void check_create(gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    const gex_Flags_t favors =
        GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_MY_NBRHD | GEX_FLAG_AD_FAVOR_REMOTE;
    if (tm == GEX_TM_INVALID || tk_is_pair(tm))
        tk_misused("gex_AD_Create: the argument tm is not a team: %s",
                   tm ? "a pair" : "GEX_TM_INVALID");
    if (!has_one_bit(dt) || dt >= GEX_DT_USER)
        tk_panic("gex_AD_Create: dt 0x%x is not exactly one of GEX_DT_I32, _U32, _I64, _U64, _FLT, "
                 "_DBL",
                 dt);
    if (!ops || (ops & ~tk_ad_ops_of(dt)))
        tk_panic("gex_AD_Create: ops 0x%x: type 0x%x has the operations 0x%x", ops, dt,
                 tk_ad_ops_of(dt));
    if ((flags & favors) && !has_one_bit(flags & favors))
        tk_panic("gex_AD_Create: flags 0x%x have more than one of GEX_FLAG_AD_FAVOR_MY_RANK, "
                 "_MY_NBRHD, _REMOTE",
                 flags);
}

/* The arguments on which all members must agree. */
struct terms {
    gex_DT_t dt;
    gex_OP_t ops;
    gex_Flags_t flags;
};

/* Members that disagree would execute operations on different paths. */
static void compare_terms(gex_TM_t tm, const struct terms *mine)
{
    gex_Rank_t size = tk_team_size(tm);
    struct terms *all = calloc(size, sizeof(*all));
    if (!all)
        tk_panic("out of memory for what %u ranks give gex_AD_Create", size);
    tk_exchange(tm, TK_CALL_AD_CREATE, mine, all, sizeof(*mine));
    for (gex_Rank_t r = 0; r < size; r++)
        if (memcmp(&all[r], mine, sizeof(*mine)) != 0)
            tk_panic("gex_AD_Create: rank %u gives dt 0x%x, ops 0x%x, flags 0x%x, rank %u 0x%x, "
                     "0x%x, 0x%x",
                     tk_team_rank(tm), mine->dt, mine->ops, mine->flags, r, all[r].dt, all[r].ops,
                     all[r].flags);
    free(all);
}

/* Waits for other members only in debug builds, to compare their arguments: handlers do not use
 * domains, and connections of devices are made in polls. Not even there if a process has several
 * members: it would wait for itself. Clients put barriers between the phases in which a location is
 * used. */
void gex_AD_Create(gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    TK_TRACED(domain_create, tk_trace_no_peer, 0);
    const struct terms terms = {dt, ops, flags};
    TK_MUST_BE_OUTSIDE_HANDLERS("gex_AD_Create");
    TK_CHECK_MAY_COMMUNICATE("gex_AD_Create");
    check_create(tm, dt, ops, flags);
    if (TK_IS_DEBUG && !tm->is_plural)
        compare_terms(tm, &terms);
    *ad_p = tk_ad_create(tm, dt, ops, flags);
}

void gex_AD_Destroy(gex_AD_t ad)
{
    TK_TRACED(domain_destroy, tk_trace_no_peer, 0);
    TK_MUST_BE_OUTSIDE_HANDLERS("gex_AD_Destroy");
    TK_CHECK_MAY_COMMUNICATE("gex_AD_Destroy");
    if (ad == GEX_AD_INVALID)
        tk_misused("gex_AD_Destroy: the argument is GEX_AD_INVALID");
    tk_ad_destroy(ad);
}

gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad)
{
    TK_CHECK_AD("gex_AD_QueryFlags", ad);
    return ad->flags;
}

gex_TM_t gex_AD_QueryTM(gex_AD_t ad)
{
    TK_CHECK_AD("gex_AD_QueryTM", ad);
    return ad->tm;
}

gex_DT_t gex_AD_QueryDT(gex_AD_t ad)
{
    TK_CHECK_AD("gex_AD_QueryDT", ad);
    return ad->dt;
}

gex_OP_t gex_AD_QueryOps(gex_AD_t ad)
{
    TK_CHECK_AD("gex_AD_QueryOps", ad);
    return ad->ops;
}

void gex_AD_SetCData(gex_AD_t ad, const void *value)
{
    TK_CHECK_AD("gex_AD_SetCData", ad);
    ad->cdata = value;
}

void *gex_AD_QueryCData(gex_AD_t ad)
{
    TK_CHECK_AD("gex_AD_QueryCData", ad);
    return (void *)ad->cdata;
}

/* ---- Operations ---- */

static void check_opcode(const char *call, const struct tk_atomic *m, gex_DT_t dt)
{
    const struct trunkline_ad *ad = m->ad;
    (void)call, (void)dt, (void)ad;
    TK_CHECK(ad->dt == dt, "%s: the domain has type 0x%x", call, ad->dt);
    TK_CHECK(has_one_bit(m->opcode) && (m->opcode & ad->ops),
             "%s: opcode 0x%x is not one of the domain's operations 0x%x", call, m->opcode,
             ad->ops);
    TK_CHECK(!TRUNKLINE_AD_FETCHES(m->opcode) || m->result, "%s: result_p is NULL", call);
}

static void check_place(const char *call, const struct tk_atomic *m)
{
    const struct tk_bound bound = tk_bound_of(m->peer->rank, m->endpoint);
    size_t size = tk_ad_size(m->ad->dt);
    (void)call, (void)bound, (void)size;
    TK_CHECK(m->address % size == 0, "%s: address %p is not a multiple of %zu", call,
             (void *)m->address, size);
    TK_CHECK(tk_bound_has(&bound, m->address, size),
             "%s: [%p, +%zu) is not inside the segment of rank %u", call, (void *)m->address, size,
             m->peer->rank);
}

static void check_locality(const char *call, const struct tk_atomic *m)
{
    const gex_Flags_t both = GEX_FLAG_AD_MY_RANK | GEX_FLAG_AD_MY_NBRHD;
    (void)call, (void)both, (void)m;
    TK_CHECK((m->flags & both) != both,
             "%s: GEX_FLAG_AD_MY_RANK and GEX_FLAG_AD_MY_NBRHD exclude each other", call);
    TK_CHECK(!(m->flags & GEX_FLAG_AD_MY_RANK) || m->peer->rank == tk_peers.me,
             "%s: GEX_FLAG_AD_MY_RANK, but the target is rank %u", call, m->peer->rank);
    TK_CHECK(!(m->flags & GEX_FLAG_AD_MY_NBRHD) || tk_is_neighbour(m->peer->rank),
             "%s: GEX_FLAG_AD_MY_NBRHD, but rank %u is not in the neighbourhood", call,
             m->peer->rank);
}

/* The rank in the team of a rank of the job. */
static gex_Rank_t rank_of(const char *call, const struct tk_atomic *m, gex_Rank_t jobrank)
{
    gex_Rank_t rank = tk_team_rank_of_jobrank(m->ad->tm, jobrank);
    if (rank == GEX_RANK_INVALID)
        tk_panic("%s: rank %u of the job is not in the domain's team", call, jobrank);
    return rank;
}

/* On memory of a device HCAs alone execute operations, where it is registered with them. */
static void __attribute__((noinline)) check_device(const char *call, const struct tk_atomic *m)
{
    const struct tk_bound bound = tk_bound_of(m->peer->rank, m->endpoint);
    if (!bound.kind)
        return;
    if (m->ad->path != TK_AD_DEVICE)
        tk_panic("%s: endpoint %u of rank %u has memory of a device, and this domain is executed "
                 "by CPUs, which can't reach it; HCAs execute 8-byte types with few operations "
                 "(GEX_FLAG_AD_FAVOR_REMOTE, GASNET_AD_METHOD; GASNET_VERBOSEENV=1 says why)",
                 call, m->endpoint, m->peer->rank);
    if (!bound.keys || bound.keys[0] == 0)
        tk_panic("%s: endpoint %u of rank %u has memory of a device that is not registered with "
                 "an HCA, so there are no remote atomics on it (GASNET_MK_WAY; "
                 "GASNET_VERBOSEENV=1 says why)",
                 call, m->endpoint, m->peer->rank);
}

/* Fills in the target of an operation. */
static inline void aim(const char *call, struct tk_atomic *m, gex_Rank_t rank, gex_DT_t dt)
{
    TK_CHECK_MAY_COMMUNICATE(call);
    TK_CHECK_AD(call, m->ad);
    if (m->flags & GEX_FLAG_RANK_IS_JOBRANK)
        rank = rank_of(call, m, rank);
    TK_CHECK_RANK(call, m->ad->tm, rank);
    m->peer = m->ad->peers ? &m->ad->peers[rank] : tk_peer_of(m->ad->tm, rank);
    m->endpoint = m->ad->peers ? 0 : tk_team_ep_index(m->ad->tm, rank);
    tk_if_unlikely(m->endpoint != 0) check_device(call, m);
    if (TK_IS_DEBUG) {
        check_opcode(call, m, dt);
        check_locality(call, m);
        check_place(call, m);
    }
}

static inline uint64_t bits_of(const void *value, size_t size)
{
    uint32_t half;
    uint64_t whole;
    if (size == sizeof(half)) {
        memcpy(&half, value, sizeof(half));
        return half;
    }
    memcpy(&whole, value, sizeof(whole));
    return whole;
}

#define CALL(DT, type, kind, name, function)                                                       \
    kind name##_##DT(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank, void *tgt_addr,             \
                     gex_OP_t opcode, type operand1, type operand2, gex_Flags_t flags)             \
    {                                                                                              \
        struct tk_atomic m = {.ad = ad,                                                            \
                              .address = (uintptr_t)tgt_addr,                                      \
                              .result = result_p,                                                  \
                              .a = bits_of(&operand1, sizeof(operand1)),                           \
                              .b = bits_of(&operand2, sizeof(operand2)),                           \
                              .opcode = opcode,                                                    \
                              .flags = flags};                                                     \
        aim(#name "_" #DT, &m, tgt_rank, GEX_DT_##DT);                                             \
        TK_TRACED(atomic, m.peer->rank, sizeof(operand1));                                         \
        return function(&m);                                                                       \
    }

/* The second names are for the inline forms (trunkline_ratomic.h). */
#define CALLS(DT, type)                                                                            \
    CALL(DT, type, gex_Event_t, gex_AD_OpNB, tk_atomic_start)                                      \
    CALL(DT, type, int, gex_AD_OpNBI, tk_atomic_implicit)                                          \
    extern __typeof__(gex_AD_OpNB_##DT) trunkline_ad_nb_##DT                                       \
        __attribute__((__alias__("gex_AD_OpNB_" #DT)));                                            \
    extern __typeof__(gex_AD_OpNBI_##DT) trunkline_ad_nbi_##DT                                     \
        __attribute__((__alias__("gex_AD_OpNBI_" #DT)));

CALLS(I32, int32_t)
CALLS(U32, uint32_t)
CALLS(I64, int64_t)
CALLS(U64, uint64_t)
CALLS(FLT, float)
CALLS(DBL, double)

_Static_assert(offsetof(struct trunkline_ad, offsets) == 0,
               "inline code in clients reads address offsets");
