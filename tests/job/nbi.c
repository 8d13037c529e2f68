/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations without events: implicit puts and gets, access regions, values. Names of functions
 * begin with the item of tests/rules.md that they prove. Rank r communicates with rank r + shift,
 * so each segment has one writer at a time. Threads share nothing but their cells. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 3000, MANY = 100, BIG = 1 << 20, THREADS = 4 };
enum { IN = 4096, FROM = IN + (2 << 20), LOCAL = FROM + (2 << 20), SEGMENT = LOCAL + (2 << 20) };

static gex_Rank_t peer;
static char *heap;

static char *there(size_t offset)
{
    return job_remote(peer, offset);
}

/* Checks the contents of the peer's segment. */
static void check_there(size_t offset, size_t size, uint64_t seed)
{
    char *back = job_memory(size);

    CHECK(gex_RMA_GetBlocking(job.tm, back, peer, there(offset), size, 0) == 0);
    CHECK_PATTERN(back, size, seed);
    free(back);
}

static void sync_by_test(gex_EC_t categories)
{
    int status;

    while ((status = gex_NBI_Test(categories, 0)) != GASNET_OK) {
        CHECK(status == GASNET_ERR_NOT_READY, "gex_NBI_Test returned %d", status);
        gasnet_AMPoll();
    }
}

/* ---- implicit puts and gets ---- */

static void put_many(char *from, gex_Event_t *lc_opt, uint64_t seed)
{
    for (int i = 0; i < MANY; i++) {
        job_fill(from + i * PIECE, PIECE, seed + (uint64_t)i);
        CHECK(gex_RMA_PutNBI(job.tm, peer, there(IN + (size_t)i * PIECE), from + i * PIECE, PIECE,
                             lc_opt, 0) == 0);
        if (lc_opt == GEX_EVENT_NOW)
            memset(from + i * PIECE, 0xee, PIECE);
    }
}

static void check_many(uint64_t seed)
{
    for (int i = 0; i < MANY; i++)
        check_there(IN + (size_t)i * PIECE, PIECE, seed + (uint64_t)i);
}

static void puts_and_gets(char *local, uint64_t seed)
{
    job_phase("implicit puts to rank %u", peer);
    put_many(local, GEX_EVENT_NOW, seed);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_many(seed);
    put_many(local, GEX_EVENT_DEFER, seed + 1000);
    sync_by_test(GEX_EC_PUT);
    memset(local, 0xee, MANY * PIECE);
    check_many(seed + 1000);
    put_many(local, GEX_EVENT_GROUP, seed + 2000);
    gex_NBI_Wait(GEX_EC_LC, 0);
    memset(local, 0xee, MANY * PIECE);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_many(seed + 2000);
    for (int i = 0; i < MANY; i++)
        CHECK(gex_RMA_GetNBI(job.tm, local + i * PIECE, peer, there(IN + (size_t)i * PIECE), PIECE,
                             0) == 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    for (int i = 0; i < MANY; i++)
        CHECK_PATTERN(local + i * PIECE, PIECE, seed + 2000 + (uint64_t)i);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK);
    CHECK(gex_NBI_Test(0, 0) == GASNET_OK);
}

/* GEX_EC_PUT includes local completion: after it the source is free, whatever lc_opt was. The call
 * has to wait for a large put with NOW from registered memory. */
static void item_29_puts_include_their_local_completion(void)
{
    char *local = job.base + LOCAL;

    job_phase("29: local completion, rank %u", peer);
    job_fill(local, BIG, 1);
    CHECK(gex_RMA_PutNBI(job.tm, peer, there(IN), local, BIG, GEX_EVENT_GROUP, 0) == 0);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    memset(local, 0xee, BIG);
    check_there(IN, BIG, 1);
    job_fill(local, BIG, 2);
    CHECK(gex_RMA_PutNBI(job.tm, peer, there(IN), local, BIG, GEX_EVENT_NOW, 0) == 0);
    memset(local, 0xee, BIG);
    gex_NBI_Wait(GEX_EC_PUT, 0);
    check_there(IN, BIG, 2);
}

/* ---- access regions ---- */

/* A region does not include operations of another thread, or, with one thread, those outside the
 * region; its event may be synced by any call. */
static void item_28_regions_complete_through_their_event(void)
{
    gex_Event_t event[4];

    job_phase("28: access regions, rank %u", peer);
    for (int way = 0; way < 4; way++) {
        gex_NBI_BeginAccessRegion(0);
        put_many(heap, way % 2 ? GEX_EVENT_GROUP : GEX_EVENT_NOW, (uint64_t)way * 1000);
        CHECK(gex_RMA_GetNBI(job.tm, job.base + LOCAL, peer, there(FROM), BIG, 0) == 0);
        event[way] = gex_NBI_EndAccessRegion(0);
        CHECK(event[way] != GEX_EVENT_NO_OP);
        CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK, "a region's operations count outside");
        if (way == 0)
            gex_Event_Wait(event[way]);
        else if (way == 1)
            while (gex_Event_Test(event[way]) != GASNET_OK)
                gasnet_AMPoll();
        else
            gex_Event_WaitAll(&event[way], 1, 0);
        CHECK(way < 2 || event[way] == GEX_EVENT_INVALID);
        check_many((uint64_t)way * 1000);
        CHECK_PATTERN(job.base + LOCAL, BIG, peer);
    }
}

/* Explicit and blocking operations behave inside a region as outside. */
static void item_28_other_operations_are_unaffected(void)
{
    gex_Event_t put, region;
    uint64_t number = job_mix(job.rank, 28), back = 0;

    gex_NBI_BeginAccessRegion(0);
    put = gex_RMA_PutNB(job.tm, peer, there(IN), &number, sizeof number, GEX_EVENT_DEFER, 0);
    gex_Event_Wait(put);
    CHECK(gex_RMA_GetBlocking(job.tm, &back, peer, there(IN), sizeof back, 0) == 0);
    CHECK(back == number);
    region = gex_NBI_EndAccessRegion(0);
    CHECK(region == GEX_EVENT_INVALID, "an empty region has nothing to wait for");
}

/* Operations started before a region are not part of it and remain outstanding after it. */
static void item_28_operations_before_stay_outside(void)
{
    char *local = job.base + LOCAL;
    gex_Event_t region;

    memset(local, 0, BIG);
    CHECK(gex_RMA_GetNBI(job.tm, local, peer, there(FROM), BIG, 0) == 0);
    gex_NBI_BeginAccessRegion(0);
    CHECK(gex_RMA_PutNBIVal(job.tm, peer, there(IN), 7, 8, 0) == 0);
    region = gex_NBI_EndAccessRegion(0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK_PATTERN(local, BIG, peer);
    gex_Event_Wait(region);
}

/* ---- leaves of regions ---- */

static gex_Event_t mixed_region(uint64_t seed)
{
    char *local = job.base + LOCAL;

    job_fill(heap, BIG, seed);
    memset(local, 0, BIG);
    gex_NBI_BeginAccessRegion(0);
    CHECK(gex_RMA_PutNBI(job.tm, peer, there(IN), heap, BIG, GEX_EVENT_GROUP, 0) == 0);
    CHECK(gex_RMA_GetNBI(job.tm, local, peer, there(FROM), BIG, 0) == 0);
    return gex_NBI_EndAccessRegion(0);
}

static void item_26_a_leaf_is_a_query(void)
{
    gex_Event_t root, get;

    job_phase("26: leaves of a region, rank %u", peer);
    CHECK(gex_Event_QueryLeaf(GEX_EVENT_INVALID, GEX_EC_GET) == GEX_EVENT_INVALID);
    root = mixed_region(26);
    if (root == GEX_EVENT_INVALID)
        return;
    get = gex_Event_QueryLeaf(root, GEX_EC_GET);
    CHECK(get == gex_Event_QueryLeaf(root, GEX_EC_GET), "two leaves for one category");
    gex_Event_Wait(get);
    CHECK_PATTERN(job.base + LOCAL, BIG, peer);
    gex_Event_Wait(gex_Event_QueryLeaf(root, GEX_EC_LC));
    memset(heap, 0xee, BIG);
    gex_Event_Wait(gex_Event_QueryLeaf(root, GEX_EC_PUT));
    check_there(IN, BIG, 26);
    gex_Event_Wait(gex_Event_QueryLeaf(root, GEX_EC_RMW));
    CHECK(gex_Event_Test(gex_Event_QueryLeaf(root, GEX_EC_GET)) == GASNET_OK);
    gex_Event_Wait(root);
}

/* A root syncs its leaves: in one array, in any order, and also if they are never queried. */
static void item_24_and_25_the_root_ends_its_leaves(void)
{
    static const int place[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
    gex_Event_t events[3];

    for (int order = 0; order < 4; order++)
        for (int all = 0; all < 2; all++) {
            gex_Event_t root = mixed_region(24);

            events[place[order][0]] = root;
            events[place[order][1]] = gex_Event_QueryLeaf(root, GEX_EC_PUT);
            events[place[order][2]] = gex_Event_QueryLeaf(root, GEX_EC_LC);
            while (events[0] || events[1] || events[2]) {
                if (all)
                    gex_Event_WaitAll(events, 3, 0);
                else
                    gex_Event_WaitSome(events, 3, 0);
            }
            check_there(IN, BIG, 24);
        }
    for (int i = 0; i < 100; i++) {
        gex_NBI_BeginAccessRegion(0);
        CHECK(gex_RMA_PutNBI(job.tm, peer, there(IN), heap, 8, GEX_EVENT_GROUP, 0) == 0);
        gex_Event_Wait(gex_NBI_EndAccessRegion(0));
    }
}

/* ---- values and nothing ---- */

static void item_30_values_have_any_size_and_place(void)
{
    const gex_RMA_Value_t value = UINT64_C(0x8877665544332211);

    job_phase("30: values, rank %u", peer);
    for (size_t size = 1; size <= SIZEOF_GEX_RMA_VALUE_T; size++)
        for (size_t at = 0; at < 9; at++) {
            unsigned char back[24], ones[24];
            gex_RMA_Value_t mask = size == 8 ? ~UINT64_C(0) : (UINT64_C(1) << 8 * size) - 1;
            gex_RMA_Value_t read;

            memset(ones, 0xff, sizeof ones);
            CHECK(gex_RMA_PutBlocking(job.tm, peer, there(IN), ones, sizeof ones, 0) == 0);
            if (at % 3 == 0)
                CHECK(gex_RMA_PutBlockingVal(job.tm, peer, there(IN + at), value, size, 0) == 0);
            if (at % 3 == 1)
                gex_Event_Wait(gex_RMA_PutNBVal(job.tm, peer, there(IN + at), value, size, 0));
            if (at % 3 == 2)
                CHECK(gex_RMA_PutNBIVal(job.tm, peer, there(IN + at), value, size, 0) == 0);
            gex_NBI_Wait(GEX_EC_PUT, 0);
            read = gex_RMA_GetBlockingVal(job.tm, peer, there(IN + at), size, 0);
            CHECK(read == (value & mask), "%llx of %zu bytes", (unsigned long long)read, size);
            CHECK(gex_RMA_GetBlocking(job.tm, back, peer, there(IN), sizeof back, 0) == 0);
            for (size_t i = 0; i < sizeof back; i++)
                CHECK((i >= at && i < at + size) || back[i] == 0xff, "byte %zu was written", i);
        }
}

/* The call can't return "nothing was done", so it must do the operation. */
static void item_38_a_value_comes_whatever_the_hurry(void)
{
    uint64_t number = job_mix(38, peer);

    CHECK(gex_RMA_PutBlockingVal(job.tm, peer, there(0), number, 8, 0) == 0);
    if (peer != job.rank && !job_is_neighbour(peer))
        while (gex_RMA_PutNBI(job.tm, peer, there(IN), heap, 8, GEX_EVENT_DEFER,
                              GEX_FLAG_IMMEDIATE) == 0)
            continue; /* until the queue is full */
    CHECK(gex_RMA_GetBlockingVal(job.tm, peer, there(0), 8, GEX_FLAG_IMMEDIATE) == number);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static void item_30_and_36_nothing_is_nothing(void)
{
    void *nowhere = (void *)(uintptr_t)1;

    CHECK(gex_RMA_PutNBI(job.tm, peer, nowhere, NULL, 0, GEX_EVENT_GROUP, 0) == 0);
    CHECK(gex_RMA_PutNBI(job.tm, peer, nowhere, nowhere, 0, GEX_EVENT_NOW, GEX_FLAG_IMMEDIATE) ==
          0);
    CHECK(gex_RMA_GetNBI(job.tm, nowhere, peer, nowhere, 0, 0) == 0);
    CHECK(gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK);
}

/* Flags that promise true facts about the peer and the segments change nothing. */
static void item_37_promises_are_accepted(void)
{
    const gex_Flags_t promises = (peer == job.rank ? 0 : GEX_FLAG_PEER_NEVER_SELF) |
                                 (job_is_neighbour(peer) ? 0 : GEX_FLAG_PEER_NEVER_NBRHD);
    const gex_Flags_t disposition = 3u << 3 | 3u << 7; /* SELF_SEG_*, PEER_SEG_*: _UNKNOWN, _SOME */
    uint64_t number = job_mix(job.rank, 37), back = 0;

    CHECK(gex_RMA_PutBlocking(job.tm, peer, there(IN), &number, 8, promises | disposition) == 0);
    CHECK(gex_RMA_GetNBI(job.tm, &back, peer, there(IN), 8, promises | disposition) == 0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK(back == number);
}

/* ---- threads ---- */

/* Begins a region that must not include operations of other threads, then works on its own cell. */
static void *work_in_own_cell(void *argument)
{
    size_t id = (size_t)(uintptr_t)argument, offset = IN + id * 4 * PIECE;
    char *local = job_memory(PIECE);
    gex_Event_t region;

    for (int i = 0; i < 20; i++) {
        gex_NBI_BeginAccessRegion(0);
        job_fill(local, PIECE, id);
        CHECK(gex_RMA_PutNBI(job.tm, peer, there(offset), local, PIECE, GEX_EVENT_GROUP, 0) == 0);
        region = gex_NBI_EndAccessRegion(0);
        CHECK(gex_RMA_PutNBI(job.tm, peer, there(offset + PIECE), local, PIECE, GEX_EVENT_NOW, 0) ==
              0);
        gex_Event_Wait(region);
        gex_NBI_Wait(GEX_EC_ALL, 0);
        check_there(offset, PIECE, id);
        check_there(offset + PIECE, PIECE, id);
    }
    free(local);
    return NULL;
}

#if GASNET_PAR
enum { GENERATIONS = 30 };
static void item_27_threads_come_and_go(void)
{
    pthread_t thread[THREADS];

    job_phase("27: threads come and go, rank %u", peer);
    for (int generation = 0; generation < GENERATIONS; generation++) {
        for (uintptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&thread[i], NULL, work_in_own_cell, (void *)i) == 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(thread[i], NULL);
    }
}
#elif GASNET_PARSYNC
/* Starts one thread at a time; the first thread's open region must not include their operations. */
static void item_27_threads_come_and_go(void)
{
    pthread_t thread;

    job_phase("27: threads come and go, rank %u", peer);
    gex_NBI_BeginAccessRegion(0);
    for (uintptr_t i = 0; i < 100; i++) {
        CHECK(pthread_create(&thread, NULL, work_in_own_cell, (void *)(i % THREADS)) == 0);
        pthread_join(thread, NULL);
    }
    CHECK(gex_NBI_EndAccessRegion(0) == GEX_EVENT_INVALID, "others' operations fell into it");
}
#else
static void item_27_threads_come_and_go(void)
{
    work_in_own_cell(NULL);
}
#endif

static void one_round(unsigned shift)
{
    peer = (job.rank + shift) % job.size;
    job_barrier();
    puts_and_gets(job.base + LOCAL, 100);
    puts_and_gets(heap, 200);
    item_29_puts_include_their_local_completion();
    item_28_regions_complete_through_their_event();
    item_28_other_operations_are_unaffected();
    item_28_operations_before_stay_outside();
    item_26_a_leaf_is_a_query();
    item_24_and_25_the_root_ends_its_leaves();
    item_30_values_have_any_size_and_place();
    item_30_and_36_nothing_is_nothing();
    item_37_promises_are_accepted();
    item_38_a_value_comes_whatever_the_hurry();
    item_27_threads_come_and_go();
    job_barrier();
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, SEGMENT);
    heap = job_memory(BIG);
    job_fill(job.base + FROM, BIG, job.rank);
    for (unsigned shift = 0; shift < job.size; shift++)
        one_round(shift);
    job_end();
}
