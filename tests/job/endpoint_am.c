/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between endpoints other than the first of a process: each endpoint has its own handlers
 * under the same indices, Longs go to its own segment, and replies to the endpoint that asked. By
 * pairs, and by a team whose members are all endpoints of all processes. The client thread owns
 * everything. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    EPS = 3,
    SEGMENT = 1 << 19,
    SLOT = 1 << 15,
    BIG = 20000,
    ASK = 200,
    ANSWER,
    MANY,
    MANY_BACK
};

static gex_EP_t eps[EPS];
static char *bases[64][EPS]; /* segments by rank and endpoint */

static volatile unsigned asked[EPS], answered[EPS], many[EPS];
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

static void count_one(volatile unsigned *counter)
{
    gex_HSL_Lock(&lock);
    ++*counter;
    gex_HSL_Unlock(&lock);
}

/* Where a message from an endpoint belongs in the segment of another one; answers lie behind. */
static char *place(gex_Rank_t owner, unsigned ep, gex_Rank_t from, unsigned from_ep, bool answer)
{
    return bases[owner][ep] + ((from % 2 * EPS + from_ep) * 2 + answer) * SLOT;
}

/* Checks the arguments of every message: both endpoints, and the kind of answer that is wanted. */
static void check_token(gex_Token_t token, int ours, bool is_req, gex_Token_Info_t *info)
{
    gex_Token_Info(token, info, GEX_TI_ALL);
    CHECK(info->gex_ep == eps[ours], "not endpoint %d", ours);
    CHECK(info->gex_entry && info->gex_entry->gex_cdata == &eps[ours]);
    CHECK(!info->gex_is_req == !is_req);
}

static uint64_t seed_of(gex_Rank_t from, unsigned from_ep, unsigned to_ep, size_t size)
{
    return ((uint64_t)from * EPS + from_ep) * EPS + to_ep + 1000 * size;
}

static void answer_short(gex_Token_t token, gex_AM_Arg_t theirs, gex_AM_Arg_t ours)
{
    gex_AM_ReplyShort2(token, ANSWER, 0, ours, theirs);
}

/* One handler serves all endpoints: cdata says which one it was registered for. */
static void on_ask_short(gex_Token_t token, gex_AM_Arg_t theirs, gex_AM_Arg_t ours)
{
    gex_Token_Info_t info;

    check_token(token, ours, true, &info);
    count_one(&asked[ours]);
    answer_short(token, theirs, ours);
}

static void on_answer_short(gex_Token_t token, gex_AM_Arg_t theirs, gex_AM_Arg_t ours)
{
    gex_Token_Info_t info;

    (void)theirs;
    check_token(token, ours, false, &info);
    count_one(&answered[ours]);
}

static void answer_payload(gex_Token_t token, void *memory, size_t size, const gex_Token_Info_t *i,
                           gex_AM_Arg_t theirs, gex_AM_Arg_t ours)
{
    char *there = place(i->gex_srcrank, theirs, job.rank, ours, true);

    if (!i->gex_is_long) {
        gex_AM_ReplyMedium2(token, MANY_BACK, memory, size, GEX_EVENT_NOW, 0, ours, theirs);
    } else if (size % 2) {
        gex_AM_ReplyLong2(token, MANY_BACK, memory, size, there, GEX_EVENT_NOW, 0, ours, theirs);
    } else {
        gex_AM_SrcDesc_t sd =
            gex_AM_PrepareReplyLong(token, memory, size, size, there, GEX_EVENT_NOW, 0, 2);
        gex_AM_CommitReplyLong2(sd, MANY_BACK, size, there, ours, theirs);
    }
}

static void on_payload(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t theirs,
                       gex_AM_Arg_t ours)
{
    gex_Token_Info_t info;

    check_token(token, ours, true, &info);
    CHECK_PATTERN(memory, size, seed_of(info.gex_srcrank, theirs, ours, size));
    if (info.gex_is_long)
        CHECK((char *)memory == place(job.rank, ours, info.gex_srcrank, theirs, false));
    count_one(&asked[ours]);
    answer_payload(token, memory, size, &info, theirs, ours);
}

static void on_payload_back(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t theirs,
                            gex_AM_Arg_t ours)
{
    gex_Token_Info_t info;

    check_token(token, ours, false, &info);
    CHECK_PATTERN(memory, size, seed_of(job.rank, ours, theirs, size));
    if (info.gex_is_long)
        CHECK((char *)memory == place(job.rank, ours, info.gex_srcrank, theirs, true));
    count_one(&answered[ours]);
}

static void on_many(gex_Token_t token, gex_AM_Arg_t ours, gex_AM_Arg_t a1, gex_AM_Arg_t a2,
                    gex_AM_Arg_t a3, gex_AM_Arg_t a4, gex_AM_Arg_t a5, gex_AM_Arg_t a6,
                    gex_AM_Arg_t a7, gex_AM_Arg_t a8, gex_AM_Arg_t a9, gex_AM_Arg_t a10,
                    gex_AM_Arg_t a11, gex_AM_Arg_t a12, gex_AM_Arg_t a13, gex_AM_Arg_t a14,
                    gex_AM_Arg_t a15)
{
    gex_Token_Info_t info;

    check_token(token, ours, true, &info);
    CHECK(a1 == 1 && a2 == 2 && a3 == 3 && a4 == 4 && a5 == 5 && a6 == 6 && a7 == 7 && a8 == 8);
    CHECK(a9 == 9 && a10 == 10 && a11 == 11 && a12 == 12 && a13 == 13 && a14 == 14 && a15 == 15);
    count_one(&many[ours]);
}

/* Each endpoint's first automatic index is 255. */
static void register_on(unsigned e)
{
    gex_AM_Entry_t table[] = {
        {ASK, (gex_AM_Fn_t)on_ask_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, &eps[e], "a"},
        {ANSWER, (gex_AM_Fn_t)on_answer_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 2, &eps[e],
         "b"},
        {MANY, (gex_AM_Fn_t)on_many, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 16, &eps[e], "c"},
        {MANY_BACK, (gex_AM_Fn_t)on_payload_back, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REPLY, 2,
         &eps[e], "d"},
        {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 2, &eps[e], "e"},
    };
    CHECK(gex_EP_RegisterHandlers(eps[e], table, 5) == GASNET_OK);
    CHECK(table[4].gex_index == 255, "%d", table[4].gex_index);
    gex_System_SetVerboseErrors(0);
    CHECK(gex_EP_RegisterHandlers(eps[e], table, 1) == GASNET_ERR_RESOURCE);
    gex_System_SetVerboseErrors(1);
}

static void make_endpoints(void)
{
    eps[0] = job.ep;
    for (unsigned e = 1; e < EPS; e++) {
        gex_Segment_t segment;
        CHECK(gex_EP_Create(&eps[e], job.client, GEX_EP_CAPABILITY_ALL, 0) == GASNET_OK);
        CHECK(gex_Segment_Create(&segment, job.client, NULL, SEGMENT, GEX_MK_HOST, 0) == GASNET_OK);
        CHECK(gex_EP_BindSegment(eps[e], segment, 0) == GASNET_OK);
    }
    for (unsigned e = 0; e < EPS; e++)
        register_on(e);
    CHECK(gex_EP_PublishBoundSegment(job.tm, eps, EPS, 0) == GASNET_OK);
    for (gex_Rank_t r = 0; r < job.size; r++)
        for (unsigned e = 0; e < EPS; e++) {
            void *base;
            uintptr_t size;
            gex_TM_t pair = gex_TM_Pair(job.ep, (gex_EP_Index_t)e);
            gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, r, &base, NULL, &size, 0));
            CHECK(size == SEGMENT);
            bases[r][e] = base;
        }
    job_barrier();
}

/* ---- every way of sending, once ---- */

static unsigned sent, sent_many;

static void send_payloads(gex_TM_t tm, gex_Rank_t to, unsigned ours, unsigned theirs, size_t size,
                          gex_Rank_t jobrank)
{
    static char source[BIG + 1];
    char *there = place(jobrank, theirs, job.rank, ours, false);
    gex_Event_t event;

    job_fill(source, size, seed_of(job.rank, ours, theirs, size));
    if (size <= gex_AM_LUBRequestMedium()) {
        gex_AM_RequestMedium2(tm, to, 255, source, size, GEX_EVENT_NOW, 0, ours, theirs);
        gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(tm, to, NULL, size, size, NULL, 0, 2);
        memcpy(gex_AM_SrcDescAddr(sd), source, size);
        gex_AM_CommitRequestMedium2(sd, 255, size, ours, theirs);
        sent += 2;
    }
    /* One Long at a time uses the place: the answer says that the other has read it. */
    unsigned before = answered[ours];
    GASNET_BLOCKUNTIL(answered[ours] == sent);
    gex_AM_RequestLong2(tm, to, 255, source, size, there, &event, 0, ours, theirs);
    gex_Event_Wait(event);
    sent++;
    GASNET_BLOCKUNTIL(answered[ours] == sent);
    gex_AM_SrcDesc_t sd =
        gex_AM_PrepareRequestLong(tm, to, source, size, size, there, GEX_EVENT_NOW, 0, 2);
    gex_AM_CommitRequestLong2(sd, 255, size, there, ours, theirs);
    sent++;
    GASNET_BLOCKUNTIL(answered[ours] == sent);
    sd = gex_AM_PrepareRequestLong(tm, to, source, size, size, there, GEX_EVENT_NOW, 0, 2);
    if (gex_AM_CommitRequestLong2_v2(sd, 255, size, there, GEX_FLAG_IMMEDIATE, ours, theirs) != 0)
        CHECK(gex_AM_CommitRequestLong2_v2(sd, 255, size, there, 0, ours, theirs) == 0);
    sent++;
    GASNET_BLOCKUNTIL(answered[ours] == sent);
    CHECK(answered[ours] > before);
}

static void send_all(gex_TM_t tm, gex_Rank_t to, unsigned ours, unsigned theirs, gex_Rank_t jobrank)
{
    job_phase("endpoint %u to endpoint %u of rank %u", ours, theirs, jobrank);
    answered[ours] = sent = 0;
    gex_AM_RequestShort2(tm, to, ASK, 0, ours, theirs);
    CHECK(gex_AM_MaxRequestMedium(tm, to, GEX_EVENT_NOW, 0, 2) >= 512);
    while (gex_AM_RequestShort2(tm, to, ASK, GEX_FLAG_IMMEDIATE, ours, theirs) != 0)
        gasnet_AMPoll();
    gex_AM_RequestShort16(tm, to, MANY, 0, theirs, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                          15);
    sent = 2;
    sent_many++;
    send_payloads(tm, to, ours, theirs, 0, jobrank);
    send_payloads(tm, to, ours, theirs, 9, jobrank);
    send_payloads(tm, to, ours, theirs, 3000, jobrank);
    send_payloads(tm, to, ours, theirs, BIG + 1, jobrank);
    gex_AM_CancelRequestMedium(gex_AM_PrepareRequestMedium(tm, to, NULL, 1, 9, NULL, 0, 2), 0);
    GASNET_BLOCKUNTIL(answered[ours] == sent);
}

static void messages_by_pairs(void)
{
    gex_Rank_t to = (job.rank + 1) % job.size;

    for (unsigned ours = 0; ours < EPS; ours++)
        for (unsigned theirs = 0; theirs < EPS; theirs++)
            send_all(gex_TM_Pair(eps[ours], (gex_EP_Index_t)theirs), to, ours, theirs, to);
    job_barrier();
    /* Each endpoint was asked by all endpoints of one process. */
    for (unsigned e = 0; e < EPS; e++) {
        GASNET_BLOCKUNTIL(many[e] == EPS);
        CHECK(asked[e] == asked[0] && asked[e] > EPS);
    }
    job_barrier();
}

/* ---- a team of all endpoints of all processes ---- */

static void check_member(gex_TM_t tm, unsigned ours, gex_Rank_t rank)
{
    gex_EP_Location_t at = gex_TM_TranslateRankToEP(tm, rank, 0);
    unsigned theirs = rank % EPS;
    uint64_t value = job_mix(ours, rank);
    char *there;
    void *base;
    uintptr_t size;

    CHECK(at.gex_rank == rank / EPS && at.gex_ep_index == theirs);
    CHECK(gex_TM_TranslateJobrankToRank(tm, rank / EPS) == rank / EPS * EPS);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, rank, &base, NULL, &size, 0));
    CHECK(size == SEGMENT && base == bases[rank / EPS][theirs]);
    there = bases[rank / EPS][theirs] + SEGMENT - 4096 + 8 * (job.rank * EPS + ours);
    CHECK(gex_RMA_PutBlocking(tm, rank, there, &value, 8, 0) == 0);
    CHECK(gex_RMA_GetBlockingVal(tm, rank, there, 8, 0) == value);
    CHECK(gex_RMA_GetBlockingVal(gex_TM_Pair(job.ep, (gex_EP_Index_t)theirs), rank / EPS, there, 8,
                                 0) == value);
}

/* A process starts the barrier of each of its members, and all of them complete. */
static void barrier_of_all(gex_TM_t *tms)
{
    gex_Event_t events[EPS];

    for (unsigned e = 0; e < EPS; e++)
        events[e] = gex_Coll_BarrierNB(tms[e], 0);
    gex_Event_WaitAll(events, EPS, 0);
}

#if GASNET_PAR
static void *split_one(void *tm)
{
    gex_TM_t all = tm, *part = job_memory(sizeof *part);
    gex_TM_Split(part, all, gex_EP_QueryIndex(gex_TM_QueryEP(all)) == 0,
                 -(int)gex_TM_QueryRank(all), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    return part;
}

/* Splitting needs a thread for each member of a process: one for endpoint 0, one for each other. */
static void split_by_threads(gex_TM_t *tms)
{
    pthread_t threads[EPS];
    gex_TM_t *parts[EPS], all[EPS];

    for (unsigned e = 0; e < EPS; e++)
        CHECK(pthread_create(&threads[e], NULL, split_one, tms[e]) == 0);
    for (unsigned e = 0; e < EPS; e++) {
        CHECK(pthread_join(threads[e], (void **)&parts[e]) == 0);
        all[e] = *parts[e];
        free(parts[e]);
        gex_Rank_t rank = job.size - 1 - job.rank;
        CHECK(gex_TM_QuerySize(all[e]) == job.size * (e == 0 ? 1 : EPS - 1));
        CHECK(gex_TM_QueryRank(all[e]) == (e == 0 ? rank : rank * (EPS - 1) + EPS - 1 - e));
    }
    barrier_of_all(all);
    for (unsigned e = 0; e < EPS; e++)
        gex_TM_Destroy(all[e], NULL, e == 0 ? GEX_FLAG_GLOBALLY_QUIESCED : 0);
}
#else
static void split_by_threads(gex_TM_t *tms)
{
    (void)tms; /* one thread cannot */
}
#endif

static void a_team_of_endpoints(void)
{
    gex_EP_Location_t args[64 * EPS];
    gex_TM_t tms[EPS];
    size_t count = job.size * EPS;

    for (unsigned i = 0; i < count; i++)
        args[i] = (gex_EP_Location_t){i / EPS, (gex_EP_Index_t)(i % EPS)};
    gex_TM_Create(tms, EPS, job.tm, args, count, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (unsigned e = 0; e < EPS; e++) {
        CHECK(gex_TM_QueryEP(tms[e]) == eps[e] && gex_TM_QueryRank(tms[e]) == job.rank * EPS + e);
        CHECK(gex_TM_QuerySize(tms[e]) == count);
        for (gex_Rank_t r = 0; r < count; r++)
            check_member(tms[e], e, r);
        gex_Rank_t to = (job.rank + 1) % job.size;
        for (unsigned theirs = 0; theirs < EPS; theirs++)
            send_all(tms[e], to * EPS + theirs, e, theirs, to);
    }
    barrier_of_all(tms);
    barrier_of_all(tms);
    split_by_threads(tms);
    for (unsigned e = 0; e < EPS; e++)
        CHECK(gex_TM_Destroy(tms[e], NULL, 0) == 0);
    job_barrier();
}

/* A team of one endpoint of each process, not the first, and a split of that team. */
static void a_team_of_second_endpoints(void)
{
    gex_EP_Location_t args[64];
    gex_TM_t tm, half;
    gex_Rank_t to = (job.rank + 1) % job.size;

    for (gex_Rank_t r = 0; r < job.size; r++)
        args[r] = (gex_EP_Location_t){job.size - 1 - r, 1};
    gex_TM_Create(&tm, 1, job.tm, args, job.size, NULL, 0,
                  GEX_FLAG_TM_NO_SCRATCH | GEX_FLAG_RANK_IS_JOBRANK);
    send_all(tm, job.size - 1 - to, 1, 1, to);
    gex_TM_Split(&half, tm, job.rank % 2, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK(gex_TM_QueryEP(half) == eps[1]);
    CHECK(gex_TM_TranslateRankToEP(half, gex_TM_QueryRank(half), 0).gex_ep_index == 1);
    send_all(half, gex_TM_QueryRank(half), 1, 1, job.rank);
    gex_TM_Destroy(tm, NULL, 0);
    gex_TM_Destroy(half, NULL, 0);
}

/* ---- what is forbidden ---- */

static void wrong(int which)
{
    gex_EP_t plain;
    gex_AM_Entry_t entry = {
        ASK, (gex_AM_Fn_t)on_ask_short, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, "a"};
    gex_Rank_t to = job.size - 1;

    CHECK(gex_EP_Create(&plain, job.client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    job_barrier();
    if (which == 1)
        gex_EP_RegisterHandlers(plain, &entry, 1);
    if (which == 2)
        gex_AM_RequestShort2(gex_TM_Pair(plain, 1), to, ASK, 0, 0, 0);
    if (which == 3)
        gex_AM_RequestShort2(gex_TM_Pair(eps[1], EPS), to, ASK, 0, 0, 0);
    if (which == 4)
        gex_AM_RequestShort2(gex_TM_Pair(eps[1], 2), to, MANY_BACK + 1, 0, 0, 0);
    if (which == 5)
        gex_AM_RequestShort1(gex_TM_Pair(eps[1], 2), to, ASK, 0, 0);
    if (which == 6)
        gex_AM_RequestShort2(gex_TM_Pair(eps[1], 50), to, ASK, 0, 0, 0);
    if (which == 8) {
        gex_EP_Location_t args[] = {{to, 1}, {to, 2}};
        gex_TM_t tms[2];
        bool is_in = job.rank == to;
        gex_TM_Create(tms, is_in ? 2 : 0, job.tm, args, is_in ? 2 : 0, NULL, 0,
                      GEX_FLAG_TM_NO_SCRATCH);
        if (is_in)
            gex_TM_Split(NULL, tms[0], 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    }
    if (which == 7)
        gex_AM_RequestShort2(gex_TM_Pair(eps[0], 2), to, 255, 0, 0, 0);
    for (;;)
        gasnet_AMPoll();
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, SEGMENT);
    CHECK(job.size <= 64);
    make_endpoints();
    if (argc > 2 && !strcmp(argv[1], "wrong"))
        wrong(argv[2][0] - '0');
    messages_by_pairs();
    a_team_of_endpoints();
    a_team_of_second_endpoints();
    job_end();
}
