/* SPDX-License-Identifier: BSD-3-Clause */
/* The rest of the mix: locks, queries of the library, short-lived segments, and the tools. Owns a
 * pair of numbers under two nested gex_HSL_t, and one of each lock of the tools. */
#include "config.h"

#include "random_mix.h"

#include <string.h>

static gex_HSL_t outer = GEX_HSL_INITIALIZER, inner = GEX_HSL_INITIALIZER;
static uint64_t under_both[2];

static void locks(struct worker *w, gex_Rank_t to)
{
    (void)to;
    if (mix_below(w, 2))
        gex_HSL_Lock(&outer);
    else
        while (gex_HSL_Trylock(&outer) != GASNET_OK)
            ;
    gex_HSL_Lock(&inner);
    under_both[0]++;
    under_both[1]--;
    CHECK(under_both[0] + under_both[1] == 0);
    gex_HSL_Unlock(&inner);
    gex_HSL_Unlock(&outer);
}

static void system_queries(struct worker *w, gex_Rank_t to)
{
    gex_RankInfo_t *info;
    gex_Rank_t count, mine, sets[4];

    (void)w, (void)to;
    CHECK(gex_System_QueryJobRank() == job.rank && gex_System_QueryJobSize() == job.size);
    gex_System_QueryNbrhdInfo(&info, &count, &mine);
    CHECK(mine < count && info[mine].gex_jobrank == job.rank);
    gex_System_QueryHostInfo(&info, &count, &mine);
    CHECK(mine < count && info[mine].gex_jobrank == job.rank);
    gex_System_QueryMyPosition(&sets[0], &sets[1], &sets[2], &sets[3]);
    CHECK(sets[1] < sets[0] && sets[3] < sets[2]);
    CHECK(gex_System_QueryMaxThreads() >= 1);
    CHECK(!strcmp(gasnet_ErrorName(GASNET_ERR_NOT_READY), "GASNET_ERR_NOT_READY"));
    CHECK(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK) == GASNET_OK);
}

static void object_queries(struct worker *w, gex_Rank_t to)
{
    gasnet_seginfo_t table[MAX_RANKS];
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Segment_t segment;
    void *address, *local;
    uintptr_t size;

    (void)w;
    gasnet_QueryGexObjects(NULL, &ep, &tm, &segment);
    CHECK(ep == job.ep && tm == job.tm && segment == gex_EP_QuerySegment(ep));
    CHECK(gex_TM_QueryRank(tm) == job.rank && gex_TM_QuerySize(tm) == job.size);
    CHECK(gex_TM_TranslateRankToJobrank(tm, to) == to);
    CHECK(gex_Segment_QueryAddr(segment) == job.base);
    CHECK(gex_Segment_QueryBound(tm, to, &address, &local, &size) == 0);
    CHECK(gasnet_getSegmentInfo(table, (int)job.size) == GASNET_OK);
    CHECK(table[to].addr == address && table[to].size == size);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, to, &address, NULL, &size, 0));
    CHECK(table[to].addr == address && table[to].size == size);
}

static void limits(struct worker *w, gex_Rank_t to)
{
    unsigned nargs = mix_below(w, gex_AM_MaxArgs() + 1);
    size_t most = gex_AM_MaxRequestMedium(job.tm, to, GEX_EVENT_NOW, 0, nargs);

    CHECK(most >= gex_AM_LUBRequestMedium());
    CHECK(gex_AM_MaxRequestMedium(job.tm, GEX_RANK_INVALID, GEX_EVENT_NOW, 0, nargs) <= most);
    CHECK(gex_AM_MaxReplyLong(job.tm, to, GEX_EVENT_NOW, 0, nargs) >= gex_AM_LUBReplyLong());
}

/* Makes and destroys a segment while other threads communicate. */
static void short_segment(struct worker *w, gex_Rank_t to)
{
    gex_Segment_t segment;
    uintptr_t size = GASNET_PAGESIZE * (uintptr_t)(1 + mix_below(w, 8));
    char mark;

    (void)to;
    CHECK(gex_Segment_Create(&segment, job.client, NULL, size, GEX_MK_HOST, 0) == GASNET_OK);
    CHECK(gex_Segment_QuerySize(segment) == size);
    gex_Segment_SetCData(segment, &mark);
    memset(gex_Segment_QueryAddr(segment), 0x42, size);
    CHECK(gex_Segment_QueryCData(segment) == &mark);
    gex_Segment_Destroy(segment, 0);
}

/* ---- tools ---- */

static gasnett_atomic_t atomic = gasnett_atomic_init(0);
static gasnett_atomic64_t atomic64 = gasnett_atomic64_init(0);
static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
GASNETT_THREADKEY_DEFINE(key);
static unsigned under_mutex, under_rwlock;

static void tool_locks(struct worker *w, gex_Rank_t to)
{
    unsigned seen;

    (void)to;
    gasnett_mutex_lock(&mutex);
    seen = ++under_mutex;
    CHECK(under_mutex == seen);
    gasnett_mutex_unlock(&mutex);
    if (mix_below(w, 2)) {
        gasnett_rwlock_wrlock(&rwlock);
        under_rwlock++;
    } else {
        gasnett_rwlock_rdlock(&rwlock);
        seen = under_rwlock;
        CHECK(under_rwlock == seen);
    }
    gasnett_rwlock_unlock(&rwlock);
}

static void tool_values(struct worker *w, gex_Rank_t to)
{
    gasnett_tick_t before = gasnett_ticks_now();
    char *text = gasnett_getenv("PATH");

    (void)to;
    gasnett_atomic_increment(&atomic, GASNETT_ATOMIC_ACQ);
    CHECK(gasnett_atomic_add(&atomic, 1, GASNETT_ATOMIC_REL) >= 2);
    CHECK(gasnett_atomic64_add(&atomic64, 5, 0) >= 5);
    gasnett_threadkey_set(key, w);
    CHECK(gasnett_threadkey_get(key) == w);
    CHECK(gasnett_ticks_to_ns(gasnett_ticks_now() - before) < 1000000000000u);
    CHECK(text == NULL || *text);
    CHECK(gasnett_cpu_count() >= 0);
    gasnett_sched_yield();
}

static mix_action *const actions[] = {locks,         system_queries, object_queries, limits,
                                      short_segment, tool_locks,     tool_values};
const struct mix_part mix_misc = {actions, sizeof actions / sizeof *actions};
