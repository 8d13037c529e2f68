/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs with a mistake. Usage: misuse SCENARIO; rank 0 does what the interface forbids, the
 * others wait for it. The library must end the job with a line that names the error. Only a library
 * with --enable-debug finds those from 20 on. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdio.h>
#include <stdlib.h>

#include "gasnet_mk.h"
#include "gasnet_vis.h"

static gex_AM_Index_t request_index, reply_index;
static int scenario;
static gex_HSL_t one = GEX_HSL_INITIALIZER, other = GEX_HSL_INITIALIZER;

static gex_AM_SrcDesc_t prepared;

static void on_request(gex_Token_t token)
{
    if (scenario == 13)
        gasnet_barrier(0, GASNET_BARRIERFLAG_UNNAMED);
    if (scenario == 14)
        gex_Coll_BarrierNB(job.tm, 0);
    if (scenario == 45)
        gex_AM_ReplyMedium0(token, reply_index, &scenario, 4, GEX_EVENT_GROUP, 0);
    if (scenario == 47)
        gex_AM_RequestShort0(job.tm, 0, request_index, 0);
    if (scenario == 52) {
        gex_AM_PrepareReplyMedium(token, NULL, 1, 9, NULL, 0, 0);
        return;
    }
    if (scenario == 62) {
        prepared = gex_AM_PrepareReplyLong(token, NULL, 1, 9, NULL, NULL, 0, 0);
        gex_AM_ReplyShort0(token, reply_index, 0);
    }
    if (scenario == 54) {
        gex_HSL_Lock(&one);
        return;
    }
    gex_AM_ReplyShort0(token, reply_index, 0);
    if (scenario == 23)
        gex_AM_ReplyShort0(token, reply_index, 0);
}

static void on_reply(gex_Token_t token)
{
    if (scenario == 53)
        gex_AM_ReplyShort0(token, reply_index, 0);
}

static void register_handlers(gex_Flags_t flags, unsigned nargs)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_request, flags, nargs, NULL, "request"},
        {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "reply"},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    request_index = table[0].gex_index;
    reply_index = table[1].gex_index;
}

static void misuse_segments(void)
{
    gex_Segment_t segment;

    if (scenario == 10)
        gex_Segment_Create(&segment, job.client, NULL, 0, GEX_MK_HOST, 0);
    if (scenario == 11)
        gex_Segment_Destroy(job.segment, 0);
    if (scenario == 12)
        gex_MK_Destroy(GEX_MK_HOST, 0);
}

static void misuse_start(void)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;

    if (scenario == 1)
        gex_Client_Init(&client, &ep, &tm, "TWICE", NULL, NULL, 0);
    if (scenario == 2)
        gex_Segment_Attach(&segment, job.tm, GASNET_PAGESIZE);
    if (scenario == 3)
        register_handlers(GEX_FLAG_AM_REQUEST, 0); /* no category */
    if (scenario == 4)
        register_handlers(GEX_FLAG_AM_SHORT, 0); /* neither request nor reply */
    if (scenario == 5)
        register_handlers(GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 17);
    if (scenario == 6)
        gex_AM_RequestShort0(job.tm, job.size - 1, 177, 0); /* not registered on any rank */
    if (scenario == 7)
        gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    if (scenario == 8)
        gasnet_barrier_try(0, 0);
    if (scenario == 9) {
        gasnet_barrier_notify(0, 0);
        gasnet_barrier_notify(0, 0);
    }
    misuse_segments();
}

static void misuse_locks(void)
{
    if (scenario == 48) {
        gex_HSL_Lock(&one);
        gasnet_AMPoll();
    }
    if (scenario == 55) {
        gex_HSL_Lock(&one);
        gex_HSL_Lock(&one);
    }
    if (scenario == 56) {
        gex_HSL_Lock(&one);
        gex_HSL_Lock(&other);
        gex_HSL_Unlock(&one);
    }
}

/* Errors with a prepared message, and calls that are forbidden before it has ended. */
static void misuse_prepared(gex_Rank_t last)
{
    gex_Event_t event = GEX_EVENT_INVALID;

    prepared = gex_AM_PrepareRequestMedium(job.tm, last, NULL, 1, 9, NULL, 0, 0);
    if (scenario == 58)
        gex_AM_PrepareRequestLong(job.tm, last, NULL, 1, 9, NULL, NULL, 0, 0);
    if (scenario == 59)
        gex_Event_Test(event);
    if (scenario == 60)
        gex_RMA_GetNBI(job.tm, &event, last, job_remote(last, 0), 1, 0);
    if (scenario == 61)
        gex_AM_CancelRequestLong(prepared, 0);
    if (scenario == 63)
        gex_AM_CancelRequestMedium(prepared, GEX_FLAG_IMMEDIATE);
    if (scenario == 64) {
        gex_HSL_Lock(&one);
        gex_AM_CommitRequestMedium0(prepared, request_index, 1);
    }
    gex_AM_CancelRequestMedium(prepared, 0);
    if (scenario == 65)
        gex_AM_CancelRequestMedium(prepared, 0);
    if (scenario == 66)
        gex_AM_CommitRequestMedium0(prepared, request_index, 1);
}

static void misuse_messages(void)
{
    gex_Rank_t last = job.size - 1;

    if (scenario == 46)
        gex_AM_RequestMedium0(job.tm, last, request_index, &last, 4, GEX_EVENT_DEFER, 0);
    if (scenario == 49) {
        gex_AM_PrepareRequestMedium(job.tm, last, NULL, 1, 9, NULL, 0, 0);
        gasnet_AMPoll();
    }
    if (scenario >= 58 && scenario <= 66 && scenario != 62)
        misuse_prepared(last);
    if (scenario == 50)
        gex_AM_RequestShort1(job.tm, last, request_index, 0, 5);
    if (scenario == 57)
        gex_AM_RequestShort0(gex_TM_Pair(job.ep, 7), last, request_index, 0);
    if (scenario == 51) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(job.tm, last, NULL, 1, 9, NULL, 0, 2);
        gex_AM_CommitRequestMedium1(sd, request_index, 1, 5);
    }
    if (scenario == 13 || scenario == 14 || scenario == 45 || scenario == 47 ||
        (scenario >= 52 && scenario <= 54) || scenario == 62)
        gex_AM_RequestShort0(job.tm, last, request_index, 0);
}

/* Found in any build: 71 and 72 have a handler of Mediums without arguments. */
static void misuse_handlers(void)
{
    gex_Rank_t last = job.size - 1;

    if (scenario == 70)
        gex_AM_RequestMedium0(job.tm, last, request_index, &last, 4, GEX_EVENT_NOW, 0);
    if (scenario == 71)
        gex_AM_RequestMedium1(job.tm, last, request_index, &last, 4, GEX_EVENT_NOW, 0, 5);
    if (scenario == 72)
        gex_AM_RequestShort0(job.tm, last, request_index, 0);
    if (scenario == 73) {
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(job.tm, last, NULL, 1, 9, NULL, 0, 0);
        gex_AM_CommitRequestMedium0(sd, request_index, 10);
    }
}

/* Found in any build. The target finds 82, or before that a library with --enable-debug. */
static void misuse_vectors(void)
{
    gex_Rank_t last = job.size - 1;
    char *base = job_remote(last, 0), local[16] = {0};
    const gex_Memvec_t here[] = {{local, 8}}, there[] = {{base + 8, 8}, {base, 0}, {base, 1}};
    const gex_Memvec_t outside[] = {{base, 4}, {base + GASNET_PAGESIZE - 1, 4}};

    if (scenario == 80)
        gex_VIS_VectorPutNB(job.tm, last, 3, there, 1, here, 0);
    if (scenario == 81)
        gex_VIS_SetPeerCompletionHandler(200, base, GEX_VIS_MAX_PEERCOMPLETION + 1, 0);
    if (scenario == 82)
        gex_VIS_VectorGetBlocking(job.tm, 1, here, last, 2, outside, 0);
    if (scenario == 83)
        gex_VIS_SetPeerCompletionHandler(7, base, 1, 0);
}

static void misuse_debug(void)
{
    size_t most = gex_AM_MaxRequestMedium(job.tm, job.size - 1, GEX_EVENT_NOW, 0, 0);
    gex_Rank_t last = job.size - 1;

    if (scenario == 20)
        gex_AM_RequestMedium0(job.tm, last, request_index, job_memory(most + 1), most + 1,
                              GEX_EVENT_NOW, 0);
    if (scenario == 21)
        gex_RMA_PutBlocking(job.tm, last, job_remote(last, GASNET_PAGESIZE - 4), &most, 8, 0);
    if (scenario == 22)
        gex_RMA_GetBlocking(job.tm, &most, last, (char *)job_remote(last, 0) - 1, 8, 0);
    if (scenario == 23) /* two replies */
        gex_AM_RequestShort0(job.tm, last, request_index, 0);
    if (scenario == 24)
        gex_AM_RequestShort0(job.tm, job.size, request_index, 0);
    if (scenario == 25)
        gex_TM_QueryRank(gex_TM_Pair(job.ep, 0));
    if (scenario == 27) /* a handler of the library's own */
        gex_AM_RequestShort1(job.tm, last, 1, 0, 0);
    if (scenario == 26)
        gex_RMA_PutBlocking(gex_TM_Pair(job.ep, 7), last, job.base, &most, 8, 0);
}

/* An empty transfer may have any address (item 36), a value must not. */
static void misuse_values_and_arrays(void)
{
    gex_Event_t events[] = {GEX_EVENT_INVALID, GEX_EVENT_NO_OP};
    gex_Rank_t last = job.size - 1;
    char *behind = job_remote(last, GASNET_PAGESIZE);

    gex_RMA_PutBlocking(job.tm, last, behind + 1, NULL, 0, 0);
    gex_RMA_GetNBI(job.tm, NULL, last, behind + 1, 0, 0);
    if (scenario == 41)
        gex_Event_WaitAll(events, 2, 0);
    if (scenario == 42)
        gex_Event_TestSome(events, 2, 0);
    if (scenario == 43)
        gex_RMA_PutNBIVal(job.tm, last, behind - 7, 1, 8, 0);
    if (scenario == 44)
        gex_RMA_GetBlockingVal(job.tm, last, behind, 1, 0);
}

/* Puts, events and implicit operations. */
static void misuse_operations(void)
{
    static char source[8];
    gex_Rank_t last = job.size - 1;
    void *there = job_remote(last, 0);
    gex_Event_t leaf;
    /* Compilers warn of the mistake where the put is inlined. */
    gex_Event_t *volatile group = GEX_EVENT_GROUP;

    if (scenario == 30)
        gex_RMA_PutNB(job.tm, last, there, source, 8, group, 0);
    if (scenario == 31)
        gex_RMA_PutNB(job.tm, last, there, source, 8, NULL, 0);
    if (scenario == 32)
        gex_RMA_PutNBI(job.tm, last, there, source, 8, &leaf, 0);
    if (scenario == 33)
        gex_RMA_PutNBIVal(job.tm, last, there, 1, 9, 0);
    if (scenario == 34)
        gex_RMA_GetBlockingVal(job.tm, last, there, 0, 0);
    if (scenario >= 35 && scenario <= 37)
        gex_NBI_BeginAccessRegion(0);
    if (scenario == 35)
        gex_NBI_BeginAccessRegion(0);
    if (scenario == 36)
        gex_NBI_Wait(GEX_EC_ALL, 0);
    if (scenario == 37)
        gex_NBI_Test(GEX_EC_PUT, 0);
    if (scenario == 38)
        gex_NBI_EndAccessRegion(0);
    if (scenario == 39)
        gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_ALL);
    if (scenario == 40)
        gex_Event_Wait(GEX_EVENT_NO_OP);
    misuse_values_and_arrays();
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? atoi(argv[1]) : 0;
    job_start(&argc, &argv, GASNET_PAGESIZE);
    if (scenario == 71 || scenario == 72)
        register_handlers(GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0);
    else if (scenario >= 13)
        register_handlers(GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0);
    job_barrier();
    if (job.rank == 0) {
        misuse_start();
        misuse_debug();
        misuse_handlers();
        misuse_vectors();
        misuse_messages();
        misuse_locks();
        misuse_operations();
    }
    GASNET_BLOCKUNTIL(0);
}
