#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Teams compared with a serial model, over the network, between neighbours and mixed; misuse; memory after many of them.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
network()
{
    good 1 "$jobs/teams-seq"
    good 3 "$jobs/teams-par"
    ! is_cheap 7 || good 7 "$jobs/teams-seq"
    [ ! -x "$jobs/teams-large" ] || good 4 "$jobs/teams-large"
    SETTINGS="GASNET_AM_CREDITS_PP=2 GASNET_NETWORKDEPTH_PP=2 TEAMS_SEED=31" good 2 "$jobs/teams-seq"
}
shared()
{
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=0 GASNET_COLL_SCRATCH_SIZE=70000 TEAMS_SEED=17" good 5 "$jobs/teams-par" many
    SETTINGS="GASNET_SUPERNODE_MAXSIZE=2 TEAMS_SEED=18" good 6 "$jobs/teams-par"
    ! is_cheap 9 || SETTINGS="GASNET_SUPERNODE_MAXSIZE=4 TEAMS_SEED=19" good 9 "$jobs/teams-seq"
}

# wrong SCENARIO TEXT
wrong()
{
    every 3 || return 0
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=0 job 2 "$jobs/teams-seq" wrong "$1"
    [ "$status" -ne 0 ] || failed "scenario $1 was accepted"
    says "^trunkline.*$2"
    within 15
}
forbidden()
{
    wrong 1 'gex_TM_Destroy: the team of gex_Client_Init cannot be destroyed'
    wrong 2 'gex_TM_Destroy: the team is a pair'
    wrong 3 'gex_TM_Split: the team is a pair'
    wrong 4 'gex_TM_Split: color -1 is negative'
    wrong 5 'gex_TM_Split: flags 0x4, of which 0x4 are not allowed'
    wrong 6 'gex_TM_Split: scratch memory \[.*, +11) is not inside the segment bound to endpoint 0'
    wrong 7 'gex_TM_Split: 0 bytes of scratch memory; give some, or GEX_FLAG_TM_NO_SCRATCH'
    wrong 8 'gex_TM_Split: ranks [01] and [01] of the parent are in one team, with 6[45] and 6[45] bytes of scratch'
    wrong 9 'gex_TM_Split was called from a handler'
    wrong 10 'gex_TM_Destroy: the team is GEX_TM_INVALID'
}
forbidden_creates()
{
    wrong 20 'gex_TM_Create: flags 0x0 must have one of GEX_FLAG_TM_SYMMETRIC_SCRATCH'
    wrong 21 'gex_TM_Create: flags 0x30 must have one of GEX_FLAG_TM_SYMMETRIC_SCRATCH'
    wrong 22 'gex_TM_Create: 2 teams for 1 members of this process, of 2 members'
    wrong 23 'gex_TM_Create: an endpoint is named twice among 3 members'
    wrong 24 'gex_TM_Create: member 1 has rank 2, which is not in the parent of 2'
    wrong 25 'gex_TM_Create: member 1 is endpoint 33; a process has up to 33'
    wrong 26 'gex_TM_Create: member [01] is endpoint 3 of this process, which has none'
    wrong 27 'gex_TM_Create: rank 0 of the parent names rank 1 as a member, which names no team at all'
    wrong 28 'gex_TM_Create: rank [01] of the parent names rank [01] as a member, which names other members or another order'
    wrong 29 'gex_TM_Create: scratch_addrs is NULL'
    wrong 30 'gex_TM_Create: flags 0x60, of which 0x40 are not allowed'
}
lane network network
lane shared shared
lane forbidden forbidden
lane creates forbidden_creates
finish
