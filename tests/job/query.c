/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries of the library: handles and their attributes, sizes, limits, hosts, errors, environment,
 * locks. Run with JOB_WORD="some word". Owned by the one client thread but for the threads of the
 * lock test. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#if GASNET_NDEBUG
enum { ODD = 24 }; /* bytes beyond a multiple of the page: a debug library refuses such a size */
#else
enum { ODD = 0 };
#endif

#if GASNET_PAR
enum { REAL_LOCKS = 1, SEVERAL_THREADS = 1 };
#elif GASNET_PARSYNC
enum { REAL_LOCKS = 0, SEVERAL_THREADS = 1 };
#else
enum { REAL_LOCKS = 0, SEVERAL_THREADS = 0 };
#endif

static void client_data(void)
{
    static int a, b, c, d;

    CHECK(!gex_Client_QueryCData(job.client) && !gex_EP_QueryCData(job.ep));
    CHECK(!gex_TM_QueryCData(job.tm));
    gex_Client_SetCData(job.client, &a);
    gex_EP_SetCData(job.ep, &b);
    gex_TM_SetCData(job.tm, &c);
    CHECK(gex_Client_QueryCData(job.client) == &a && gex_EP_QueryCData(job.ep) == &b);
    CHECK(gex_TM_QueryCData(job.tm) == &c);
    if (job.segment) {
        CHECK(!gex_Segment_QueryCData(job.segment));
        gex_Segment_SetCData(job.segment, &d);
        CHECK(gex_Segment_QueryCData(job.segment) == &d);
    }
    gex_Client_SetCData(job.client, NULL);
    gex_EP_SetCData(job.ep, NULL);
    gex_TM_SetCData(job.tm, NULL);
}

static void handles(void)
{
    CHECK(job.client != GEX_CLIENT_INVALID && job.ep != GEX_EP_INVALID);
    CHECK(job.tm != GEX_TM_INVALID);
    CHECK(!strcmp(gex_Client_QueryName(job.client), "TRUNKLINE_TESTS"));
    CHECK(gex_Client_QueryFlags(job.client) == 0);
    CHECK(gex_EP_QueryClient(job.ep) == job.client && gex_EP_QueryIndex(job.ep) == 0);
    CHECK(gex_TM_QueryClient(job.tm) == job.client && gex_TM_QueryEP(job.tm) == job.ep);
    CHECK(job.size == gex_System_QueryJobSize() && job.rank == gex_System_QueryJobRank());
    CHECK(job.rank < job.size);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        gex_EP_Location_t where = gex_TM_TranslateRankToEP(job.tm, r, 0);

        CHECK(gex_TM_TranslateRankToJobrank(job.tm, r) == r);
        CHECK(gex_TM_TranslateJobrankToRank(job.tm, r) == r);
        CHECK(where.gex_rank == r && where.gex_ep_index == 0);
    }
    CHECK(gex_TM_TranslateJobrankToRank(job.tm, job.size) == GEX_RANK_INVALID);
}

/* A rank without a segment: size 0 in the new form, nothing at all and 1 in the old. */
static void item_45_before_attach(void)
{
    void *owner = &owner, *local = &local;
    uintptr_t size = 77;
    gex_Event_t event;

    CHECK(gex_EP_QuerySegment(job.ep) == GEX_SEGMENT_INVALID);
    event = gex_EP_QueryBoundSegmentNB(job.tm, 0, &owner, &local, &size, 0);
    gex_Event_Wait(event);
    CHECK(size == 0, "size %zu", (size_t)size);
    owner = &owner;
    local = &local;
    size = 77;
    CHECK(gex_Segment_QueryBound(job.tm, 0, &owner, &local, &size) != 0);
    CHECK(owner == &owner && local == &local && size == 77, "outputs were touched");
}

/* Neither an impossible size nor a bad argument may end the job. */
static void item_43_limits_of_segments(void)
{
    uintptr_t most = gasnet_getMaxLocalSegmentSize();
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    int status;

    CHECK(most >= GASNET_PAGESIZE && most % GASNET_PAGESIZE == 0, "limit %zu", (size_t)most);
    CHECK(gasnet_getMaxGlobalSegmentSize() <= most);
    CHECK(gasnet_getMaxGlobalSegmentSize() >= GASNET_PAGESIZE);
    if (job_number("JOB_HOSTS", 0) == 1)
        CHECK(gasnet_getMaxGlobalSegmentSize() == most, "one host, other limits");
    job_barrier();
    status = gex_Segment_Attach(&segment, job.tm, most + GASNET_PAGESIZE);
    CHECK(status != GASNET_OK, "a segment larger than the limit");
}

/* Only memory of neighbours has a local address. */
static void item_44_local_addresses(gex_Rank_t rank, const char *owner, const char *local)
{
    gex_RankInfo_t *info;
    gex_Rank_t count, mine, i = 0;

    gex_System_QueryNbrhdInfo(&info, &count, &mine);
    while (i < count && info[i].gex_jobrank != rank)
        i++;
    if (rank == job.rank)
        CHECK(local == owner);
    else
        CHECK((local != NULL) == (i < count), "rank %u", (unsigned)rank);
}

static void segment_of(gex_Rank_t rank, const gasnet_seginfo_t *info)
{
    void *owner = NULL, *local = NULL;
    uintptr_t size = 0;

    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(job.tm, rank, &owner, &local, &size, 0));
    CHECK(owner == info->addr && size == info->size, "rank %u", (unsigned)rank);
    CHECK(size == (rank + 1) * (uintptr_t)GASNET_PAGESIZE + ODD, "rank %u: %zu", (unsigned)rank,
          (size_t)size);
    item_44_local_addresses(rank, owner, local);
    CHECK(owner == job_remote(0, 0) || rank == 0 || !GASNET_ALIGNED_SEGMENTS, "item 40");
    CHECK(gex_Segment_QueryBound(job.tm, rank, &owner, NULL, &size) == 0);
    CHECK(owner == info->addr && size == info->size);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(job.tm, rank, NULL, NULL, NULL, 0));
}

/* Rank r attaches r + 1 pages and, in release builds, some bytes (item 39). */
static void items_39_to_41_segments(void)
{
    gasnet_seginfo_t *table = job_memory(job.size * sizeof *table);

    job_attach((job.rank + 1) * (size_t)GASNET_PAGESIZE + ODD);
    CHECK(gex_EP_QuerySegment(job.ep) == job.segment);
    CHECK(gex_Segment_QueryClient(job.segment) == job.client);
    CHECK(gex_Segment_QueryAddr(job.segment) == job.base);
    CHECK((uintptr_t)job.base % GASNET_PAGESIZE == 0, "base %p", (void *)job.base);
    CHECK(gasnet_getSegmentInfo(table, (int)job.size) == GASNET_OK);
    for (gex_Rank_t r = 0; r < job.size; r++)
        segment_of(r, &table[r]);
    table[0].size = 77;
    CHECK(gasnet_getSegmentInfo(table, 0) == GASNET_OK && table[0].size == 77);
    gex_System_SetVerboseErrors(0);
    CHECK(gasnet_getSegmentInfo(table, -1) == GASNET_ERR_BAD_ARG);
    gex_System_SetVerboseErrors(1);
    memset(job.base, 1, job.segment_size);
    free(table);
}

static void same_host(gex_RankInfo_t *info, gex_Rank_t count, gex_Rank_t mine)
{
    CHECK(count >= 1 && count <= job.size && mine < count);
    CHECK(info[mine].gex_jobrank == job.rank);
    for (gex_Rank_t i = 1; i < count; i++)
        CHECK(info[i - 1].gex_jobrank < info[i].gex_jobrank, "not sorted");
}

static gex_RankInfo_t *nbrhd;

static void items_49_77_hosts(void)
{
    gex_RankInfo_t *info = NULL;
    gex_Rank_t count = 0, mine = 0, sets[4];
    gex_Rank_t most = (gex_Rank_t)job_number("GASNET_SUPERNODE_MAXSIZE", 0);

    gex_System_QueryNbrhdInfo(&info, &count, &mine);
    same_host(info, count, mine);
    CHECK(most == 0 || count <= most, "%u ranks in one neighbourhood", (unsigned)count);
    nbrhd = info;
    gex_System_QueryHostInfo(&info, &count, &mine);
    same_host(info, count, mine);
    gex_System_QueryHostInfo(NULL, NULL, NULL);
    gex_System_QueryMyPosition(&sets[0], &sets[1], &sets[2], &sets[3]);
    gex_System_QueryMyPosition(NULL, NULL, NULL, NULL);
    CHECK(sets[0] >= sets[2] && sets[1] < sets[0] && sets[3] < sets[2]);
    CHECK(job_number("JOB_HOSTS", sets[2]) == (long)sets[2], "%u hosts", (unsigned)sets[2]);
}

static void item_80_errors(void)
{
    static const struct {
        int code;
        const char *name;
    } known[] = {
        {GASNET_OK, "GASNET_OK"},
        {GASNET_ERR_NOT_INIT, "GASNET_ERR_NOT_INIT"},
        {GASNET_ERR_RESOURCE, "GASNET_ERR_RESOURCE"},
        {GASNET_ERR_BAD_ARG, "GASNET_ERR_BAD_ARG"},
        {GASNET_ERR_NOT_READY, "GASNET_ERR_NOT_READY"},
        {GASNET_ERR_BARRIER_MISMATCH, "GASNET_ERR_BARRIER_MISMATCH"},
        {12345, "*unknown*"},
    };

    for (int i = 0; i < 7; i++) {
        CHECK(!strcmp(gasnet_ErrorName(known[i].code), known[i].name), "%d", known[i].code);
        CHECK(*gasnet_ErrorDesc(known[i].code), "%d", known[i].code);
    }
    CHECK(gex_System_GetVerboseErrors());
    gex_System_SetVerboseErrors(0);
    CHECK(!gex_System_GetVerboseErrors());
    gex_System_SetVerboseErrors(1);
}

static void item_81_surroundings(void)
{
    const char *word = gasnet_getenv("JOB_WORD");

    CHECK(word && !strcmp(word, "some word"), "%s", word ? word : "(unset)");
    CHECK(!gasnet_getenv("JOB_NO_SUCH_NAME"));
    CHECK(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK);
    CHECK(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK) == GASNET_OK);
    CHECK(gasnet_set_waitmode(GASNET_WAIT_SPIN) == GASNET_OK);
    gex_System_SetVerboseErrors(0);
    CHECK(gasnet_set_waitmode(17) == GASNET_ERR_BAD_ARG);
    gex_System_SetVerboseErrors(1);
    CHECK(gasnet_AMPoll() == GASNET_OK);
    /* The macro says what a build can do; without GASNET_RCV_THREAD no thread of the library
     * runs. */
    CHECK(gex_System_QueryHiddenAMConcurrencyLevel() == 0);
    CHECK(GASNET_HIDDEN_AM_CONCURRENCY_LEVEL == (REAL_LOCKS ? 1 : 0));
    CHECK((gex_System_QueryMaxThreads() > 1) == SEVERAL_THREADS);
}

/* ---- limits of messages ---- */

typedef size_t max_fn(gex_TM_t, gex_Rank_t, const gex_Event_t *, gex_Flags_t, unsigned);

static void one_limit(max_fn *max, size_t least, gex_Rank_t rank)
{
    gex_Event_t event;
    size_t before = SIZE_MAX;

    for (unsigned nargs = 0; nargs <= gex_AM_MaxArgs(); nargs++) {
        size_t now = max(job.tm, rank, GEX_EVENT_NOW, 0, nargs);

        CHECK(now >= 512 && now >= least && now <= before, "%zu with %u arguments", now, nargs);
        CHECK(max(job.tm, rank, GEX_EVENT_NOW, 0, nargs) == now);
        CHECK(max(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, nargs) <= now);
        CHECK(max(job.tm, rank, &event, 0, nargs) >= least);
        CHECK(max(job.tm, rank, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE, nargs) >= least);
        before = now;
    }
}

static unsigned compared;

/* Compares the peer's limit for messages to us. */
static void on_compare(gex_Token_t token, gex_AM_Arg_t medium, gex_AM_Arg_t least)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    CHECK((size_t)medium == gex_AM_MaxRequestMedium(job.tm, info.gex_srcrank, GEX_EVENT_NOW, 0, 3));
    CHECK((size_t)least == gex_AM_MaxRequestMedium(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 3));
    CHECK(gex_Token_MaxReplyMedium(token, GEX_EVENT_NOW, 0, 3) >= gex_AM_LUBReplyMedium());
    CHECK(gex_Token_MaxReplyLong(token, GEX_EVENT_NOW, 0, 3) >= gex_AM_LUBReplyLong());
    compared++;
}

static void limits(void)
{
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_compare, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, NULL};

    CHECK(gex_AM_MaxArgs() == 16);
    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    job_barrier();
    for (gex_Rank_t r = 0; r < job.size; r++) {
        one_limit(gex_AM_MaxRequestMedium, gex_AM_LUBRequestMedium(), r);
        one_limit(gex_AM_MaxReplyMedium, gex_AM_LUBReplyMedium(), r);
        one_limit(gex_AM_MaxRequestLong, gex_AM_LUBRequestLong(), r);
        one_limit(gex_AM_MaxReplyLong, gex_AM_LUBReplyLong(), r);
        gex_AM_RequestShort2(
            job.tm, r, entry.gex_index, 0,
            (gex_AM_Arg_t)gex_AM_MaxRequestMedium(job.tm, r, GEX_EVENT_NOW, 0, 3),
            (gex_AM_Arg_t)gex_AM_MaxRequestMedium(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, 3));
    }
    GASNET_BLOCKUNTIL(compared == job.size);
}

/* ---- locks ---- */

static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static unsigned locked_count;

/* Another thread: a debug library ends the job when the one that holds a lock asks for it. */
static void *try_lock(void *hsl)
{
    return gex_HSL_Trylock(hsl) == GASNET_ERR_NOT_READY ? hsl : NULL;
}

static void one_lock(gex_HSL_t *hsl)
{
    pthread_t other;
    void *busy;

    gex_HSL_Init(hsl);
    CHECK(gex_HSL_Trylock(hsl) == GASNET_OK);
    if (REAL_LOCKS) {
        CHECK(pthread_create(&other, NULL, try_lock, hsl) == 0);
        CHECK(pthread_join(other, &busy) == 0 && busy == hsl);
    }
    gex_HSL_Unlock(hsl);
    gex_HSL_Lock(hsl);
    gex_HSL_Unlock(hsl);
    gex_HSL_Destroy(hsl);
}

enum { LOCKINGS = 20000, LOCKERS = 4 };

static void *locker(void *unused)
{
    for (int i = 0; i < LOCKINGS; i++) {
        gex_HSL_Lock(&lock);
        locked_count++;
        gex_HSL_Unlock(&lock);
    }
    return NULL;
}

static void locks(void)
{
    pthread_t id[LOCKERS];
    gex_HSL_t hsl;

    one_lock(&hsl);
    for (int i = 0; REAL_LOCKS && i < LOCKERS; i++)
        CHECK(pthread_create(&id[i], NULL, locker, NULL) == 0);
    for (int i = 0; REAL_LOCKS && i < LOCKERS; i++)
        pthread_join(id[i], NULL);
    CHECK(!REAL_LOCKS || locked_count == LOCKERS * LOCKINGS, "counted %u", locked_count);
}

/* If the condition is true at once it does not poll; else it polls until a handler makes it
 * true. */
static void block_until(void)
{
    int evaluated = 0;

    GASNET_BLOCKUNTIL(++evaluated);
    CHECK(evaluated == 1);
    GASNET_BLOCKUNTIL(++evaluated > 5);
    CHECK(evaluated == 6);
}

/* At the end the query returns the same table as the first call, with the same contents. */
static void item_49_tables_stay(void)
{
    gex_RankInfo_t *info = NULL;
    gex_Rank_t count = 0, mine = 0;

    gex_System_QueryNbrhdInfo(&info, &count, &mine);
    CHECK(info == nbrhd && nbrhd[mine].gex_jobrank == job.rank);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, 0);
    handles();
    client_data();
    item_45_before_attach();
    item_43_limits_of_segments();
    items_39_to_41_segments();
    handles();
    client_data();
    items_49_77_hosts();
    item_80_errors();
    item_81_surroundings();
    limits();
    locks();
    block_until();
    item_49_tables_stay();
    job_end();
}
