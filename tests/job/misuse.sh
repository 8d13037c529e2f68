#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Misuse of the interface ends the job with one line that names the mistake. Scenarios are those of misuse.c.
. "${top_srcdir:?run through make check}/tests/job/common.sh"
debug=${TRUNKLINE_TEST_DEBUG:-no}

# wrong SCENARIO TEXT: with one rank and with two; errors that only a debug build finds, with two.
sizes="1 3"
[ "$sanitizer" = no ] || sizes=3 # such jobs start slowly
wrong()
{
    for n in $sizes; do
        job $n "$jobs/misuse-seq" "$1"
        [ "$status" -ne 0 ] || failed "scenario $1 was accepted"
        says "^trunkline.*$2" 1
        within 15
    done
}

wrong 1 'gex_Client_Init was called twice'
wrong 2 'gex_Segment_Attach was called twice'
wrong 3 "handler 'request': gex_flags"
wrong 4 "handler 'request': gex_flags 0x1 must include REQUEST, REPLY or REQREP"
wrong 5 "handler 'request': gex_nargs 17 is above 16"
wrong 6 'a message for handler 177 came from rank 0 .*none is registered'
wrong 7 'gasnet_barrier_wait was called without gasnet_barrier_notify'
wrong 8 'gasnet_barrier_try was called without gasnet_barrier_notify'
wrong 9 'gasnet_barrier_notify was called again before gasnet_barrier_wait'
wrong 10 'gex_Segment_Create: a segment has at least one byte'
wrong 11 'the segment of gex_Segment_Attach cannot be destroyed'
wrong 12 'gex_MK_Destroy: the argument was not made by gex_MK_Create'
wrong 13 'gasnet_barrier_notify was called from a handler'
wrong 14 'gex_Coll_BarrierNB was called from a handler'
wrong 80 'gex_VIS_VectorPutNB: the destination has 9 bytes, the source 8'
wrong 81 'gex_VIS_SetPeerCompletionHandler: 128 bytes are more than the limit 127'
wrong 83 'gex_VIS_SetPeerCompletionHandler: handler 7 belongs to the library'
sizes=2
wrong 82 'not inside th.* segment'
# Item 83: release builds, too, report errors that a single comparison finds.
for reach in 0 1; do # neighbours, and over the network
    SETTINGS=GASNET_SUPERNODE_MAXSIZE=$reach
    wrong 20 'gex_AM_RequestMedium: [0-9]* bytes are more than the limit'
    wrong 70 "a Medium came from rank 0 for handler [0-9]* 'request', which gex_flags"
    wrong 71 "a message with 1 arguments came from rank 0 for handler [0-9]* 'request', which has 0"
    wrong 72 "a Short came from rank 0 for handler [0-9]* 'request', which gex_flags"
    wrong 73 'gex_AM_CommitRequestMedium: 10 bytes are more than gex_AM_SrcDescSize, 9'
done
SETTINGS=
[ "$debug" = yes ] || finish
sizes=2
wrong 21 'gex_RMA_Put'
wrong 22 'gex_RMA_Get'
wrong 23 'was replied to before'
wrong 24 'gex_AM_RequestShort: rank 2 is not in the team of 2'
wrong 25 'gex_TM_QueryRank: the argument is a pair, not a team'
wrong 26 'gex_RMA_Put[A-Za-z]*: .* is not inside the segment of endpoint 7 of rank'
wrong 27 'gex_AM_RequestShort: handler 1 belongs to the library; clients have 128..255'
wrong 30 'gex_RMA_PutNB: lc_opt must be'
wrong 31 'gex_RMA_PutNB: lc_opt must be'
wrong 32 'gex_RMA_PutNBI: lc_opt must be'
wrong 33 'gex_RMA_PutNBIVal: a value has 1 to 8 bytes, not 9'
wrong 34 'gex_RMA_GetBlockingVal: a value has 1 to 8 bytes, not 0'
wrong 35 'gex_NBI_BeginAccessRegion between'
wrong 36 'gex_NBI_Wait between'
wrong 37 'gex_NBI_Test between'
wrong 38 'gex_NBI_EndAccessRegion without'
wrong 39 'gex_Event_QueryLeaf: event_category 0xffffffff is not exactly one'
wrong 40 'gex_Event_Wait: GEX_EVENT_NO_OP must not be synced'
wrong 41 'gex_Event_WaitAll: GEX_EVENT_NO_OP must not be synced'
wrong 42 'gex_Event_TestSome: GEX_EVENT_NO_OP must not be synced'
wrong 43 'gex_RMA_PutNBIVal: .*, +8) is not inside the segment of rank'
wrong 44 'gex_RMA_GetBlockingVal: .*, +1) is not inside the segment of rank'
wrong 45 'gex_AM_ReplyMedium: lc_opt must be'
wrong 46 'gex_AM_RequestMedium: lc_opt must be'
wrong 47 'gex_AM_RequestShort was called from a handler'
wrong 48 'gasnet_AMPoll was called with a gex_HSL_t held'
wrong 49 'gasnet_AMPoll was called between gex_AM_PrepareRequestMedium (to rank 1) and its Commit or Cancel'
wrong 50 "a message with 1 arguments came from rank 0 for handler 255 'request', which has 0"
wrong 51 'gex_AM_CommitRequestMedium: 1 arguments, but 2 were prepared'
wrong 52 "handler 255 'request' returned between gex_AM_PrepareReply and its Commit or Cancel"
wrong 53 'gex_AM_ReplyShort in a reply handler'
wrong 54 "handler 255 'request' returned with a gex_HSL_t held"
wrong 55 'gex_HSL_Lock of .*not recursive'
wrong 56 'release in reverse order'
wrong 57 'a message for handler [0-9]* of endpoint 7 came from rank [01] .*none is registered here'
between='was called between gex_AM_PrepareRequestMedium (to rank 1) and its Commit or Cancel'
wrong 58 "gex_AM_PrepareRequestLong $between"
wrong 59 "gex_Event_Test $between"
wrong 60 "gex_RMA_GetNBI $between"
wrong 61 'gex_AM_CancelRequestLong: another kind of message was prepared'
wrong 62 'gex_AM_ReplyShort was called between gex_AM_PrepareReplyLong (to rank 0) and its Commit or Cancel'
wrong 63 'gex_AM_CancelRequestMedium: flags 0x[1-9a-f][0-9a-f]* must be 0'
wrong 64 'gex_AM_CommitRequestMedium was called with a gex_HSL_t held'
wrong 65 'gex_AM_CancelRequestMedium: nothing is prepared'
wrong 66 'gex_AM_CommitRequestMedium: nothing is prepared'
finish
