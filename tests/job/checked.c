/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors other than wrong arguments that a debug library finds, and the source lines that it names.
 * Usage: checked SCENARIO; rank 0 makes the mistake, in a line that this program prints ("line NAME
 * NUMBER") before it does. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gasnet.h"
#include "gasnet_vis.h"

static gex_AM_Index_t request_index, reply_index;
static const char *scenario, *between;
static gex_Token_t kept;
static volatile int replies;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

/* Prints the line of the next statement. */
#define HERE(name) printf("line %s %d\n", name, __LINE__ + 1), fflush(stdout)

static int is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void on_request(gex_Token_t token)
{
    const struct timespec nap = {.tv_nsec = 300 * 1000 * 1000};
    if (is("slow"))
        nanosleep(&nap, NULL);
    kept = token;
    if (is("request")) {
        HERE("mistake");
        gex_AM_RequestShort0(job.tm, 0, request_index, 0);
    }
    gex_AM_ReplyShort0(token, reply_index, 0);
    if (is("twice")) {
        HERE("mistake");
        gex_AM_ReplyShort0(token, reply_index, 0);
    }
}

static void on_reply(gex_Token_t token)
{
    kept = token;
    replies++;
}

static void register_handlers(void)
{
    const gex_Flags_t request = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST;
    const gex_Flags_t reply = GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY;
    gex_AM_Entry_t table[] = {{0, (gex_AM_Fn_t)on_request, request, 0, NULL, "request"},
                              {0, (gex_AM_Fn_t)on_reply, reply, 0, NULL, "reply"}};
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    request_index = table[0].gex_index;
    reply_index = table[1].gex_index;
}

static void ask(gex_Rank_t rank)
{
    replies = 0;
    gex_AM_RequestShort0(job.tm, rank, request_index, 0);
    GASNET_BLOCKUNTIL(replies);
}

/* A barrier that the others don't enter can't complete. */
static void leave_events(void)
{
    static char source[1 << 20];
    void *there = job_remote(job.size - 1, 0);
    HERE("put");
    (void)gex_RMA_PutNB(job.tm, job.size - 1, there, source, sizeof(source), GEX_EVENT_DEFER, 0);
    for (int i = 0; i < 2; i++) {
        HERE("get");
        (void)gasnet_get_nb(source, job.size - 1, there, sizeof(source));
    }
    HERE("barrier");
    (void)gex_Coll_BarrierNB(job.tm, 0);
}

static void leave_implicit(void)
{
    static char source[64];
    void *there = job_remote(job.size - 1, 0);
    gex_RMA_PutNBI(job.tm, job.size - 1, there, source, 8, GEX_EVENT_DEFER, 0);
    gex_RMA_GetNBI(job.tm, source, job.size - 1, there, 8, 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    while (gex_NBI_Test(GEX_EC_GET, 0) != GASNET_OK)
        gasnet_AMPoll();
    gex_NBI_BeginAccessRegion(0);
    gex_RMA_PutNBI(job.tm, job.size - 1, there, source, 8, GEX_EVENT_DEFER, 0);
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    for (int i = 0; i < 3; i++) {
        HERE("put");
        gex_RMA_PutNBI(job.tm, job.size - 1, there, source, 8, GEX_EVENT_DEFER, 0);
    }
    gex_RMA_GetNBI(job.tm, source, job.size - 1, there, 8, 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    HERE("value");
    gasnet_put_nbi_val(job.size - 1, there, 1, 8);
}

/* Opens and closes almost everything that can be left open. */
static void leave_nothing(void)
{
    static char source[1 << 16];
    void *there = job_remote(job.size - 1, 0);
    gex_Event_t leaf, events[2];
    events[0] = gex_RMA_PutNB(job.tm, job.size - 1, there, source, sizeof(source), &leaf, 0);
    events[1] = gex_RMA_GetNB(job.tm, source, job.size - 1, there, sizeof(source), 0);
    gex_Event_WaitAll(events, 2, 0);
    gex_NBI_BeginAccessRegion(0);
    gex_RMA_GetNBI(job.tm, source, job.size - 1, there, sizeof(source), 0);
    gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    gasnet_memset_nbi(job.size - 1, there, 1, sizeof(source));
    gasnet_wait_syncnbi_all();
    ask(job.size - 1);
}

static void misuse_lock(void)
{
    static gex_HSL_t once = GEX_HSL_INITIALIZER;
    const struct timespec nap = {.tv_nsec = 300 * 1000 * 1000};
    gex_HSL_t local;
    memset(&local, 0, sizeof(local));
    if (is("statically")) {
        HERE("mistake");
        gex_HSL_Init(&once);
    }
    if (is("held"))
        for (int i = 0; i < 2; i++) {
            if (i == 0)
                gex_HSL_Lock(&once);
            else
                CHECK(gex_HSL_Trylock(&once) == GASNET_OK);
            nanosleep(&nap, NULL);
            HERE("released");
            gex_HSL_Unlock(&once);
        }
    gex_HSL_Init(&local);
    if (is("initialised")) {
        HERE("mistake");
        gex_HSL_Init(&local);
    }
    if (is("destroyed_held")) {
        gex_HSL_Lock(&local);
        HERE("mistake");
        gex_HSL_Destroy(&local);
    }
    gex_HSL_Destroy(&local);
    if (is("destroyed")) {
        HERE("mistake");
        gex_HSL_Destroy(&local);
    }
    gex_HSL_Init(&local); /* again: it was destroyed */
    gex_HSL_Destroy(&local);
}

/* Calls that are forbidden between Prepare and Commit or Cancel. None returns, so their operations
 * are never synced. */
static void call_between(const char *call, gex_Rank_t rank)
{
    static char here[8];
    void *there = job_remote(rank, 0);
    gex_Event_t event = GEX_EVENT_INVALID;
    gex_Memvec_t piece = {here, 8}, theirs = {there, 8};
    gex_TM_t team;
    gex_Segment_t segment;
#define CALL(name, ...)                                                                            \
    if (!strcmp(call, #name)) {                                                                    \
        printf("line mistake %d\n", __LINE__), fflush(stdout);                                     \
        name(__VA_ARGS__);                                                                         \
    }
    CALL(gasnet_AMPoll)
    CALL(gex_AM_RequestShort0, job.tm, rank, request_index, 0)
    CALL(gex_AM_RequestMedium0, job.tm, rank, request_index, here, 8, GEX_EVENT_NOW, 0)
    CALL(gex_AM_RequestLong0, job.tm, rank, request_index, here, 8, there, GEX_EVENT_NOW, 0)
    CALL(gex_AM_PrepareRequestMedium, job.tm, rank, NULL, 1, 9, NULL, GEX_FLAG_IMMEDIATE, 0)
    CALL(gex_AM_PrepareRequestLong, job.tm, rank, NULL, 1, 9, NULL, NULL, 0, 0)
    CALL(gex_Event_Test, event)
    CALL(gex_Event_Wait, event)
    CALL(gex_Event_TestAll, &event, 1, 0)
    CALL(gex_NBI_Test, GEX_EC_ALL, 0)
    CALL(gex_NBI_Wait, GEX_EC_ALL, 0)
    CALL(gex_RMA_PutBlocking, job.tm, rank, there, here, 8, 0)
    CALL(gex_RMA_GetNB, job.tm, here, rank, there, 8, 0)
    CALL(gex_RMA_PutNBIVal, job.tm, rank, there, 1, 8, 0)
    CALL(gex_VIS_VectorPutNB, job.tm, rank, 1, &theirs, 1, &piece, 0)
    CALL(gex_Coll_BarrierNB, job.tm, 0)
    CALL(gasnet_barrier_notify, 0, 0)
    CALL(gex_TM_Split, &team, job.tm, 0, 0, NULL, 0, 0)
    CALL(gex_TM_TranslateRankToJobrank, job.tm, rank)
    CALL(gex_Segment_Create, &segment, job.client, NULL, GASNET_PAGESIZE, GEX_MK_HOST, 0)
    CALL(gex_EP_QueryBoundSegmentNB, job.tm, rank, NULL, NULL, NULL, 0)
}

/* After Prepare, and after Cancel. */
static void misuse_descriptor(gex_Rank_t last)
{
    gex_AM_SrcDesc_t sd = gex_AM_PrepareRequestMedium(job.tm, last, NULL, 1, 9, NULL, 0, 0);
    if (between)
        call_between(between, last);
    gex_AM_CancelRequestMedium(sd, 0);
    HERE("mistake");
    gex_AM_CancelRequestMedium(sd, 0);
}

static void make_mistake(void)
{
    gex_Rank_t last = job.size - 1;
    if (is("events"))
        leave_events();
    if (is("implicit"))
        leave_implicit();
    if (is("nothing"))
        leave_nothing();
    if (is("slow") || is("request") || is("twice") || is("outside"))
        ask(last);
    if (is("slow"))
        ask(last);
    if (is("outside")) {
        HERE("mistake");
        gex_AM_ReplyShort0(kept, reply_index, 0);
    }
    if (is("locked")) {
        gex_HSL_Lock(&lock);
        HERE("mistake");
        gasnet_AMRequestShort0(last, request_index);
    }
    misuse_lock();
    if (is("between") || is("cancelled"))
        misuse_descriptor(last);
    if (is("counted")) {
        HERE("mistake");
        gasnet_AMRequestShort(job.size, request_index, 0);
    }
}

/* The calls of both interfaces are made here. */
static void start(int argc, char **argv)
{
    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "CHECKED", &argc, &argv,
                          GEX_FLAG_USES_GASNET1) == GASNET_OK);
    job_deadline();
    job.rank = gex_TM_QueryRank(job.tm);
    job.size = gex_TM_QuerySize(job.tm);
    job_attach(1 << 21);
    register_handlers();
    job_barrier();
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "";
    between = argc > 2 ? argv[2] : NULL;
    start(argc, argv);
    if (job.rank == 0)
        make_mistake();
    if (!is("events"))
        job_barrier();
    gasnet_exit(0);
}
