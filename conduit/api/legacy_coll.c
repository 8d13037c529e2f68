/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gasnet_coll_*: the collectives of GASNet-1, over the same engine. No state, no lock. */
#include "config.h"

#include "api/check.h"
#include "collective/coll.h"
#include "event/event.h"
#include "progress/progress.h"
#include "team/objects.h"
#include "trace/trace.h"

static void must_be_allowed(const char *call, gasnet_team_handle_t team, gasnet_image_t root)
{
    TK_MUST_BE_OUTSIDE_HANDLERS(call);
    TK_CHECK_MAY_COMMUNICATE(call);
    if (!team || tk_is_pair(team))
        tk_misused("%s: team is %s; collectives need a team", call,
                   team ? "a pair" : "GEX_TM_INVALID");
    if (root >= tk_team_size(team))
        tk_panic("%s: rank %u is not in the team of %u", call, root, tk_team_size(team));
}

static void must_name_modes(const char *call, int flags)
{
    int in = flags & (GASNET_COLL_IN_NOSYNC | GASNET_COLL_IN_MYSYNC | GASNET_COLL_IN_ALLSYNC);
    int out = flags & GASNET_COLL_SYNC_FLAG_MASK & ~in;
    (void)call;
    TK_CHECK(in && out && !(in & (in - 1)) && !(out & (out - 1)),
             "%s: flags 0x%x must have one GASNET_COLL_IN_* and one GASNET_COLL_OUT_* mode", call,
             (unsigned)flags);
    (void)in, (void)out;
}

static const enum tk_trace_op traced_as[] __attribute__((unused)) = {
    [TK_COLL_BROADCAST] = tk_trace_broadcast, [TK_COLL_SCATTER] = tk_trace_scatter,
    [TK_COLL_GATHER] = tk_trace_gather,       [TK_COLL_GATHER_ALL] = tk_trace_gather_all,
    [TK_COLL_EXCHANGE] = tk_trace_exchange,
};

static gasnet_coll_handle_t start(const char *name, struct tk_coll_call call, int flags)
{
    TK_TRACED_AS(traced_as[call.kind], broadcast, tk_trace_no_peer, call.nbytes);
    must_be_allowed(name, call.tm, call.root);
    must_name_modes(name, flags);
    call.syncs_in = flags & GASNET_COLL_IN_ALLSYNC;
    call.syncs_out = flags & GASNET_COLL_OUT_ALLSYNC;
    struct tk_op *op = tk_op_take();
    tk_coll_start(&call, op);
    return tk_event_of(op);
}

#define START(kind_of, root_of)                                                                    \
    start(__func__,                                                                                \
          (struct tk_coll_call){.tm = team,                                                        \
                                .kind = kind_of,                                                   \
                                .root = root_of,                                                   \
                                .dst = dst,                                                        \
                                .src = src,                                                        \
                                .nbytes = nbytes},                                                 \
          flags)

gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst,
                                              gasnet_image_t srcimage, void *src, size_t nbytes,
                                              int flags)
{
    return START(TK_COLL_BROADCAST, srcimage);
}

void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                           size_t nbytes, int flags)
{
    gex_Event_Wait(START(TK_COLL_BROADCAST, srcimage));
}

gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst,
                                            gasnet_image_t srcimage, void *src, size_t nbytes,
                                            int flags)
{
    return START(TK_COLL_SCATTER, srcimage);
}

void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                         size_t nbytes, int flags)
{
    gex_Event_Wait(START(TK_COLL_SCATTER, srcimage));
}

gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t dstimage,
                                           void *dst, void *src, size_t nbytes, int flags)
{
    return START(TK_COLL_GATHER, dstimage);
}

void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src,
                        size_t nbytes, int flags)
{
    gex_Event_Wait(START(TK_COLL_GATHER, dstimage));
}

gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, void *src,
                                               size_t nbytes, int flags)
{
    return START(TK_COLL_GATHER_ALL, 0);
}

void gasnet_coll_gather_all(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                            int flags)
{
    gex_Event_Wait(START(TK_COLL_GATHER_ALL, 0));
}

gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, void *src,
                                             size_t nbytes, int flags)
{
    return START(TK_COLL_EXCHANGE, 0);
}

void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes, int flags)
{
    gex_Event_Wait(START(TK_COLL_EXCHANGE, 0));
}

/* ---- syncing */

int gasnet_coll_try_sync(gasnet_coll_handle_t handle)
{
    tk_poll();
    return gex_Event_Test(handle);
}

int gasnet_coll_try_sync_some(gasnet_coll_handle_t *phandle, size_t numhandles)
{
    tk_poll();
    return gex_Event_TestSome(phandle, numhandles, 0);
}

int gasnet_coll_try_sync_all(gasnet_coll_handle_t *phandle, size_t numhandles)
{
    tk_poll();
    return gex_Event_TestAll(phandle, numhandles, 0);
}

void gasnet_coll_wait_sync(gasnet_coll_handle_t handle)
{
    gex_Event_Wait(handle);
}

void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *phandle, size_t numhandles)
{
    gex_Event_WaitSome(phandle, numhandles, 0);
}

void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *phandle, size_t numhandles)
{
    gex_Event_WaitAll(phandle, numhandles, 0);
}

/* ---- the named barrier */

static void must_be_all(const char *call, gasnet_team_handle_t team)
{
    if (team != &tk_tm)
        tk_misused("%s: the named barrier is that of GASNET_TEAM_ALL, not of %s", call,
                   team ? "another team" : "GEX_TM_INVALID");
}

void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags)
{
    must_be_all(__func__, team);
    gasnet_barrier_notify(id, flags);
}

int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags)
{
    must_be_all(__func__, team);
    return gasnet_barrier_try(id, flags);
}

int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags)
{
    must_be_all(__func__, team);
    return gasnet_barrier_wait(id, flags);
}

int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags)
{
    must_be_all(__func__, team);
    return gasnet_barrier(id, flags);
}

int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id)
{
    must_be_all(__func__, team);
    return gasnet_barrier_result(id);
}

/* ---- tuning: nothing to load, dump or set */

void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team)
{
    (void)filename, (void)team;
    TK_CHECK_TM(__func__, team);
}

void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team)
{
    (void)filename, (void)team;
    TK_CHECK_TM(__func__, team);
}

void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team)
{
    (void)filename, (void)team;
    TK_CHECK_TM(__func__, team);
}

void gasnet_coll_set_tree_kind(gasnet_team_handle_t team, int tree_type, int fanout,
                               gasnet_coll_optype_t optype)
{
    (void)team, (void)tree_type, (void)fanout, (void)optype;
    TK_CHECK_TM(__func__, team);
}

void gasnet_coll_set_dissem_limit(gasnet_team_handle_t team, size_t dissemlimit,
                                  gasnet_coll_optype_t optype)
{
    (void)team, (void)dissemlimit, (void)optype;
    TK_CHECK_TM(__func__, team);
}

int gasnet_coll_get_num_tree_classes(gasnet_team_handle_t team, gasnet_coll_optype_t optype)
{
    (void)team, (void)optype;
    TK_CHECK_TM(__func__, team);
    return 0;
}
