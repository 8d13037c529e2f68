/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_System_*, progress, errors, environment, exit: calls about the process rather than its
 * objects. No state, no lock. */
#include "config.h"

#include <stdlib.h>

#include "api/check.h"
#include "base/client_mode.h"
#include "base/report.h"
#include "exit/exit.h"
#include "op/thread_now.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "progress/threads.h"
#include "settings/settings.h"
#include "start/start.h"
#include "team/objects.h"
#include "topology/topology.h"
#include "transport/neighbour.h"
#include "trunkline_query.h"

int gasnet_AMPoll(void)
{
    TK_CHECK_MAY_COMMUNICATE("gasnet_AMPoll");
    tk_poll();
    return GASNET_OK;
}

void trunkline_wait_step(unsigned *empty_polls)
{
    TK_CHECK_MAY_COMMUNICATE("GASNET_BLOCKUNTIL");
    tk_thread_enter_again();
    if (*empty_polls == 0) /* another wait, or there was something */
        tk_wait_over();
    tk_wait_step_silent(empty_polls);
}

int gasnet_set_waitmode(int mode)
{
    if (mode != GASNET_WAIT_SPIN && mode != GASNET_WAIT_BLOCK && mode != GASNET_WAIT_SPINBLOCK) {
        tk_verbose_error("gasnet_set_waitmode: %d is not GASNET_WAIT_SPIN, _BLOCK or _SPINBLOCK",
                         mode);
        return GASNET_ERR_BAD_ARG;
    }
    tk_wait_mode(mode == GASNET_WAIT_SPIN    ? TK_WAIT_SPIN
                 : mode == GASNET_WAIT_BLOCK ? TK_WAIT_BLOCK
                                             : TK_WAIT_SPINBLOCK);
    return GASNET_OK;
}

void gasnet_exit(int exitcode)
{
    tk_exit(exitcode);
}

char *gasnet_getenv(const char *name)
{
    return (char *)tk_getenv_decoded(name);
}

gex_Rank_t gex_System_QueryJobRank(void)
{
    return tk_peers.me;
}

gex_Rank_t gex_System_QueryJobSize(void)
{
    return tk_peers.size;
}

_Static_assert(sizeof(gex_RankInfo_t) == sizeof(uint32_t),
               "tables of ranks are returned without conversion");

void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info_p, gex_Rank_t *info_count_p,
                               gex_Rank_t *my_info_index_p)
{
    if (info_p)
        *info_p = (gex_RankInfo_t *)tk_topology.nbrhd_ranks;
    if (info_count_p)
        *info_count_p = tk_topology.nbrhd_size;
    if (my_info_index_p)
        *my_info_index_p = tk_topology.nbrhd_rank;
}

void gex_System_QueryHostInfo(gex_RankInfo_t **info_p, gex_Rank_t *info_count_p,
                              gex_Rank_t *my_info_index_p)
{
    if (info_p)
        *info_p = (gex_RankInfo_t *)tk_topology.local_ranks;
    if (info_count_p)
        *info_count_p = tk_topology.local_size;
    if (my_info_index_p)
        *my_info_index_p = tk_topology.local_rank;
}

void gex_System_QueryMyPosition(gex_Rank_t *nbrhd_set_size_p, gex_Rank_t *nbrhd_set_rank_p,
                                gex_Rank_t *host_set_size_p, gex_Rank_t *host_set_rank_p)
{
    if (nbrhd_set_size_p)
        *nbrhd_set_size_p = tk_topology.nbrhds;
    if (nbrhd_set_rank_p)
        *nbrhd_set_rank_p = tk_topology.my_nbrhd;
    if (host_set_size_p)
        *host_set_size_p = tk_topology.hosts;
    if (host_set_rank_p)
        *host_set_rank_p = tk_topology.my_host;
}

/* 0 if the segment is not mapped. */
static uintptr_t system_offset_of(uint32_t rank)
{
    uintptr_t offset = tk_unmapped;
    if (rank != tk_peers.me && tk_is_neighbour(rank))
        offset = tk_neighbour_addr_offset(tk_peer(rank), 0);
    return offset == tk_unmapped ? 0 : offset;
}

int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries)
{
    if (numentries < 0 || (numentries > 0 && !table)) {
        tk_verbose_error("gasnet_getNodeInfo: %d entries", numentries);
        return GASNET_ERR_BAD_ARG;
    }
    for (uint32_t r = 0; r < tk_peers.size && r < (uint32_t)numentries; r++)
        table[r] = (gasnet_nodeinfo_t){.host = tk_topology.host_of[r],
                                       .supernode = tk_topology.nbrhd_of[r],
                                       .offset = system_offset_of(r)};
    return GASNET_OK;
}

uint64_t gex_System_QueryMaxThreads(void)
{
    return TK_SEVERAL_CLIENT_THREADS ? (uint64_t)tk_settings.max_threads : 1;
}

int gex_System_GetVerboseErrors(void)
{
    return tk_verbose_errors;
}

void gex_System_SetVerboseErrors(int enable)
{
    tk_verbose_errors = enable != 0;
}

int gex_System_QueryHiddenAMConcurrencyLevel(void)
{
    return tk_progress_threads_receive();
}

/* Made once, and kept: the client starts the threads when it likes. */
static const gex_ProgressThreadInfo_t *all_threads(unsigned count)
{
    static gex_ProgressThreadInfo_t *list;
    if (!list && !(list = calloc(count + 1, sizeof(*list))))
        tk_panic("out of memory for a list of %u threads", count);
    for (unsigned i = 0; i < count; i++) {
        const struct tk_progress_thread_info t = tk_progress_thread(i);
        list[i] = (gex_ProgressThreadInfo_t){.gex_device_list = t.device,
                                             .gex_thread_roles = t.roles,
                                             .gex_progress_fn = t.run,
                                             .gex_progress_arg = t.argument};
    }
    return list;
}

int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count_p,
                                    const gex_ProgressThreadInfo_t **info_p, gex_Flags_t flags)
{
    TK_CHECK_MAY_COMMUNICATE("gex_System_QueryProgressThreads");
    if (!client || !count_p || !info_p || flags != 0) {
        tk_refused("gex_System_QueryProgressThreads: client must not be GEX_CLIENT_INVALID, "
                   "count_p and info_p not NULL, flags (0x%x) must be 0",
                   flags);
        return GASNET_ERR_BAD_ARG;
    }
    if (!(client->flags & GEX_FLAG_DEFER_THREADS)) {
        tk_verbose_error("gex_System_QueryProgressThreads: gex_Client_Init was called without "
                         "GEX_FLAG_DEFER_THREADS");
        return GASNET_ERR_RESOURCE;
    }
    *count_p = tk_progress_threads_count();
    *info_p = all_threads(*count_p);
    return GASNET_OK;
}

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
    {GASNET_OK, "GASNET_OK", "no error"},
    {GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT",
     "the library has not been initialised, or is in another phase"},
    {GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE",
     "a resource is exhausted or could not be registered"},
    {GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG", "an argument is not valid"},
    {GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY", "not complete yet"},
    {GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH", "names of a barrier do not match"},
};

const char *gasnet_ErrorName(int error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].code == error)
            return errors[i].name;
    return "*unknown*";
}

const char *gasnet_ErrorDesc(int error)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (errors[i].code == error)
            return errors[i].text;
    return "no such error code";
}

size_t trunkline_describe_peer(gex_Rank_t jobrank, char *text, size_t size)
{
    if (jobrank >= tk_peers.size) {
        tk_verbose_error("trunkline_describe_peer: rank %u is not in the job of %u", jobrank,
                         tk_peers.size);
        return 0;
    }
    char all[512];
    tk_describe_peer(jobrank, all, sizeof(all));
    return (size_t)snprintf(text, size, "%s", all);
}
