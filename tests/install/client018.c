/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of the release before (2024.5.0, specification 0.18): it asks for that version or a
 * later one, uses names of that time only, and fills its handler table without casts where C allows
 * that. Negotiated payload, implicit events, atomics, strides, teams and a reduction, each with the
 * right-hand neighbour. Prints "rank R of N: ok" and exits 0, or prints the error and exits 1. */
#include <gasnetex.h>
#include <gasnet_coll.h>
#include <gasnet_ratomic.h>
#include <gasnet_tools.h>
#include <gasnet_vis.h>

#include <stdio.h>
#include <string.h>

#if GASNET_RELEASE_VERSION_MAJOR < 2024 ||                                                         \
    (GASNET_RELEASE_VERSION_MAJOR == 2024 && GASNET_RELEASE_VERSION_MINOR < 5)
#    error "a release that this client does not know"
#endif
#if GEX_SPEC_VERSION_MAJOR == 0 && GEX_SPEC_VERSION_MINOR < 18
#    error "a specification that this client does not know"
#endif

#if defined(__cplusplus) || __STDC_VERSION__ > 201710L
#    define HANDLER(function) ((gex_AM_Fn_t)(function))
#else
#    define HANDLER(function) function
#endif

enum { ASK = 200, ANSWER, STORE, STORED, WORDS = 64 };

static gex_TM_t team;
static gasnett_atomic_t answers = gasnett_atomic_init(0), stored = gasnett_atomic_init(0);

static void fill(gex_AM_SrcDesc_t sd, char byte)
{
    memset(gex_AM_SrcDescAddr(sd), byte, gex_AM_SrcDescSize(sd));
}

static void ask(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t number)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareReplyMedium(token, NULL, nbytes, nbytes, NULL,
                                                    GEX_FLAG_AM_PREPARE_LEAST_ALLOC, 1);
    fill(sd, *(const char *)buf);
    gex_AM_CommitReplyMedium1(sd, ANSWER, nbytes, number);
}

static void answer(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t number)
{
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    if (nbytes == WORDS && ((const char *)buf)[WORDS - 1] == 'a' && number == 7)
        gasnett_atomic_increment(&answers, 0);
}

static void store(gex_Token_t token, void *buf, size_t nbytes)
{
    if (nbytes == WORDS && *(const char *)buf == 'l')
        gex_AM_ReplyShort0(token, STORED, 0);
}

static void was_stored(gex_Token_t token)
{
    (void)token;
    gasnett_atomic_increment(&stored, 0);
}

static int wrong(const char *what)
{
    fprintf(stderr, "rank %u: %s\n", (unsigned)gex_TM_QueryRank(team), what);
    return 1;
}

static int negotiate(gex_Rank_t right, char *theirs)
{
    gex_AM_SrcDesc_t sd;
    do {
        gasnet_AMPoll();
        sd = gex_AM_PrepareRequestMedium(team, right, NULL, WORDS, WORDS, NULL, GEX_FLAG_IMMEDIATE,
                                         1);
    } while (sd == GEX_AM_SRCDESC_NO_OP);
    fill(sd, 'a');
    gex_AM_CommitRequestMedium1(sd, ASK, WORDS, 7);

    char line[WORDS];
    memset(line, 'l', sizeof line);
    sd = gex_AM_PrepareRequestLong(team, right, line, WORDS, WORDS, theirs, GEX_EVENT_NOW, 0, 0);
    gex_AM_CommitRequestLong0(sd, STORE, WORDS, theirs);
    GASNET_BLOCKUNTIL(gasnett_atomic_read(&answers, 0) == 1 &&
                      gasnett_atomic_read(&stored, 0) == 1);
    return 0;
}

static int move(gex_Rank_t right, char *theirs)
{
    const ptrdiff_t packed[] = {4}, spread[] = {8};
    const size_t count[] = {8};
    int32_t out[8], in[8];
    for (int i = 0; i < 8; i++)
        out[i] = 100 + i;
    gex_NBI_BeginAccessRegion(0);
    gex_VIS_StridedPutNBI(team, right, theirs, spread, out, packed, sizeof out[0], count, 1, 0);
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    for (int i = 0; i < 8; i++)
        gex_RMA_GetNBI(team, &in[i], right, theirs + 8 * (size_t)i, sizeof in[i], 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    if (memcmp(in, out, sizeof in) != 0)
        return wrong("a get did not find what a strided put wrote");
    gex_RMA_PutBlockingVal(team, right, theirs, 5, 8, 0);
    return gex_RMA_GetBlockingVal(team, right, theirs, 8, 0) == 5 ? 0 : wrong("a value was lost");
}

static int count(gex_Rank_t right, char *theirs)
{
    gex_AD_t domain;
    uint64_t before = 0;
    gex_AD_Create(&domain, team, GEX_DT_U64, GEX_OP_FADD | GEX_OP_GET, 0);
    gex_Event_Wait(gex_AD_OpNB_U64(domain, &before, right, theirs, GEX_OP_FADD, 2, 0, 0));
    gex_Event_Wait(gex_AD_OpNB_U64(domain, &before, right, theirs, GEX_OP_GET, 0, 0, 0));
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    gex_AD_Destroy(domain);
    return before == 7 ? 0 : wrong("an atomic operation was lost");
}

static int agree(void)
{
    gex_TM_t all;
    gex_TM_Split(&all, team, 0, (int)gex_TM_QueryRank(team), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    uint32_t one = 1, sum = 0;
    gex_Event_Wait(gex_Coll_ReduceToAllNB(all, &sum, &one, GEX_DT_U32, sizeof one, 1, GEX_OP_ADD,
                                          NULL, NULL, 0));
    gex_Rank_t members = gex_TM_QuerySize(all);
    gex_TM_Destroy(all, NULL, 0);
    return sum == members ? 0 : wrong("a reduction is wrong");
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;
    gex_AM_Entry_t table[] = {
        {ASK, HANDLER(ask), GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "ask"},
        {ANSWER, HANDLER(answer), GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, "answer"},
        {STORE, HANDLER(store), GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 0, NULL, "store"},
        {STORED, HANDLER(was_stored), GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "stored"}};

    if (gex_Client_Init(&client, &ep, &team, "client of 0.18", &argc, &argv, 0) != GASNET_OK)
        return 1;
    gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof table[0]);
    gex_Segment_Attach(&segment, team, GASNET_PAGESIZE);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));

    gex_Rank_t right = (gex_TM_QueryRank(team) + 1) % gex_TM_QuerySize(team);
    void *theirs = NULL;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, right, &theirs, NULL, NULL, 0));
    int bad = !theirs || negotiate(right, (char *)theirs);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    bad = bad || move(right, (char *)theirs) || count(right, (char *)theirs) || agree();
    if (!bad)
        printf("rank %u of %u: ok\n", (unsigned)gex_TM_QueryRank(team),
               (unsigned)gex_TM_QuerySize(team));
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    gasnet_exit(bad);
}
