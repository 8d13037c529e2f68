/* SPDX-License-Identifier: BSD-3-Clause */
/* Which puts and gets a client may do itself: the word that it reads says so only for segments that
 * the CPU reaches, of the endpoints 0 of a team whose job ranks are consecutive. All others, memory
 * of devices above all, are the library's, whatever the size.
 *
 * Usage: inlined near|far, by two ranks; with softgpu, whose memory no CPU can touch. */
#include "config.h"

#include "job.h"

#include <stdbool.h>
#include <string.h>

#include "accelerator.h"
#include "gasnet_mk.h"

enum { SIZE = 1 << 16, LARGEST = 600, DEVICE = 1, HOST = 2 };

static gex_Rank_t peer;
static bool is_near;
static gex_EP_t ends[3];

/* What trunkline_rma.h reads, by the handle that a call is given. */
static uintptr_t word(gex_TM_t tm, gex_Rank_t rank)
{
    return (*(uintptr_t **)(void *)tm)[rank];
}

static void bind(int index, gex_MK_t kind)
{
    gex_Segment_t segment;
    CHECK(gex_Segment_Create(&segment, job.client, NULL, SIZE, kind, 0) == GASNET_OK);
    CHECK(gex_EP_Create(&ends[index], job.client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(ends[index], segment, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &ends[index], 1, 0) == GASNET_OK);
}

static void publish(void)
{
    gex_MK_t kind;
    CHECK(acc_open() > 0);
    const gex_MK_Create_args_t args = acc_args(0);
    CHECK(gex_MK_Create(&kind, job.client, &args, 0) == GASNET_OK);
    bind(DEVICE, kind);
    bind(HOST, GEX_MK_HOST);
}

static char *base_of(gex_TM_t tm, gex_Rank_t rank)
{
    void *base = NULL;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, rank, &base, NULL, NULL, 0));
    CHECK(base);
    return base;
}

/* Nothing beside the bytes of a put or get changes, at either end. */
static void transfer_size(gex_TM_t tm, gex_Rank_t rank, char *there, size_t size)
{
    char here[LARGEST], back[LARGEST + 2];
    const gex_RMA_Value_t before = 0xa5 - size % 2, after = 0x5a + size % 2;
    job_fill(here, size, size);
    back[0] = back[size + 1] = 0x33;
    gex_RMA_PutBlockingVal(tm, rank, there, before, 1, 0);
    gex_RMA_PutBlockingVal(tm, rank, there + 1 + size, after, 1, 0);
    gex_Event_Wait(gex_RMA_PutNB(tm, rank, there + 1, here, size, GEX_EVENT_NOW, 0));
    gex_Event_Wait(gex_RMA_GetNB(tm, back + 1, rank, there + 1, size, 0));
    CHECK_PATTERN(back + 1, size, size);
    CHECK(back[0] == 0x33 && back[size + 1] == 0x33, "a get of %zu bytes", size);
    CHECK(gex_RMA_GetBlockingVal(tm, rank, there, 1, 0) == before, "a put of %zu bytes", size);
    CHECK(gex_RMA_GetBlockingVal(tm, rank, there + 1 + size, 1, 0) == after, "a put of %zu bytes",
          size);
}

/* There and back, of sizes that the compiler does not know, and of one that it knows. */
static void transfer(gex_TM_t tm, gex_Rank_t rank, char *there)
{
    char here[8], back[8];
    for (size_t size = 1; size <= LARGEST; size += size < 68 ? 1 : 97)
        transfer_size(tm, rank, there, size);
    job_fill(here, sizeof(here), 1);
    CHECK(gex_RMA_PutBlocking(tm, rank, there, here, 8, 0) == GASNET_OK);
    CHECK(gex_RMA_GetBlocking(tm, back, rank, there, 8, 0) == GASNET_OK);
    CHECK(memcmp(here, back, 8) == 0);
    CHECK(gex_RMA_PutBlockingVal(tm, rank, there, 17, 8, 0) == GASNET_OK);
    CHECK(gex_RMA_GetBlockingVal(tm, rank, there, 8, 0) == 17);
}

/* The handle is not for inlined code. */
static void by_library(gex_TM_t tm, gex_Rank_t rank, char *base)
{
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK(word(tm, r) == TRUNKLINE_UNMAPPED, "rank %u", r);
    transfer(tm, rank, base + 64 * job.rank * 16);
    CHECK(word(tm, rank) == TRUNKLINE_UNMAPPED);
}

static void teams_of_endpoints_0(void)
{
    void *local = NULL;
    char *there = job_remote(peer, 1024 * (size_t)job.rank);
    gex_TM_t part, turned;
    job_phase("endpoints 0");
    transfer(job.tm, peer, there);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(job.tm, peer, NULL, &local, NULL, 0));
    CHECK((word(job.tm, peer) != TRUNKLINE_UNMAPPED) == is_near);
    CHECK(!is_near || word(job.tm, peer) + (uintptr_t)job_remote(peer, 0) == (uintptr_t)local);
    CHECK(word(job.tm, job.rank) == 0);
    gex_TM_Split(&part, job.tm, 0, (int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK(word(part, peer) == word(job.tm, peer));
    transfer(part, peer, there);
    job_phase("a team in the opposite order");
    gex_TM_Split(&turned, job.tm, 0, 2 - (int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK(gex_TM_QueryRank(turned) == peer);
    by_library(turned, job.rank, job_remote(peer, 0));
}

static void other_endpoints(int index)
{
    gex_EP_Location_t members[2];
    gex_TM_t team, pair = gex_TM_Pair(job.ep, (gex_EP_Index_t)index);
    job_phase("endpoint %d", index);
    by_library(pair, peer, base_of(pair, peer));
    by_library(gex_TM_Pair(ends[HOST], (gex_EP_Index_t)index), peer, base_of(pair, peer));
    for (gex_Rank_t r = 0; r < 2; r++)
        members[r] = (gex_EP_Location_t){r, (gex_EP_Index_t)index};
    gex_TM_Create(&team, 1, job.tm, members, 2, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (gex_Rank_t r = 0; r < 2; r++)
        CHECK(word(team, r) == TRUNKLINE_UNMAPPED);
    job_barrier();
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, SIZE);
    CHECK(job.size == 2 && argc == 2);
    peer = 1 - job.rank;
    is_near = job_is_neighbour(peer);
    CHECK(is_near == !strcmp(argv[1], "near"), "expected: %s", argv[1]);
    publish();
    teams_of_endpoints_0();
    other_endpoints(DEVICE);
    other_endpoints(HOST);
    job_phase("pairs of endpoints 0");
    by_library(gex_TM_Pair(job.ep, 0), peer, job_remote(peer, 0));
    job_end();
}
