#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Debug libraries: operations that were begun and never synced, long handlers, and messages from a context that must not send are
# reported in one line, which has the client's line of source. Scenarios are those of checked.c.
. "${top_srcdir:?run through make check}/tests/job/common.sh"

# line NAME: the line of checked.c that did it
line()
{
    sed -n "s/^line $1 //p" "$scratch/out" | head -1
}

# checked SCENARIO [RANKS]: a job that must succeed
checked()
{
    job "${2:-2}" "$jobs/checked" "$1"
    [ "$status" -eq 0 ] || failed "$1: status $status, not 0"
}

# wrong SCENARIO TEXT: a job that the library must end with a line that has TEXT and the client's file and line
wrong()
{
    # shellcheck disable=SC2086 # a scenario may have an argument
    job "${ranks:-2}" "$jobs/checked" $1
    [ "$status" -ne 0 ] || failed "scenario $1 was accepted"
    says "^trunkline.*$2.*; called at .*checked.c:$(line mistake)\$" 1
}

leaks='neither tested nor waited for\|not synced'
checked nothing
says "$leaks" 0
says 'ran for' 0
checked events
says "at the end 4 events were neither tested .*: 1 of gex_RMA_PutNB at .*checked.c:$(line put), 2 of gasnet_get_nb at .*checked.c:$(line get), 1 of gex_Coll_BarrierNB at .*checked.c:$(line barrier)\$" 1
says "$leaks" 1
for reach in 0 1; do # neighbours, and over the network
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=$reach
    checked implicit
    says "at the end 4 implicit operations were not synced .*: 3 of gex_RMA_PutNBI at .*checked.c:$(line put), 1 of gasnet_put_nbi_val at .*checked.c:$(line value)\$" 1
    says "$leaks" 1
    wrong request 'gex_AM_RequestShort was called from a handler'
done
SETTINGS=GASNET_HANDLER_SECONDS=0.2
checked slow
says "handler [0-9]* 'request' ran for 0\.[0-9]* s" 1
SETTINGS=GASNET_HSL_SECONDS=0.2
checked held
says "gex_HSL_t 0x[0-9a-f]* was held for 0\.[0-9]* s.*; released at .*checked.c:$(line released)\$" 2
SETTINGS=GASNET_HSL_SECONDS=0
checked held
says 'was held' 0
SETTINGS=GASNET_HANDLER_SECONDS=60
checked slow
says 'ran for' 0
SETTINGS=
checked slow 1
says 'ran for' 0
wrong twice 'gex_AM_ReplyShort: this request was replied to before'
wrong outside 'gex_AM_ReplyShort was called outside of a handler'
wrong locked 'gex_AM_RequestShort was called with a gex_HSL_t held'
checked statically
says "gex_HSL_Init of .*, which GEX_HSL_INITIALIZER has initialised; called at .*checked.c:$(line mistake)\$" 1
wrong initialised 'gex_HSL_Init of .*, which is initialised: gex_HSL_Destroy comes first'
wrong destroyed 'gex_HSL_Destroy of .*, which was destroyed already'
wrong destroyed_held 'gex_HSL_Destroy of .*, which this thread holds'
for call in gasnet_AMPoll gex_AM_RequestShort0 gex_AM_RequestMedium0 gex_AM_RequestLong0 gex_AM_PrepareRequestMedium \
    gex_AM_PrepareRequestLong gex_Event_Test gex_Event_Wait gex_Event_TestAll gex_NBI_Test gex_NBI_Wait gex_RMA_PutBlocking \
    gex_RMA_GetNB gex_RMA_PutNBIVal gex_VIS_VectorPutNB gex_Coll_BarrierNB gasnet_barrier_notify gex_TM_Split \
    gex_TM_TranslateRankToJobrank gex_Segment_Create gex_EP_QueryBoundSegmentNB; do
    ranks=1 wrong "between $call" "${call%0} was called between gex_AM_PrepareRequestMedium (to rank 0) and its Commit or Cancel"
done
wrong cancelled 'gex_AM_CancelRequestMedium: nothing is prepared'
wrong counted 'gex_AM_RequestShort: rank 2 is not in the team of 2'
finish
