/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of the put/get test: many operations in flight, synced through arrays that mix roots, leaves
 * and empty entries. Owned by the one client thread. */
#include "config.h"

#include "putget.h"

#include <string.h>

enum { OPERATIONS = 24, STRIDE = 8192, ENTRIES = 3 * OPERATIONS };
enum way { TEST_SOME, WAIT_SOME, TEST_ALL, WAIT_ALL, WAYS };

/* Sizes from one byte to several bounce buffers. */
static size_t size_of(int i)
{
    static const size_t sizes[] = {1, 8, 72, 73, 500, 4096, 8000, 33};

    return sizes[i % 8];
}

static uint64_t seed_of(int round, int i)
{
    return job_mix((uint64_t)round * 1000 + (uint64_t)i, job.rank);
}

/* Root before leaf and leaf before root in turn, with an empty entry after each pair. */
static void start_puts(gex_Event_t *events, size_t offset, char *local, int round)
{
    for (int i = 0; i < OPERATIONS; i++) {
        char *source = local + (size_t)i * STRIDE;
        int root = 3 * i + i % 2, leaf = 3 * i + 1 - i % 2;

        job_fill(source, size_of(i), seed_of(round, i));
        events[root] = gex_RMA_PutNB(job.tm, peer, job_remote(peer, offset + (size_t)i * STRIDE),
                                     source, size_of(i), &events[leaf], 0);
        events[3 * i + 2] = GEX_EVENT_INVALID;
    }
}

static int left(const gex_Event_t *events)
{
    int n = 0;

    for (int i = 0; i < ENTRIES; i++)
        n += events[i] != GEX_EVENT_INVALID;
    return n;
}

/* Some: success exactly when at least one was completed or none is left. */
static void sync_some(gex_Event_t *events, int wait)
{
    while (left(events)) {
        int before = left(events), status = GASNET_OK;

        if (wait) {
            gex_Event_WaitSome(events, ENTRIES, 0);
        } else {
            status = gex_Event_TestSome(events, ENTRIES, 0);
            gasnet_AMPoll();
        }
        CHECK(status == GASNET_OK || status == GASNET_ERR_NOT_READY, "returned %d", status);
        CHECK((status == GASNET_OK) == (left(events) < before), "returned %d: %d entries, now %d",
              status, before, left(events));
    }
}

static void sync_all(gex_Event_t *events, int wait)
{
    int status;

    if (wait) {
        gex_Event_WaitAll(events, ENTRIES, 0);
        CHECK(left(events) == 0, "%d entries are left", left(events));
        return;
    }
    do {
        status = gex_Event_TestAll(events, ENTRIES, 0);
        CHECK((status == GASNET_OK) == (left(events) == 0), "returned %d: %d entries", status,
              left(events));
        gasnet_AMPoll();
    } while (status != GASNET_OK);
}

static void puts_with_leaves(size_t offset, char *local)
{
    gex_Event_t events[ENTRIES];

    for (int way = 0; way < WAYS; way++) {
        job_phase("array of events, way %d, rank %u", way, peer);
        start_puts(events, offset, local, way);
        if (way == TEST_SOME || way == WAIT_SOME)
            sync_some(events, way == WAIT_SOME);
        else
            sync_all(events, way == WAIT_ALL);
        for (int i = 0; i < OPERATIONS; i++)
            check_at_peer(offset + (size_t)i * STRIDE, size_of(i), seed_of(way, i));
    }
}

/* Leaves in an array of their own; the roots afterwards. */
static void leaves_then_roots(size_t offset, char *local)
{
    gex_Event_t leaves[OPERATIONS], roots[OPERATIONS];

    for (int i = 0; i < OPERATIONS; i++) {
        char *source = local + (size_t)i * STRIDE;

        job_fill(source, size_of(i), seed_of(9, i));
        roots[i] = gex_RMA_PutNB(job.tm, peer, job_remote(peer, offset + (size_t)i * STRIDE),
                                 source, size_of(i), &leaves[i], 0);
    }
    gex_Event_WaitAll(leaves, OPERATIONS, 0);
    memset(local, 0xee, OPERATIONS * (size_t)STRIDE);
    gex_Event_WaitAll(roots, OPERATIONS, 0);
    for (int i = 0; i < OPERATIONS; i++)
        check_at_peer(offset + (size_t)i * STRIDE, size_of(i), seed_of(9, i));
}

/* More gets and puts in flight than any queue holds; leaves are never queried. */
static void many_in_flight(size_t offset, char *local)
{
    enum { MANY = 600, PIECE = 64 };
    static gex_Event_t puts[MANY], gets[MANY];
    static char back[MANY][PIECE];
    gex_Event_t leaf;

    job_phase("%d puts in flight, rank %u", MANY, peer);
    for (int i = 0; i < MANY; i++) {
        job_fill(local + i * PIECE, PIECE, seed_of(10, i));
        puts[i] = gex_RMA_PutNB(job.tm, peer, job_remote(peer, offset + (size_t)i * PIECE),
                                local + i * PIECE, PIECE, i % 2 ? GEX_EVENT_DEFER : &leaf, 0);
    }
    gex_Event_WaitAll(puts, MANY, 0);
    for (int i = 0; i < MANY; i++)
        gets[i] = gex_RMA_GetNB(job.tm, back[i], peer, job_remote(peer, offset + (size_t)i * PIECE),
                                PIECE, 0);
    gex_Event_WaitAll(gets, MANY, 0);
    for (int i = 0; i < MANY; i++)
        CHECK_PATTERN(back[i], PIECE, seed_of(10, i));
    memset(local, 0, MANY * PIECE);
    CHECK(gex_RMA_PutBlocking(job.tm, peer, job_remote(peer, offset), local, MANY * PIECE, 0) == 0);
}

/* With GEX_FLAG_IMMEDIATE an operation may be refused: then nothing was done, and it is tried
 * again. */
static void in_a_hurry(size_t offset, char *local)
{
    enum { MANY = 300, PIECE = 3000 };
    static gex_Event_t events[MANY];

    job_phase("puts with GEX_FLAG_IMMEDIATE, rank %u", peer);
    job_fill(local, MANY + PIECE, seed_of(11, 0));
    for (int i = 0; i < MANY; i++) {
        void *dest = job_remote(peer, offset + (size_t)i);

        while ((events[i] = gex_RMA_PutNB(job.tm, peer, dest, local + i, PIECE, GEX_EVENT_NOW,
                                          GEX_FLAG_IMMEDIATE)) == GEX_EVENT_NO_OP)
            gasnet_AMPoll();
    }
    gex_Event_WaitAll(events, MANY, 0);
    check_at_peer(offset, MANY + PIECE - 1, seed_of(11, 0));
}

static void empty_arrays(void)
{
    gex_Event_t none[3] = {GEX_EVENT_INVALID, GEX_EVENT_INVALID, GEX_EVENT_INVALID};

    for (size_t n = 0; n <= 3; n++) {
        CHECK(gex_Event_TestSome(none, n, 0) == GASNET_OK);
        CHECK(gex_Event_TestAll(none, n, 0) == GASNET_OK);
        gex_Event_WaitSome(none, n, 0);
        gex_Event_WaitAll(none, n, 0);
    }
    CHECK(gex_Event_TestSome(NULL, 0, 0) == GASNET_OK);
    CHECK(gex_Event_Test(GEX_EVENT_INVALID) == GASNET_OK);
    gex_Event_Wait(GEX_EVENT_INVALID);
}

void test_event_arrays(size_t offset, char *local)
{
    empty_arrays();
    puts_with_leaves(offset, local);
    leaves_then_roots(offset, local);
    many_in_flight(offset, local);
    in_a_hurry(offset, local);
}
