/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gex_TM_*: teams and pairs. No state, no lock. */
#include "config.h"

#include "api/check.h"
#include "team/objects.h"
#include "team/team.h"

gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_ep_index)
{
    TK_CHECK_EP("gex_TM_Pair", local_ep);
    return tk_pair(local_ep->index, remote_ep_index);
}

#define CHECK_TEAM(call, tm)                                                                       \
    TK_CHECK_TM(call, tm);                                                                         \
    TK_CHECK(!tk_is_pair(tm), "%s: the argument is a pair, not a team", call)

gex_Client_t gex_TM_QueryClient(gex_TM_t tm)
{
    CHECK_TEAM("gex_TM_QueryClient", tm);
    return tm->ep->client;
}

gex_EP_t gex_TM_QueryEP(gex_TM_t tm)
{
    CHECK_TEAM("gex_TM_QueryEP", tm);
    return tm->ep;
}

gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm)
{
    CHECK_TEAM("gex_TM_QueryFlags", tm);
    return tm->flags;
}

gex_Rank_t gex_TM_QueryRank(gex_TM_t tm)
{
    CHECK_TEAM("gex_TM_QueryRank", tm);
    return tm->rank;
}

gex_Rank_t gex_TM_QuerySize(gex_TM_t tm)
{
    CHECK_TEAM("gex_TM_QuerySize", tm);
    return tk_team_size(tm);
}

void gex_TM_SetCData(gex_TM_t tm, const void *value)
{
    CHECK_TEAM("gex_TM_SetCData", tm);
    tm->cdata = value;
}

void *gex_TM_QueryCData(gex_TM_t tm)
{
    CHECK_TEAM("gex_TM_QueryCData", tm);
    return (void *)tm->cdata;
}

gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank)
{
    TK_CHECK_MAY_COMMUNICATE("gex_TM_TranslateRankToJobrank");
    CHECK_TEAM("gex_TM_TranslateRankToJobrank", tm);
    TK_CHECK_RANK("gex_TM_TranslateRankToJobrank", tm, rank);
    return tk_team_jobrank(tm, rank);
}

gex_Rank_t gex_TM_TranslateJobrankToRank(gex_TM_t tm, gex_Rank_t jobrank)
{
    TK_CHECK_MAY_COMMUNICATE("gex_TM_TranslateJobrankToRank");
    CHECK_TEAM("gex_TM_TranslateJobrankToRank", tm);
    return tk_team_rank_of_jobrank(tm, jobrank);
}

gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank, gex_Flags_t flags)
{
    (void)flags;
    TK_CHECK_MAY_COMMUNICATE("gex_TM_TranslateRankToEP");
    CHECK_TEAM("gex_TM_TranslateRankToEP", tm);
    TK_CHECK_RANK("gex_TM_TranslateRankToEP", tm, rank);
    TK_CHECK(flags == 0, "gex_TM_TranslateRankToEP: flags are 0x%x, not 0", (unsigned)flags);
    return (gex_EP_Location_t){.gex_rank = tk_team_jobrank(tm, rank),
                               .gex_ep_index = tk_team_ep_index(tm, rank)};
}
