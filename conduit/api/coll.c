/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_Coll_*: barriers, broadcast, reductions. The barrier of all processes has a fast path of its
 * own. No state, no lock. */
#include "config.h"

#include <stdint.h>

#include "api/check.h"
#include "collective/barrier.h"
#include "collective/coll.h"
#include "event/event.h"
#include "progress/progress.h"
#include "stats/stats.h"
#include "team/objects.h"
#include "trace/trace.h"

#define CHECK_CALL(call, tm)                                                                       \
    do {                                                                                           \
        TK_MUST_BE_OUTSIDE_HANDLERS(call);                                                         \
        TK_CHECK_MAY_COMMUNICATE(call);                                                            \
        must_be_team(call, tm);                                                                    \
    } while (0)

static void must_be_team(const char *call, gex_TM_t tm)
{
    if (!tm || tk_is_pair(tm))
        tk_misused("%s: tm is %s; collectives need a team", call, tm ? "a pair" : "GEX_TM_INVALID");
}

static void must_have_root(const char *call, gex_TM_t tm, gex_Rank_t root)
{
    if (root >= tk_team_size(tm))
        tk_panic("%s: root %u is not in the team of %u", call, root, tk_team_size(tm));
}

/* ---- barriers */

static void __attribute__((noinline)) start_of_team(const char *name, gex_TM_t tm, struct tk_op *op)
{
    const struct tk_coll_call call = {.tm = tm, .kind = TK_COLL_BARRIER};
    must_be_team(name, tm);
    tk_coll_start(&call, op);
}

static void start_barrier(const char *name, gex_TM_t tm, struct tk_op *op)
{
    TK_MUST_BE_OUTSIDE_HANDLERS(name);
    TK_CHECK_MAY_COMMUNICATE(name);
    if (tm != &tk_tm) {
        start_of_team(name, tm, op);
        return;
    }
    tk_count(tk_counter_barriers);
    tk_barrier_start(op);
}

gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags)
{
    TK_TRACED(barrier_nb, tk_trace_no_peer, 0);
    (void)flags;
    struct tk_op *op = tk_op_take();
    start_barrier("gex_Coll_BarrierNB", tm, op);
    return tk_event_of(op);
}

void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags)
{
    TK_TRACED(barrier, tk_trace_no_peer, 0);
    (void)flags;
    struct tk_op op;
    tk_op_init(&op);
    start_barrier("gex_Coll_BarrierBlocking", tm, &op);
    tk_wait_done(&op);
}

/* ---- broadcast and reductions */

static gex_Event_t start(const struct tk_coll_call *call)
{
    struct tk_op *op = tk_op_take();
    tk_coll_start(call, op);
    return tk_event_of(op);
}

gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src,
                                 size_t nbytes, gex_Flags_t flags)
{
    TK_TRACED(broadcast, tk_trace_no_peer, nbytes);
    (void)flags;
    CHECK_CALL("gex_Coll_BroadcastNB", tm);
    must_have_root("gex_Coll_BroadcastNB", tm, root);
    const struct tk_coll_call call = {.tm = tm,
                                      .kind = TK_COLL_BROADCAST,
                                      .root = root,
                                      .dst = dst,
                                      .src = src,
                                      .nbytes = nbytes};
    return start(&call);
}

/* In release builds too: other members would wait for ever, or combine garbage. */
static struct tk_coll_fold fold_for(const char *call, gex_DT_t dt, size_t dt_sz, size_t dt_cnt,
                                    gex_OP_t op, gex_Coll_ReduceFn_t user_op, const void *cdata)
{
    struct tk_coll_fold fold = {.fn = user_op, .cdata = cdata, .element = dt_sz};
    if (op != GEX_OP_USER)
        fold.fn = tk_coll_kernel(dt, op);
    if (dt_cnt == 0 || dt_sz == 0)
        tk_panic("%s: %zu elements of %zu bytes; there must be one at least", call, dt_cnt, dt_sz);
    if (dt_cnt > PTRDIFF_MAX / dt_sz)
        tk_panic("%s: %zu elements of %zu bytes are more than memory can hold", call, dt_cnt,
                 dt_sz);
    if (op == GEX_OP_USER && !user_op)
        tk_panic("%s: GEX_OP_USER without user_op", call);
    if (!fold.fn)
        tk_panic("%s: there is no operation 0x%x for type 0x%x", call, (unsigned)op, (unsigned)dt);
    if (dt != GEX_DT_USER && dt_sz != tk_coll_type_size(dt))
        tk_panic("%s: dt_sz is %zu, and elements of type 0x%x have %zu bytes", call, dt_sz,
                 (unsigned)dt, tk_coll_type_size(dt));
    return fold;
}

gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src,
                                   gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void *user_cdata, gex_Flags_t flags)
{
    TK_TRACED(reduce_to_one, tk_trace_no_peer, dt_sz * dt_cnt);
    static const char name[] = "gex_Coll_ReduceToOneNB";
    (void)flags;
    CHECK_CALL(name, tm);
    must_have_root(name, tm, root);
    const struct tk_coll_call call = {
        .tm = tm,
        .kind = TK_COLL_REDUCE,
        .root = root,
        .dst = dst,
        .src = src,
        .nbytes = dt_sz * dt_cnt,
        .fold = fold_for(name, dt, dt_sz, dt_cnt, op, user_op, user_cdata)};
    return start(&call);
}

gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt,
                                   size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void *user_cdata, gex_Flags_t flags)
{
    TK_TRACED(reduce_to_all, tk_trace_no_peer, dt_sz * dt_cnt);
    static const char name[] = "gex_Coll_ReduceToAllNB";
    (void)flags;
    CHECK_CALL(name, tm);
    const struct tk_coll_call call = {
        .tm = tm,
        .kind = TK_COLL_REDUCE_ALL,
        .dst = dst,
        .src = src,
        .nbytes = dt_sz * dt_cnt,
        .fold = fold_for(name, dt, dt_sz, dt_cnt, op, user_op, user_cdata)};
    return start(&call);
}
